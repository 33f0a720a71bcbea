/**
 * Posts that a clerk has drafted: the main thread charges them, says what it knows of the signer, and passes letter and answer on as
 * they are. Whatever is not as most posts are goes the way of every command (command-router.ts).
 */

import { kindDefault } from '../../actors/rooms/room.ts'
import { limitReply, mayBeNew, settleWrite, takeNewRoom, unlessMade, writerOf } from '../command/charging.ts'
import { readCommand } from '../command/check.ts'
import { standingIn } from '../command/dispatch.ts'
import { newPostJson } from '../command/new-post.ts'
import { addresseeOf, given } from '../command/post-args.ts'
import type { PostDraft } from '../command/post-draft.ts'
import type { CommandSource, Signer } from '../command/verified.ts'
import { type Respond, refused } from '../format/reply.ts'
import type { WritesOptions } from './writes.ts'

export type Drafted = {
  readonly draft: PostDraft
  readonly signer: Signer
  /** The command as it came. */
  readonly body: Buffer
  readonly door: CommandSource
  /** Has it go the way of every command. */
  readonly plainly: (door: CommandSource) => void
}

type DraftedPostsOptions = Pick<
  WritesOptions,
  'actors' | 'boardIdentity' | 'limitsOn' | 'news' | 'operators' | 'screen' | 'throttle' | 'welcome'
>

export class DraftedPosts {
  readonly #options: DraftedPostsOptions

  constructor(options: DraftedPostsOptions) {
    this.#options = options
  }

  send(drafted: Drafted, respond: Respond): void {
    const { signer, door, draft, plainly } = drafted
    const { news, boardIdentity } = this.#options
    const isPlain = signer.delegate === undefined && signer.id !== boardIdentity && !news.delegates.isStale
    if (!isPlain || mayBeNew(drafted, this.#options)) return plainly(door)
    if (door.place === undefined) return this.#send(drafted, respond)
    door.place.write(Buffer.from(draft[6]).toString('hex', 0, 16), () => this.#send(drafted, respond))
  }

  #send(drafted: Drafted, respond: Respond): void {
    const { news, operators, throttle } = this.#options
    const { draft, signer, door } = drafted
    const [, room, to, ttl, signedBytes, requestIds, sha, packed, ...pieces] = draft
    const addressee = addresseeOf(to, news.handles)
    if (typeof addressee === 'object') return respond(refused(addressee))
    const newRoom = takeNewRoom(this.#options, drafted, room)
    const charge = throttle.write(writerOf(drafted, operators), signedBytes, false, requestIds)
    const letter = {
      packed,
      to: room,
      ...standingIn(this.#options, signer),
      limited: charge.wait,
      roomWait: newRoom.wait,
      addressee: addressee ?? '',
    }
    const { settle, limit } = unlessMade(newRoom)
    this.#options.actors.post(letter, (answer, head) => {
      settle?.(answer)
      settleWrite(charge, drafted, answer, this.#options)
      if (answer === undefined) return respond(undefined)
      if (!answer.ok) return respond(limitReply(answer.refusal, charge, limit, throttle))
      if (answer.change !== undefined) news.noteChange(room, answer.change)
      // A retry is shown as it stands now.
      if (answer.duplicate === true) return drafted.plainly(withoutPlace(door))
      const { reply, leaf } = answer
      if (reply.isPublic) this.#options.welcome(signer.id, door.address)
      if (reply.screen === true) this.#screen(drafted, reply.at, reply.replyTo !== '')
      const handle = news.handles.get(signer.id)
      const author = { id: signer.id, public_key: signer.text, ...(handle === undefined ? {} : { handle }) }
      const placed = { sha: Buffer.from(sha).toString('hex'), author, toId: addressee, ttl, reply, leaf, head }
      respond({ status: 200, body: newPostJson(pieces, placed) })
    })
    door.place?.sent()
  }

  #screen({ body, draft }: Drafted, at: number, isReply: boolean): void {
    const read = readCommand(body)
    if (!read.ok) return
    const { kind, text = '' } = read.value
    const id = Buffer.from(draft[6]).toString('hex', 0, 16)
    this.#options.screen({ id, room: draft[1], kind: given(kind, kindDefault), text, at, isReply })
  }
}

/** Its place among others was given up: the answer is all that is left to give. */
function withoutPlace({ place: _, ...door }: CommandSource): CommandSource {
  return door
}
