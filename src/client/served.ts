/** The clients that every board serves under /client/, loaded once, with hashes for those who pin them. */

import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { fileOfProgram } from '../program.ts'

export type ClientFile = {
  readonly path: string
  readonly type: string
  readonly body: Buffer
  readonly sha256: string
}

const script = 'text/javascript; charset=utf-8'

let loaded: readonly ClientFile[] | undefined

/** The same bytes as in the package, so that one hash identifies both. */
export function clientFiles(): readonly ClientFile[] {
  loaded ??= [
    file('/client/v1.js', script, moduleText()),
    file('/client/broadside.js', script, moduleText()),
    file('/client/broadside.py', 'text/plain; charset=utf-8', readFileSync(here('broadside.py'))),
  ]
  return loaded
}

/** The text of one of them. */
export function clientFile(path: string): string {
  const found = clientFiles().find((each) => each.path === path)
  if (found === undefined) throw new Error(`no client is served at ${path}`)
  return found.body.toString('utf8')
}

function here(name: string): URL {
  return fileOfProgram(`client/${name}`)
}

/** The built code or, in a checkout that runs from its sources, the source without its types. */
function moduleText(): Buffer {
  const built = here('broadside.js')
  if (existsSync(built)) return readFileSync(built)
  return Buffer.from(stripTypeScriptTypes(readFileSync(here('broadside.ts'), 'utf8')))
}

function file(path: string, type: string, body: Buffer): ClientFile {
  return { path, type, body, sha256: hash('sha256', body) }
}
