/**
 * Log rotation, when one log ends and the next begins: the two entries that link them, and the two frames that hold
 * these entries.
 *
 * The last entry of the old log names the next log and its key, so a reader that trusts the old key learns the new one
 * from the log itself. The first entry of the new log names the size and root of the old one, so a reader that trusts
 * only the new key can check the old log to its end.
 *
 *   kind close   adds `next <origin> <vkey>`
 *   kind open    adds `previous <origin>`, `size <n>`, `root <64 hex>`, and `lost after <n>` if the old log has no last entry:
 *                a backup replaced a board that is lost, with whatever its log had after this size
 *   kind import  the same lines as open: the first entry of an imported board names the head of the board that it comes from
 *
 * No command causes these entries: event, room, seq and command are `-`.
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
  /** Anything that the log had after this size is lost. */
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

/** What the last entry of a log says about the next one; undefined if it closes nothing. */
export function nextOf(entry: Uint8Array): Next | undefined {
  const lines = parseEntry(entry)
  const [origin = '', vkey = '', ...rest] = (lines?.get('next') ?? '').split(' ')
  return lines?.get('kind') === 'close' && origin !== '' && vkey !== '' && rest.length === 0
    ? { origin, vkey }
    : undefined
}

/** What the first entry of a log says about the previous one; undefined if it follows none. */
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

/** How far the previous frames have brought the log's journal. */
type Standing = Pick<LogFrame, 'size' | 'firstChange' | 'ranges'>

type RootedHead = { readonly size: number; readonly root: Buffer; readonly checkpoint: string }

/** The last frame of a log; `head` is the head that includes the entry. */
export function closeFrame(newest: Standing, entry: Buffer, head: RootedHead): NewFrame {
  return encodeLogFrame({ ...withOneEntry(newest, entry), ...head, type: closeFrameType, firstLeaf: newest.size })
}

/** The first frame of the log after the `closed` ones. */
export function openFrame(newest: Standing, entry: Buffer, checkpoint: string, closed: readonly ClosedLog[]): NewFrame {
  const head: RootedHead = { size: 1, root: leafHash(entry), checkpoint }
  return encodeLogFrame({ ...withOneEntry(newest, entry), ...head, type: openFrameType, firstLeaf: 0 }, closed)
}

/** Such a frame covers no records of the shards: its ranges only repeat where the previous ones ended. */
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
