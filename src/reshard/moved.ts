/** A record in its new journal: identical bytes, except where it refers to places in the old ones. */

import {
  ActsOf,
  type BoardRecord,
  frameKey,
  fromFrame,
  isStub,
  keptEntries,
  PUBLIC,
  RecordType,
  toFrame,
} from '../../actors/records/record.ts'
import type { SentArgs, TellArgs } from '../../actors/works/letters.ts'
import type { OpenFacts } from '../../actors/works/market/letters.ts'
import { MORE } from '../../storage/frame.ts'
import type { Frame, NewFrame } from '../../storage/journal.ts'
import { hookActs, type Places } from './places.ts'

const tellActs = new ActsOf<TellArgs>('work.tell')
const openActs = new ActsOf<OpenFacts>('work.open')
const sentActs = new ActsOf<SentArgs>('mail.sentActs')

/** Copied, and without MORE: every decision is complete on disk, so its records need not stay together. */
export function moved(frame: Frame, places: Places): NewFrame {
  const flags = frame.flags & ~MORE
  const record = frame.type === RecordType.act ? withNewPlaces(fromFrame(frame), places) : undefined
  if (record === undefined) return { type: frame.type, flags, payload: Buffer.from(frame.payload) }
  if (isStub(frame)) throw new Error(`frame ${frame.seq} refers to positions of frames, but its text was removed`)
  return toFrame(record, frameKey(frame), (flags & PUBLIC) !== 0, keptEntries(frame))
}

/** Undefined if it refers to no place. */
function withNewPlaces(record: BoardRecord, places: Places): BoardRecord | undefined {
  if (hookActs.is(record)) return { ...record, facts: { ...record.facts, marks: places.marks(record.facts.marks) } }
  if (tellActs.is(record)) return { ...record, facts: { ...record.facts, n: places.ofMarket(record.facts.n) } }
  if (openActs.is(record))
    return { ...record, facts: { ...record.facts, reserved: places.ofMarket(record.facts.reserved) } }
  if (sentActs.is(record))
    return { ...record, facts: { ...record.facts, seqs: record.facts.seqs.map((seq) => places.ofMarket(seq)) } }
  return undefined
}
