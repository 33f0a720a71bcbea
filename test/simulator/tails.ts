/** Clients that follow a room live on either box, and reconnect after every end of a stream: in order, without gaps or duplicates. */
import type { ByteStream } from '../../src/http/port.ts'
import { EngineExchange } from '../../src/http/wire.ts'
import type { Simulation } from '../support/simulation.ts'
import { must, type SimulatedBoard } from './board.ts'
import { type Model, secretMark } from './model.ts'
import type { Person } from './people.ts'

/** Milliseconds until a slow reader takes more. */
const slowMs = 3_000
/** Events that a new reader begins with. */
const lastAsked = 3

type Event = {
  readonly event_id: string
  readonly room: string
  readonly seq: number
  readonly text?: string
}

/** A stream that is open, or whose answer is pending. */
type OpenTail = { readonly board: SimulatedBoard; readonly life: number; readonly request: TailRequest }

type TailCallbacks = {
  readonly onEvent: (from: SimulatedBoard) => void
  /** Called when it got something it should not have. */
  readonly onError: (error: unknown) => void
}

export class TailReader {
  readonly room: string
  /** A member, of a private room. */
  readonly by: Person | undefined
  readonly #sim: Simulation
  readonly #model: Model
  readonly #callbacks: TailCallbacks
  #open: OpenTail | undefined
  /** Id and number of the newest that arrived. */
  #since = ''
  #seq = 0
  #part = ''

  constructor(of: Pick<TailReader, 'room' | 'by'>, sim: Simulation, model: Model, hears: TailCallbacks) {
    this.room = of.room
    this.by = of.by
    this.#sim = sim
    this.#model = model
    this.#callbacks = hears
  }

  get isOpen(): boolean {
    const { board, life, request } = this.#open ?? {}
    return board !== undefined && board.machine.life === life && !board.machine.isDown && !request!.hasEnded
  }

  /** Whether something has arrived. */
  get hasAny(): boolean {
    return this.#since !== ''
  }

  /** Whether it has everything that was acknowledged. */
  get hasAll(): boolean {
    for (const { room, seq } of this.#model.posts.values()) if (room === this.room && seq > this.#seq) return false
    return true
  }

  /** Follows on this box from here on. `token`: for a private room. */
  connect(board: SimulatedBoard, token: string | undefined): void {
    this.leave()
    this.#part = ''
    const { life } = board.machine
    const place = this.#since === '' ? `last=${lastAsked}` : `since=${this.#since}`
    const request = new TailRequest({
      path: `/tail/${this.room}`,
      query: token === undefined ? place : `${place}&token=${encodeURIComponent(token)}`,
      onText: (text) => this.#receive(text),
      later: (callback) =>
        this.#sim.schedule(() => {
          // A pending callback ends with the process.
          if (board.machine.life === life) board.machine.runInMain(callback)
        }, slowMs),
    })
    this.#open = { board, life, request }
    board.tail(request, this.room)
  }

  /** Its connection is gone. */
  leave(): void {
    if (!this.isOpen) return
    const { board, request } = this.#open!
    board.machine.runInMain(() => request.lost())
  }

  /** Takes nothing for a while after each piece, or everything immediately again. */
  set isSlow(isSlow: boolean) {
    if (this.isOpen) this.#open!.request.isSlow = isSlow
  }

  #receive(text: string): void {
    // A machine without power sends nothing.
    if (!this.isOpen) return
    const blocks = (this.#part + text).split('\n\n')
    this.#part = blocks.pop()!
    try {
      for (const block of blocks) this.#block(block)
    } catch (error) {
      this.#callbacks.onError(error)
    }
  }

  /** Without an id it is a message of the board, or says what became of something. */
  #block(block: string): void {
    must(this.by !== undefined || !block.includes(secretMark), 'a tail of a public room has something private')
    const [id, data] = block.split('\n')
    if (id?.startsWith('id: ') !== true) return
    const { event_id: event, room, seq, text } = JSON.parse(data!.slice('data: '.length)) as Event
    must(room === this.room, 'a tail has an event of another room')
    must(this.#seq === 0 || seq > this.#seq, 'a tail repeats an event, or has it out of order')
    must(this.#seq === 0 || seq === this.#seq + 1, 'a tail omits an event')
    const post = this.#model.posts.get(event)
    must(post === undefined || post.seq === seq, 'a tail has an event at another place than was acknowledged')
    must(post === undefined || text === undefined || text === post.text, 'a tail has another text than was sent')
    this.#since = event
    this.#seq = seq
    this.#callbacks.onEvent(this.#open!.board)
  }
}

type TailRequestOptions = {
  readonly path: string
  readonly query: string
  readonly onText: (text: string) => void
  readonly later: (callback: () => void) => void
}

class TailRequest extends EngineExchange {
  readonly method = 'GET'
  readonly path: string
  readonly query: string
  readonly remoteAddress = '192.0.2.3'
  readonly headers: readonly string[] = ['accept', 'text/event-stream']
  readonly isUpgrade = false
  readonly #options: TailRequestOptions
  isSlow = false
  hasEnded = false

  constructor(asked: TailRequestOptions) {
    super({ options: { now: () => 0, refusal: () => '', onFault: throwError }, draining: false, pending: new Set() })
    this.path = asked.path
    this.query = asked.query
    this.#options = asked
  }

  reply(): void {
    this.drop()
  }

  drop(): void {
    if (this.ended) return
    this.end()
    this.hasEnded = true
  }

  /** A reader may disconnect before its answer has begun. */
  override lost(): void {
    super.lost()
    this.hasEnded = true
  }

  stream(): ByteStream {
    this.end()
    const { onText, later } = this.#options
    const drained: (() => void)[] = []
    const closed: (() => void)[] = []
    const over = (): void => {
      if (this.hasEnded) return
      this.hasEnded = true
      for (const each of closed) each()
    }
    this.streaming = { close: over, closed: over }
    return {
      write: (chunk) => {
        if (this.hasEnded) return false
        onText(Buffer.from(chunk).toString())
        if (!this.isSlow) return true
        later(() => {
          if (!this.hasEnded) for (const each of drained) each()
        })
        return false
      },
      onDrain: (callback) => void drained.push(callback),
      onClose: (callback) => void closed.push(callback),
      end: over,
      close: over,
      blockedSince: undefined,
    }
  }

  accept(): undefined {}
}

function throwError(error: unknown): never {
  throw error
}
