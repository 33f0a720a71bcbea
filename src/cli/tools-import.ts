/**
 * `broadside tools import`: reads a list, checks every row by the rules of the directory, and sends the valid ones in batches, each a
 * separate signed command of an operator. If it is killed, start it again: rows that were already imported change nothing.
 */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { RowSchema, rowsMax } from '../../actors/tools/results.ts'
import { compile } from '../format/schema-check.ts'
import { type ListRow, rowsOf } from '../tools/list-rows.ts'
import { floodMax } from '../tools/rank.ts'
import { BadAnswer, BoardClient, Refused } from './client.ts'
import { type Arguments, CommandFailed, type ExitCode, exitCodes, print, type Terminal } from './command-line.ts'
import { openKeyFile } from './key-file.ts'
import { capabilitiesToSign } from './known-boards.ts'
import { openLines } from './lines.ts'
import { Progress } from './progress.ts'
import { keyFileOf, urlOf } from './shared-options.ts'
import { signCommand } from './sign.ts'
import { durationText, grouped, inertLine, wordOf } from './terminal.ts'

/** A document that is a single JSON value is read as a whole. */
const documentBytesMax = 256 * 1024 * 1024
const batchesInFlight = 4
const namesShown = 10
const triesMax = 20

type Read = { readonly rows: ListRow[]; readonly bad: string[]; readonly doubled: number; readonly all: number }
type Sent = { applied: number; unchanged: number; readonly kept: string[] }

export async function importTools(path: string, args: Arguments, terminal: Terminal): Promise<ExitCode> {
  const { signer } = await openKeyFile(keyFileOf(args))
  const client = new BoardClient({ url: urlOf(args), connections: batchesInFlight })
  const progress = new Progress({ terminal, unit: 'rows' })
  try {
    const { serviceId, all } = await capabilitiesToSign(client, terminal)
    const { tools_import_bytes: bytesMax } = Object(all.limits) as { tools_import_bytes?: unknown }
    if (typeof bytesMax !== 'number')
      throw new CommandFailed(`${client.url} has no tools directory: it is an older board.`)
    const read = await readList(path, args.text('source') ?? basename(path))
    const sent: Sent = { applied: 0, unchanged: 0, kept: [] }
    let done = 0
    const batches = batchesOf(read.rows, bytesMax)
    const work = async (): Promise<void> => {
      for (let batch = batches.pop(); batch !== undefined; batch = batches.pop()) {
        const data = JSON.stringify({ schema: 1, rows: batch })
        const sign = () =>
          signCommand(
            { operation: 'tools.import', data },
            { signer, serviceId, nowSeconds: terminal.clock.wallSeconds() },
          )
        if (!add(sent, await send(client, sign)))
          throw new BadAnswer(client.url, 'it does not state which rows it imported')
        done += batch.length
        progress.update(done, read.rows.length)
      }
    }
    await Promise.all(Array.from({ length: batchesInFlight }, work))
    const seconds = progress.secondsSpent()
    progress.clear()
    const { applied, unchanged, kept } = sent
    const facts = { rows: read.all, applied, unchanged, doubled: read.doubled, kept, bad: read.bad, seconds }
    print(terminal, facts, report(read, sent, seconds, args.flag('list')))
    return read.bad.length > 0 ? exitCodes.failed : exitCodes.ok
  } finally {
    progress.clear()
    client.close()
  }
}

/** Sends until it is accepted; waits while the board is busy or rate-limits this client. */
async function send(client: BoardClient, sign: () => { body: Buffer }): Promise<Record<string, unknown>> {
  const { body } = sign()
  for (let tries = 1; ; tries++) {
    try {
      return await client.command(body)
    } catch (error) {
      const wait = error instanceof Refused && error.status === 429 ? error.retryAfterSeconds : undefined
      if (wait === undefined || tries === triesMax || wait > 60) throw error
      await new Promise((resolve) => setTimeout(resolve, wait * 1_000))
    }
  }
}

/** False if this is not the answer to an import. */
function add(sent: Sent, { imported }: Record<string, unknown>): boolean {
  const { applied, unchanged, kept } = Object(imported) as Readonly<Record<string, unknown>>
  if (typeof applied !== 'number' || typeof unchanged !== 'number' || !Array.isArray(kept)) return false
  sent.applied += applied
  sent.unchanged += unchanged
  for (const each of kept) {
    const { id, why } = Object(each) as Readonly<Record<string, unknown>>
    sent.kept.push(`${wordOf(id)}: ${wordOf(why)}`)
  }
  return true
}

