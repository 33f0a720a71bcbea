/** A second box that has the board too. It hears what the stream has, and can take the place of the first one. */
import { readFacts, replicationFile } from '../../src/board-directory.ts'
import type { LogIdentity } from '../../src/log/signed-log.ts'
import { Attachments, leaderNotAsked } from '../../src/replication/attachments.ts'
import { Assembly, openPayload } from '../../src/replication/batch.ts'
import { CopiedJournals } from '../../src/replication/copied-journals.ts'
import { becomeFollower, knownOf, logsOf } from '../../src/replication/follower-directory.ts'
import { takeLead } from '../../src/replication/lead.ts'
import { StreamSeal } from '../../src/replication/stream-seal.ts'
import type { Copy } from '../support/memory-disk.ts'
import type { Machine, Simulation } from '../support/simulation.ts'
import { dataDirectory, markFile, replication } from './board.ts'
import type { SimulatedServers } from './servers.ts'

/** Of a machine: its data directory, and the mark beside it. */
export const machineDirectory = '/board'

export const silent = () => {}

export class SecondBox {
  readonly servers: SimulatedServers
  readonly #sim: Simulation
  readonly #machine: Machine
  readonly #segmentBytesMax: number
  /** It has all messages up to this one; undefined: it has no board. */
  #heard: number | undefined

  constructor(sim: Simulation, servers: SimulatedServers, segmentBytesMax: number) {
    this.#sim = sim
    this.servers = servers
    this.#machine = sim.beside()
    this.#segmentBytesMax = segmentBytesMax
  }

  get isFollower(): boolean {
    return this.#heard !== undefined
  }

  /** Has these files of the first box, which is at rest: the stream has all of them. */
  copy(files: Copy, log: LogIdentity): void {
    const { memory } = this.#machine
    const left = new Set([markFile, replicationFile(dataDirectory)])
    memory.putBack(machineDirectory, new Map([...files].filter(([name]) => !left.has(name))))
    becomeFollower(memory, dataDirectory, [log])
    this.#heard = this.servers.last
  }

  /** Takes what the stream has, as a follower does that runs. The power may go off meanwhile, after so many operations of its disk. */
  async hear(operations: number, onFirstDown: () => Promise<void>): Promise<void> {
    this.#machine.memory.cutAfter(operations)
    await this.#until(this.#take(this.#machine.platform), onFirstDown)
    this.#machine.startAgain()
  }

  async #take({ clock, random, disk }: Machine['platform']): Promise<void> {
    const seal = new StreamSeal({ disk, dataDirectory, wallSeconds: clock.wallSeconds, random })
    const journals = new CopiedJournals({
      disk,
      path: dataDirectory,
      random,
      segmentBytesMax: this.#segmentBytesMax,
      facts: readFacts(disk, dataDirectory),
      logs: logsOf(knownOf(disk, dataDirectory)!),
      report: silent,
    })
    const attachments = new Attachments(disk, dataDirectory, leaderNotAsked)
    const assembly = new Assembly(seal)
    try {
      for (let seq = this.#heard! + 1; seq <= this.servers.last; seq++) {
        const batch = assembly.add(this.servers.read(seq)!)
        if (batch === undefined) continue
        const { shares, files } = openPayload(batch.header, batch.payload)
        await attachments.fetchFor(shares.slice(0, -1), files)
        journals.take(shares)
        this.#heard = seq
      }
    } finally {
      journals.close()
    }
  }

  /** Takes the place of the first box. Its own power goes off `cuts` times on the way; `onFirstDown` is called when the first box goes down. */
  async lead(cuts: number, onFirstDown: () => Promise<void>): Promise<void> {
    const { memory } = this.#machine
    for (let left = cuts; ; left--) {
      memory.cutAfter(left > 0 ? 1 + this.#sim.chance(40) : Number.POSITIVE_INFINITY)
      const leading = takeLead({
        ...this.#machine.platform,
        config: { dataDirectory, segmentBytesMax: this.#segmentBytesMax },
        settings: replication,
        openStream: this.servers.open,
        takeDeliveries: silent,
        report: silent,
      })
      const isDone = await this.#until(leading, onFirstDown)
      this.#machine.startAgain()
      if (isDone) return
    }
  }

  /** False: the power of this box went off. */
  async #until(work: Promise<unknown>, onFirstDown: () => Promise<void>): Promise<boolean> {
    const { memory } = this.#machine
    for (;;) {
      if ((await this.#sim.until(work, () => memory.isDark || this.#sim.isDown)) !== 'dark') return true
      if (memory.isDark) return false
      await onFirstDown()
    }
  }

  /** The first box gets the files of this one, which leads, and this one those of the first, which follows: from here on they are the other. */
  swap(): void {
    const { memory } = this.#machine
    const files = memory.copy(machineDirectory)
    memory.putBack(machineDirectory, this.#sim.memory.copy(machineDirectory))
    this.#sim.memory.putBack(machineDirectory, files)
    this.#heard = 0
  }
}
