/**
 * Rounds of faults on three boxes of one board that waits for a quorum, or for a copy too: its leader is killed, stopped, paused or cut
 * off, and followers and the servers of the stream are killed, all under load. After each, a box leads with everything that was answered,
 * no size has a second root, and the previous leader is no longer heard.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Board } from '../support/board-launch.ts'
import { type Box, makeBoxes } from '../support/boxes.ts'
import { Client } from '../support/client.ts'
import { Links } from '../support/links.ts'
import { Ledger, load, randomFrom } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { NatsCluster } from '../support/nats-cluster.ts'
import { OutageChecker } from './outage-checker.ts'
import { type CrashOptions, Finding } from './rounds.ts'

const faults = ['kill', 'stop', 'pause', 'cut', 'servers', 'follower', 'kill and servers'] as const
type Fault = (typeof faults)[number]

const names = ['n1', 'n2', 'n3']
const rooms = ['a', 'b', 'c']
const inFlight = 12
/** Counted from the fault. */
const takeOverMsMax = 40_000
const pausedMs = 30_000
const roundsPerExport = 5

export async function runTakeOvers(options: CrashOptions): Promise<string> {
  const group = await BoxGroup.start(options)
  const until = performance.now() + (options.seconds ?? Number.POSITIVE_INFINITY) * 1_000
  let round = 0
  try {
    while (round < options.rounds && performance.now() < until) {
      round += 1
      await group.round(round)
      options.progress?.(`round ${round} of ${options.rounds}: ${group.summary}`)
    }
    await group.checkAll()
    return `${round} take-overs and outages, seed ${options.seed}: ${group.summary}, nothing found.`
  } catch (error) {
    throw new Finding(round, error, group.lastLines)
  } finally {
    await group.end()
  }
}

class BoxGroup {
  readonly #options: CrashOptions
  readonly #cluster: NatsCluster
  readonly #boxes: readonly Box[]
  readonly #links: readonly Links[]
  readonly #boards: Board[] = []
  #ledger: Ledger | undefined
  #leader = 0
  #epoch = 1
  #takeOvers = 0
  #longestMs = 0
  readonly #checker = new OutageChecker()

  private constructor(
    options: CrashOptions,
    cluster: NatsCluster,
    { boxes, links }: { readonly boxes: readonly Box[]; readonly links: readonly Links[] },
  ) {
    this.#options = options
    this.#cluster = cluster
    this.#boxes = boxes
    this.#links = links
  }

  static async start(options: CrashOptions): Promise<BoxGroup> {
    const { directory, placement, shards = 1, engine = 'auto', ack = 'quorum' } = options
    const cluster = await NatsCluster.start(join(directory, 'servers'))
    const links = await Promise.all(names.map(() => Links.to(cluster.servers.map(({ port }) => port))))
    const env = (n: number) => ({
      SERVICE_ID: 'take-overs',
      PLACEMENT: placement,
      SHARDS: String(shards),
      HTTP_ENGINE: engine,
      SEGMENT_BYTES: '65536',
      RECENT_EVENTS: '16',
      REPLICATE_ACK: ack,
      REPLICATE: links[n]!.addresses,
    })
    const boxes = await makeBoxes(join(directory, 'boxes'), names.length, cluster, env)
    const group = new BoxGroup(options, cluster, { boxes, links })
    await group.#startBoards()
    return group
  }

  get summary(): string {
    const { acknowledged, unknown, heads } = this.#ledger!
    return (
      `${acknowledged.size} acknowledged, ${unknown.size} in doubt, ${heads.sizes.length} heads, ` +
      `${this.#checker.duplicates} sent again as duplicates, ${this.#takeOvers} take-overs, the longest after ${Math.round(this.#longestMs)} ms`
    )
  }

  /** The last log lines of the boards. */
  get lastLines(): readonly string[] {
    return this.#boards.flatMap(({ lines }, n) => lines.slice(-5).map((line) => `box ${n}: ${line}`))
  }

