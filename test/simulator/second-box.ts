/** A second box of the same board: it follows the first one, answers reads, forwards writes, and can take over. */
import { dirname } from 'node:path'
import { replicationFile, UnusableDirectory } from '../../src/board-directory.ts'
import type { LogIdentity } from '../../src/log/signed-log.ts'
import { becomeFollower } from '../../src/replication/follower-directory.ts'
import { Halted } from '../../src/replication/halted.ts'
import { takeLead } from '../../src/replication/lead.ts'
import { OutOfReach } from '../../src/replication/leader.ts'
import type { FilesCopy } from '../support/memory-disk.ts'
import type { Machine, Simulation } from '../support/simulation.ts'
import { dataDirectory, markFile, type SimulatedBoard } from './board.ts'
import type { Network } from './network.ts'
import type { SimulatedServers } from './servers.ts'

/** On each machine: its data directory, and the mark beside it. */
export const machineDirectory = '/board'

export const silent = () => {}

type Connections = { readonly servers: SimulatedServers; readonly network: Network }

export class SecondBox {
  readonly servers: SimulatedServers
  /** Between the two boxes. */
  readonly network: Network
  readonly board: SimulatedBoard
  readonly #sim: Simulation
  readonly #machine: Machine
  #isRunning = false
  /** It has the key of the stream for certain. */
  hasKey = false

  constructor(sim: Simulation, board: SimulatedBoard, { servers, network }: Connections) {
    this.#sim = sim
    this.servers = servers
    this.network = network
    this.board = board
    this.#machine = board.machine
  }

  /** It has the board, as far as it has been told. */
  get isFollower(): boolean {
    return this.#machine.memory.fileExists(`${dataDirectory}/board.json`)
  }

  /** It answers. */
  get isRunning(): boolean {
    return this.#isRunning && !this.#machine.isDown
  }

  heal(): void {
    this.servers.heal()
    this.network.heal()
    if (!this.#machine.isDown) this.#machine.memory.heal()
  }

  /** Gets these files of the first box, which is at rest: the stream has all of them. */
  copy(files: FilesCopy, log: LogIdentity): void {
    const { memory } = this.#machine
    const left = new Set([markFile, replicationFile(dataDirectory)])
    memory.replaceFiles(machineDirectory, new Map([...files].filter(([name]) => !left.has(name))))
    becomeFollower(memory, dataDirectory, [log])
    this.hasKey = true
  }

  /** Follows from here on. The power may go off on the way, after this many disk operations. False: it does not run. */
  async start(operations: number, onFirstDown: () => Promise<void>): Promise<boolean> {
    await this.end()
    this.#machine.memory.heal()
    this.#machine.memory.cutAfter(operations)
    try {
      this.#isRunning = await this.#until(this.board.start(), onFirstDown)
    } catch (error) {
      // No box was reachable for the beginning of the journals.
      if (!(error instanceof UnusableDirectory && error.cause instanceof OutOfReach)) throw error
    }
    if (!this.#isRunning) await this.#machine.restart()
    return this.#isRunning
  }

  /** Sends a request to whatever runs there. Undefined: it ended meanwhile. */
  ask<Answer>(ask: (board: SimulatedBoard) => Promise<Answer>): Promise<Answer | undefined> {
    return Promise.race([ask(this.board), this.#machine.ended.then(() => undefined)])
  }

  /** As a service manager stops it. */
  async stop(onFirstDown: () => Promise<void>): Promise<void> {
    // It finishes even if the first box goes down: a half-stopped follower neither follows nor can be started.
    if (this.isRunning) await this.#sim.until(this.board.stop(), () => this.#machine.isDown)
    await this.end()
    if (this.#sim.isDown) await onFirstDown()
  }

  /** Ends whatever runs there. */
  async end(): Promise<void> {
    this.hasKey ||= this.isRunning && this.board.behindMs === 0
    this.#isRunning = false
    await this.#machine.restart()
  }

  /**
   * Takes over from the first box. Its own power goes off `cuts` times on the way; `onFirstDown` is called when the first box goes down.
   * False: it may not, because it is new and has never had everything, or the leader has not written to the stream yet.
   */
  async lead(cuts: number, onFirstDown: () => Promise<void>): Promise<boolean> {
    const { memory } = this.#machine
    await this.end()
    memory.heal()
    // Whoever sets up a follower that may lead copies the keys.
    for (const [name, { bytes, mode }] of this.#sim.memory.copy(`${dataDirectory}/keys`)) {
      memory.makeDirectory(dirname(name))
      memory.writeAtomic(name, bytes, mode)
    }
    for (let left = cuts; ; left--) {
      memory.cutAfter(left > 0 ? 1 + this.#sim.randomBelow(40) : Number.POSITIVE_INFINITY)
      const leading = takeLead({
        ...this.#machine.platform,
        config: this.board.config,
        settings: this.board.replication,
        openStream: this.servers.open,
        takeDeliveries: silent,
        report: silent,
      })
      const isDone = await this.#until(leading, onFirstDown).catch((error: unknown) => {
        const mayNot = (why: string) => error instanceof Halted && error.message.includes(why)
        // A leader that died before its first message acknowledged nothing either.
        if (!mayNot('The stream is empty') && (this.hasKey || !mayNot('no key'))) throw error
      })
      await this.#machine.restart()
      if (isDone !== false) return isDone === true
    }
  }

  /** False: the power of this box went off. */
  async #until(work: Promise<unknown>, onFirstDown: () => Promise<void>): Promise<boolean> {
    const isDown = () => this.#machine.isDown || this.#sim.isDown
    for (;;) {
      if ((await this.#sim.until(work, isDown)) !== 'dark') return true
      if (this.#machine.isDown) return false
      await onFirstDown()
    }
  }

  /**
   * The first box gets the files of this one, which leads, and this one those of the first, which follows: from here on their roles are
   * swapped.
   */
  swap(): void {
    const { memory } = this.#machine
    const files = memory.copy(machineDirectory)
    memory.replaceFiles(machineDirectory, this.#sim.memory.copy(machineDirectory))
    this.#sim.memory.replaceFiles(machineDirectory, files)
  }
}
