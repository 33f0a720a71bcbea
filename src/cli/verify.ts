/** `broadside verify`: checks an export, a proof, a tlog-proof file, or a mirror without the board. */

import { readFileSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { type OpenCheckpoint, openCheckpoint } from '../../storage/checkpoint.ts'
import { HASH_BYTES, leafHash, rootOf } from '../../storage/merkle.ts'
import { parseVkey, type VerifierKey } from '../../storage/note.ts'
import { formatTilePath, newTiles, TILE_WIDTH, type TilePath } from '../../storage/tile-path.ts'
import type { LedgerBooks } from '../export-check/ledger-books.ts'
import { readOnThisThread, readOnThreads } from '../export-check/readers.ts'
import { parseStrictJson } from '../format/strict-json.ts'
import { machine } from '../platform.ts'
import { BoardClient } from './client.ts'
import {
  type Arguments,
  type Command,
  CommandFailed,
  type ExitCode,
  exitCodes,
  print,
  type Terminal,
  Unverified,
  UsageError,
} from './command-line.ts'
import { type LineSource, openLines } from './lines.ts'
import { LogTiles } from './log-tiles.ts'
import { entriesIn, MirrorStore, rootOfHashes } from './mirror-store.ts'
import { Progress } from './progress.ts'
import { bytesText, durationText, grouped, inertLine, wordOf } from './terminal.ts'
import { type ExportReport, verifyExport } from './verify-export.ts'
import { type ProvenFacts, verifyProofJson, verifyProofText } from './verify-proof.ts'

/** A field, including everything in it. */
type BoardClaim = readonly [of: string, fields: readonly string[]]

const boardClaims: readonly BoardClaim[] = [
  ['an event', ['author.handle', 'votes', 'via', 'superseded_by']],
  ['an attachment', ['filename', 'media_type', 'size', 'sha256', 'url', 'gone', 'reason']],
  ['a post addressed to a handle', ['to_id']],
  ['a reply', ['thread']],
  ['a reply that does not name its page', ['actual_page']],
  ['a version that does not name its place', ['thread', 'page', 'reply_to']],
  ['a version that does not name its kind', ['actual_kind']],
  ['a version that does not name its format', ['actual_format']],
  [
    'a tombstone',
    [
      ...['author', 'page', 'kind', 'reply_to', 'to', 'thread', 'supersedes', 'superseded_by'],
      ...['reason', 'hidden_by', 'votes', 'via', 'redaction if absent'],
    ],
  ],
  ['an unsigned end of a delegation', ['identity', 'ended_by']],
]

/**
 * What `broadside verify` must take from the board on trust, because it is unsigned, or what was signed is not in the file. Everything else
 * in a complete export follows from signatures and hashes, and changes to it are detected. For `--help`.
 */
export const boardClaimsHelp: readonly string[] = [
  'Stated by the board alone; checking the file cannot prove it:',
  ...boardClaims.map(([of, fields]) => `  of ${of}: ${fields.join(', ')}`),
  '  and fields that this program does not know. An absent field states its default: plain text, no file, not hidden.',
  '',
  'It does not prove that a file has every post, tombstone or end of a delegation. What is left out is one of the “other',
  'entries” of the log, like posts that expire or are in rooms with archive false, moderation, credits and delegations.',
  'Numbers of a room that are missing before its last line are counted: they are of posts that expire, or were left out.',
  'A mirror has all entries. Nor does it prove that the log has not grown since, or that others were shown the same log:',
  'compare checkpoints with them, or ask its witnesses.',
]

/** A proof is a few kilobytes; a larger file is an export. */
const proofFileBytesMax = 512 * 1024

export const verifyCommand: Command = {
  name: 'verify',
  summary:
    'Checks an export (signatures, ids, inclusion), a proof answer, a .tlog-proof file or a mirror, without the board.',
  usage: 'verify FILE|DIR [--ledger] --vkey VKEY',
  optionHelp: [
    ['--ledger', 'the file is the public ledger (/v1/export?stream=ledger): replay its accounts'],
    ['--vkey VKEY', 'the log’s key, pinned: as you saved it earlier from /log/vkey or /capabilities'],
    ['--url URL', 'take the key from this board instead (the board is then trusted for it)'],
    ['--from URL', 'prove the lines of a filtered or paged export against the log’s tiles at this board'],
    ['--unpinned', 'accept the key that the file itself names: it proves that nothing is broken, not whose log it is'],
    ['--imported-from ID', 'for a board that was imported without its old keys: the service id that it had before'],
    ['--threads N', 'threads that read and check lines (default: one per core; none for a small file)'],
  ],
  example: "broadside verify export.jsonl --vkey '127.0.0.1:8787/log/2026a+34815444+AdBKsjJ0K7SrOhNov…'",
  notes: boardClaimsHelp,
  options: {
    ledger: { type: 'boolean' },
    vkey: { type: 'string' },
    url: { type: 'string' },
    from: { type: 'string' },
    unpinned: { type: 'boolean' },
    'imported-from': { type: 'string' },
    threads: { type: 'string' },
  },
  positionals: { min: 1, max: 1 },
  async run(args, terminal) {
    const path = args.positionals[0]!
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return checkMirror(path, args, terminal)
    const source = openLines(path)
    const threads = args.integer('threads', { fallback: threadsFor(source), min: 0, max: 64 })
    const key = await pinnedKey(args)
    const proof = source.fileBytes <= proofFileBytesMax ? readProof(path) : undefined
    if (proof !== undefined) {
      printProof(proof.verify(key?.key), key, terminal)
      return endOf(key, args)
    }
    const from = args.text('from')
    const tiles = from === undefined ? undefined : await LogTiles.open(from, key!.key)
    const report = await checkExport(source, {
      key,
      tiles,
      threads,
      importedFrom: args.text('imported-from'),
      terminal,
    })
    if (args.flag('ledger') && report.ledger === undefined)
      throw new CommandFailed(`${path} is not a ledger: get one with /v1/export?stream=ledger.`)
    if (report.first === undefined) return endOf(key, args)
    const { line, reason } = report.first
    const others = report.failures - 1
    const more = others === 0 ? '' : ` (${grouped(others)} more ${others === 1 ? 'failure' : 'failures'} in the file)`
    throw new Unverified(`${path}, line ${line}: ${reason}${more}.`)
  },
}

/** Without a pinned key, a consistent file may be anyone's log. */
function endOf(key: LogKey | undefined, args: Arguments): ExitCode {
  if (key !== undefined || args.flag('unpinned')) return exitCodes.ok
  throw new Unverified(
    'no key was pinned, so this may be anyone’s log. Give the key that you saved from the board with --vkey, or accept it with --unpinned.',
  )
}

async function checkMirror(path: string, args: Arguments, terminal: Terminal): Promise<ExitCode> {
  const store = new MirrorStore(path)
  const kept = store.text('vkey').trim()
  if (kept === '')
    throw new CommandFailed(`${path} is not a mirror: it has no vkey. Make one with: broadside mirror URL DIR`)
  // A mirror stores the key that it was begun with, and no later run accepts another.
  const pinned = await pinnedKey(args)
  const own = parseVkey(kept)
  if (!own.ok) throw damagedKey(path, `is not a log's key: ${own.problem}`)
  if (pinned !== undefined && !isSameKey(own.value, pinned.key)) throw damagedKey(path, 'names another log or key')
  const key = pinned ?? { key: own.value, isPinned: false, from: 'the mirror itself' }
  const progress = new Progress({ terminal, unit: 'entries' })
  try {
    const { origin, size } = verifyMirror(store, key.key, (done, of) => progress.update(done, of))
    progress.clear()
    const facts = { log: origin, entries: size, pinned: key.isPinned }
    const rows = [
      ['log', inertLine(origin)],
      ['entries', `${grouped(size)}: every entry hashes to its tile, every tile to the one above`],
      ['checkpoint', checkpointText(true, key)],
    ] as const
    print(terminal, facts, table(rows))
    return exitCodes.ok
  } finally {
    progress.clear()
  }
}

/** `what` is wrong with the file. A later run of mirror trusts only the key in it. */
function damagedKey(path: string, what: string): Unverified {
  return new Unverified(
    `${join(path, 'vkey')} ${what}. If the mirror was begun with the key that you saved, write that key into this file.`,
  )
}

function isSameKey(one: VerifierKey, other: VerifierKey): boolean {
  return one.name === other.name && one.type === other.type && one.publicKey.equals(other.publicKey)
}

/** Starting threads takes as long as checking this many bytes without them. */
const singleThreadBytesMax = 1024 * 1024

/** How many threads are worth starting for a file. */
export function threadsFor({ fileBytes }: LineSource): number {
  return fileBytes <= singleThreadBytesMax ? 0 : availableParallelism()
}

type LogKey = { readonly key: VerifierKey; readonly isPinned: boolean; readonly from: string }

async function pinnedKey(args: Arguments): Promise<LogKey | undefined> {
  const vkey = args.text('vkey')
  if (vkey !== undefined) return { key: keyOf(vkey, UsageError), isPinned: true, from: '--vkey' }
  const url = args.text('url') ?? args.text('from')
  if (url === undefined) return undefined
  const client = new BoardClient({ url })
  try {
    const { log } = await client.capabilities()
    return { key: keyOf(log.vkey, CommandFailed), isPinned: false, from: url }
  } finally {
    client.close()
  }
}

function keyOf(vkey: string, Failure: new (message: string) => Error): VerifierKey {
  const parsed = parseVkey(vkey)
  if (!parsed.ok) throw new Failure(`"${inertLine(vkey)}" is not a log's key: ${parsed.problem}.`)
  return parsed.value
}

type FoundProof = { verify(key: VerifierKey | undefined): ProvenFacts }

/** The proof in the file; undefined if it is something else. */
function readProof(path: string): FoundProof | undefined {
  const bytes = readFileSync(path)
  if (bytes.subarray(0, 20).toString('latin1') === 'c2sp.org/tlog-proof@') {
    return {
      verify(key) {
        if (key !== undefined) return verifyProofText(bytes, key)
        throw new UsageError('A .tlog-proof file names no key. Give the log’s key with --vkey, or --url of the board.')
      },
    }
  }
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
  const answer = Object(value) as { ok?: unknown; error?: unknown; data?: unknown; inclusion_path?: unknown }
  if (answer.ok === false && answer.inclusion_path === undefined && answer.data === undefined)
    throw new Unverified(
      `${path} contains no proof, but a refusal of the board: ${inertLine(wordOf(Object(answer.error).message))}.`,
    )
  const proof = Object(answer.inclusion_path === undefined ? answer.data : answer) as Record<string, unknown>
  if (proof.inclusion_path === undefined) return undefined
  return {
    verify(key) {
      const strict = parseStrictJson(bytes)
      if (!strict.ok) throw new Unverified(`The proof is not strict JSON: ${strict.message}.`)
      const named = Object(proof.log) as { vkey?: unknown }
      return verifyProofJson(proof, key ?? keyOf(wordOf(named.vkey), Unverified))
    },
  }
}

function printProof(facts: ProvenFacts, key: LogKey | undefined, terminal: Terminal): void {
  const rows = [
    ['event', facts.eventId],
    ['log', inertLine(facts.origin)],
    ['leaf', `${grouped(facts.index)} of ${grouped(facts.size)}, path of ${facts.pathHashes} hashes: verified`],
    [
      'signed bytes',
      facts.hasSignedBytes ? 'hash to the entry: verified' : 'not in the file: the entry alone was verified',
    ],
    ['checkpoint', `signed by the log: verified, ${keyText(key, 'the file itself')}`],
  ] as const
  const { eventId, index, size, origin, hasSignedBytes } = facts
  const pinned = key?.isPinned === true
  const shown = { event_id: eventId, log: origin, leaf: index, size, signed_bytes: hasSignedBytes, pinned }
  print(terminal, shown, table(rows))
}

type ExportCheck = {
  readonly key: LogKey | undefined
  /** The log, if a part of an export is to be proved against it. */
  readonly tiles?: LogTiles | undefined
  readonly threads: number
  /** Service id that the board had before it was imported. */
  readonly importedFrom?: string | undefined
  readonly terminal: Terminal
}

/** Checks an export and prints its table; failures are in the report. Also used by `demo`. */
export async function checkExport(
  source: LineSource,
  { key, tiles, threads, importedFrom, terminal }: ExportCheck,
): Promise<ExportReport> {
  const reader = threads === 0 ? readOnThisThread() : await readOnThreads(threads, machine.startPool)
  const progress = new Progress({ terminal, unit: 'lines' })
  try {
    const report = await verifyExport({
      lines: source.lines(),
      reader,
      logKey: key?.key,
      tiles,
      importedFrom,
      progress: (lines) => {
        const share = source.share()
        progress.update(lines, share === 0 ? undefined : lines / share)
      },
    })
    progress.clear()
    if (report.lines === 0) throw new CommandFailed('The file is empty: there is nothing to verify.')
    const rows = rowsOf(report, key, { fileBytes: source.fileBytes, seconds: progress.secondsSpent() })
    print(terminal, factsOf(report, key), table(rows))
    return report
  } catch (error) {
    if (error instanceof CommandFailed) throw error
    throw new Unverified(`The file cannot be read to its end (${(error as Error).message}).`)
  } finally {
    progress.clear()
    await reader.close()
  }
}

function factsOf(report: ExportReport, key: LogKey | undefined): object {
  const { lines, events, tombstones, rotations, signatures, leaves, failures, gaps, checkpoint, isSignedByLog } = report
  return {
    ...{ lines, events, tombstones, rotations, signatures, leaves, failures },
    ...(checkpoint === undefined ? {} : { log: checkpoint.origin, size: checkpoint.size }),
    ...(gaps.length === 0 ? {} : { numbers_missing: Object.fromEntries(gaps) }),
    checkpoint_signed: isSignedByLog === true,
    pinned: key?.isPinned === true,
  }
}

type Cost = { readonly fileBytes: number; readonly seconds: number }

function rowsOf(
  report: ExportReport,
  key: LogKey | undefined,
  { fileBytes, seconds }: Cost,
): (readonly [string, string])[] {
  const { leaves, named, checkpoint, isSignedByLog } = report
  const rows = report.ledger === undefined ? recordRows(report) : ledgerRows(report.ledger)
  if (report.hasEnd && checkpoint !== undefined) {
    const others = leaves - named
    rows.push(['log', inertLine(checkpoint.origin)])
    rows.push([
      'leaves',
      `${grouped(leaves)}; ${grouped(named)} are lines of this file, ${grouped(others)} other entries${
        report.ledger === undefined && others > 0 ? ' (other kinds, and posts that the file leaves out)' : ''
      }`,
    ])
    if (report.gaps.length > 0) rows.push(['numbers missing', gapsText(report.gaps)])
    const closed = report.closedLogs - report.lostLogs
    if (closed > 0)
      rows.push(['closed logs', `${grouped(closed)}, each tied to the one that follows it by both their entries`])
    if (report.lostLogs > 0)
      rows.push([
        'lost ends',
        `of ${grouped(report.lostLogs)} ${report.lostLogs === 1 ? 'log' : 'logs'}: the log that follows names it; nothing that it signed names the one that follows`,
      ])
    rows.push(['checkpoint', checkpointText(isSignedByLog, key)])
  } else if (report.provedAt !== undefined) {
    const of = `${grouped(report.named)} leaves under the signed root of ${grouped(report.provedAt)}, by the log’s tiles`
    rows.push(['inclusion', `${of}: verified, ${keyText(key, 'the board')}`])
    if (report.elsewhere > 0)
      rows.push([
        'other logs',
        `${grouped(report.elsewhere)} leaves are in logs signed with another key: NOT CHECKED, give that key with --vkey`,
      ])
  } else {
    rows.push([
      'inclusion',
      'NOT CHECKED: a filtered or paged export has no leaves; give the board with --from URL to prove its lines',
    ])
  }
  if (report.unsettled > 0)
    rows.push([
      'not settled',
      `${grouped(report.unsettled)} lines name a key or a version that only the rest of the export explains`,
    ])
  if (report.unlogged > 0)
    rows.push([
      'in no log',
      `${grouped(report.unlogged)} lines, such as those of private rooms: NOT CHECKED except for their signatures`,
    ])
  rows.push(['failures', grouped(report.failures)])
  rows.push([
    'read',
    `${bytesText(fileBytes)} in ${durationText(seconds)} (${bytesText(Math.round(fileBytes / Math.max(seconds, 0.001)))}/s)`,
  ])
  return rows
}

const roomsShownMax = 5

/** Of all posts in a room that is exported, only those that expire have no line. */
function gapsText(gaps: ExportReport['gaps']): string {
  const total = gaps.reduce((sum, [, missing]) => sum + missing, 0)
  const shown = gaps.slice(0, roomsShownMax).map(([room, missing]) => `${inertLine(room)} ${grouped(missing)}`)
  const more = gaps.length > shown.length ? `, and ${grouped(gaps.length - shown.length)} more rooms` : ''
  return `${grouped(total)} (${shown.join(', ')}${more}): posts that expire have no line, and every other post of a room has one`
}

function recordRows({ events, tombstones, rotations, signatures }: ExportReport): [string, string][] {
  return [
    ['events', grouped(events)],
    [
      'tombstones',
      `${grouped(tombstones)} (text gone: id, room and place are proved; author and reason are stated by the board alone)`,
    ],
    ['key rotations', grouped(rotations)],
    ['signatures good', grouped(signatures)],
    [
      'board’s word',
      'handles, votes, via, names and hashes of attachments, threads of replies (verify --help lists all)',
    ],
  ]
}

function ledgerRows({ postings, works, supply, open }: LedgerBooks): [string, string][] {
  return [
    ['postings', `${grouped(postings)}, numbered without a gap`],
    ['works', `${grouped(works)}: every hold resolved once or open, every escrow empty after its payments`],
    ['held now', `${grouped(open.amount)} credits in ${grouped(open.holds)} holds`],
    ['supply', `${grouped(supply)} credits created and not burned`],
  ]
}

function checkpointText(isSignedByLog: boolean | undefined, key: LogKey | undefined): string {
  if (isSignedByLog === undefined) return 'root recomputed; its signature NOT CHECKED: give the log’s key with --vkey'
  return isSignedByLog ? `root recomputed, signed by the log: verified, ${keyText(key, 'the file')}` : 'does NOT verify'
}

function keyText(key: LogKey | undefined, otherwise: string): string {
  if (key?.isPinned) return 'with the key you pinned'
  return `with the key that ${key?.from ?? otherwise} names (not pinned: give --vkey to be sure whose log it is)`
}

function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, text]) => `${name.padEnd(width)}  ${text}\n`).join('')
}

