/** A whole board on a simulated machine, everything but its port: started, queried, and ended in every way that a process can end. */

import { nameOf } from '../../actors/log/book.ts'
import { parseEntry } from '../../actors/records/entry.ts'
import { openBoard, replicaRoutes, resumeBoard } from '../../src/board/server.ts'
import { openBoardDirectory } from '../../src/board-directory.ts'
import { entriesIn } from '../../src/cli/mirror-store.ts'
import type { Clock } from '../../src/clock.ts'
import {
  type Config,
  type FollowSettings,
  type Placement,
  type ReplicationSettings,
  readConfig,
} from '../../src/config.ts'
import type { ExportChunk, ExportState } from '../../src/export/chunk.ts'
import type { Backfill } from '../../src/follow/backfill.ts'
import type { Reply } from '../../src/format/reply.ts'
import type { Exchange, RouteHandler } from '../../src/http/port.ts'
import { readMarks } from '../../src/log/mark.ts'
import type { LogIdentity } from '../../src/log/signed-log.ts'
import { priceOf } from '../../src/money/price.ts'
import type { Outgoing } from '../../src/outgoing/request.ts'
import { Parts } from '../../src/parts.ts'
import { openFollower } from '../../src/replication/follower-directory.ts'
import { FollowerFront } from '../../src/replication/follower-front.ts'
import type { Leader } from '../../src/replication/leader.ts'
import { keptFromLeading } from '../../src/replication/may-lead.ts'
import type { FeedAsk } from '../../src/workers/feed-answers.ts'
// A board loads them when it needs them, which takes real time, so they have to be loaded before.
import '../../src/replication/awaited-frames.ts'
import '../../src/replication/replica-key.ts'
import '../../src/replication/routes.ts'
import '../../src/replication/writer.ts'
import { TILE_WIDTH } from '../../storage/tile-path.ts'
import type { Machine } from '../support/simulation.ts'
import { nodes, wallet } from './payments.ts'

export type Ack = Exclude<ReplicationSettings['ack'], 'local'>

export type Layout = {
  readonly placement: Placement
  readonly shards: number
  /** Set if it is replicated: it answers once a stream has its answer, or a follower too, and another box can take over. */
  readonly ack?: Ack
}

export const dataDirectory = '/board/data'
export const markFile = '/board/data.mark'
export const address = 'http://board.example'
/** The key that followers authenticate with. */
export const replicaKey = '7'.repeat(64)
/** What the wallet may sign away in a day: less than all people together are allowed, so that it is reached. */
export const walletMicros = 120_000
const replicaKeyFile = '/board/replica.key'

const follow: FollowSettings = {
  leaders: [address],
  keyFile: replicaKeyFile,
  stream: { servers: [], keyFile: '' },
  lead: undefined,
}
const commandSource = { via: 'command', address: '192.0.2.1' }

type FrontOptions = ConstructorParameters<typeof FollowerFront>[0]
type OpenBoard = Awaited<ReturnType<typeof openBoard>>

/** A violation that was found. Its message describes it, and is the same whenever the same is found. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

export function must(isSo: boolean, what: string): asserts isSo {
  if (!isSo) throw new Violation(what)
}

type BoardOptions = {
  readonly machine: Machine
  readonly layout: Layout
  /** Identity ids. */
  readonly operators: readonly string[]
  /** Roots of all heads that were shown to anybody, by size: by any box. */
  readonly heads: Map<number, string>
  /** For a follower: how a thread with this clock queries the leader. */
  readonly leader?: (clock: Clock) => Leader
  /** How a main thread with this clock contacts other hosts. */
  readonly outgoing: (clock: Clock) => Outgoing
}

export class SimulatedBoard {
  readonly machine: Machine
  readonly heads: Map<number, string>
  readonly #options: BoardOptions
  #open: OpenBoard | undefined
  /** Only on a follower. */
  #front: FollowerFront | undefined
  /** The handler for its followers' requests; undefined: it has none. */
  #replicaRoute: RouteHandler | undefined
  /** The life of its machine in which it was started. */
  #life = 0
  #parts = new Parts()

