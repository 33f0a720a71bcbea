/**
 * The reply to a retry: what the first answer said, and which command it was. A repeated request_id comes with other
 * bytes, so the ids of the answer are the first command's, not those of the letter.
 */
import type { Board } from '../../actors/records/board.ts'
import { commandSha, frameKey, fromFrame, PUBLIC, RecordType } from '../../actors/records/record.ts'
import { postReplyAgain } from '../../actors/rooms/room.ts'
import type { Frame } from '../../storage/journal.ts'

/** `first`: the record of the accepted command. `sha` = hex SHA-256 of its signing bytes. */
export function again(board: Board, first: Frame): Readonly<Record<string, unknown>> {
  const record = fromFrame(first)
  if (record.by === undefined) throw new Error(`record ${first.seq} was remembered without a signed command`)
  const sha = commandSha(record.by).toString('hex')
  const isPublic = (first.flags & PUBLIC) !== 0
  if (record.type === RecordType.act) return { at: record.at, isPublic, facts: record.facts, sha }
  return { ...(postReplyAgain(board, frameKey(first)) ?? { at: record.at, isPublic }), sha }
}
