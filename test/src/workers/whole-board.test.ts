/**
 * The actors of a whole board in one process, on a simulated machine: the real shards, log and feed, on virtual time and a disk that loses
 * what was not synced. Power is cut at any disk operation, and everything acknowledged survives.
 */
import { createHash } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { queuesOf } from '../../../actors/kernel/limits.ts'
import type { Head, ShardAnswer } from '../../../actors/records/answer.ts'
import type { WriteLetter } from '../../../actors/records/write.ts'
import type { PostArgs } from '../../../actors/rooms/room.ts'
import { shardOf } from '../../../actors/shard.ts'
import { type BoardDirectory, openBoardDirectory } from '../../../src/board-directory.ts'
import { pause } from '../../../src/clock.ts'
import { LiveFacts } from '../../../src/command/live-facts.ts'
import type { Placement } from '../../../src/config.ts'
import { opensslSigner } from '../../../src/format/signer.ts'
import { signingBytes } from '../../../src/format/signing.ts'
import { MarkKeeper, readMarks } from '../../../src/log/mark.ts'
import { setLogLevel } from '../../../src/observe.ts'
import { dataOf } from '../../../src/reads/read.ts'
import { ActorHost } from '../../../src/workers/actor-host.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { verifyConsistency } from '../../../storage/merkle-verify.ts'
import { scratchDirectory } from '../../support/scratch.ts'
import { Simulation } from '../../support/simulation.ts'

// What a start finds and repairs is logged as on any board.
setLogLevel('error')
afterAll(() => setLogLevel('info'))

const threads = ['shard', 'log', 'back', 'feed'] as const
const rooms = ['lobby', 'room-1', 'room-2', 'room-3']
const ada = opensslSigner(Buffer.alloc(32, 1))

type Post = { readonly id: string; readonly text: string; readonly letter: WriteLetter }
type Kept = { readonly post: Post; readonly seq: number }

/** A board on a simulated machine, and what its users know. */
class SimulatedBoard {
  readonly sim: Simulation
  readonly #place: { readonly dataDirectory: string; readonly markFile: string }
  readonly #layout: { readonly placement: Placement; readonly shards: number }
  readonly acknowledged = new Map<string, Kept>()
  /** Every head that anybody was shown, by its size. */
  readonly heads = new Map<number, string>()
  /** Sent, with unknown outcome. */
  #open: Post[] = []
  #host: ActorHost | undefined
  #directory: BoardDirectory | undefined
  #sent = 0

  constructor(sim: Simulation, directory: string, layout: { readonly placement: Placement; readonly shards: number }) {
    this.sim = sim
    this.#place = { dataDirectory: directory, markFile: `${directory}.mark` }
    this.#layout = layout
  }

