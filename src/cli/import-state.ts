/**
 * The progress of an import, in a file next to its input, so that a killed import can resume.
 *
 * JSON lines: first `{"broadside_import":1,"service_id","seed_check"}`, then `["<corpus id>","<event id>"]` for every acknowledged post.
 * Rows are written in groups without a sync, because nothing depends on them: if a crash loses a row, the post is sent again with the same
 * `request_id`, and the board answers with the first event id.
 */

import { hash } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { CommandFailed } from './command-line.ts'

const rowsPerWrite = 256

type ImportIdentity = { readonly serviceId: string; readonly seed: Uint8Array }

export class ImportState {
  readonly #path: string
  readonly #eventIds: Map<string, string>
  #rows: string[] = []

  private constructor(path: string, eventIds: Map<string, string>) {
    this.#path = path
    this.#eventIds = eventIds
  }

  /**
   * Opens or creates the file. Throws CommandFailed if it cannot, if the file belongs to another board or seed, or if it is damaged before
   * its last line.
   */
  static open(path: string, identity: ImportIdentity): ImportState {
    const header = headerOf(identity)
    let kept: string | undefined
    try {
      if (existsSync(path)) kept = readFileSync(path, 'utf8')
      else writeFileSync(path, `${header}\n`, { mode: 0o600 })
    } catch (error) {
      throw new CommandFailed(
        `Progress cannot be saved in ${path} (${(error as Error).message}). Name another file with --state FILE.`,
      )
    }
    if (kept === undefined) return new ImportState(path, new Map())
    const lines = kept.split('\n')
    // A kill may have torn the last row; the others are whole.
    const torn = lines.pop() ?? ''
    if (lines[0] !== header && !(lines.length === 0 && header.startsWith(torn))) {
      throw new CommandFailed(
        `${path} is the progress of an import into another board or with another seed. ` +
          'Give the --seed and --url of that import, or start over with --state NEWFILE.',
      )
    }
    const eventIds = readRows(lines.slice(1), path)
    if (torn !== '' || lines.length === 0) rewrite(path, header, lines.slice(1))
    return new ImportState(path, eventIds)
  }

  get count(): number {
    return this.#eventIds.size
  }

  eventIdOf(corpusId: string): string | undefined {
    return this.#eventIds.get(corpusId)
  }

  record(corpusId: string, eventId: string): void {
    this.#eventIds.set(corpusId, eventId)
    this.#rows.push(JSON.stringify([corpusId, eventId]))
    if (this.#rows.length >= rowsPerWrite) this.flush()
  }

  flush(): void {
    if (this.#rows.length === 0) return
    appendFileSync(this.#path, `${this.#rows.join('\n')}\n`)
    this.#rows = []
  }
}

function headerOf({ serviceId, seed }: ImportIdentity): string {
  // The check distinguishes seeds without revealing anything about them.
  const check = hash('sha256', Buffer.concat([Buffer.from('broadside-import-check\n'), seed])).slice(0, 16)
  return JSON.stringify({ broadside_import: 1, service_id: serviceId, seed_check: check })
}

function readRows(lines: readonly string[], path: string): Map<string, string> {
  const eventIds = new Map<string, string>()
  for (const [index, line] of lines.entries()) {
    const row = parseRow(line)
    if (row === undefined) {
      throw new CommandFailed(
        `${path}, line ${index + 2} is damaged. Start over with --state NEWFILE; the board recognizes posts of the last 24 h.`,
      )
    }
    eventIds.set(row[0], row[1])
  }
  return eventIds
}

function parseRow(line: string): [string, string] | undefined {
  try {
    const row: unknown = JSON.parse(line)
    if (!Array.isArray(row) || row.length !== 2) return undefined
    const [corpusId, eventId] = row as unknown[]
    if (typeof corpusId !== 'string' || typeof eventId !== 'string') return undefined
    return /^[0-9a-f]{32}$/.test(eventId) ? [corpusId, eventId] : undefined
  } catch {
    return undefined
  }
}

function rewrite(path: string, header: string, rows: readonly string[]): void {
  writeFileSync(path, `${[header, ...rows].join('\n')}\n`)
}
