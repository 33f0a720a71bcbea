/**
 * Writes: from a verified command to a letter, and from the actor's answer to the client's reply.
 *
 * A public write is answered only after its frame is in the signed log, so its receipt can name leaf, size, and head.
 */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { ReadName, WriteName } from '../../actors/operations.ts'
import type { Head, ShardAnswer } from '../../actors/records/answer.ts'
import type { Visibility } from '../../actors/records/board.ts'
import type { ShownReadName } from '../../actors/records/internal-operations.ts'
import { type Facts, registryName } from '../../actors/records/record.ts'
import { windowSeconds } from '../../actors/records/write.ts'
import type { PostArgs, PostReply } from '../../actors/rooms/room.ts'
import { limitReply, refundUnlessCreated, settleWrite, takeNewRoom, whetherNew, writerOf } from '../command/charging.ts'
import { type ActorReply, type Given, isOperator, isPublicOnly, sendAs, signedLetter } from '../command/dispatch.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import { nameJson, newPostJson, piecesOf } from '../command/new-post.ts'
import type { AnyPlan, Asked, Decided, Services } from '../command/plan.ts'
import type { Actors, NoAnswer } from '../command/ports.ts'
import { addresseeOf, given, postArgs, supersedesOf, unproven } from '../command/post-args.ts'
import { fromActor, laterReply, receiptJson, withReceipt } from '../command/reply.ts'
import { isOf, type Verified } from '../command/verified.ts'
import { type Respond, refused } from '../format/reply.ts'
import type { Screened } from '../moderation/screening.ts'
import { Charge } from '../rates/meters.ts'
import type { Throttle } from '../rates/throttle.ts'
import { authorJson } from '../reads/event-json.ts'
import { type EventFacts, type EventView, eventView } from '../reads/event-view.ts'
import { dataOf, jsonOf, type ReadAnswer } from '../reads/read.ts'
import { plans } from './plans.ts'

export type WritesOptions = {
  readonly actors: Actors
  readonly throttle: Throttle
  readonly news: LiveFacts
  /** Identity ids. */
  readonly operators: ReadonlySet<string>
  /** Queues an accepted post that its room wants screened. */
  readonly screen: (post: Screened) => void
  readonly random: Services['random']
  readonly soon: Services['soon']
  readonly read: Services['read']
  readonly verify: Services['verify']
  /** Bits of work that every post must prove, 0 = none. */
  readonly proofBits: number
  readonly blobs: Services['blobs']
  readonly hooks: Services['hooks']
  readonly calls: Services['calls']
  readonly tools: Services['tools']
  /** Called when an identity has posted in public. */
  readonly welcome: (identity: string, address: string) => void
  /** Secret of this board, for deriving names that nobody else can compute. */
  readonly secret: Buffer
  readonly boardIdentity: Services['boardIdentity']
  readonly generation: Services['generation']
  readonly limitsOn: Services['limitsOn']
  /** Unix seconds. */
  readonly wallSeconds: () => number
}

type Accepted<Reply extends Facts = Facts> = Extract<ShardAnswer<Reply>, { ok: true }>

/** Part of every reply. */
type Replied = Pick<Decided, 'at' | 'sha'> & Partial<Pick<Decided, 'isPublic'>>

const nothingAsked: Asked = { args: {} }

/** Reads that show the content of a room. */
const ofRooms: ReadonlySet<string> = new Set<ReadName | ShownReadName>([
  'event.made',
  'event.marked',
  'room.get',
  'work.get',
])

/** What an operator may do to content that they cannot read, once its author was erased. */
const deletions: ReadonlySet<string> = new Set(['event.redact', 'blob.delete', 'docs.delete'])

export class Writes {
  readonly #options: WritesOptions

  constructor(options: WritesOptions) {
    this.#options = options
  }

