/**
 * What does a follower cost, and how far is it behind?
 *
 * Three NATS servers that sync every message, a board that publishes there, and a follower that reads there, all on this machine. Lag is
 * the time between a post appearing on the leader's tail and on the follower's, seen by one process. A follower's cost to its leader is
 * measured with the same load while the follower runs and while it is paused, in alternation. A delivery is measured on the tail of the
 * follower, and on a board without followers. The bounds: a lag of at most 250 ms (p99) at 2,000 posts/s, at most 5 % of the leader's
 * processor time, and the same cost of a delivery as without followers.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { get } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { missingNats } from '../test/peers/peers.ts'
import type { Board } from '../test/support/board-launch.ts'
import { makeBoxes } from '../test/support/boxes.ts'
import { NatsCluster } from '../test/support/nats-cluster.ts'
import { measureAny, withBoard } from './board.ts'
import type { Measured } from './client-process.ts'
import { processTime, withDirectory } from './machine.ts'
import { median } from './raw-limits.ts'
import type { Bench, Row } from './report.ts'
import { followOn } from './tail.bench.ts'

const perSecond = 2_000
const connections = 64
const readers = 500
/** Posts of `steady posts` into one room go there. */
const room = 'room-0'
const settleMs = 3_000
/** For the last post of a round. */
const arriveMsMax = 20_000

export const followers: Bench = {
  name: 'followers',
  question: 'What does a follower cost, and how far is it behind?',
  run: ({ isQuick, rounds = isQuick ? 1 : 3 }) => {
    const missing = missingNats()
    if (missing !== undefined) throw new Error(missing)
    return withDirectory(async (directory) => {
      const cluster = await NatsCluster.start(`${directory}/nats`)
      const client = fork(new URL('./client-process.ts', import.meta.url))
      try {
        const boxes = await makeBoxes(`${directory}/boxes`, 2, cluster, { SHARDS: '1' })
        const leader = await boxes[0]!.serve()
        const follower = await boxes[1]!.follow()
        const both = new Both(client, leader, follower, isQuick ? 3 : 10)
        const rows = await both.measure(rounds)
        const alone = await withBoard(({ port, pid, serviceId }) => followOn({ port, pid, serviceId, readers, posts }))
        const { serviceId } = both
        const there = { port: follower.port, pid: follower.child.pid!, postTo: leader.port, serviceId, readers, posts }
        const followed = await followOn(there)
        await follower.stop()
        await leader.stop()
        const deliveries = alone.map((each, n) => ({
          posts: each.pace,
          'us of a board alone': each.serverUs,
          'us of a follower': followed[n]!.serverUs,
          ratio: followed[n]!.serverUs / each.serverUs,
        }))
        return [
          { title: `a board and its follower at ${perSecond} posts/s (medians of ${rounds} rounds)`, rows },
          { title: `a delivery to one of ${readers} readers of a tail`, rows: deliveries },
        ]
      } finally {
        client.disconnect()
        await cluster.stop()
      }
    })
  },
}

const posts = 120

type Round = {
  readonly sent: Measured
  readonly leaderUs: number
  readonly followerUs: number
  readonly lags: number[]
}

class Both {
  serviceId = ''
  readonly #client: ChildProcess
  readonly #leader: Board
  readonly #follower: Board
  readonly #seconds: number

  constructor(client: ChildProcess, leader: Board, follower: Board, seconds: number) {
    this.#client = client
    this.#leader = leader
    this.#follower = follower
    this.#seconds = seconds
  }

