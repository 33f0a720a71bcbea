/**
 * Rounds of a board that fails under load and is checked against everything that it acknowledged: used for kills and for power cuts.
 *
 * The plan of a round (load, moment, engine settings) follows only from the seed and the number of the round. The machine decides when the
 * strike hits: the same seed repeats the plan, and the moment within a millisecond or so.
 */

import type { Placement } from '../../src/config.ts'
import { Board, isPortTaken, startBoard, tryStartBoard } from '../support/board-launch.ts'
import { Client } from '../support/client.ts'
import { Ledger, load, randomFrom, type Sender } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { OutageChecker } from './outage-checker.ts'
import { batchSender, streamSender } from './senders.ts'

export const sendModes = ['mixed', 'single', 'batches', 'stream'] as const

export type CrashOptions = {
  readonly placement: Placement
  readonly engine?: 'uws' | 'node'
  readonly shards?: number
  /** How posts are sent; `mixed` uses all ways at once. */
  readonly by?: (typeof sendModes)[number]
  /** For boards with followers: what they wait for before they answer. */
  readonly ack?: 'quorum' | 'copy'
  readonly rounds: number
  /** Ends after the round in which this many seconds have passed. */
  readonly seconds?: number
  readonly seed: number
  /** Where the board's files are, and where they stay if something is found. */
  readonly directory: string
  /** Called after each round, with a sentence. */
  readonly progress?: (line: string) => void
}

/** What strikes a board, and what has to be done to the disk around it. */
export type Outage = {
  readonly name: string
  readonly strike: (board: Board) => void
  readonly before?: () => void
  readonly after?: () => void
  /** Refusals that a client may see just before the end. */
  readonly mayRefuse: RegExp
  readonly env?: Readonly<Record<string, string>>
}

/** A finding, with the number of its round. */
export class Finding extends Error {
  readonly round: number

  constructor(round: number, cause: unknown, words: readonly string[]) {
    const ending = words.length === 0 ? '' : `\nThe last lines of its log:\n${words.slice(-10).join('\n')}`
    super(`round ${round}: ${cause instanceof Error ? cause.message : cause}${ending}`, { cause })
    this.round = round
  }
}

const inFlight = 12
const rooms = ['a', 'b', 'c']
const postsMax = 3_000
const batchMax = 16
/** Every so many rounds the whole export is read and verified. */
const roundsPerExport = 25
const proofsPerExport = 200

export async function crashRounds(options: CrashOptions, outage: Outage): Promise<string> {
  const crashes = new Crashes(options, outage)
  const until = performance.now() + (options.seconds ?? Number.POSITIVE_INFINITY) * 1_000
  let round = 0
  while (round < options.rounds && performance.now() < until) {
    round += 1
    await crashes.round(round)
    options.progress?.(`round ${round} of ${options.rounds}: ${crashes.summary()}`)
  }
  return crashes.end(round)
}

class Crashes {
  readonly #options: CrashOptions
  readonly #outage: Outage
  readonly #env: Readonly<Record<string, string>>
  #ledger: Ledger | undefined
  #board: Board | undefined
  readonly #checker = new OutageChecker()
  #struckAtStart = 0

  constructor(options: CrashOptions, outage: Outage) {
    const { placement, engine = 'auto', shards = 1 } = options
    this.#options = options
    this.#outage = outage
    const board = {
      PLACEMENT: placement,
      HTTP_ENGINE: engine,
      SHARDS: String(shards),
      SEGMENT_BYTES: '65536',
      RECENT_EVENTS: '16',
    }
    this.#env = { ...board, ...outage.env }
  }

  summary(): string {
    const { acknowledged, unknown, heads } = this.#ledger!
    return (
      `${acknowledged.size} acknowledged, ${unknown.size} in doubt, ${heads.sizes.length} heads, ` +
      `${this.#checker.duplicates} sent again as duplicates, ${this.#checker.consistencyProofs} consistency proofs`
    )
  }

