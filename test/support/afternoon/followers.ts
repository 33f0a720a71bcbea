/**
 * Followers that follow all afternoon, through every kill: by long polls with a cursor, and by tails that are resumed with the last id.
 * Each records what it received, in order.
 */

import type { EventJson } from '../client.ts'
import { StreamReader } from '../stream-reader.ts'
import { requestUpdates, type UpdateJson, type UpdatesJson } from '../updates.ts'
import { people, type Room } from './people-and-rooms.ts'
import type { RestartingBoard } from './restarting-board.ts'
import type { Random } from './world.ts'

export type PollerOptions = {
  /** Number of the person who signs; undefined: unsigned, by GET. */
  readonly who?: number
  readonly rooms?: readonly Room[]
  readonly kinds?: readonly string[]
  readonly limit?: number
}

export class Poller {
  readonly options: PollerOptions
  readonly seen: UpdateJson[] = []
  /** Answers, including those with nothing new. */
  polls = 0
  readonly #restartingBoard: RestartingBoard
  #cursor: string | undefined
  #isLast = false

  constructor(restartingBoard: RestartingBoard, options: PollerOptions) {
    this.#restartingBoard = restartingBoard
    this.options = options
  }

  get name(): string {
    const { who, rooms, kinds } = this.options
    return `long poll by ${who ?? 'nobody'} of ${rooms?.map(({ name }) => name).join() ?? 'all'}, ${kinds?.join() ?? 'all kinds'}`
  }

  /** Gets its cursor: everything from now on is for it. */
  async begin(): Promise<void> {
    await this.#poll(0)
  }

  /** Polls until `finish` was called and there is nothing more. */
  async follow(): Promise<void> {
    for (;;) {
      const isLast = this.#isLast
      const { updates, has_more } = await this.#poll(isLast ? 0 : 5)
      if (isLast && updates.length === 0 && !has_more) return
    }
  }

  finish(): void {
    this.#isLast = true
  }

  async #poll(wait: number): Promise<UpdatesJson> {
    const { who, rooms, kinds, limit } = this.options
    const asked = {
      wait,
      ...(rooms === undefined ? {} : { rooms: rooms.map(({ name }) => name) }),
      ...(kinds === undefined ? {} : { kinds }),
      ...(limit === undefined ? {} : { limit }),
      ...(this.#cursor === undefined ? {} : { cursor: this.#cursor }),
    }
    const { result } = await this.#restartingBoard.retry((client) =>
      requestUpdates(client, asked, who === undefined ? who : people[who]),
    )
    if (result.status !== 200) throw new Error(`${this.name}: ${result.status} ${result.text}`)
    const page = result.data as unknown as UpdatesJson
    this.seen.push(...page.updates)
    this.#cursor = page.cursor
    this.polls++
    return page
  }
}

export type TailFormat = 'sse' | 'block' | 'line'

const wholeSse = /^id: ([0-9a-f]{32})\ndata: ([^\n]*)\n\n/gm
const wholeBlock = /^\[([0-9a-f]{32})\] [^\n]*\n(?:[^\n]+\n)+\n/gm
const wholeLine = /^\[([0-9a-f]{32})\] [^\n]*\n/gm

export class Tail {
  readonly room: Room
  readonly format: TailFormat
  /** Number of the member whose token opens a private room. */
  readonly who: number | undefined
  readonly ids: string[]
  /** Contents of server-sent events. */
  readonly events: EventJson[] = []
  opened = 0
  readonly #restartingBoard: RestartingBoard
  readonly #random: Random

  /** `first`: the event of the room after which it begins. */
  constructor(
    restartingBoard: RestartingBoard,
    random: Random,
    room: Room,
    format: TailFormat,
    first: string,
    who?: number,
  ) {
    this.#restartingBoard = restartingBoard
    this.#random = random
    this.room = room
    this.format = format
    this.who = who
    this.ids = [first]
  }

  get name(): string {
    return `${this.format} tail of ${this.room.name}`
  }

  /** Reads, disconnects and comes back, until it has seen the event that `last` resolves to. */
  async follow(last: Promise<string>): Promise<void> {
    let end: string | undefined
    void last.then((id) => {
      end = id
    })
    const isDone = () => end !== undefined && this.ids.includes(end)
    while (!isDone()) {
      const reader = await this.#open()
      const want = 3 + this.#random(150)
      let taken = 0
      let wake: () => void = () => {}
      void last.then(() => wake())
      while (!isDone() && taken < want && !reader.closed) {
        const before = this.#whole(reader.text).length
        await Promise.race([
          reader.until((text) => this.#whole(text).length > before),
          new Promise<void>((resolve) => {
            wake = resolve
          }),
        ])
        const whole = this.#whole(reader.text)
        for (const [, id, data] of whole.slice(taken)) {
          this.ids.push(id!)
          if (data !== undefined) this.events.push(JSON.parse(data) as EventJson)
        }
        taken = whole.length
      }
      reader.close()
    }
  }

  #whole(text: string): RegExpMatchArray[] {
    const pattern = { sse: wholeSse, block: wholeBlock, line: wholeLine }[this.format]
    return [...text.matchAll(pattern)]
  }

  async #open(): Promise<StreamReader> {
    const since = this.ids.at(-1)!
    const token = this.who === undefined ? '' : `&token=${await this.#token(this.who)}`
    await this.#restartingBoard.running
    const isSse = this.format === 'sse'
    const query = isSse ? `last=1${token}` : `since=${since}${this.format === 'line' ? '&format=line' : ''}${token}`
    const headers = isSse ? { accept: 'text/event-stream', 'last-event-id': since } : {}
    this.opened++
    return new StreamReader(this.#restartingBoard.board.address, `/tail/${this.room.name}?${query}`, headers)
  }

  async #token(who: number): Promise<string> {
    const fields = { operation: 'room.read_token', room: this.room.name }
    const { result } = await this.#restartingBoard.retry((client) => client.command(people[who]!, fields))
    if (result.status !== 200) throw new Error(`${this.name}: ${result.text}`)
    return (result.data as unknown as { token: string }).token
  }
}
