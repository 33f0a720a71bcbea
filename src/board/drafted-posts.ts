/**
 * Posts that a clerk has drafted. The main thread charges for them, adds what it knows of the signer, and forwards letter and answer
 * unchanged. Anything unusual takes the path of every other command (command-router.ts).
 */

import { kindDefault } from '../../actors/rooms/room.ts'
import { limitReply, mayBeNew, refundUnlessCreated, settleWrite, takeNewRoom, writerOf } from '../command/charging.ts'
import { readCommand } from '../command/check.ts'
import { standingIn } from '../command/dispatch.ts'
import type { DraftLetter, PostDraft, Posted } from '../command/draft-letter.ts'
import { addresseeOf, given } from '../command/post-args.ts'
import type { CommandSource, Signer } from '../command/verified.ts'
import { type Respond, refused } from '../format/reply.ts'
import { noteCause } from '../runtime/slow-turns.ts'
import type { WritesOptions } from './writes.ts'

export type Drafted = {
  readonly draft: PostDraft
  readonly signer: Signer
  /** The command as received. */
  readonly body: Buffer
  readonly source: CommandSource
  /** Sends it down the ordinary command path. */
  readonly plainly: (source: CommandSource) => void
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
    const { signer, source, draft, plainly } = drafted
    const { news, boardIdentity } = this.#options
    noteCause('post')
    const isPlain = signer.delegate === undefined && signer.id !== boardIdentity && !news.delegates.isStale
    if (!isPlain || mayBeNew(drafted, this.#options)) return plainly(source)
    if (source.place === undefined) return this.#send(drafted, respond)
    source.place.write(idOf(draft), () => this.#send(drafted, respond))
  }

  #send(drafted: Drafted, respond: Respond): void {
    const { news, operators, throttle } = this.#options
    const { draft, signer, source } = drafted
    const [, room, to, signedBytes, requestIds, , packed] = draft
    const addressee = addresseeOf(to, news.handles)
    if (typeof addressee === 'object') return respond(refused(addressee))
    const newRoom = takeNewRoom(this.#options, drafted, room)
    const charge = throttle.write(writerOf(drafted, operators), signedBytes, false, requestIds)
    const { author, factor = 1, rotated, suspended, operator } = standingIn(this.#options, signer)
    const handle = news.handles.get(author) ?? ''
    const standing = [author, handle, charge.wait, factor, rotated, suspended, operator] as const
    const letter: DraftLetter = [room, ...standing, newRoom.wait, addressee ?? '', packed]
    const { settle, limit } = refundUnlessCreated(newRoom)
    this.#options.actors.post(letter, (answer) => {
      settle?.(answer)
      settleWrite(charge, drafted, answer, this.#options)
      if (answer === undefined) return respond(undefined)
      if (!answer.ok) return respond(limitReply(answer.refusal, charge, limit, throttle))
      if (answer.change !== undefined) news.noteChange(room, answer.change)
      // A retry is answered with the current state of the post.
      if (answer.duplicate === true) return drafted.plainly(withoutPlace(source))
      const { body, isPublic, screen } = answer.reply
      if (isPublic) this.#options.welcome(author, source.address)
      if (screen !== undefined) this.#screen(drafted, screen)
      respond({ status: 200, body })
    })
    source.place?.sent()
  }

  #screen({ body, draft }: Drafted, said: NonNullable<Posted['screen']>): void {
    const read = readCommand(body)
    if (!read.ok) return
    const { kind, text = '' } = read.value
    this.#options.screen({ id: idOf(draft), room: draft[1], kind: given(kind, kindDefault), text, ...said })
  }
}

/** Event id, 32 hex. */
function idOf([, , , , , sha]: PostDraft): string {
  return Buffer.from(sha.subarray(0, 16)).toString('hex')
}

/** Its place in the line order was already given up; only the answer remains to be sent. */
function withoutPlace({ place: _, ...source }: CommandSource): CommandSource {
  return source
}