  /** Starts the board, checks it against what it acknowledged before, loads it, and strikes. */
  async round(number: number): Promise<void> {
    try {
      await this.#round(number)
    } catch (error) {
      throw new Finding(number, error, this.#board?.lines ?? [])
    }
  }

  async #round(number: number): Promise<void> {
    const random = randomFrom(this.#options.seed + Math.imul(number, 0x9e3779b9))
    // Snapshots are written in every third round or so.
    const env = { ...this.#env, COMPACT_SECONDS: random(3) === 0 ? '1' : '60' }
    this.#outage.before?.()
    if (random(8) === 0) await this.#strikeAtStart(env, random(700))
    const before = new Set(this.#ledger?.acknowledged.keys())
    const { board, client, ledger } = await this.#start(env)
    await this.#checker.check(client, ledger)
    if (number % roundsPerExport === 0) await ledger.check(client, proofsPerExport)
    let isStruck = false
    const strike = (): void => {
      if (isStruck) return
      isStruck = true
      this.#outage.strike(board)
    }
    // Every fourth round waits for a new segment and strikes at that moment.
    const atRoll = number % 4 === 3
    const linesBefore = board.lines.length
    const [end, delay] = [1 + random(200), random(8)]
    const onAcknowledged = (count: number): void => {
      if (!atRoll && count === end) setTimeout(strike, delay)
      if (isStruck) return
      if (atRoll && board.lines.slice(linesBefore).some((line) => line.includes('segment-sealed'))) strike()
    }
    const senderOf = this.#senderOf(client, random)
    await load({ client, ledger, random, posts: postsMax, inFlight, rooms, onAcknowledged, ...senderOf })
    if (!isStruck) throw new Error(`${postsMax} posts were sent, and the moment to strike never came`)
    await board.ended
    client.close()
    this.#outage.after?.()
    this.#checker.noteAcknowledged(ledger, before)
    const refused = [...ledger.refused.keys()].filter((name) => !this.#outage.mayRefuse.test(name))
    if (refused.length > 0) throw new Error(`posts were refused: ${refused.join(', ')}`)
  }

  /** A last start, and a check of everything; returns the summary. */
  async end(rounds: number): Promise<string> {
    try {
      this.#outage.before?.()
      const { board, client, ledger } = await this.#start(this.#env)
      await this.#checker.check(client, ledger)
      const events = await ledger.check(client, proofsPerExport * 10)
      client.close()
      const { code } = await board.stop()
      if (code !== 0) throw new Error(`the board stopped with ${code}`)
      this.#outage.after?.()
      const { placement, by = 'mixed', seed } = this.#options
      return (
        `${rounds} ${this.#outage.name} placed as ${placement}, load ${by}, seed ${seed}: ${this.summary()}, ` +
        `${this.#struckAtStart} more during a start, ${events.length} posts there, nothing found.`
      )
    } catch (error) {
      throw new Finding(rounds, error, this.#board?.lines ?? [])
    }
  }

  /** A board that is struck while it starts, ready or not. */
  async #strikeAtStart(env: Readonly<Record<string, string>>, delay: number): Promise<void> {
    const onLaunch = (board: Board): void => {
      setTimeout(() => board.signal('SIGKILL'), delay)
    }
    const found = await tryStartBoard({ directory: this.#options.directory, env, onLaunch })
    const { signal } = found instanceof Board ? await found.ended : found
    if (signal !== 'SIGKILL') {
      const words = found instanceof Board ? found.lines.join('\n') : found.output
      if (isPortTaken(words)) return
      throw new Error(`the board ended by itself while it started: ${words}`)
    }
    this.#struckAtStart += 1
  }

  async #start(env: Readonly<Record<string, string>>): Promise<{ board: Board; client: Client; ledger: Ledger }> {
    const board = await startBoard({ directory: this.#options.directory, env })
    this.#board = board
    const client = await Client.of(board)
    if (this.#ledger === undefined) {
      const key = await logKeyOf(client)
      this.#ledger = new Ledger(new Heads(key), key)
    }
    return { board, client, ledger: this.#ledger }
  }

  #senderOf(client: Client, random: (below: number) => number): { senderOf?: (worker: number) => Sender | undefined } {
    const { by = 'mixed' } = this.#options
    const batch = (): Sender => batchSender(client.address, random, batchMax)
    const stream = (): Sender => streamSender(client.address, random, batchMax)
    if (by === 'single') return {}
    if (by === 'batches') return { senderOf: batch }
    if (by === 'stream') return { senderOf: stream }
    // Eight of twelve send one at a time, and two each in the other ways.
    return { senderOf: (worker) => (worker < 2 ? batch() : worker < 4 ? stream() : undefined) }
  }
}
