/** A follower takes the place of its leader: nothing that was answered is missing, and no size of the log gets a second root. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { shardDirectory } from '../../src/board-directory.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { listSegments, segmentPath } from '../../storage/segment.ts'
import { missingNats, skipNote, skipWithout } from '../peers/peers.ts'
import { blobOf, putFields } from '../support/blobs.ts'
import { type Board, boardDirectory, refusedBoard, startBoard, tryBoard } from '../support/board-process.ts'
import { type Box, makeBoxes } from '../support/boxes.ts'
import { Client, person } from '../support/client.ts'
import { drawn } from '../support/drawn.ts'
import { HookTarget } from '../support/hook-target.ts'
import { Heads, logKeyOf } from '../support/judge.ts'
import { Ledger, load, randomFrom } from '../support/load.ts'
import { NatsCluster } from '../support/nats-cluster.ts'
import { patience } from '../support/patience.ts'
import { caughtUp } from '../support/replicas.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const missing = missingNats()
const ada = person('ada of two boxes')

describe.skipIf(skipWithout(missing))(`a board with a second box${skipNote(missing)}`, () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await NatsCluster.start(boardDirectory())
  })
  afterAll(() => cluster.stop())

  const kinds = [
    { placement: 'back', shards: '1', engine: 'uws' },
    { placement: 'threads', shards: '2', engine: 'node' },
  ]
  describe.each(drawn(kinds))('that answers by itself, placed as $placement', ({ placement, shards, engine }) => {
    let first: Box
    let second: Box
    let leader: Board
    let follower: Board
    let ledger: Ledger
    const write = async (board: Board, posts: number, seed: number): Promise<void> => {
      const client = await Client.of(board)
      const random = randomFrom(seed)
      await load({ client, ledger, random, posts, inFlight: 16, rooms: ['a', 'b'], textBytesMax: 2_000 })
      await ledger.check(client, 10)
      client.close()
    }
    beforeAll(async () => {
      const placed = { PLACEMENT: placement, SHARDS: shards, HTTP_ENGINE: engine }
      const more = { SERVICE_ID: `pair-${placement}`, BROADSIDE_LOOPBACK: '1', ...placed }
      ;[first, second] = (await makeBoxes(boardDirectory(), 2, cluster, more)) as [Box, Box]
      leader = await first.serve()
      const client = await Client.of(leader)
      const key = await logKeyOf(client)
      ledger = new Ledger(new Heads(key), key)
      client.close()
      await write(leader, 100, 1)
      follower = await second.follow()
      second.takeKeysOf(first)
    })
    afterAll(async () => {
      await leader.stop()
      await follower.stop()
    })

    test('the follower does not lead before the leader has handed over', async () => {
      await caughtUp(leader, follower)
      await follower.stop()
      // A leader publishes beside its work: right after its start the stream may still be empty, which is refused in other words.
      await vi.waitFor(async () => {
        const { code, errors } = await second.run('lead')
        expect([code, errors]).toEqual([1, expect.stringContaining('run broadside hand-over there')])
      }, patience)
      follower = await second.follow()
    })

    test('handed over, the second leads and the first follows, with all that either was ever told', async () => {
      const client = await Client.of(leader)
      const bytes = Buffer.from(`a file of ${placement}`)
      const before = [...ledger.acknowledged.values()].filter(({ event }) => event.room === 'a').length
      const put = await client.command(ada, { ...putFields(bytes), room: 'a' })
      expect(put.status).toBe(200)
      const { url = '' } = blobOf(put)
      const target = await HookTarget.open()
      const hook = { schema: 1, url: target.url('/a'), kinds: ['room.post'], room: 'a' }
      const made = await client.command(ada, { operation: 'webhook.create', data: JSON.stringify(hook) })
      target.secrets.set('/a', (made.data as { webhook: { secret: string } }).webhook.secret)
      client.close()
      await write(leader, 200, 2)
      const postsIn = (): number => [...ledger.acknowledged.values()].filter(({ event }) => event.room === 'a').length
      await target.until(() => target.at('/a').length === postsIn() - before)
      const delivered = target.at('/a').length
      // The leader has the answer to each a moment after the target has given it.
      await vi.waitFor(async () => {
        const figures = await (await fetch(new URL('/metrics', leader.address))).text()
        expect(figures).toContain('broadside_deliveries_waiting 0\n')
      }, patience)
      const deliveredAt = Date.now()
      // The follower asks how far deliveries are every 10 s.
      const file = join(second.directory, 'deliveries.json')
      await vi.waitFor(() => expect(statSync(file).mtimeMs).toBeGreaterThan(deliveredAt), patience)
      await follower.stop()
      await leader.stop()
      const given = await first.run('hand-over', '--json')
      expect([given.code, given.errors]).toEqual([0, ''])
      expect(JSON.parse(given.output)).toEqual({ data: first.directory })
      const refused = await refusedBoard(first.options('serve'))
      expect(refused.words).toContain('which signs nothing')
      const led = await second.run('lead', '--json')
      expect([led.code, led.errors]).toEqual([0, ''])
      expect(JSON.parse(led.output)).toMatchObject({ data: second.directory, epoch: 2 })
      leader = await second.serve()
      await write(leader, 100, 3)
      follower = await first.follow()
      await caughtUp(leader, follower)
      const there = await Client.of(follower)
      await ledger.check(there, 20)
      there.close()
      expect(await (await fetch(new URL(url, leader.address))).text()).toBe(String(bytes))
      // What was delivered before the follower asked does not come again.
      await target.until(() => target.at('/a').length === postsIn() - before)
      expect(new Set(target.at('/a').map(({ id }) => id)).size).toBe(target.at('/a').length)
      expect(target.at('/a').every(({ verified }) => verified)).toBe(true)
      expect(target.at('/a').length).toBeGreaterThan(delivered)
      await target.close()
    })

    test('and back again', async () => {
      await leader.stop()
      await follower.stop()
      // After a kill it is run again, whatever the first run had done; so is lead.
      for (let runs = 0; runs < 2; runs++) expect((await second.run('hand-over')).code).toBe(0)
      const leads = { code: 0, output: expect.stringContaining('epoch 3') }
      expect(await first.run('lead')).toMatchObject(leads)
      expect(await first.run('lead')).toMatchObject(leads)
      leader = await first.serve()
      await write(leader, 100, 4)
      follower = await second.follow()
      await caughtUp(leader, follower)
      await follower.stop()
      await leader.stop()
      for (const box of [first, second])
        expect((await box.run('fsck', '--signatures')).output).toContain('Everything agrees.')
    })
  })

  describe('that answers by quorum', () => {
    let boxes: Box[]
    let boards: Board[]
    let ledger: Ledger
    const more = { SERVICE_ID: 'three', REPLICATE_ACK: 'quorum', SHARDS: '2' }
    beforeAll(async () => {
      boxes = await makeBoxes(boardDirectory(), 3, cluster, more)
      const [first, ...others] = boxes as [Box, Box, Box]
      boards = [await first.serve()]
      const client = await Client.of(boards[0]!)
      const key = await logKeyOf(client)
      ledger = new Ledger(new Heads(key), key)
      client.close()
      for (const box of others) {
        box.takeKeysOf(first)
        boards.push(await box.join())
      }
    })
    afterAll(async () => {
      await Promise.all(boards.map((board) => board.stop()))
    })

    /** The board that leads now, and not the one with this number. */
    async function leaderBut(gone: number): Promise<number> {
      return vi.waitFor(
        async () => {
          const found = boards.findIndex(({ lines }, n) => n !== gone && lines.join('\n').includes('replication.begun'))
          if (found === -1) throw new Error('nobody leads')
          await fetch(boards[found]!.address)
          return found
        },
        { ...patience, interval: 200 },
      )
    }

    test('killed under load, another box leads within 40 s; nothing that was answered is missing, and the first follows', async () => {
      const client = await Client.of(boards[0]!)
      const loading = load({
        client,
        ledger,
        random: randomFrom(9),
        posts: 100_000,
        inFlight: 16,
        rooms: ['a', 'b'],
        textBytesMax: 2_000,
      })
      await vi.waitFor(() => expect(ledger.acknowledged.size).toBeGreaterThan(300), patience)
      await boards[0]!.kill()
      await loading
      client.close()
      const killedAt = Date.now()
      const next = await leaderBut(0)
      let there = await Client.of(boards[next]!)
      await ledger.check(there, 30)
      console.info(`led after ${Date.now() - killedAt} ms`)
      await load({ client: there, ledger, random: randomFrom(10), posts: 50, inFlight: 4, rooms: ['a', 'b'] })
      await ledger.check(there, 30)
      there.close()
      // What only the first had is cut off its journals, and it follows.
      boards[0] = await boxes[0]!.join()
      await caughtUp(boards[next]!, boards[0]!)
      there = await Client.of(boards[0]!)
      await ledger.check(there, 30)
      there.close()
    })

    test('stopped, it gives its place away, and another leads within seconds', async () => {
      const old = await leaderBut(-1)
      const client = await Client.of(boards[old]!)
      await load({ client, ledger, random: randomFrom(11), posts: 100, inFlight: 8, rooms: ['a', 'b'] })
      client.close()
      const stoppedAt = Date.now()
      await boards[old]!.stop()
      const epoch = async () => (await Promise.all(boxes.map((box) => box.ends()))).find((ends) => ends?.epoch === 3)
      await vi.waitFor(async () => expect(await epoch()).toBeDefined(), { ...patience, interval: 100 })
      console.info(`led after ${Date.now() - stoppedAt} ms`)
      boards[old] = await boxes[old]!.join()
      const there = await Client.of(boards[old]!)
      await vi.waitFor(() => ledger.check(there, 30), { ...patience, interval: 500 })
      there.close()
    })

    const whoLeads = async (): Promise<number> =>
      (await Promise.all(boxes.map((each) => each.ends()))).findIndex((ends) => ends !== undefined)

    test('while the servers lack a majority, a leader that answers keeps its place, and every box answers reads', async () => {
      const old = await vi.waitFor(async () => {
        const found = await whoLeads()
        expect(found).toBeGreaterThanOrEqual(0)
        return found
      }, patience)
      const begun = () => boards.flatMap(({ lines }) => lines).filter((line) => line.includes('lead.begun')).length
      const [before, epoch] = [begun(), (await boxes[old]!.ends())!.epoch]
      await Promise.all(['n1', 'n2'].map((name) => cluster.kill(name)))
      const lost: string[] = []
      for (const until = Date.now() + 40_000; Date.now() < until; await sleep(500))
        for (const [n, { address }] of boards.entries())
          await fetch(`${address}/api/stats`).catch((error: unknown) => lost.push(`box ${n}: ${error}`))
      expect(lost).toEqual([])
      await Promise.all(['n1', 'n2'].map((name) => cluster.begin(name)))
      const client = await Client.of(boards[old]!)
      await load({ client, ledger, random: randomFrom(13), posts: 5, inFlight: 1, rooms: ['a', 'b'] })
      client.close()
      expect([begun(), (await boxes[old]!.ends())?.epoch]).toEqual([before, epoch])
    })

    test('killed together with the server that leads the stream, another leads within 40 s', async () => {
      const old = await whoLeads()
      const { epoch } = (await boxes[old]!.ends())!
      const server = await cluster.leaderOf('broadside-three')
      const killedAt = Date.now()
      await Promise.all([boards[old]!.kill(), cluster.kill(server)])
      const next = await vi.waitFor(
        async () => {
          const found = await whoLeads()
          expect((await boxes[found]?.ends())?.epoch).toBe(epoch + 1)
          return found
        },
        { timeout: 40_000, interval: 200 },
      )
      console.info(`led after ${Date.now() - killedAt} ms`)
      const client = await Client.of(boards[next]!)
      await load({ client, ledger, random: randomFrom(12), posts: 50, inFlight: 4, rooms: ['a', 'b'] })
      await ledger.check(client, 30)
      client.close()
      await cluster.begin(server)
      boards[old] = await boxes[old]!.join()
      await caughtUp(boards[next]!, boards[old]!)
    })

    test('started without the stream, or while it is away and answering by itself, it shows nothing', async () => {
      const box = boxes[await whoLeads()]!
      await Promise.all(boards.map((board) => board.stop()))
      const alone = {
        REPLICATE: '',
        REPLICATE_ACK: '',
        REPLICATE_KEY_FILE: '',
        REPLICATE_SYSTEM_KEY_FILE: '',
        REPLICA_KEY_FILE: '',
      }
      const { env, ...options } = box.options('serve')
      const refused = await refusedBoard({ ...options, env: { ...env, ...alone } })
      expect(refused.words).toContain('This board has answered by quorum, so another board may lead now.')
      const launched = Promise.withResolvers<Board>()
      const away = { ...env, REPLICATE: 'nats://127.0.0.1:9', REPLICATE_ACK: 'local' }
      const ended = tryBoard({ ...options, env: away, onLaunch: launched.resolve })
      const board = await launched.promise
      await vi.waitFor(() => expect(board.lines.join('\n')).toContain('replication.interrupted'), patience)
      await sleep(2_000)
      await expect(fetch(box.address)).rejects.toThrow()
      board.signal('SIGTERM')
      expect(await ended).toMatchObject({ code: 0, words: expect.stringContaining('start.stopped') })
    })
  })

  test('a follower that never read the stream leads, handed over to', async () => {
    const [first, second] = (await makeBoxes(boardDirectory(), 2, cluster, { SERVICE_ID: 'unread' })) as [Box, Box]
    const leader = await first.serve()
    const client = await Client.of(leader)
    expect((await client.post(ada, { room: 'a', text: 'over HTTP alone' })).status).toBe(200)
    client.close()
    const { env, ...options } = second.options('follow')
    const unread = { REPLICATE: '', REPLICATE_KEY_FILE: '', REPLICATE_SYSTEM_KEY_FILE: '' }
    const follower = await startBoard({ ...options, env: { ...env, ...unread } })
    await caughtUp(leader, follower)
    await follower.stop()
    await leader.stop()
    second.takeKeysOf(first)
    expect(await first.run('hand-over')).toMatchObject({ code: 0, errors: '' })
    expect(await second.run('lead')).toMatchObject({ code: 0, errors: '' })
    const led = await second.serve()
    const there = await Client.of(led)
    expect((await there.post(ada, { room: 'a', text: 'led' })).status).toBe(200)
    there.close()
    await led.stop()
  })

  test('where the stream has no message any more that says who leads, no box leads by itself', async () => {
    const more = { SERVICE_ID: 'outdated', REPLICATE_ACK: 'quorum' }
    const [first] = (await makeBoxes(boardDirectory(), 2, cluster, more)) as [Box, Box]
    const leader = await first.serve()
    const client = await Client.of(leader)
    expect((await client.post(ada, { room: 'a', text: 'two days ago' })).status).toBe(200)
    client.close()
    await leader.kill()
    // As when all that it had is older than it keeps.
    const connection = await cluster.connection()
    const { streams } = await jetstreamManager(connection, { checkAPI: false })
    const name = 'broadside-outdated'
    const { config } = await streams.info(name)
    await streams.update(name, { max_age: 1e9, duplicate_window: 1e9 })
    await vi.waitFor(async () => expect((await streams.info(name)).state.messages).toBe(0), patience)
    await streams.update(name, { max_age: config.max_age, duplicate_window: config.duplicate_window })
    await connection.close()
    for (const options of [first.options('serve'), first.options('follow', true)])
      expect((await refusedBoard(options)).words).toContain('No box has led this board for 48 hours')
  })

  test('that waits for a copy answers when a follower has it on its disk', async () => {
    const more = { SERVICE_ID: 'copied', REPLICATE_ACK: 'copy', SHARDS: '2' }
    const [first, second] = (await makeBoxes(boardDirectory(), 2, cluster, more)) as [Box, Box]
    // A start waits for no follower: those wait for it.
    const leader = await first.serve()
    const follower = await second.follow()
    const client = await Client.of(leader)
    const onDisk = () =>
      [0, 1].map((shard) => {
        const directory = shardDirectory(second.directory, shard)
        return readFileSync(segmentPath(directory, listSegments(machineDisk, directory, 'log').at(-1)!), 'latin1')
      })
    for (let n = 0; n < 20; n++) {
      expect((await client.post(ada, { room: 'a', text: `copied ${n}` })).status).toBe(200)
      expect(onDisk().some((journal) => journal.includes(`"copied ${n}"`))).toBe(true)
    }
    await follower.kill()
    let isAnswered = false
    const waiting = client.post(ada, { room: 'a', text: 'alone' }).finally(() => {
      isAnswered = true
    })
    const health = async () => (await fetch(`${leader.address}/healthz`)).text()
    await vi.waitFor(
      async () => expect(await health()).toContain('replication: No follower has confirmed the newest writes'),
      { ...patience, timeout: 10_000 },
    )
    expect(leader.lines.filter((line) => line.includes('replication.waits'))).toHaveLength(1)
    expect(isAnswered).toBe(false)
    const again = await second.follow()
    expect((await waiting).status).toBe(200)
    await vi.waitFor(async () => expect(await health()).toBe('ok\n'), patience)
    client.close()
    await again.stop()
    await leader.stop()
  })
})
