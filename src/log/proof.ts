/**
 * Reads of the log other than its newest head: inclusion and consistency proofs (RFC 9162 2.1.3, with the signed head inside), leaves, and
 * its growth. Each proof is checked before it is sent, so a damaged node file is detected and never yields a wrong proof.
 */

import { refusal } from '../../actors/kernel/refusals.ts'
import { leavesMax } from '../../actors/kernel/results.ts'
import type { BookedLog, LogBook } from '../../actors/log/book.ts'
import { noLeaf } from '../../actors/log/public-records.ts'
import { historyLogsMax, historyPointsMax } from '../../actors/log/results.ts'
import type { AnsweredBy } from '../../actors/operations.ts'
import type { Head } from '../../actors/records/answer.ts'
import { type EventIndex, none } from '../../actors/records/event-index.ts'
import { frameEntry, fromFrame } from '../../actors/records/record.ts'
import type { State } from '../../actors/state.ts'
import { leafHash } from '../../storage/merkle.ts'
import { verifyConsistency, verifyInclusion } from '../../storage/merkle-verify.ts'
import { formatProofFile } from '../../storage/proof-file.ts'
import type { TreeReader } from '../../storage/tree-reader.ts'
import { ok, type ReadAnswer, type ReadContext, type ReadRequest, unending } from '../reads/read.ts'

export type ProofContext = ReadContext & {
  /** The tree of a log. */
  readonly treeOf: (log: BookedLog) => TreeReader
  readonly vkeyOf: (log: BookedLog) => string
  /** The signed head of exactly this size, or undefined if none was signed. */
  readonly headOf: (log: BookedLog, size: number) => Head | undefined
  /** Entries start..end-1 with their lengths, as in a C2SP bundle. */
  readonly entries: (log: BookedLog, start: number, end: number) => Buffer
  /** Requested by a command rather than a plain GET. */
  readonly isCommand: boolean
}

/** The tree file has no valid path from a leaf to its signed root. */
export class Unproved extends Error {
  override readonly name = 'Unproved'
  /** The log that the tree belongs to. */
  readonly log: BookedLog

  constructor(message: string, log: BookedLog) {
    super(message)
    this.log = log
  }
}

/** Throws Unproved or TreeFileShort: the caller should then repair the tree file and request the proof again. */
function proofAnswer(context: ProofContext, { args }: ReadRequest): ReadAnswer {
  const { state } = context
  const id = String(args.event_id)
  const found = leafOf(state, id)
  if (found === undefined)
    return { ok: false, refusal: refusal('not_found', `the public log contains no event ${id}`, 'event_id') }
  const log = state.book.holding(found.leaf)
  const head = args.tree_size === undefined ? log.head : context.headOf(log, Number(args.tree_size))
  const index = found.leaf - log.base
  if (head === undefined || index >= head.size) {
    return {
      ok: false,
      refusal: refusal(
        'not_found',
        `no head of size ${args.tree_size} that covers leaf ${index} was signed`,
        'tree_size',
      ),
    }
  }
  const frame = context.frame(found.shard, found.place)
  const entry = frameEntry(frame)
  const leaf = leafHash(entry)
  const path = context.treeOf(log).inclusionPath(index, head.size)
  const root = rootOfHead(head)
  if (!verifyInclusion(BigInt(index), BigInt(head.size), leaf, path, root)) {
    throw new Unproved(`the tree file gives no valid proof for leaf ${index} at size ${head.size}`, log)
  }
  if (args.format === 'tlog-proof')
    return proofFile(context, id, formatProofFile({ extra: entry, index, path, checkpoint: head.checkpoint }))
  const isGone = found.slot !== undefined && state.marks.gone(found.slot, context.now()) !== undefined
  const proof = {
    log: { origin: log.origin, vkey: context.vkeyOf(log) },
    event_id: id,
    leaf_index: index,
    leaf_hash: leaf.toString('hex'),
    entry: entry.toString('base64'),
    tree_size: head.size,
    root_hash: root.toString('hex'),
    inclusion_path: path.map((hash) => hash.toString('hex')),
    checkpoint: head.checkpoint,
    ...(isGone ? {} : { signed_payload: Buffer.from(fromFrame(frame).by!.signed).toString('utf8') }),
  }
  const end = found.slot === undefined ? unending : state.board.events.expires(found.slot)
  return ok(proof, { until: isGone ? unending : end })
}

/** Locates the record and leaf of a command: an event (with its slot), a redaction, a rotation, or an act of moderation. */
function leafOf(
  { board: { events }, marks, people, moderation }: State,
  id: string,
): { leaf: number; shard: number; place: number; slot?: number } | undefined {
  const slot = events.find(Buffer.from(id, 'hex'))
  if (slot !== none) return { leaf: events.leaf(slot), shard: events.shard(slot), place: events.place(slot), slot }
  const act = moderation.actBy(id)
  const moderated = act === undefined || act.leaf === noLeaf ? undefined : { ...act, place: act.seq }
  return marks.redactionBy(id) ?? people.rotations.find((rotation) => rotation.id === id) ?? moderated
}

/** The standalone proof file, with the entry it proves as its `extra`: as the answer to a GET, or inside the answer to a command. */
function proofFile({ isCommand }: ProofContext, id: string, text: string): ReadAnswer {
  if (isCommand) return ok({ proof_file: text })
  return { ok: true, reply: Buffer.from(text), file: `${id}.tlog-proof`, until: unending }
}

