/**
 * Frames of a journal of another machine, as its files have them, appended to the copy of it that is here: the same numbers, payloads and
 * ends of segments. Frames are encoded again, because each says what was durable on the disk where it was written.
 */
import { decodeFrame, type FoundFrame, STUB } from './frame.ts'
import type { Journal } from './journal.ts'
import { seedOf } from './segment.ts'

/** How far a journal reaches. */
export type JournalPlace = {
  /** Id of the journal, 32 hex. */
  readonly id: string
  /** Its newest durable frame. */
  readonly last: number
  /** Chain hash up to there, 64 hex. */
  readonly chain: string
}

export type CopiedFrames = JournalPlace & {
  /** The first frame; none: `last` is `first` less one. */
  readonly first: number
  /** The frames, header and payload, one after the other. */
  readonly bytes: Uint8Array
  /** Numbers from `first` to `last` plus one with which a segment begins. */
  readonly rolls: readonly number[]
}

/** What came is not what follows the frames that are here: nothing was changed, and a person has to look. */
export class Diverged extends Error {
  override name = 'Diverged'
}

export function placeOf(journal: Journal): JournalPlace {
  return { id: journal.id.toString('hex'), last: journal.nextSeq - 1, chain: journal.chain().toString('hex') }
}

/** The frames, checked one by one. Throws Diverged. */
export function framesIn({ id, first, last, bytes }: CopiedFrames): FoundFrame[] {
  const payload = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const seed = seedOf(Buffer.from(id, 'hex'))
  const frames: FoundFrame[] = []
  let at = 0
  for (let seq = first; seq <= last; seq++) {
    const frame = decodeFrame(payload, at, payload.length, seed)
    if (frame.frameBytes === undefined || frame.seq !== seq)
      throw new Diverged(`frame ${seq} of journal ${id} did not arrive as it was written`)
    frames.push(frame)
    at += frame.frameBytes
  }
  if (at !== payload.length) throw new Diverged(`journal ${id} came with bytes after frame ${last}`)
  return frames
}

/**
 * Appends what is new, durable when it returns, and gives it back; a segment ends where `rolls` says. `check` is called with the new
 * frames before anything is written. Throws Diverged, and what `Journal.append` throws.
 */
export function appendCopied(
  journal: Journal,
  copied: CopiedFrames,
  check: (frames: readonly FoundFrame[]) => void = () => {},
): FoundFrame[] {
  const { id, first, last, chain, rolls } = copied
  const { nextSeq } = journal
  if (id !== journal.id.toString('hex'))
    throw new Diverged(`journal ${id} came for journal ${journal.id.toString('hex')}`)
  if (first > nextSeq) throw new Error(`frame ${first} of journal ${id} came, and frame ${nextSeq} is missing`)
  const fresh = framesIn(copied).filter(({ seq }) => seq >= nextSeq)
  if (last >= nextSeq - 1 && journal.chainWith(fresh, rolls).toString('hex') !== chain)
    throw new Diverged(`journal ${id} here and there are not the same up to frame ${last}`)
  check(fresh)
  // What was cut off this journal may hold the text that this stub had.
  if (fresh.some(({ flags }) => (flags & STUB) !== 0)) journal.removeSavedTails()
  let from = 0
  for (const roll of rolls.filter((each) => each >= nextSeq)) {
    const until = Math.min(roll - nextSeq, fresh.length)
    journal.append(fresh.slice(from, until))
    journal.roll()
    from = until
  }
  journal.append(fresh.slice(from))
  return fresh
}
