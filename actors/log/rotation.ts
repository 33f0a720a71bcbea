/**
 * One log ends and the next begins: the two entries that tie them together, and the two frames that hold them.
 *
 * The last entry of the old log names the next one and its key, so a reader who trusts the old key learns the new one from the log
 * itself. The first entry of the new log names the size and root of the old one, so a reader who trusts only the new key can
 * check the old log to its end.
 *
 *   kind close   adds `next <origin> <vkey>`
 *   kind open    adds `previous <origin>`, `size <n>`, `root <64 hex>`, and `lost after <n>` where the old log has no last entry:
 *                a backup took the place of a board that is lost, with whatever its log had after this size
 *   kind import  the same lines as open: the first entry of a board that was imported names the head of the board that it is from
 *
 * Neither is made by a command: event, room, seq and command are `-`.
 */
import type { NewFrame } from '../../storage/journal.ts'
import { leafHash } from '../../storage/merkle.ts'
import { formatEntry, parseEntry } from '../records/entry.ts'
import { type ClosedLog, closeFrameType, encodeLogFrame, type LogFrame, openFrameType } from './frame.ts'

export type Next = { readonly origin: string; readonly vkey: string }
type Previous = {
  readonly origin: string
  readonly size: number
  readonly root: Buffer
  /** What the log had after this size is lost. */
  readonly isLost?: boolean
}

const noCommand = { event: '-', room: '-', seq: '-', command: '-' }

/** `time`: Unix seconds. */
export function closeEntry(time: number, { origin, vkey }: Next): Buffer {
  const entry = formatEntry({ ...noCommand, kind: 'close', time })
  return Buffer.concat([entry, Buffer.from(`next ${origin} ${vkey}\n`, 'latin1')])
}

export function importEntry(time: number, { origin, size, root }: Previous): Buffer {
  return Buffer.concat([
    formatEntry({ ...noCommand, kind: 'import', time }),
    Buffer.from(previousLines(origin, size, root)),
  ])
}

function previousLines(origin: string, size: number, root: Buffer): string {
  return `previous ${origin}\nsize ${size}\nroot ${root.toString('hex')}\n`
}

export function openEntry(time: number, { origin, size, root, isLost = false }: Previous): Buffer {
  const entry = formatEntry({ ...noCommand, kind: 'open', time })
  return Buffer.concat([
    entry,
    Buffer.from(`${previousLines(origin, size, root)}${isLost ? `lost after ${size}\n` : ''}`, 'latin1'),
  ])
}

/** What the last entry of a log says of the next one; undefined: it closes nothing. */
export function nextOf(entry: Uint8Array): Next | undefined {
  const lines = parseEntry(entry)
  const [origin = '', vkey = '', ...rest] = (lines?.get('next') ?? '').split(' ')
  return lines?.get('kind') === 'close' && origin !== '' && vkey !== '' && rest.length === 0
    ? { origin, vkey }
    : undefined
}

/** What the first entry of a log says of the one before; undefined: it follows none. */
export function previousOf(entry: Uint8Array): Previous | undefined {
  const lines = parseEntry(entry)
  const size = lines?.get('size') ?? ''
  const root = lines?.get('root') ?? ''
  if (lines?.get('kind') !== 'open' || !/^[1-9][0-9]{0,15}$/.test(size) || !/^[0-9a-f]{64}$/.test(root))
    return undefined
  const isLost = lines.get('lost') === `after ${size}`
  const previous = { origin: lines.get('previous') ?? '', size: Number(size), root: Buffer.from(root, 'hex') }
  return isLost ? { ...previous, isLost } : previous
}

/** Where the frames before have brought the journal of the log. */
type Standing = Pick<LogFrame, 'size' | 'firstChange' | 'ranges'>

type RootedHead = { readonly size: number; readonly root: Buffer; readonly checkpoint: string }

/** The last frame of a log; `head` is the one that the entry leads to. */
export function closeFrame(newest: Standing, entry: Buffer, head: RootedHead): NewFrame {
  return encodeLogFrame({ ...withOneEntry(newest, entry), ...head, type: closeFrameType, firstLeaf: newest.size })
}

/** The first frame of the log after the `closed` ones. */
export function openFrame(newest: Standing, entry: Buffer, checkpoint: string, closed: readonly ClosedLog[]): NewFrame {
  const head: RootedHead = { size: 1, root: leafHash(entry), checkpoint }
  return encodeLogFrame({ ...withOneEntry(newest, entry), ...head, type: openFrameType, firstLeaf: 0 }, closed)
}

/** No record of a shard is covered by such a frame: its ranges say where those before have ended. */
function withOneEntry({ firstChange, ranges }: Standing, entry: Buffer) {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(entry.length)
  return {
    firstChange: ranges.reduce((sum, { changes }) => sum + changes, firstChange),
    ranges: ranges.map(({ shard, last }) => ({ shard, first: last + 1, last, changes: 0, leaves: 0 })),
    bundle: Buffer.concat([length, entry]),
    entries: 1,
  }
}