/**
 * Checks a mirror without the log: every entry, every hash, and the signature on the resulting root. Throws Unverified with the wrong file,
 * and what to do.
 */
export function verifyMirror(
  store: MirrorStore,
  key: VerifierKey,
  progress: (entries: number, of: number) => void,
): OpenCheckpoint {
  const opened = openCheckpoint(store.text('checkpoint'), key)
  if (!opened.ok) throw damaged(`its checkpoint does not verify: ${opened.problem}`)
  const { size, root } = opened.value
  for (const tile of newTiles(0, size)) {
    if (tile.level === 0) checkEntries(store, tile)
    else checkUpper(store, tile)
    progress(Math.min(size, (tile.index + 1) * TILE_WIDTH), size)
  }
  if (!rootOf(store.nodes(size), size).equals(root))
    throw damaged('its tiles do not give the root of the signed checkpoint')
  return opened.value
}

function checkEntries(store: MirrorStore, tile: TilePath): void {
  const path: TilePath = { ...tile, kind: 'entries' }
  const entries = entriesIn(present(store, path)) ?? []
  if (entries.length !== tile.width) throw damaged(`${formatTilePath(path)} does not contain ${tile.width} entries`)
  const hashes = Buffer.concat(entries.map((entry) => leafHash(entry)))
  if (!hashes.equals(present(store, tile)))
    throw damaged(`${formatTilePath(path)} and ${formatTilePath(tile)} are inconsistent`)
}

function checkUpper(store: MirrorStore, tile: TilePath): void {
  const bytes = present(store, tile)
  for (let n = 0; n < tile.width; n++) {
    const index = tile.index * TILE_WIDTH + n
    const child = present(store, { kind: 'hashes', level: tile.level - 1, index, width: TILE_WIDTH })
    if (!rootOfHashes(child).equals(bytes.subarray(n * HASH_BYTES, (n + 1) * HASH_BYTES)))
      throw damaged(`${formatTilePath(tile)} does not match the tiles below it`)
  }
}

function present(store: MirrorStore, tile: TilePath): Buffer {
  const bytes = store.read(tile)
  if (bytes === undefined) throw damaged(`${formatTilePath(tile)} is missing`)
  return bytes
}

function damaged(what: string): Unverified {
  return new Unverified(`The mirror is damaged: ${what}. Remove it and mirror again.`)
}