  run(verified: Verified, respond: Respond): void {
    whetherNew(verified, this.#options, (isNew) => {
      const go = () => this.#run(isNew ? { ...verified, isNew } : verified, respond)
      const { place } = verified.source
      if (place === undefined) go()
      else place.write(verified.sha.toString('hex', 0, 16), go)
    })
  }

  #run(verified: Verified, respond: Respond): void {
    const { name } = verified.operation
    if (isOf(verified, 'post')) return this.#post(verified, respond)
    if (isOf(verified, 'room.create')) return this.#createRoom(verified, respond)
    if (isOf(verified, 'identity.register')) return this.#register(verified, respond)
    const plan = plans[name]
    if (plan === undefined) throw new Error(`no way to run ${name}`)
    const refusedBefore = plan.check?.(verified) ?? unproven(verified, this.#options)
    if (refusedBefore !== undefined) return respond(refused(refusedBefore))
    const services: Services = this.#options
    const askFor = (actor: string): void => {
      if (plan.ask === undefined) return this.#runPlan(plan, verified, actor, nothingAsked, respond)
      plan.ask(verified, services, (found) => {
        if (found === undefined) return respond(undefined)
        if ('refusal' in found) return this.#unlessAccepted(plan, verified, actor, found.refusal, respond)
        this.#runPlan(plan, verified, actor, found, respond)
      })
    }
    const to = plan.to(verified, services)
    if ('thing' in to) this.#locate(to.thing, to.field, verified, respond, askFor)
    else askFor(to.actor)
  }

  #runPlan(plan: AnyPlan, verified: Verified, actor: string, asked: Asked, respond: Respond): void {
    const args = { ...plan.args?.(verified, this.#options), ...asked.args }
    const isFree = plan.unmetered?.(verified, this.#options) === true
    const accepted = this.#planAccepted(plan, verified, { actor, args }, respond)
    this.#write(verified, actor, args, respond, accepted, { ...asked, isFree })
  }

  /** Answers an accepted command with what its plan shows. `args`: what the actor was given. */
  #planAccepted(
    plan: AnyPlan,
    verified: Verified,
    { actor, args }: { readonly actor: string; readonly args: object },
    respond: Respond,
  ): (answer: Accepted<Decided>, head: Head | undefined) => void {
    return (answer, head) => {
      const decided = answer.reply
      if (answer.duplicate !== true) plan.onAccepted?.(verified, decided, this.#options, actor)
      const { leaf } = answer
      if (leaf !== undefined) plan.onLogged?.(verified, this.#options)
      const shown = plan.show(verified, decided, actor, answer.duplicate === true, args, this.#options)
      if ('read' in shown) return this.#readBack(verified, shown.read, shown.args, { answer, respond, head })
      const outcome = { at: decided.at, leaf, head, duplicate: answer.duplicate === true }
      const receipt = receiptJson(shaOf(verified, answer), outcome)
      if ('values' in shown) return respond(withReceipt(shown.values, receipt))
      shown.later((found) => respond(laterReply(found, receipt)))
    }
  }

  /** A command that is refused before its actor is asked may have been accepted earlier; then its signer gets the same answer again. */
  #unlessAccepted(plan: AnyPlan, verified: Verified, actor: string, instead: Refusal, respond: Respond): void {
    const letter = signedLetter(this.#options, verified, { to: actor, args: {}, limited: 0 })
    const accepted = this.#planAccepted(plan, verified, { actor, args: {} }, respond)
    sendAs(this.#options, verified.signer.delegate, { ...letter, op: 'nothing' }, (answer, head) => {
      if (answer === undefined) return respond(undefined)
      if (!answer.ok) return respond(fromActor(answer.refusal))
      if (answer.duplicate !== true) return respond(refused(instead))
      accepted(answer, head)
    })
  }

  /** Finds the actor that decides over a thing. What the reader may not see does not exist, unless this command was accepted there. */
  #locate(
    thing: string,
    field: string,
    { signer, operation, sha }: Pick<Verified, 'signer' | 'operation' | 'sha'>,
    respond: Respond,
    then: (actor: string) => void,
  ): void {
    const operator = deletions.has(operation.name) && isOperator(signer, this.#options.operators)
    const reader = { reader: signer.id, operator }
    const command = sha.toString('hex', 0, 16)
    this.#options.read({ op: 'locate', args: { thing, command }, ...reader }, (found) => {
      if (found === undefined) return respond(undefined)
      const place = found.ok ? dataOf(found) : undefined
      const author = place?.hiddenFrom?.author
      if (place === undefined || (author !== undefined && !this.#options.news.isErased(author)))
        return respond(refused(refusal('not_found', `there is nothing with the id ${thing}`, field)))
      then(place.actor)
    })
  }

  #post(verified: Verified<'post'>, respond: Respond): void {
    const { command } = verified
    if (command.room !== undefined && command.room !== '') return this.#postInto(command.room!, verified, respond)
    // A reply or a new version that names no room goes to its target's room.
    const superseded = supersedesOf(verified)
    const target = superseded === '' ? given(command.reply_to, '') : superseded
    if (target === '') return this.#postInto('lobby', verified, respond)
    const field = superseded === '' ? 'reply_to' : 'data.supersedes'
    this.#locate(target, field, verified, respond, (room) => this.#postInto(room, verified, respond))
  }

  #postInto(room: string, verified: Verified<'post'>, respond: Respond): void {
    const { command } = verified
    const found = unproven(verified, this.#options)
    if (found !== undefined) return respond(refused(found))
    const to = addresseeOf(given(command.to, ''), this.#options.news.handles)
    if (typeof to === 'object') return respond(refused(to))
    const newRoom = takeNewRoom(this.#options, verified, room)
    const args = postArgs(verified, { roomWait: newRoom.wait, to })
    const posted = (answer: Accepted<ActorReply<'post'>>, head: Head | undefined): void => {
      const { kind, screen, at, replyTo, isPublic } = answer.reply
      if (isPublic) this.#options.welcome(verified.signer.id, verified.source.address)
      const { text } = command
      if (screen)
        this.#options.screen({ id: verified.sha.toString('hex', 0, 16), room, kind, text, at, isReply: replyTo !== '' })
      const claim = given(command.handle, '')
      if (claim === '') return this.#postAnswer(verified, room, args, answer, head, respond, '')
      this.#claim(verified, claim, answer, (notApplied) =>
        this.#postAnswer(verified, room, args, answer, head, respond, notApplied),
      )
    }
    this.#write<'post'>(verified, room, args, respond, posted, refundUnlessCreated(newRoom))
  }

  /** Claims the handle that an accepted post requested, before the post is answered. `notApplied`: why it was not claimed, or ''. */
  #claim(
    verified: Verified,
    handle: string,
    answer: Accepted<ActorReply<'post'>>,
    then: (notApplied: string) => void,
  ): void {
    if (!answer.reply.isPublic) return then('private_room')
    if (this.#options.news.handles.get(verified.signer.id) === handle) return then('')
    const claim = signedLetter<'handle.claim'>(this.#options, verified, {
      to: registryName,
      args: { handle },
      limited: 0,
    })
    const letter = { ...claim, op: 'handle.claim', nonce: '' } as const
    sendAs(this.#options, verified.signer.delegate, letter, (claimed) => {
      if (claimed === undefined || !claimed.ok) return then('unknown')
      const { reply } = claimed
      if (claimed.change !== undefined) this.#options.news.noteChange(registryName, claimed.change)
      if (reply.handle !== '') this.#options.news.handles.set(verified.signer.id, reply.handle)
      then(reply.notApplied ?? '')
    })
  }

  #postAnswer(
    verified: Verified<'post'>,
    room: string,
    args: PostArgs,
    answer: Accepted<ActorReply<'post'>>,
    head: Head | undefined,
    respond: Respond,
    notApplied: string,
  ): void {
    const { reply } = answer
    const { signer, source } = verified
    const id = shaOf(verified, answer).slice(0, 32)
    const handle = this.#options.news.handles.get(signer.id)
    const author = { id: signer.id, public_key: signer.text, ...(handle === undefined ? {} : { handle }) }
    const isPlain = args.supersedes === '' && args.attachments.length === 0
    if (answer.duplicate || !isPlain) {
      const unread = () => {
        const facts = { id, room, author, kind: reply.kind, via: source.via, ttl: args.ttl }
        const receipt = receiptJson(shaOf(verified, answer), { ...answer, at: reply.at, leaf: answer.leaf, head })
        const extra = notApplied === '' ? {} : { handle_not_applied: notApplied }
        respond(withReceipt({ event_id: id, event: unreadableView(facts, reply, answer.leaf), ...extra }, receipt))
      }
      return this.#readBack(verified, 'event.made', { event_id: id }, { answer, respond, notApplied, head, unread })
    }
    const { leaf } = answer
    const receipt = receiptJson(shaOf(verified, answer), { at: reply.at, leaf, head })
    const shown = { page: nameJson(reply.page), author: authorJson(author), receipt }
    const placed = { ...shown, toId: args.to, ttl: args.ttl, reply, leaf, notApplied }
    respond({ status: 200, body: newPostJson(piecesOf(verified, { room, via: source.via, signer }), placed) })
  }

  #createRoom(verified: Verified<'room.create'>, respond: Respond): void {
    const { command, signer } = verified
    const { room } = command
    const newRoom = takeNewRoom(this.#options, verified, room)
    const args = {
      visibility: command.visibility === 'private' ? ('private' as const) : ('public' as const),
      members: command.members ?? [],
      text: given(command.text, ''),
      roomWait: newRoom.wait,
    }
    const made = (answer: Accepted<ActorReply<'room.create'>>): void => {
      const unread = () => {
        const { at } = answer.reply
        const { visibility, members, text: about } = args
        const shown = roomAsMade({ name: room, owner: signer.id, visibility, members, about }, at)
        const outcome = { at, leaf: undefined, head: undefined, duplicate: answer.duplicate === true }
        respond(withReceipt({ room: shown }, receiptJson(shaOf(verified, answer), outcome)))
      }
      this.#readBack(verified, 'room.get', { room }, { answer, respond, unread })
    }
    this.#write<'room.create'>(verified, room, args, respond, made, refundUnlessCreated(newRoom))
  }

  #register(verified: Verified<'identity.register'>, respond: Respond): void {
    const { handle } = verified.command
    this.#write<'identity.register'>(verified, registryName, { handle }, respond, (answer) => {
      this.#options.news.handles.set(verified.signer.id, handle)
      this.#readBack(verified, 'identity.get', { target: verified.signer.id }, { answer, respond })
    })
  }

  /** Sends the letter. `accepted` is called on success; every other outcome is answered here. */
  #write<Name extends WriteName = never>(
    verified: Verified,
    to: string,
    args: Given<Name>,
    respond: Respond,
    accepted: (answer: Accepted<ActorReply<Name>>, head: Head | undefined) => void,
    {
      by,
      settle,
      limit,
      isFree = false,
    }: Pick<Asked, 'by' | 'settle' | 'limit'> & { readonly isFree?: boolean } = nothingAsked,
  ): void {
    const { throttle, operators } = this.#options
    const { signer, bytes, isNew = false } = verified
    // The board's own posts are not rate-limited.
    const isFreeOfCharge = isFree || verified.source.via === 'board'
    const requestIds = given(verified.command.request_id, '') === '' ? 0 : 1
    const charge = isFreeOfCharge
      ? new Charge()
      : throttle.write(writerOf(verified, operators), bytes.length, isNew, requestIds)
    const letter = signedLetter<Name>(this.#options, verified, { to, args, limited: charge.wait })
    sendAs(this.#options, signer.delegate, by === undefined ? letter : { ...letter, by }, (answer, head) => {
      settle?.(answer)
      settleWrite(charge, verified, answer, this.#options)
      if (answer === undefined) return respond(undefined)
      if (!answer.ok) return respond(limitReply(answer.refusal, charge, limit, throttle))
      if (answer.change !== undefined) this.#options.news.noteChange(to, answer.change)
      accepted(answer, head)
    })
    // Until a delegation is public its first letter may be sent again, so later lines wait for the answer.
    if (signer.delegate?.isPublished !== false) verified.source.place?.sent()
  }

  /**
   * Whose view of the result is shown; `''` for that of an anonymous reader. Former members may still have the signed bytes of a private
   * command, so a retry that is too old to be accepted as new is shown as to a stranger. The same holds for a delegate without board:read.
   */
  #readerOf({ command, signer }: Verified, op: string, { reply, duplicate }: Accepted<Replied>): string {
    if (reply.isPublic !== false || !ofRooms.has(op)) return signer.id
    if (isPublicOnly(signer)) return ''
    const isOld = Math.abs(this.#options.wallSeconds() - command.timestamp) > windowSeconds
    return duplicate === true && isOld ? '' : signer.id
  }

  /** The answer to a write is what a read shows now, with the receipt. `unread` is called if its signer may not read it anymore. */
  #readBack(
    verified: Verified,
    op: ReadName | ShownReadName,
    args: Readonly<Record<string, string | number>>,
    {
      answer,
      respond,
      notApplied = '',
      head = this.#options.news.head,
      unread,
    }: {
      answer: Accepted<Replied>
      respond: Respond
      notApplied?: string
      head?: Head | undefined
      unread?: () => void
    },
  ): void {
    const { at } = answer.reply
    const sha = shaOf(verified, answer)
    // A signer who may not read it anymore still learns that it was done, and when.
    const outcome = { at, leaf: answer.leaf, head, duplicate: answer.duplicate === true }
    const receiptAlone = () =>
      respond({ status: 200, body: `{"ok":true,"data":{"receipt":${receiptJson(sha, outcome)}}}` })
    const notShown = unread ?? receiptAlone
    const reader = this.#readerOf(verified, op, answer)
    const isSuspended = this.#options.news.isSuspended(verified.signer.id)
    this.#options.read({ op, args, reader, isSuspended }, (found: ReadAnswer | NoAnswer) => {
      if (found === undefined) return respond(undefined)
      if (!found.ok) return notShown()
      const { made } = found
      // A retry whose first answer was in a log that is closed now.
      const placed = { leaf: answer.leaf ?? made?.leaf, head: made?.head ?? head }
      const receipt = receiptJson(sha, { ...outcome, ...placed })
      const extra = notApplied === '' ? '' : `"handle_not_applied":${JSON.stringify(notApplied)},`
      const id = made === undefined ? '' : `"event_id":"${made.event}",`
      respond({
        status: 200,
        body: `{"ok":true,"data":{${id}${jsonOf(found).slice(1, -1)},${extra}"receipt":${receipt}}}`,
      })
    })
  }
}

