/**
 * Decisions about conversations, made by the actor of their room. The room's name is derived from the members, so that two
 * members who open the same conversation at the same time get the same room. Pure functions of the state; the signer was
 * verified earlier.
 */

import { type BoardRecord, RecordType } from '../records/record.ts'
import { accept, act, type Deciders, type Planned, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import { mayWrite, objection } from '../rooms/policy.ts'
import { eventOf, messageRefusal } from '../rooms/room.ts'
import type { Answer } from './conversations.ts'

type OpenArgs = {
  /** Identity ids other than the opener's. */
  readonly others: readonly string[]
  readonly kind: 'dm' | 'group'
  /** Bytes of the first message; 0 if there is none. */
  readonly textBytes: number
  /** Bits of work that its proof shows. */
  readonly proofBits: number
  /** Seconds until the identity may open another conversation; 0: now. */
  readonly exhausted: number
}

export const noConversationLeftWords = 'this identity has opened its conversations for today: wait retry_after seconds'

const open = (situation: Situation, letter: WriteLetter<OpenArgs>) => {
  const { state, board, now } = situation
  const { others, kind, textBytes, proofBits, exhausted } = letter.args
  const found = state.direct.conversation(letter.to)
  const room = board.rooms.get(letter.to)
  if (found === undefined && exhausted > 0)
    return refuse('quota_exhausted', noConversationLeftWords, undefined, exhausted)
  const refused = textBytes === 0 ? undefined : messageRefusal(found, letter.author, textBytes)
  if (refused !== undefined) return refused
  if (room !== undefined && textBytes > 0) {
    // The message is a normal post, so the room's policy applies to it.
    const { author, operator } = letter
    const candidate = { author, operator, isReply: false, isEdit: false, ttl: 0, proofBits }
    const found = objection(state.rules.policyOf(room.name), candidate, { board, room, now })
    if (found !== undefined) return refuse(...found)
  }
  const created = found === undefined
  // If there is a message, only its record has the signed bytes, so that they are removed if it is redacted; otherwise the act
  // has them. The room's record never does: a retry is answered from the record that has them.
  const by = textBytes === 0 ? { by: letter.by } : {}
  const planned: Planned[] = []
  const plan = (record: BoardRecord) => planned.push({ record, key: letter.id, isPublic: false })
  const author = Buffer.from(letter.author, 'hex')
  if (room === undefined) {
    const members = others.map((member) => Buffer.from(member, 'hex'))
    const owned = { room: letter.to, at: now, visibility: 'private', owner: author, members } as const
    plan({ type: RecordType.roomCreated, ...owned })
  }
  if (created || textBytes === 0)
    plan({ type: RecordType.act, room: letter.to, at: now, author, op: letter.op, facts: { kind, created }, ...by })
  if (textBytes > 0) {
    const placed = { page: 'main', kind: 'note', replyTo: '', root: '', original: '', expires: 0 }
    plan(eventOf(letter, placed, (room?.events.length ?? 0) + 1, now))
  }
  return accept(planned, { at: now, isPublic: false, facts: { created } })
}

const respond = ({ state, board, now }: Situation, letter: WriteLetter<{ readonly answer: Answer }>) => {
  const room = board.rooms.get(letter.to)
  if (room?.visibility === 'private' && !mayWrite(room, letter.author))
    return refuse('private_room', 'this room is private: only its members can read and post', 'room')
  const conversation = state.direct.conversation(letter.to)
  if (conversation === undefined)
    return refuse('not_found', `there is no conversation ${letter.to}: conversations.list shows yours`, 'room')
  // A member who declined or blocked a conversation that they opened may reverse that.
  if (
    letter.args.answer === 'accept' &&
    conversation.opener === letter.author &&
    !conversation.answers.has(letter.author)
  )
    return refuse('wrong_state', 'you opened this conversation: another member has to accept it', 'room')
  return act(letter, now, { facts: { answer: letter.args.answer }, isPublic: false })
}

export const directDeciders = {
  'conversation.open': open,
  'conversation.respond': respond,
} satisfies Deciders
