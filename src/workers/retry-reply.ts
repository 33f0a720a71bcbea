/**
 * The reply to a retry: the first answer, and which command it belonged to. A repeated request_id may arrive with different bytes, so the
 * ids in the answer are those of the first command, not of the retry.
 */
import type { Board } from '../../actors/records/board.ts'
import { commandSha, frameKey, fromFrame, PUBLIC, RecordType } from '../../actors/records/record.ts'
import { postReplyAgain } from '../../actors/rooms/room.ts'
import type { Frame } from '../../storage/journal.ts'

/** `first`: the record of the accepted command. `sha` = hex SHA-256 of its signing bytes. */
export function retryReply(board: Board, first: Frame): Readonly<Record<string, unknown>> {
  const record = fromFrame(first)
  if (record.by === undefined) throw new Error(`record ${first.seq} was remembered without a signed command`)
  const sha = commandSha(record.by).toString('hex')
  const isPublic = (first.flags & PUBLIC) !== 0
  if (record.type === RecordType.act) return { at: record.at, isPublic, facts: record.facts, sha }
  return { ...(postReplyAgain(board, frameKey(first)) ?? { at: record.at, isPublic }), sha }
}
