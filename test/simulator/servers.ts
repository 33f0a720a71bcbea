/** NATS servers as a board sees them: a stream on other machines, which survives every fault of the board. Messages may get lost. */
import { type Clock, pause } from '../../src/clock.ts'
import { type Part, parseHeader } from '../../src/replication/batch.ts'
import type { FollowedStream } from '../../src/replication/follower.ts'
import type { Ends } from '../../src/replication/journals-out.ts'
import type { OpenStream } from '../../src/replication/open-stream.ts'
import { type Published, StreamAway } from '../../src/replication/stream.ts'
import type { Simulation } from '../support/simulation.ts'

type Message = { readonly header: string; readonly bytes: Buffer }

/** As in the client of the servers. */
const answersWithinMs = 5_000
/** The maximum delay of a stuck message. */
const lateMsMax = 20_000

export class SimulatedServers {
  readonly #sim: Simulation
  readonly #messages: Message[] = []
  /** Readers of the stream that have all of it. */
  readonly #waiting: (() => void)[] = []
  /** The board that leads. */
  #onCopied: ((ends: Ends) => void) | undefined
  /** Nobody can reach them. */
  areDown = false
  /** The follower cannot reach them. */
  isFollowerCutOff = false
  /** Percentage of messages that get lost or delayed, or whose acknowledgments do. */
  lost = 0

  constructor(sim: Simulation) {
    this.#sim = sim
  }

  heal(): void {
    this.areDown = false
    this.isFollowerCutOff = false
    this.lost = 0
    this.#wake()
  }

  /** Message `seq`, as it was sent. */
  read(seq: number): Part | undefined {
    const found = this.#messages[seq - 1]
    return found && { header: parseHeader(found.header)!, bytes: Buffer.from(found.bytes) }
  }

  get last(): number {
    return this.#messages.length
  }

  /** The stream as read by a follower whose thread has this clock. */
  async reader(clock: Clock): Promise<FollowedStream> {
    const reach = () => this.#reach(clock, this.isFollowerCutOff)
    await reach()
    const ended = Promise.withResolvers<void>()
    let isClosed = false
    const from = async function* (this: SimulatedServers, first: number) {
      for (let seq = first; ; ) {
        if (isClosed) return
        if (this.areDown || this.isFollowerCutOff || seq > this.last)
          await Promise.race([this.#waitForMore(clock), ended.promise])
        else {
          const part = this.read(seq)
          await this.#delay(clock)
          yield { seq: seq++, part }
        }
      }
    }
    return {
      last: async () => {
        await reach()
        return this.last
      },
      from: from.bind(this),
      reportCopied: (ends) => this.#reportCopied(clock, ends),
      close: async () => {
        isClosed = true
        ended.resolve()
      },
    }
  }

  /** Something was stored, or the servers are back. */
  async #waitForMore(clock: Clock): Promise<void> {
    await new Promise<void>((go) => {
      this.#waiting.push(() => clock.later(go, this.#sim.randomBelow(10)))
    })
  }

  #wake(): void {
    for (const each of this.#waiting.splice(0)) each()
  }

  /** Nobody stores it: the board that listens now is notified. */
  #reportCopied(clock: Clock, ends: Ends): void {
    if (this.areDown || this.isFollowerCutOff || this.#sim.randomBelow(100) < this.lost) return
    clock.later(() => this.#onCopied?.(ends), this.#sim.randomBelow(10))
  }

  readonly open: OpenStream = async ({ clock }) => {
    const reach = () => this.#reach(clock)
    await reach()
    return {
      isChecked: true,
      check: reach,
      health: async () => ({ leader: 'n1', away: [], wallSeconds: undefined }),
      state: async () => {
        await reach()
        return { created: 'once', firstSeq: 1, lastSeq: this.last }
      },
      read: async (seq) => {
        await reach()
        return this.read(seq)
      },
      publish: (part, expected) => this.#publish(clock, part, expected),
      subscribeCopies: (take) => {
        this.#onCopied = (ends) => void clock.later(() => take(ends), 0)
        return new Promise(() => {})
      },
      close: async () => {},
    }
  }

  async #reach(clock: Clock, isCutOff = false): Promise<void> {
    await this.#delay(clock)
    if (!this.areDown && !isCutOff) return
    await pause(clock, answersWithinMs)
    throw new StreamAway('The servers of the stream are out of reach.')
  }

  async #delay(clock: Clock): Promise<void> {
    await pause(clock, this.#sim.randomBelow(10))
  }

  async #publish(clock: Clock, { header, bytes }: Part, expected: number): Promise<Published> {
    const message = { header: JSON.stringify(header), bytes: Buffer.from(bytes) }
    await this.#delay(clock)
    if (!this.areDown && this.#sim.randomBelow(100) >= this.lost) return this.#store(message, expected)
    const fate = this.areDown ? 'lost' : (['lost', 'late', 'stored'] as const)[this.#sim.randomBelow(3)]
    if (fate === 'stored') this.#store(message, expected)
    if (fate === 'late') this.#sim.schedule(() => this.#store(message, expected), this.#sim.randomBelow(lateMsMax))
    await pause(clock, answersWithinMs)
    return { unknown: 'no answer' }
  }

  #store(message: Message, expected: number): Published {
    if (this.last !== expected) return { unknown: `wrong last sequence: ${this.last}` }
    const seq = this.#messages.push(message)
    this.#wake()
    return { seq }
  }
}
