/**
 * One follow of /v1/stream: an updates.get that is repeated from where its last answer ended, as long as its connection accepts answers. A
 * slow reader therefore uses no memory: a page that cannot be sent is dropped and requested again.
 *
 * The key, the identity and the membership are checked before every page, and the page is not sent if one of them has ended.
 */
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { Timers } from '../../actors/kernel/timers.ts'
import type { MemberWatch, Subscriptions } from '../follow/subscriptions.ts'
import type { Updates } from '../follow/updates.ts'
import type { Poll } from '../follow/wait-limit.ts'
import { bodyOf, type Reply, refused } from '../format/reply.ts'
import type { Release } from '../rates/places.ts'

export type FollowOptions = {
  readonly poll: Poll
  /** Releases its place among the waiting requests. */
  readonly leave: Release
  readonly updates: Pick<Updates, 'poll'>
  readonly members: Subscriptions<MemberWatch>
  /** Why this reader and key get nothing more; undefined if they are valid. */
  readonly standing: (reader: string, key: string) => Refusal | undefined
  readonly timers: Pick<Timers, 'later'>
  /** How long one updates.get waits, in seconds. */
  readonly waitSeconds: number
  /** Takes a page, for which `sent` or `unsent` is called later. */
  readonly page: (body: string, follow: Follow) => void
  /** Called once. `reply`: what the client gets at the end; undefined for nothing. */
  readonly over: (reply: Reply | undefined) => void
}

/** Delay before updates are requested again if a thread of the board did not answer. */
const againMs = 1_000
const nothingNew = '{"ok":true,"data":{"schema":1,"updates":[],'
const cursorKey = '"cursor":"'

export class Follow {
  readonly #options: FollowOptions
  readonly #watch: MemberWatch | undefined
  #cursor: string
  /** Cursor after the page being sent. */
  #next = ''
  #state: 'idle' | 'asking' | 'told' | 'over' = 'idle'
  /** Nothing has been sent yet: the first page is sent even if it is empty. */
  #isFirst = true
  #gone: () => void = () => {}

  constructor(options: FollowOptions) {
    this.#options = options
    const { reader, key, rooms, cursor } = options.poll
    this.#cursor = cursor
    if (reader === '' || rooms.length === 0) return
    const topics = rooms.map((room) => ['member', room, reader] as const)
    const left = () =>
      this.end(refused(refusal('private_room', 'you are no longer a member of this room', 'data.rooms')))
    this.#watch = { topics, reader, key, at: -1, left }
    options.members.add(this.#watch)
  }

  /** Requests what is new, unless that is already being requested or sent. */
  ask(): void {
    if (this.#state !== 'idle' || !this.isGood()) return
    this.#state = 'asking'
    const { poll, updates, waitSeconds } = this.#options
    const asked: Poll = {
      ...poll,
      cursor: this.#cursor,
      waitSeconds: this.#isFirst ? 0 : waitSeconds,
      hasPlace: true,
      onGone: (gone) => {
        this.#gone = gone
      },
    }
    updates.poll(asked, (reply) => this.#take(reply))
  }

  /** Ends it if its reader or key is now refused. */
  isGood(): boolean {
    const { poll, standing } = this.#options
    if (this.#state === 'over') return false
    const found = poll.reader === '' ? undefined : standing(poll.reader, poll.key)
    if (found !== undefined) this.end(refused(found))
    return found === undefined
  }

  /** The socket has accepted the page. */
  sent(): void {
    if (this.#state !== 'told') return
    this.#isFirst = false
    this.#cursor = this.#next
    this.#state = 'idle'
    this.ask()
  }

  /** The socket had no room for the page, which waits for the next `ask`. */
  unsent(): void {
    if (this.#state === 'told') this.#state = 'idle'
  }

  /** `reply`: the reason; undefined if its client knows it, or is gone. */
  end(reply?: Reply): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    const { leave, members, over } = this.#options
    if (this.#watch !== undefined) members.remove(this.#watch)
    this.#gone()
    leave()
    over(reply)
  }

  #take(reply: Reply | undefined): void {
    if (this.#state !== 'asking') return
    if (reply === undefined) {
      this.#state = 'idle'
      this.#options.timers.later(() => this.ask(), againMs)
      return
    }
    if (reply.status !== 200) return this.end(reply)
    const body = bodyOf(reply)
    // No user text comes after it.
    const at = body.lastIndexOf(cursorKey) + cursorKey.length
    this.#next = body.slice(at, body.indexOf('"', at))
    this.#state = 'told'
    if (this.#isFirst || !body.startsWith(nothingNew)) return this.#options.page(body, this)
    this.#cursor = this.#next
    this.#state = 'idle'
    this.ask()
  }
}