/** Hex SHA-256 of the accepted command: for a retry, that of the first one. */
function shaOf(verified: Verified, { reply }: Accepted<Pick<Decided, 'sha'>>): string {
  return reply.sha ?? verified.sha.toString('hex')
}

/** What the author of a post sees of it after being removed from its private room: that it exists, and where. */
function unreadableView(
  { ttl, ...facts }: Pick<EventFacts, 'id' | 'room' | 'kind' | 'author' | 'via'> & { readonly ttl: number },
  reply: PostReply,
  leaf: number | undefined,
): EventView {
  const shown: EventFacts = {
    ...facts,
    page: reply.page,
    seq: reply.seq,
    replyTo: reply.replyTo,
    thread: reply.thread,
    at: reply.at,
    expires: ttl === 0 ? 0 : reply.at + ttl,
    leaf: leaf === undefined ? undefined : { index: leaf },
    votes: { up: 0, down: 0, score: 0 },
    supersedes: '',
    supersededBy: '',
    versionId: '',
    versions: 0,
    editedAt: 0,
  }
  return eventView(shown, { gone: { reason: 'this key may not read it here', by: undefined }, to: undefined }, false)
}

type RoomWanted = {
  readonly name: string
  readonly visibility: Visibility
  readonly owner: string
  /** Identity ids, possibly including the owner. */
  readonly members: readonly string[]
  readonly about: string
}

/**
 * A room as its creator saw it when it was created: what a retry shows a creator who has left it since. `at`: time of creation, Unix
 * seconds.
 */
function roomAsMade({ name, visibility, owner, members, about }: RoomWanted, at: number) {
  return {
    name,
    visibility,
    owner,
    moderators: [],
    members: new Set([owner, ...members]).size,
    ...(about === '' ? {} : { about }),
    closed: false,
    count: 0,
    threads: 0,
    pages: 0,
    last_seq: 0,
    created_at: at,
    updated_at: at,
  }
}
