/**
 * A soak test: one board for a long time, under writers, followers, readers that stop reading and hostile clients, on a disk that is slow
 * now and then. It is killed at the end of some lives and stopped at the end of others. Everything acknowledged stays, followers miss
 * nothing, and between two rests of one life neither memory nor descriptors grow by more than the written data needs.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findProgram } from '../peers/peers.ts'
import { type Board, startBoard } from '../support/board-launch.ts'
import { Client } from '../support/client.ts'
import { Ledger, load, randomFrom } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { RawConnection } from '../support/raw-http.ts'
import { blockIds, StreamReader } from '../support/stream-reader.ts'
import { type CrashOptions, Finding } from './rounds.ts'
import { batchSender, streamSender } from './senders.ts'

const secondsDefault = 1_200
const rooms = ['a', 'b', 'c', 'd']
const inFlight = 8
/** Posts of each stretch of work between two rests. */
const postsPerLoad = 600
/**
 * The first stretches start the threads, compile the code and fill the caches of a board in use: in 17,500 posts, memory at rest grew from
 * 210 to 271 MiB in the first 4,300, and to 303 in the others.
 */
const warmUpStretches = 4
const slowSync = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fdatasync', '-e']
const syncDelayUs = 5_000
/** For garbage that is not collected yet, and for compiled code. */
const memorySlackMib = 64
/** What a post may leave in memory: the event in two states, its request id, its place in lists. */
const memoryBytesPerPost = 2_048
/** Threads that start on first use have their own descriptors. */
const descriptorSlack = 12
/** The interval of checks at rest, as long as something has grown. */
const idleCheckMs = 500
const idleChecksMax = 60
/** How long an attacker waits for an answer. */
const answerTimeoutMs = 5_000

/** At rest: without a client. */
type IdleUsage = { readonly posts: number; readonly mib: number; readonly descriptors: number }

/** Runs as many lives of a board as `rounds`, in `seconds` all together; returns a summary, or throws a Finding. */
export async function runSoak(options: CrashOptions): Promise<string> {
  const { rounds, seconds = secondsDefault } = options
  const soak = new Soak(options)
  for (let life = 1; life <= rounds; life++) {
    await soak.life(life, (seconds / rounds) * 1_000)
    options.progress?.(`life ${life} of ${rounds}: ${soak.summary()}`)
  }
  return `${rounds} lives, seed ${options.seed}: ${soak.summary()}, nothing found.`
}

class Soak {
  readonly #options: CrashOptions
  readonly #canSlow = findProgram('strace') !== undefined
  #ledger: Ledger | undefined
  #board: Board | undefined
  #followed = 0
  #attacks = 0
  #newest: { readonly from: IdleUsage; readonly to: IdleUsage } | undefined

  constructor(options: CrashOptions) {
    this.#options = options
  }

  summary(): string {
    const { from, to } = this.#newest!
    return (
      `${this.#ledger!.acknowledged.size} acknowledged, ${this.#followed} followed live, ${this.#attacks} attacks; ` +
      `last life: ${from.mib.toFixed()} to ${to.mib.toFixed()} MiB, ${from.descriptors} to ${to.descriptors} descriptors ` +
      `over ${to.posts - from.posts} posts`
    )
  }

