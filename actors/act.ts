/** The usual decision: one act, written as one record, whose facts are also the reply. */
import { type Act, type Facts, RecordType } from './record.ts'
import type { Decision, WriteLetter } from './write.ts'

export type ActReply = { readonly at: number; readonly isPublic: boolean; readonly facts: Facts }

/**
 * `isPublic`: the act takes its place in the order of everything public. `entry`: its bytes in the public log, if it is a leaf;
 * `entries`: the same of one that is several leaves.
 * `op`: when the record is called otherwise than the operation.
 */
export function act(
  letter: WriteLetter,
  now: number,
  {
    facts,
    isPublic,
    entry,
    entries = entry === undefined ? [] : [entry],
    op = letter.op,
  }: {
    facts: Facts
    isPublic: boolean
    entry?: Uint8Array
    entries?: readonly Uint8Array[]
    op?: string
  },
): Decision {
  const record: Act = {
    type: RecordType.act,
    room: letter.to,
    at: now,
    author: Buffer.from(letter.author, 'hex'),
    op,
    facts,
    by: letter.by,
  }
  const reply: ActReply = { at: now, isPublic, facts }
  const planned = { record, key: letter.id, isPublic, entries }
  return { ok: true, records: [planned], reply }
}