/** The log requested by name, or the one that grows; undefined if this board has no such log. */
function logAsked({ state: { book } }: ProofContext, name: string | number | undefined): BookedLog | undefined {
  return name === undefined ? book.newest : book.named(String(name))
}

function noSuchLog(
  { state: { book } }: ProofContext,
  name: string | number | undefined,
): Extract<ReadAnswer, { ok: false }> {
  const names = book.logs.map((log) => log.name).join(', ')
  return { ok: false, refusal: refusal('not_found', `this board has no log ${name}: its logs are ${names}`, 'log') }
}

/** The answer of log.consistency and /api/log/consistency, checked before it is sent. */
function consistencyAnswer(context: ProofContext, { args }: ReadRequest): ReadAnswer {
  const log = logAsked(context, args.log)
  if (log === undefined) return noSuchLog(context, args.log)
  const from = Number(args.from)
  const to = Number(args.to)
  if (from > to)
    return { ok: false, refusal: refusal('invalid_field', `from must not be greater than to; ${from} > ${to}`, 'from') }
  const { size } = log.head
  if (to > size) return { ok: false, refusal: refusal('not_found', `the log has ${size} entries, not ${to} yet`, 'to') }
  const tree = context.treeOf(log)
  const path = tree.consistencyPath(from, to)
  if (from < to && !isConsistent(tree, log, from, to, path))
    throw new Unproved(`the tree file gives no valid consistency proof from ${from} to ${to}`, log)
  return ok({ from, to, consistency_path: path.map((hash) => hash.toString('hex')) })
}

/** Checked against the signed head, because the file could be equally wrong about two unsigned sizes. */
function isConsistent(tree: TreeReader, { head }: BookedLog, from: number, to: number, path: Buffer[]): boolean {
  const root = tree.root(to)
  const isSigned = verifyConsistency(to, head.size, tree.consistencyPath(to, head.size), root, rootOfHead(head))
  return isSigned && verifyConsistency(from, to, path, tree.root(from), root)
}

function rootOfHead({ checkpoint }: Head): Buffer {
  return Buffer.from(checkpoint.split('\n')[2]!, 'base64')
}

/** The answer of log.leaves and /api/log/leaves. */
function leavesAnswer(context: ProofContext, { args }: ReadRequest): ReadAnswer {
  const log = logAsked(context, args.log)
  if (log === undefined) return noSuchLog(context, args.log)
  const { size } = log.head
  const start = Number(args.start)
  const end = Math.min(Number(args.end), size)
  if (Number(args.end) <= start || Number(args.end) - start > leavesMax) {
    const rule = `end must be greater than start, by at most ${leavesMax}`
    return { ok: false, refusal: refusal('invalid_field', rule, 'end') }
  }
  if (start >= size)
    return { ok: false, refusal: refusal('not_found', `the log has ${size} entries, so none at ${start}`, 'start') }
  const bundle = context.entries(log, start, end)
  const listed: string[] = []
  for (let at = 0; at < bundle.length; ) {
    const next = at + 2 + bundle.readUInt16BE(at)
    listed.push(bundle.toString('base64', at + 2, next))
    at = next
  }
  return ok({ start, tree_size: size, entries: listed })
}

const answers: Readonly<Record<AnsweredBy<'log'>, (context: ProofContext, request: ReadRequest) => ReadAnswer>> = {
  'log.proof': proofAnswer,
  'log.consistency': consistencyAnswer,
  'log.leaves': leavesAnswer,
  'log.history': historyAnswer,
}
/** Reads of the log other than its newest head, by operation name. */
export const logReads: Readonly<Partial<Record<string, (context: ProofContext, request: ReadRequest) => ReadAnswer>>> =
  answers

type HistoryContext = {
  readonly state: { readonly book: LogBook; readonly board: { readonly events: EventIndex } }
  readonly vkeyOf: (log: BookedLog) => string
}

/** The answer of log.history and /api/log/history: how the logs of this board grew. Computed from memory only. */
function historyAnswer(context: HistoryContext): ReadAnswer {
  const { book, board } = context.state
  const logs = book.logs.slice(-historyLogsMax).map((log) => ({
    log: log.name,
    origin: log.origin,
    vkey: context.vkeyOf(log),
    state: log === book.newest ? 'open' : 'closed',
    tree_size: log.head.size,
    root_hash: Buffer.from(log.head.checkpoint.split('\n')[2]!, 'base64').toString('hex'),
    checkpoint: log.head.checkpoint,
    tiles: `/log/${log.name}/`,
    ...(log.isLost && { lost: true }),
  }))
  return ok({ logs, points: pointsOf(book, board.events) })
}

type Point = { readonly log: string; readonly at: number; readonly tree_size: number }

/** Samples evenly spread over all events; each gives the time at which the log got its leaf. */
function pointsOf(book: LogBook, events: EventIndex): Point[] {
  const { count } = events
  const points: Point[] = []
  const wanted = Math.min(historyPointsMax, count)
  for (let n = 0; n < wanted; n++) {
    const slot = wanted === 1 ? 0 : Math.round((n * (count - 1)) / (wanted - 1))
    const leaf = events.leaf(slot)
    if (leaf === noLeaf) continue
    const log = book.holding(leaf)
    const point = { log: log.name, at: events.at(slot), tree_size: leaf - log.base + 1 }
    const before = points.at(-1)
    // Each shard has its own clock, in seconds. The points shown never go back in time.
    if (before !== undefined && before.log === point.log && before.at >= point.at) points.pop()
    points.push(before === undefined || before.at <= point.at ? point : { ...point, at: before.at })
  }
  return points
}
