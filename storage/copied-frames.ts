/**
 * Appends frames from another machine's journal, as stored in its files, to the local copy: same numbers, payloads and
 * segment boundaries. Frames are re-encoded, because each states what was durable on the disk where it was written.
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
  /** The first frame; if there are none, `last` is `first` minus one. */
  readonly first: number
  /** The frames, header and payload, back to back. */
  readonly bytes: Uint8Array
  /** Seqs from `first` to `last` plus one at which a segment begins. */
  readonly rolls: readonly number[]
}

/** The received frames do not continue the local ones: nothing was changed, and an operator has to look. */
export class Diverged extends Error {
  override name = 'Diverged'
}

export function placeOf(journal: Journal): JournalPlace {
  return { id: journal.id.toString('hex'), last: journal.nextSeq - 1, chain: journal.chain().toString('hex') }
}

/** Decodes the frames and checks each one. Throws Diverged. */
export function framesIn({ id, first, last, bytes }: CopiedFrames): FoundFrame[] {
  const payload = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const seed = seedOf(Buffer.from(id, 'hex'))
  const frames: FoundFrame[] = []
  let at = 0
  for (let seq = first; seq <= last; seq++) {
    const frame = decodeFrame(payload, at, payload.length, seed)
    if (frame.frameBytes === undefined || frame.seq !== seq)
      throw new Diverged(`frame ${seq} of journal ${id} was corrupted in transit`)
    frames.push(frame)
    at += frame.frameBytes
  }
  if (at !== payload.length)
    throw new Diverged(`received bytes after frame ${last} of journal ${id}, which should be the last`)
  return frames
}

/**
 * Appends the new frames, which are durable when it returns, and returns them; segments end where `rolls` says. `check`
 * is called with the new frames before anything is written. Throws Diverged, and whatever `Journal.append` throws.
 */
export function appendCopied(
  journal: Journal,
  copied: CopiedFrames,
  check: (frames: readonly FoundFrame[]) => void = () => {},
): FoundFrame[] {
  const { id, first, last, chain, rolls } = copied
  const { nextSeq } = journal
  if (id !== journal.id.toString('hex'))
    throw new Diverged(`received frames of journal ${id} for journal ${journal.id.toString('hex')}`)
  if (first > nextSeq) throw new Error(`received frame ${first} of journal ${id}, but frame ${nextSeq} is missing`)
  const fresh = framesIn(copied).filter(({ seq }) => seq >= nextSeq)
  if (last >= nextSeq - 1 && journal.chainWith(fresh, rolls).toString('hex') !== chain)
    throw new Diverged(`journal ${id} differs between this follower and its leader at or before frame ${last}`)
  check(fresh)
  // A saved tail of this journal may hold the text that this stub replaces.
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
