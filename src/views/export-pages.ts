/**
 * The export in chunks: the front asks for the next one when the reader's socket has room, so memory stays constant
 * however long the board is. Size and head are fixed by the first chunk; what comes later is for the next export.
 */
import { HASH_BYTES } from '../../storage/merkle.ts'
import { refusal } from '../refusals.ts'
import { endLine, exportLine, leavesLine } from './export.ts'
import type { ReadContext } from './reads/read.ts'

export type ExportFilter = {
  readonly room?: string
  /** Unix seconds, inclusive and exclusive. */
  readonly since?: number
  readonly until?: number
}

/** Where an export stands; made by the first chunk and handed back unread. */
export type ExportState = {
  readonly slot: number
  readonly end: number
  readonly size: number
  readonly checkpoint: string
  readonly count: number
  /** Next leaf to list; only a whole export lists them. */
  readonly leaf: number
}

export type ExportRequest = {
  readonly filter: ExportFilter
  /** Lines at most; 0 = everything. */
  readonly limit: number
  /** Sealed cursor of the page before, or ''. */
  readonly cursor: string
  readonly state?: ExportState
}

export type ExportChunk =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly state?: ExportState; readonly nextCursor?: string }
  | { readonly ok: false; readonly refusal: ReturnType<typeof refusal> }

export type ExportContext = ReadContext & {
  /** The hashes of leaves start..end-1, one after the other. */
  readonly leafHashes: (start: number, end: number) => Buffer
  readonly origin: string
  readonly size: number
  readonly checkpoint: string
}

const chunkBytes = 256 * 1024
/** Events looked at for one chunk, so that a filter that fits little does not hold up other readers. */
const chunkSlotsMax = 20_000
const leavesPerLine = 4_096
const leafLinesPerChunk = 4

/** A cursor is good for the filter it was given for. */
const listName = ({ room, since, until }: ExportFilter) => `export:${room ?? ''}:${since ?? ''}:${until ?? ''}`

export function exportChunk(context: ExportContext, request: ExportRequest): ExportChunk {
  const { filter, limit } = request
  const begun = request.state ?? begin(context, request)
  if (begun === undefined)
    return {
      ok: false,
      refusal: refusal('invalid_field', 'this cursor was not given by an export: start again without one', 'cursor'),
    }
  if (filter.room !== undefined && !context.board.rooms.has(filter.room)) {
    return { ok: false, refusal: refusal('not_found', `there is no public room ${filter.room}`, 'room') }
  }
  if (begun.slot < begun.end) return events(context, request, begun)
  const whole = limit === 0 && Object.keys(filter).length === 0 && request.cursor === ''
  if (!whole) return { ok: true, bytes: Buffer.alloc(0) }
  return leaves(context, begun)
}

function begin(
  { board, cursors, size, checkpoint }: ExportContext,
  { cursor, filter }: ExportRequest,
): ExportState | undefined {
  const slot = cursor === '' ? 0 : cursors.open(listName(filter), cursor)
  return typeof slot === 'number' ? { slot, end: board.events.count, size, checkpoint, count: 0, leaf: 0 } : undefined
}

function events(context: ExportContext, { filter, limit }: ExportRequest, begun: ExportState): ExportChunk {
  const { board, body, origin, cursors } = context
  const now = context.now()
  const lines: string[] = []
  let bytes = 0
  let { slot, count } = begun
  const stop = Math.min(begun.end, slot + chunkSlotsMax)
  while (slot < stop && (limit > 0 ? count < limit : bytes < chunkBytes)) {
    const at = slot++
    if (!fits(context, at, filter)) continue
    const line = exportLine(board, at, body(at), origin, now)
    if (line === undefined) continue
    lines.push(line)
    bytes += line.length
    count++
  }
  const chunk = Buffer.from(lines.join(''))
  if (limit > 0)
    return { ok: true, bytes: chunk, ...(slot < begun.end ? { nextCursor: cursors.seal(listName(filter), slot) } : {}) }
  return { ok: true, bytes: chunk, state: { ...begun, slot, count } }
}

function fits({ board }: ExportContext, slot: number, filter: ExportFilter): boolean {
  const { events, roomList } = board
  if (filter.room !== undefined && roomList[events.room[slot]!]!.name !== filter.room) return false
  if (filter.since !== undefined && events.at[slot]! < filter.since) return false
  return filter.until === undefined || events.at[slot]! < filter.until
}

function leaves({ leafHashes, origin }: ExportContext, begun: ExportState): ExportChunk {
  const lines: string[] = []
  const start = begun.leaf
  const end = Math.min(begun.size, start + leafLinesPerChunk * leavesPerLine)
  const hashes = leafHashes(start, end)
  for (let leaf = start; leaf < end; leaf += leavesPerLine) {
    const at = (leaf - start) * HASH_BYTES
    lines.push(leavesLine(origin, leaf, hashes.subarray(at, at + leavesPerLine * HASH_BYTES)))
  }
  const done = end >= begun.size
  if (done) lines.push(endLine(begun.count, begun.checkpoint))
  return { ok: true, bytes: Buffer.from(lines.join('')), ...(done ? {} : { state: { ...begun, leaf: end } }) }
}