  async start(): Promise<'dark' | 'running'> {
    const { platform } = this.sim
    const { disk, clock, random } = platform
    const starting = async (): Promise<'running'> => {
      disk.makeDirectory(this.#place.dataDirectory)
      const marks = readMarks(disk, this.#place)
      const { shards, placement } = this.#layout
      const where = { path: this.#place.dataDirectory, serviceId: '', publicHost: 'board.example' }
      const directory = openBoardDirectory({ disk, ...where, shards, now: clock.wallSeconds(), random })
      const mark = new MarkKeeper(this.#place, platform)
      const news = new LiveFacts(clock)
      const { actorHost, facts } = await ActorHost.start({
        ...platform,
        directory,
        placement,
        diskReserveBytes: 0,
        // Small, so that power cuts hit segments that are being sealed.
        segmentBytesMax: 12 * 1024,
        recentEvents: 16,
        compactSeconds: 60,
        queues: queuesOf(4_096),
        limitsOn: false,
        marks,
        news,
        listeners: [{ published: ({ head }) => this.#note(head) }],
        onFatal: (thread, { message }) => {
          if (!this.sim.memory.isPowerOff) throw new Error(`${thread}: ${message}`)
        },
      })
      const vkeys = facts.logs.map(({ vkey }) => vkey)
      actorHost.listen({ published: ({ head }) => mark.note(vkeys, head.checkpoint) })
      this.#note(facts.published.head)
      this.#host = actorHost
      this.#directory = directory
      return 'running'
    }
    return this.sim.until(starting())
  }

  /** Posts this many concurrently. Those that are answered are acknowledged. */
  async post(count: number): Promise<'dark' | readonly (ShardAnswer | undefined)[]> {
    const posts = Array.from({ length: count }, () => this.#next())
    return this.sim.until(Promise.all(posts.map((post) => this.#send(post))))
  }

  /** Resends everything without an answer: each is done once, whatever was done of it before. */
  async insist(): Promise<'dark' | readonly (ShardAnswer | undefined)[]> {
    return this.sim.until(Promise.all(this.#open.map((post) => this.#send(post))))
  }

  /** Everything acknowledged is there, unchanged, and every head is consistent with the newest. */
  async check(): Promise<void> {
    for (const { post, seq } of this.acknowledged.values()) {
      const found = await this.#read('event.get', { event_id: post.id })
      expect(dataOf(found).event).toMatchObject({ event_id: post.id, seq, text: post.text, room: post.letter.to })
    }
    const to = Math.max(...this.heads.keys())
    for (const [from, checkpoint] of this.heads) {
      if (from === 0) continue
      const found = await this.#read('log.consistency', { from, to })
      const path = dataOf(found).consistency_path.map((hash) => Buffer.from(hash, 'hex'))
      const proven = verifyConsistency(from, to, path, rootOf(checkpoint), rootOf(this.heads.get(to)!))
      expect(proven, `the head of ${from} entries is not the beginning of that of ${to}`).toBe(true)
    }
  }

  async stop(): Promise<void> {
    await this.sim.until(this.#host!.stop())
  }

  async #read<Name extends 'event.get' | 'log.consistency'>(op: Name, args: object) {
    const { promise, resolve } =
      Promise.withResolvers<Parameters<Parameters<typeof ActorHost.prototype.read<Name>>[1]>[0]>()
    this.#host!.read({ op, args: { ...args }, reader: '' }, resolve)
    const found = await this.sim.until(promise)
    if (found === 'dark' || found === undefined || !found.ok) throw new Error(`${op}: ${JSON.stringify(found)}`)
    return found
  }

  /** Undefined: no answer arrived. */
  #send(post: Post): Promise<ShardAnswer | undefined> {
    return new Promise((resolve) => {
      if (!this.#open.includes(post)) this.#open.push(post)
      this.#host!.write(post.letter, (answer, head) => {
        if (answer === undefined) return resolve(undefined)
        if (!answer.ok) throw new Error(`a post was refused: ${JSON.stringify(answer)}`)
        this.#open = this.#open.filter((each) => each !== post)
        this.acknowledged.set(post.id, { post, seq: Number(answer.reply.seq) })
        if (head !== undefined) this.#note(head)
        resolve(answer)
      })
    })
  }

  #note({ size, checkpoint }: Head): void {
    const known = this.heads.get(size)
    if (known !== undefined) expect(rootOf(checkpoint), `two roots of ${size} entries`).toEqual(rootOf(known))
    this.heads.set(size, checkpoint)
  }

  #next(): Post {
    const n = ++this.#sent
    const room = rooms[this.sim.randomBelow(rooms.length)]!
    const timestamp = this.sim.platform.clock.wallSeconds()
    const [text, nonce] = [`post ${n} `.padEnd(1 + this.sim.randomBelow(600), '.'), `nonce-${n}`]
    const command = { operation: 'post', room, text, public_key: ada.publicKey, timestamp, nonce }
    const signed = signingBytes(this.#directory!.facts.service_id, command)
    const sha = createHash('sha256').update(signed).digest()
    const args = { page: 'main', kind: 'note', replyTo: '', supersedes: '', attachments: [], ttl: 0, proofBits: 0 }
    const letter: WriteLetter<PostArgs> = {
      ...{ op: 'post', to: room, id: sha.subarray(0, 16), sha, author: ada.id },
      ...{ by: { key: Buffer.from(ada.publicKey, 'base64url'), sig: ada.sign(signed), signed } },
      ...{ timestamp, nonce, requestId: '', via: 'command', limited: 0 },
      ...{ rotated: false, suspended: false, operator: false, args },
    }
    return { id: sha.toString('hex', 0, 16), text, letter }
  }
}

function rootOf(checkpoint: string): Buffer {
  return Buffer.from(checkpoint.split('\n')[2]!, 'base64')
}

const layouts = [
  { placement: 'threads', shards: 1 },
  { placement: 'threads', shards: 2 },
  { placement: 'back', shards: 1 },
] as const

test.each(layouts)(
  'placed as $placement on $shards shards, a board whose power is cut at any moment keeps what it acknowledged, under one head',
  async (layout) => {
    expect(new Set(rooms.map((room) => shardOf(room, layout.shards))).size).toBe(layout.shards)
    let cuts = 0
    for (const seed of [1, 2, 3]) {
      const sim = await Simulation.begin({ seed }, threads)
      const board = new SimulatedBoard(sim, '/board/data', layout)
      expect(await board.start()).toBe('running')
      for (let life = 0; life < 6; life++) {
        sim.memory.cutAfter(10 + sim.randomBelow(150))
        let state: unknown = life
        while (state !== 'dark') {
          state = await board.post(1 + sim.randomBelow(8))
          // The mark of the log is written once a second.
          if (sim.randomBelow(4) === 0) await sim.until(pause(sim.platform.clock, 1_500))
        }
        cuts++
        await sim.cutPower()
        // The next one may come while the board recovers from the last one.
        for (let cut = sim.randomBelow(3); cut > 0; cut--) {
          sim.memory.cutAfter(sim.randomBelow(30))
          if ((await board.start()) === 'dark') cuts++
          await sim.cutPower()
        }
        expect(await board.start()).toBe('running')
        await board.check()
        expect(await board.insist()).not.toContain(undefined)
      }
      expect(board.acknowledged.size).toBeGreaterThan(50)
      await board.check()
      const seqs = Map.groupBy(board.acknowledged.values(), ({ post }) => post.letter.to)
      // None is there twice, and nothing that was not sent.
      for (const [room, kept] of seqs)
        expect(
          kept.map(({ seq }) => seq).sort((a, b) => a - b),
          room,
        ).toEqual(kept.map((_, n) => n + 1))
      await board.stop()
    }
    expect(cuts).toBeGreaterThan(20)
  },
)

test('the same seed gives the same run, to the byte', async () => {
  const run = async (): Promise<unknown> => {
    const sim = await Simulation.begin({ seed: 7 }, threads)
    const board = new SimulatedBoard(sim, '/board/data', layouts[1])
    await board.start()
    sim.memory.cutAfter(200)
    while ((await board.post(3)) !== 'dark');
    const { memory } = sim
    const journals = ['shard-00', 'shard-01', 'log'].flatMap((name) => {
      const directory = `/board/data/${name}`
      return memory.listFiles(directory).map((file) => [name, file, memory.readWhole(`${directory}/${file}`)])
    })
    return [[...board.acknowledged].map(([id, { seq }]) => [id, seq]), [...board.heads], memory.syncs, journals]
  }
  expect(await run()).toEqual(await run())
})

test.each(layouts)(
  'placed as $placement on $shards shards, a board whose threads all end continues from the files of this machine',
  async (layout) => {
    const sim = await Simulation.begin({ seed: 5, disk: machineDisk }, threads)
    const board = new SimulatedBoard(sim, `${scratchDirectory()}/board`, layout)
    for (let life = 0; life < 3; life++) {
      expect(await board.start()).toBe('running')
      await board.check()
      for (let turn = 0; turn < 3; turn++) await board.post(5)
      void board.post(5)
      await sim.cutPower()
    }
    expect(board.acknowledged.size).toBeGreaterThanOrEqual(45)
  },
)
