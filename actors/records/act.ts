/** The usual decision: one act, written as one record, whose facts are also the reply. */
import { type FactRecord, type Facts, RecordType } from './record.ts'
import { type Accepted, type ActReply, accept, type WriteLetter } from './write.ts'

/**
 * `isPublic`: the act takes its place in the order of everything public. `entry`: its bytes in the public log, if it is a leaf;
 * `entries`: the same of one that is several leaves.
 * `op`: when the record is called otherwise than the operation.
 */
export function act<Given extends Facts>(
  letter: WriteLetter,
  now: number,
  {
    facts,
    isPublic,
    entry,
    entries = entry === undefined ? [] : [entry],
    op = letter.op,
  }: {
    facts: Given
    isPublic: boolean
    entry?: Uint8Array
    entries?: readonly Uint8Array[]
    op?: string
  },
): Accepted<ActReply<Given>> {
  const record: FactRecord<Given> = {
    type: RecordType.act,
    room: letter.to,
    at: now,
    author: Buffer.from(letter.author, 'hex'),
    op,
    facts,
    by: letter.by,
  }
  const reply: ActReply<Given> = { at: now, isPublic, facts }
  const planned = { record, key: letter.id, isPublic, entries }
  return accept([planned], reply)
}