  async life(number: number, ms: number): Promise<void> {
    try {
      await this.#life(number, ms)
    } catch (error) {
      throw new Finding(number, error, this.#board?.lines ?? [])
    }
  }

  async #life(number: number, ms: number): Promise<void> {
    const { directory, placement, shards = 1, engine = 'auto', seed } = this.#options
    const random = randomFrom(seed + Math.imul(number, 0x9e3779b9))
    const isSlow = this.#canSlow && number % 3 === 2
    const env = {
      PLACEMENT: placement,
      HTTP_ENGINE: engine,
      SHARDS: String(shards),
      SEGMENT_BYTES: '1048576',
      RECENT_EVENTS: '1024',
    }
    const under = isSlow ? [...slowSync, `inject=fdatasync:delay_enter=${syncDelayUs}`] : []
    const board = await startBoard({ directory: join(directory, 'board'), env, under })
    this.#board = board
    const client = await Client.of(board)
    const key = this.#ledger?.key ?? (await logKeyOf(client))
    this.#ledger ??= new Ledger(new Heads(key), key)
    const ledger = this.#ledger
    if (number === 1) await load({ client, ledger, random, posts: 60, inFlight: 1, rooms })
    await ledger.check(client, 20)
    const until = performance.now() + ms
    const pid = isSlow ? childOf(board.child.pid!) : board.child.pid!
    let first: IdleUsage | undefined
    for (let stretch = 1; stretch < warmUpStretches + 2 || performance.now() < until; stretch++) {
      await this.#runLoad(board, client, ledger, random)
      const rest = await this.#measureIdle(pid, ledger, first)
      if (stretch < warmUpStretches) continue
      first ??= rest
      this.#newest = { from: first, to: rest }
      const grown = growthOf(first, rest)
      if (grown !== undefined) throw new Error(grown)
    }
    client.close()
    if (number % 2 === 0) return board.kill()
    const { code } = await board.stop()
    if (code !== 0) throw new Error(`the board stopped with ${code}`)
  }

  /** One stretch: posts in all ways, with followers, stalled readers and attackers at the same time. */
  async #runLoad(board: Board, client: Client, ledger: Ledger, random: (below: number) => number): Promise<void> {
    const before = new Set(ledger.acknowledged.keys())
    const followers = rooms.flatMap((room) => [1, 2].map(() => ({ room, reader: followerOf(board, room) })))
    await Promise.all(followers.map(({ reader }) => reader.until(() => reader.status === 200)))
    const attack = new Attack(board.port, random)
    const stream = streamSender(client.address, random, 16)
    const senders = [batchSender(client.address, random, 16), stream]
    const senderOf = (worker: number) => senders[worker]
    await load({ client, ledger, random, posts: postsPerLoad, inFlight, rooms, senderOf })
    stream.close()
    this.#attacks += await attack.end()
    const refused = [...ledger.refused.keys()]
    if (refused.length > 0) throw new Error(`posts were refused: ${refused.join(', ')}`)
    if (ledger.unknown.size > 0) throw new Error(`${ledger.unknown.size} posts were never answered`)
    const fresh = [...ledger.acknowledged.values()].filter(({ signed }) => !before.has(signed.eventId))
    await Promise.all(followers.map(({ room, reader }) => this.#checkFollower(room, reader, fresh)))
  }

  /** A follower has each post of its room once, in the order of the room. */
  async #checkFollower(
    room: string,
    reader: StreamReader,
    fresh: readonly { readonly event: { readonly event_id: string; readonly room: string; readonly seq: number } }[],
  ): Promise<void> {
    const wanted = fresh
      .filter(({ event }) => event.room === room)
      .sort((a, b) => a.event.seq - b.event.seq)
      .map(({ event }) => event.event_id)
    const last = wanted.at(-1)
    const text = await reader.until((come) => last === undefined || come.includes(last))
    const isClosed = reader.closed
    reader.close()
    const found = blockIds(text)
    if (isClosed || found.join() !== wanted.join())
      throw new Error(
        `a follower of ${room} has ${found.length} of ${wanted.length} posts${isClosed ? ', and was cut off' : ''}`,
      )
    this.#followed += found.length
  }

  async #measureIdle(pid: number, ledger: Ledger, first: IdleUsage | undefined): Promise<IdleUsage> {
    for (let looks = 1; ; looks++) {
      // Connections are closed in the next turns of the board, keep-alive ones by their client: on a busy machine that takes a while.
      await sleep(idleCheckMs)
      const mib = Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024
      const descriptors = descriptorsOf(pid, this.#options.directory)
      const rest = { posts: ledger.acknowledged.size, mib, descriptors }
      if (first === undefined || looks === idleChecksMax || growthOf(first, rest) === undefined) return rest
    }
  }
}

