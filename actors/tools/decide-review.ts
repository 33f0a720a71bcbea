/**
 * A review becomes a post of its author in the room `reviews`: an event like any other, whose signed command is `tools.review`.
 * The rules of the room for posts do not hold for it; that there is such a subject was settled before.
 */
import type { RefusalCode } from '../kernel/refusals.ts'
import { formatEntry } from '../log/entry.ts'
import { accept, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import { eventOf, type PostReply } from '../rooms/room.ts'

type ReviewArgs = {
  /** Why it is refused: code and sentence. */
  readonly barred?: readonly [code: RefusalCode, message: string]
}

const page = 'main'

export const placeReview = ({ board, now }: Situation, letter: WriteLetter<ReviewArgs>) => {
  const { barred } = letter.args
  if (barred !== undefined) return refuse(...barred, 'target')
  const room = board.rooms.get(letter.to)
  const seq = (room?.events.length ?? 0) + 1
  const id = Buffer.from(letter.id).toString('hex')
  const placed = { page, replyTo: '', root: '', original: '', expires: 0 }
  const record = eventOf(letter, 'review', placed, seq, now)
  const command = Buffer.from(letter.sha).toString('hex')
  const entry = formatEntry({ kind: 'post', event: id, room: letter.to, seq, time: now, command })
  const reply: PostReply = { page, seq, at: now, thread: id, replyTo: '', isPublic: true }
  return accept([{ record, key: letter.id, isPublic: true, entries: [entry] }], reply)
}