  constructor(options: BoardOptions) {
    this.#options = options
    this.machine = options.machine
    this.heads = options.heads
  }

  get config(): Config {
    const { layout, operators, leader } = this.#options
    const { shards, placement, ack } = layout
    const defaults = readConfig(dataDirectory, {
      BASE_URL: address,
      MARK_FILE: markFile,
      OPERATORS: operators.join(','),
      SHARDS: String(shards),
      PLACEMENT: placement,
      VERIFY_THREADS: '1',
      PAY_CAP_DAY: priceOf(walletMicros),
      PAY_NODES: Object.entries(nodes)
        .map(([host, network]) => `${network}=https://${host}/`)
        .join(','),
      BROADSIDE_LIMITS: 'off',
      LOG_LEVEL: 'error',
    })
    return {
      ...defaults,
      // Small, so that faults hit segments that are being sealed, and a disk that fills up.
      segmentBytesMax: 24 * 1024,
      // So that most of what is requested is old.
      recentEvents: 16,
      diskReserveBytes: 4 * 1024,
      ...(leader !== undefined
        ? { follow }
        : ack === undefined
          ? {}
          : { replication: this.replication, replicaKeyFile }),
    }
  }

  /** Settings of a replicated board that leads: its servers are simulated. */
  get replication(): ReplicationSettings {
    const { ack = 'quorum' } = this.#options.layout
    return { servers: [], keyFile: '', systemKeyFile: '', ack }
  }

  /** No write is answered before a follower has it on its disk. */
  get waitsForCopy(): boolean {
    return this.#options.layout.ack === 'copy'
  }

  /** The active log. */
  get log(): LogIdentity {
    return this.#running.log
  }

  get serviceId(): string {
    return this.#running.directory.facts.service_id
  }

  /** Identity id of the board itself, which posts notices. */
  get ownId(): string {
    return this.#running.directory.identity.id
  }

  get shards(): number {
    return this.#running.directory.facts.shards
  }

  /** Leaves of the log, as far as it has reported. */
  get size(): number {
    return this.#running.news.head.size
  }

  get vkey(): string {
    return this.#running.log.vkey
  }

  /** For a follower: for how many milliseconds the leader has had more than it. */
  get behindMs(): number {
    return this.#front?.behindMs ?? Number.POSITIVE_INFINITY
  }

  /** The handler for its followers' requests; undefined: it does not run. */
  get replicaRoute(): RouteHandler | undefined {
    return this.machine.isDown || this.machine.life !== this.#life ? undefined : this.#replicaRoute
  }