/** What has grown by more than the written data needs; undefined: nothing. */
function growthOf(first: IdleUsage, now: IdleUsage): string | undefined {
  const allowed = memorySlackMib + ((now.posts - first.posts) * memoryBytesPerPost) / 2 ** 20
  if (now.mib - first.mib > allowed)
    return `memory grew from ${first.mib} to ${now.mib} MiB over ${now.posts - first.posts} posts`
  if (now.descriptors > first.descriptors + descriptorSlack)
    return `descriptors grew from ${first.descriptors} to ${now.descriptors}`
  return undefined
}

/** Only the followed room, from now on. */
function followerOf(board: Board, room: string): StreamReader {
  return new StreamReader(board.address, `/tail/${room}?last=0`)
}

/** The board's process inside the tracer. */
function childOf(tracer: number): number {
  return Number(readFileSync(`/proc/${tracer}/task/${tracer}/children`, 'utf8').trim().split(' ')[0])
}

/** Open descriptors except those of the data: sealed segments are opened when they are read. */
function descriptorsOf(pid: number, directory: string): number {
  const folder = `/proc/${pid}/fd`
  const isOther = (name: string): boolean => {
    try {
      return !readlinkSync(join(folder, name)).startsWith(directory)
    } catch {
      return false // closed meanwhile
    }
  }
  return readdirSync(folder).filter(isOther).length
}

const expensive = ['/api/events?query=lorem', '/', '/room/a', '/search?q=lorem', '/v1/export?limit=200', '/api/threads']
const malformed = [
  'GET / HTTP/1.1\r\n\r\n',
  'POST /v1/command HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"a":"\u0000"',
  'POST /v1/command HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
  'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(64),
  '\u0016\u0003\u0001\u0002\u0000\u0001\u0000',
]

/** Hostile clients, until they are ended. */
class Attack {
  readonly #port: number
  readonly #random: (below: number) => number
  readonly #running: Promise<unknown>
  readonly #stalled: RawConnection[] = []
  #count = 0
  #isOver = false

  constructor(port: number, random: (below: number) => number) {
    this.#port = port
    this.#random = random
    this.#running = Promise.all([this.#ask(), this.#ask(), this.#break(), this.#stall()])
    // `end` throws what is found.
    this.#running.catch(() => {})
  }

  /** Ends them; returns how many requests there were. */
  async end(): Promise<number> {
    this.#isOver = true
    await this.#running
    for (const { socket } of this.#stalled) socket.destroy()
    return this.#count
  }

  /**
   * Sends the most expensive requests, one after the other, and leaves when an answer takes too long: a second request on a connection
   * whose first one is pending costs both their answers on the native engine.
   */
  async #ask(): Promise<void> {
    while (!this.#isOver) {
      const connection = await RawConnection.open(this.#port)
      for (let n = 0; n < 8 && !this.#isOver; n++) {
        const path = expensive[this.#random(expensive.length)]!
        connection.send(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
        this.#count++
        const answer = await Promise.race([connection.answer(), sleep(answerTimeoutMs)])
        if (answer === undefined || answer.headers.get('connection') === 'close') break
      }
      connection.destroy()
    }
  }

  /** Sends something that is no request, or leaves in the middle of one. */
  async #break(): Promise<void> {
    while (!this.#isOver) {
      const connection = await RawConnection.open(this.#port)
      connection.send(malformed[this.#random(malformed.length)]!)
      await sleep(this.#random(20))
      connection.socket.destroy()
      this.#count++
    }
  }

  /** Follows rooms and reads nothing of them. */
  async #stall(): Promise<void> {
    while (!this.#isOver && this.#stalled.length < 16) {
      const connection = await RawConnection.open(this.#port)
      connection.socket.pause()
      connection.send(`GET /tail/${rooms[this.#random(rooms.length)]!}?last=200 HTTP/1.1\r\nHost: x\r\n\r\n`)
      this.#stalled.push(connection)
      this.#count++
      await sleep(50)
    }
  }
}