async function readList(path: string, source: string): Promise<Read> {
  const rows = new Map<string, ListRow>()
  const bad: string[] = []
  const isRow = compile(RowSchema)
  let doubled = 0
  let all = 0
  const take = (value: unknown, place: string): void => {
    for (const row of rowsOf(value, source)) {
      all++
      if (typeof row === 'string') bad.push(`${place}: ${row}`)
      else if (!isRow(row))
        bad.push(`${place}: ${row.id.slice(0, 80)} ${isRow.errors?.[0]?.instancePath ?? ''} is not valid`)
      else if (rows.has(row.id)) doubled++
      else rows.set(row.id, row)
    }
  }
  const source1 = openLines(path)
  let isFirst = true
  for await (const { number, bytes, isCut } of source1.lines()) {
    if (bytes.length === 0) continue
    const value = isCut ? undefined : parsed(bytes.toString('utf8'))
    // One JSON document on many lines, or on one very long line.
    if (value === undefined && isFirst) {
      if (source1.fileBytes > documentBytesMax) throw new CommandFailed(`${path} is one document, which is too large.`)
      const whole = parsed(readFileSync(path, 'utf8'))
      if (whole === undefined) throw new CommandFailed(`${path} contains neither JSON lines nor a JSON document.`)
      for (const [at, each] of (Array.isArray(whole) ? whole : [whole]).entries()) take(each, `item ${at + 1}`)
      break
    }
    isFirst = false
    if (value === undefined) {
      all++
      bad.push(`line ${number}: it is not JSON`)
    } else for (const each of Array.isArray(value) ? value : [value]) take(each, `line ${number}`)
  }
  return { rows: [...rows.values()], bad, doubled, all }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Batches of the list, each as large as one command may be, in reverse: they are taken from the end. */
function batchesOf(rows: readonly ListRow[], bytesMax: number): ListRow[][] {
  const frame = Buffer.byteLength(JSON.stringify({ schema: 1, rows: [] }))
  const batches: ListRow[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const row of rows) {
    const size = Buffer.byteLength(JSON.stringify(row)) + 1
    if (bytes + size > bytesMax || batches.at(-1)!.length === rowsMax) {
      batches.push([])
      bytes = frame
    }
    batches.at(-1)!.push(row)
    bytes += size
  }
  return batches.reverse()
}

function report({ rows, bad, doubled, all }: Read, sent: Sent, seconds: number, listAll: boolean): string {
  const lines = [
    `${grouped(all)} rows read: ${grouped(sent.applied)} imported, ${grouped(sent.unchanged)} unchanged, in ${durationText(seconds)}.`,
  ]
  const spamRows = countOver(rows, floodMax, ({ url, description }) =>
    url === undefined || description === '' ? undefined : `${new URL(url).hostname}\n${description}`,
  )
  const sameAddress = countOver(rows, 1, ({ url, method }) =>
    url === undefined ? undefined : `${method ?? ''} ${url}`,
  )
  if (spamRows > 0)
    lines.push(
      `${grouped(spamRows)} are flagged as spam: over ${floodMax} from one host with the same description. Search ranks them lower.`,
    )
  if (sameAddress > 0) lines.push(`${grouped(sameAddress)} share their address with another row.`)
  if (doubled > 0) lines.push(`${grouped(doubled)} have the id of an earlier row; the first was imported.`)
  lines.push(...named(sent.kept, 'changed nothing', listAll), ...named(bad, 'are not rows', listAll))
  return `${lines.join('\n')}\n`
}

/** Number of rows in groups with more than `most` of them. */
function countOver(rows: readonly ListRow[], most: number, keyOf: (row: ListRow) => string | undefined): number {
  const groups = new Map<string, number>()
  for (const row of rows) {
    const key = keyOf(row)
    if (key !== undefined) groups.set(key, (groups.get(key) ?? 0) + 1)
  }
  return [...groups.values()].filter((count) => count > most).reduce((sum, count) => sum + count, 0)
}

function named(names: readonly string[], what: string, listAll: boolean): string[] {
  if (names.length === 0) return []
  const shown = listAll ? names : names.slice(0, namesShown)
  const rest = names.length - shown.length
  const more = rest === 0 ? [] : [`  and ${grouped(rest)} more (--list shows them)`]
  return [`${grouped(names.length)} ${what}:`, ...shown.map((name) => `  ${inertLine(name)}`), ...more]
}
