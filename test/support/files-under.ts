/** The files of a board that may be running: files deleted meanwhile are skipped. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What `read` returns; undefined if the file is gone. */
function ignoreMissing<Found>(read: () => Found): Found | undefined {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Names, relative to the directory, with their bytes. */
export function* filesUnder(directory: string, below = ''): Generator<readonly [name: string, bytes: Buffer]> {
  for (const entry of ignoreMissing(() => readdirSync(join(directory, below), { withFileTypes: true })) ?? []) {
    const name = join(below, entry.name)
    if (entry.isDirectory()) yield* filesUnder(directory, name)
    const bytes = entry.isFile() ? ignoreMissing(() => readFileSync(join(directory, name))) : undefined
    if (bytes !== undefined) yield [name, bytes]
  }
}