  async end(): Promise<void> {
    for (const board of this.#boards) board.signal('SIGCONT')
    await Promise.all(this.#boards.map((board) => board.kill()))
    await this.#cluster.stop()
    for (const each of this.#links) each.close()
  }

  async #startBoards(): Promise<void> {
    const [first, ...others] = this.#boxes as [Box, ...Box[]]
    this.#boards.push(await first.serve())
    const client = await Client.of(this.#boards[0]!)
    const key = await logKeyOf(client)
    this.#ledger = new Ledger(new Heads(key), key)
    client.close()
    for (const box of others) {
      box.copyKeysFrom(first)
      this.#boards.push(await box.join())
    }
  }

  async round(number: number): Promise<void> {
    const random = randomFrom(this.#options.seed + Math.imul(number, 0x9e3779b9))
    const fault = faults[random(faults.length)]!
    const ledger = this.#ledger!
    const before = new Set(ledger.acknowledged.keys())
    const client = await Client.of(this.#boards[this.#leader]!)
    const struck = Promise.withResolvers<void>()
    const at = 1 + random(300)
    const onAcknowledged = (count: number): void => {
      if (count === at) struck.resolve()
    }
    const loading = load({
      client,
      ledger,
      random,
      posts: 20_000,
      inFlight,
      rooms,
      textBytesMax: 2_000,
      onAcknowledged,
    })
    await struck.promise
    this.#options.progress?.(`  ${fault} on box ${this.#leader}`)
    await this.#strike(fault, random)
    client.close()
    await loading
    this.#checker.noteAcknowledged(ledger, before)
    await this.#check(number)
  }

  /** When this returns, every box is up, and one leads. */
  async #strike(fault: Fault, random: (below: number) => number): Promise<void> {
    const old = this.#leader
    const board = this.#boards[old]!
    if (fault === 'servers') return this.#killServers(1 + random(3), random(6_000))
    if (fault === 'follower') {
      const other = (old + 1 + random(2)) % this.#boxes.length
      await this.#boards[other]!.kill()
      await sleep(random(3_000))
      this.#boards[other] = await this.#boxes[other]!.join()
      return
    }
    const since = performance.now()
    if (fault === 'kill') await board.kill()
    if (fault === 'stop') await board.stop()
    if (fault === 'pause') board.signal('SIGSTOP')
    if (fault === 'cut') this.#links[old]!.cut()
    if (fault === 'kill and servers') {
      await board.kill()
      await this.#killServers(1, random(6_000))
    }
    await this.#waitForNextLeader(since)
    if (fault === 'pause') {
      await sleep(Math.max(0, pausedMs - (performance.now() - since)))
      board.signal('SIGCONT')
    }
    if (fault === 'cut') this.#links[old]!.restore()
    await this.#waitForOldLeaderExit(old)
    this.#boards[old] = await this.#boxes[old]!.join()
  }

  async #killServers(count: number, ms: number): Promise<void> {
    const lost = names.slice(0, count)
    await Promise.all(lost.map((name) => this.#cluster.kill(name)))
    await sleep(ms)
    await Promise.all(lost.map((name) => this.#cluster.startServer(name)))
  }

  /** Another box leads, and answers. */
  async #waitForNextLeader(since: number): Promise<void> {
    const old = this.#leader
    for (;;) {
      for (const [n, box] of this.#boxes.entries()) {
        const ends = n === old ? undefined : await box.ends()
        if (ends === undefined || ends.epoch <= this.#epoch) continue
        const ms = performance.now() - since
        if (ms > takeOverMsMax) throw new Error(`box ${n} led only after ${Math.round(ms)} ms`)
        this.#leader = n
        this.#epoch = ends.epoch
        this.#takeOvers++
        this.#longestMs = Math.max(this.#longestMs, ms)
        return
      }
      if (performance.now() - since > 2 * takeOverMsMax) throw new Error('no other box leads')
      await sleep(100)
    }
  }

  /** The previous leader exits on its own; what it shows until then is what was shown before. */
  async #waitForOldLeaderExit(old: number): Promise<void> {
    const board = this.#boards[old]!
    const client = new Client(board.address, '')
    let isOver = false
    void board.ended.then(() => {
      isOver = true
    })
    const until = performance.now() + takeOverMsMax
    while (!isOver) {
      const shown = await client.get('/api/log/checkpoint').catch(() => undefined)
      if (shown?.data.checkpoint !== undefined) this.#ledger!.heads.record(shown.data.checkpoint)
      if (performance.now() > until) throw new Error('the board whose place was taken does not end')
      await sleep(50)
    }
    client.close()
  }

  async #check(round: number): Promise<void> {
    const client = await Client.of(this.#boards[this.#leader]!)
    await this.#checker.check(client, this.#ledger!)
    if (round % roundsPerExport === 0) await this.#ledger!.check(client, 50)
    client.close()
  }

  /** Every box, followers too, has everything. */
  async checkAll(): Promise<void> {
    const leader = await this.#boxes[this.#leader]!.ends()
    for (const [n, board] of this.#boards.entries()) {
      const client = await Client.of(board)
      const until = performance.now() + takeOverMsMax
      for (;;) {
        const { data } = await client.get('/api/log/checkpoint')
        if (this.#ledger!.heads.record(data.checkpoint!) === this.#ledger!.heads.largest) break
        if (performance.now() > until) throw new Error(`box ${n} does not catch up with ${JSON.stringify(leader)}`)
        await sleep(100)
      }
      await this.#ledger!.check(client, 200)
      client.close()
    }
  }
}