  /** Rejects with the error of a failed start. */
  async start(): Promise<void> {
    const { platform, life } = this.machine
    const { disk, clock, random } = platform
    const { layout, leader: leaderFor } = this.#options
    const { shards, placement, ack } = layout
    const { config } = this
    this.#replicaRoute = undefined
    disk.makeDirectory(dataDirectory)
    if (ack !== undefined && !disk.fileExists(replicaKeyFile))
      disk.writeAtomic(replicaKeyFile, Buffer.from(`${replicaKey}\n`), 0o600)
    const marks = readMarks(disk, config)
    const leader = leaderFor?.(clock)
    const followed = leader && {
      ...(await openFollower({ ...platform, path: dataDirectory, segmentBytesMax: config.segmentBytesMax, leader })),
      front: (given: Pick<FrontOptions, 'notices' | 'news'>) => new FollowerFront({ ...given, clock, leader }),
      keptFromLeading,
    }
    const where = { path: dataDirectory, serviceId: 'board', publicHost: 'board.example' }
    const directory =
      followed?.directory ?? openBoardDirectory({ disk, ...where, shards, now: clock.wallSeconds(), random })
    this.#parts = new Parts()
    const outgoing = this.#options.outgoing(clock)
    const place = { ...platform, config, directory, placement, marks, address, port: 0, followed, outgoing, wallet }
    const open = await openBoard(this.#parts, place)
    const { actorHost, news, follower } = open
    this.#open = open
    this.#front = follower?.front
    this.recordHead(news.head.checkpoint)
    actorHost.listen({
      published: ({ head }) => this.recordHead(head.checkpoint),
      standing: ({ problem }) => must(problem === undefined, `a follower has stopped accepting frames: ${problem}`),
    })
    if (follower === undefined) await resumeBoard(this.#parts, open)
    this.#replicaRoute = (await replicaRoutes(open)).routes['/replica/']
    this.#life = life
    actorHost.started()
  }

  async stop(): Promise<void> {
    await this.#parts.stop()
  }

  /** Undefined: the outcome is unknown. Never settles if the board ends first. */
  send(body: Buffer): Promise<Reply | undefined> {
    const { front } = this.#running
    return new Promise((resolve) =>
      this.machine.runInMain(() =>
        front.execute(body, commandSource, (reply) => {
          // A machine without power sends nothing.
          if (!this.machine.isDown) resolve(reply)
        }),
      ),
    )
  }

  /** GET /tail/{room}. */
  tail(exchange: Exchange, room: string): void {
    const { followers } = this.#running
    this.machine.runInMain(() => followers.tails.handle(this.#front?.mark(exchange) ?? exchange, room))
  }

  /** Paths of the files of attachments. */
  get attachments(): ReadonlySet<string> {
    return new Set(this.machine.memory.copy(`${dataDirectory}/blobs`).keys())
  }

  /** Everything public, as the export has it. */
  async exported(stream?: 'ledger'): Promise<Buffer> {
    const chunks: Uint8Array[] = []
    let state: ExportState | undefined
    do {
      const given = state === undefined ? {} : { state }
      const request = { filter: {}, limit: 0, cursor: '', ...given, ...(stream === undefined ? {} : { stream }) }
      const chunk = await this.#askFeed<ExportChunk>((seen) => ['export', request, seen])
      if (!chunk.ok) throw new Violation(`an export was refused: ${chunk.refusal.code}`)
      chunks.push(chunk.bytes)
      state = chunk.state
    } while (state !== undefined)
    return Buffer.concat(chunks)
  }

  /** Everything that the tail of a public room begins with, as server-sent events. */
  async tailHistory(room: string): Promise<string> {
    const whole = { room, format: 'sse', last: Number.MAX_SAFE_INTEGER, since: '', reader: '' } as const
    let text = ''
    for (let after = 0; ; ) {
      const found = await this.#askFeed<Backfill>((seen) => ['tail', { ...whole, after }, seen])
      if (!found.ok) throw new Violation(`a tail was refused: ${found.refusal.code}`)
      text += Buffer.from(found.bytes).toString()
      if (!found.more) return text
      after = found.after
    }
  }

  /** The lines of each entry of the log, in its order. */
  async entries(): Promise<ReadonlyMap<string, string>[]> {
    const { log, news } = this.#running
    const { size } = news.head
    const name = nameOf(log.origin)
    const entries: ReadonlyMap<string, string>[] = []
    for (let index = 0; index * TILE_WIDTH < size; index++) {
      const path = { kind: 'entries', level: 0, index, width: Math.min(TILE_WIDTH, size - index * TILE_WIDTH) } as const
      const tile = await this.#askFeed<Uint8Array>((seen) => ['tile', { log: name, path }, seen])
      for (const entry of entriesIn(Buffer.from(tile))!) entries.push(parseEntry(entry)!)
    }
    return entries
  }

  async #askFeed<Answer>(ask: (seen: number) => FeedAsk): Promise<Answer> {
    const { actorHost } = this.#running
    const answer = await new Promise<Answer | { readonly ok: false } | undefined>((resolve) =>
      this.machine.runInMain(() => actorHost.askFeed<Answer>(ask(actorHost.seen), resolve)),
    )
    if (answer === undefined) throw new Violation('the feed does not answer')
    return answer as Answer
  }

  /** Records every head that anybody sees: one root per size, ever. */
  recordHead(checkpoint: string): void {
    const [, size = '', root = ''] = checkpoint.split('\n')
    const known = this.heads.get(Number(size))
    if (known !== undefined && known !== root) throw new Violation('two heads of one size were handed out')
    this.heads.set(Number(size), root)
  }

  get #running(): OpenBoard {
    if (this.#open === undefined) throw new Error('the board was not started')
    return this.#open
  }
}