  async measure(rounds: number): Promise<Row[]> {
    const answer = await fetch(`${this.#leader.address}/capabilities`)
    this.serviceId = ((await answer.json()) as { data: { service_id: string } }).data.service_id
    // The compiler is warm, and the room exists.
    await this.#post()
    await this.#post()
    const each = { running: [] as Round[], paused: [] as Round[] }
    for (let n = 0; n < rounds; n++) {
      each.running.push(await this.#round(true))
      each.paused.push(await this.#round(false))
    }
    return Object.entries(each).map(([name, found]) => {
      const of = (pick: (round: Round) => number): number => median(found.map(pick))
      const lag = (part: number) =>
        name === 'paused' ? '' : of(({ lags }) => lags.toSorted((a, b) => a - b)[Math.floor(lags.length * part)]!)
      return {
        follower: name,
        'posts/s': of(({ sent }) => sent.perSecond),
        'post p99 ms': of(({ sent }) => sent.p99Ms),
        'leader us a post': of(({ leaderUs }) => leaderUs),
        'follower us a post': name === 'paused' ? '' : of(({ followerUs }) => followerUs),
        'lag p50 ms': lag(0.5),
        'lag p99 ms': lag(0.99),
      }
    })
  }

  #post(): Promise<Measured> {
    const { child, port } = this.#leader
    const count = perSecond * this.#seconds
    const work = { kind: 'steady posts', serviceId: this.serviceId, count, perSecond, rooms: 1 } as const
    return measureAny(this.#client, { port, pid: child.pid!, inFlight: connections, work })
  }

  /** The follower shows everything that the leader has signed. */
  async #caughtUp(): Promise<void> {
    const heads = () =>
      Promise.all(
        [this.#leader, this.#follower].map(async ({ address }) =>
          (await fetch(`${address}/api/log/checkpoint`)).text(),
        ),
      )
    for (let [there, here] = await heads(); there !== here; [there, here] = await heads()) await pause(100)
  }

  async #round(isRunning: boolean): Promise<Round> {
    if (!isRunning) this.#follower.signal('SIGSTOP')
    await pause(settleMs)
    const boards = isRunning ? [this.#leader, this.#follower] : []
    const tails = boards.map(({ address }) => new Arrivals(address))
    const before = [this.#leader, this.#follower].map(usedUs)
    const sent = await this.#post()
    const accepted = sent.statuses[200] ?? 0
    await Promise.all(tails.map((tail) => tail.until(accepted)))
    const [leaderUs = 0, followerUs = 0] = [this.#leader, this.#follower].map(
      (board, n) => (usedUs(board) - before[n]!) / accepted,
    )
    const [first, second] = tails.map(({ times }) => times)
    const lags = (first ?? []).map((at, n) => (second?.[n] ?? Number.POSITIVE_INFINITY) - at)
    for (const tail of tails) tail.close()
    this.#follower.signal('SIGCONT')
    await this.#caughtUp()
    return { sent, leaderUs, followerUs, lags }
  }
}

function usedUs({ child }: Board): number {
  const { userUs, systemUs } = processTime(child.pid!)
  return userUs + systemUs
}

/** When each post appeared on the tail of a board, in the order of the room. */
class Arrivals {
  readonly times: number[] = []
  readonly #request: ReturnType<typeof get>
  #wanted = Number.POSITIVE_INFINITY
  readonly #done = Promise.withResolvers<void>()

  constructor(address: string) {
    let last = '\n'
    this.#request = get(`${address}/tail/${room}?last=0`, (answer) => {
      answer.setEncoding('utf8')
      answer.on('error', () => {})
      answer.on('data', (text: string) => {
        const now = performance.now()
        // A post begins with [ at the beginning of a line; a line of a text never does.
        for (const _ of `${last}${text}`.matchAll(/\n\[/g)) this.times.push(now)
        last = text.at(-1) ?? last
        if (this.times.length >= this.#wanted) this.#done.resolve()
      })
    })
    this.#request.on('error', () => {})
  }

  async until(posts: number): Promise<void> {
    this.#wanted = posts
    if (this.times.length >= posts) return
    await Promise.race([this.#done.promise, pause(arriveMsMax)])
    if (this.times.length < posts) throw new Error(`of ${posts} posts ${this.times.length} came on the tail of a board`)
  }

  close(): void {
    this.#request.destroy()
  }
}
