/**
 * What a start works out of the program's own files, kept for the next start: modules without their types, and what V8 compiled.
 *
 * It stands under `node_modules/.cache/broadside`, which belongs to whoever installed the program, and may always be deleted. Where
 * it cannot be written nothing is kept, and a start costs what it did. A start of an empty board takes 0.97 to 1.27 s of processor time
 * with it, 1.44 to 1.79 without.
 *
 * A module without its types is kept under the SHA-256 of the file that it was made of, behind the SHA-256 of itself: nothing here is
 * synced, and what a power cut leaves of it is not run. V8's cache is Node's own, with checks of its own.
 */
import { hash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { threadId } from 'node:worker_threads'

const directory = join(import.meta.dirname, '../../node_modules/.cache/broadside')
/** Another release of Node may strip in another way. */
const stripped = join(directory, `stripped-${process.version}`)
const digestLength = 64

/** What each thread tells Node at its beginning (`enableCompileCache`): it writes down what V8 compiled there when it ends. */
export const compiled = join(directory, 'compiled')

/** `make` of this source text, or what was kept of it in `folder`. */
export function madeOnce(source: string, make: (source: string) => string, folder = stripped): string {
  const path = join(folder, `${hash('sha256', source)}.js`)
  const found = wholeAt(path)
  if (found !== undefined) return found
  const made = make(source)
  keep(path, made)
  return made
}

function wholeAt(path: string): string | undefined {
  try {
    const kept = readFileSync(path, 'utf8')
    const text = kept.slice(digestLength)
    return hash('sha256', text) === kept.slice(0, digestLength) ? text : undefined
  } catch {
    return undefined
  }
}

/** Another process may keep the same at this moment: each writes a file of its own, and the last one stays. */
function keep(path: string, made: string): void {
  const mine = `${path}.${process.pid}-${threadId}`
  try {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(mine, hash('sha256', made) + made)
    renameSync(mine, path)
  } catch {
    // Read-only, full, or gone meanwhile: the next start makes it again.
  }
}
