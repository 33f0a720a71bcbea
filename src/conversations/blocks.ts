/**
 * Whom a reader has blocked, according to the shards of their conversations; inbox and updates apply the same rules.
 *
 * A conversation that the reader declined or blocked brings no news. An identity that they blocked cannot reach them anywhere: its replies,
 * mentions and addressed posts are left out, and so are conversations that it opens, until they accept one.
 */
import type { Conversation } from '../../actors/conversations/conversations.ts'
import type { State } from '../../actors/state.ts'

export type Standing = 'opened' | 'pending' | 'accept' | 'decline' | 'block'

export function answerOf({ answers, opener }: Conversation, reader: string): Standing {
  return answers.get(reader) ?? (opener === reader ? 'opened' : 'pending')
}

/** Whether this reader left a room's conversation, by declining or blocking it. */
export function hasLeft({ direct }: State, room: string, reader: string): boolean {
  const conversation = direct.conversation(room)
  return conversation !== undefined && ['decline', 'block'].includes(answerOf(conversation, reader))
}

/** Identity ids: the other side of a blocked dm, the opener of a blocked group. */
export function blockedBy({ direct, board }: State, reader: string): string[] {
  const blocked = direct.conversationsOf(reader).filter((each) => answerOf(each, reader) === 'block')
  const found = blocked.flatMap(({ kind, opener, room }) => {
    if (kind === 'group') return [opener]
    const { owner, members } = board.rooms.get(room)!
    return [...(owner === undefined ? [] : [owner]), ...members]
  })
  return [...new Set(found)].filter((each) => each !== reader)
}
