/** NATS servers as a board sees them: a stream on other machines, which outlives every fault of the board. What is sent may get lost. */
import { type Clock, pause } from '../../src/clock.ts'
import { type Part, parseHeader } from '../../src/replication/batch.ts'
import type { OpenStream } from '../../src/replication/open-stream.ts'
import { type Published, StreamAway } from '../../src/replication/stream.ts'
import type { Simulation } from '../support/simulation.ts'

type Message = { readonly header: string; readonly bytes: Buffer }

/** As the client of the servers has it. */
const answersWithinMs = 5_000
/** A message that got stuck comes so late, at most. */
const lateMsMax = 20_000

export class SimulatedServers {
  readonly #sim: Simulation
  readonly #messages: Message[] = []
  /** Nobody can reach them. */
  areAway = false
  /** So many of a hundred messages get lost or come late, or their acknowledgments do. */
  lost = 0

  constructor(sim: Simulation) {
    this.#sim = sim
  }

  heal(): void {
    this.areAway = false
    this.lost = 0
  }

  /** Message `seq`, as it was sent. */
  read(seq: number): Part | undefined {
    const found = this.#messages[seq - 1]
    return found && { header: parseHeader(found.header)!, bytes: Buffer.from(found.bytes) }
  }

  get last(): number {
    return this.#messages.length
  }

  readonly open: OpenStream = async ({ clock }) => {
    const reach = () => this.#reach(clock)
    await reach()
    return {
      isChecked: true,
      check: reach,
      state: async () => {
        await reach()
        return { created: 'once', firstSeq: 1, lastSeq: this.last }
      },
      read: async (seq) => {
        await reach()
        return this.read(seq)
      },
      publish: (part, expected) => this.#publish(clock, part, expected),
      hearCopies: () => new Promise(() => {}),
      close: async () => {},
    }
  }

  async #reach(clock: Clock): Promise<void> {
    await this.#underWay(clock)
    if (!this.areAway) return
    await pause(clock, answersWithinMs)
    throw new StreamAway('The servers of the stream are out of reach.')
  }

  async #underWay(clock: Clock): Promise<void> {
    await pause(clock, this.#sim.chance(10))
  }

  async #publish(clock: Clock, { header, bytes }: Part, expected: number): Promise<Published> {
    const message = { header: JSON.stringify(header), bytes: Buffer.from(bytes) }
    await this.#underWay(clock)
    if (!this.areAway && this.#sim.chance(100) >= this.lost) return this.#store(message, expected)
    const fate = this.areAway ? 'lost' : (['lost', 'late', 'stored'] as const)[this.#sim.chance(3)]
    if (fate === 'stored') this.#store(message, expected)
    if (fate === 'late') this.#sim.elsewhere(() => this.#store(message, expected), this.#sim.chance(lateMsMax))
    await pause(clock, answersWithinMs)
    return { unknown: 'no answer' }
  }

  #store(message: Message, expected: number): Published {
    if (this.last !== expected) return { unknown: `wrong last sequence: ${this.last}` }
    return { seq: this.#messages.push(message) }
  }
}
