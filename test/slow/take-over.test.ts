/** A follower takes over from its leader: no acknowledged write is lost, and no size of the log gets a second root. */
import { readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { shardDirectory } from '../../src/board-directory.ts'
import { leadAfter } from '../../src/cli/member.ts'
import { readConfig } from '../../src/config.ts'
import { machine } from '../../src/platform.ts'
import { sealIn } from '../../src/replication/stream-seal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { listSegments, segmentPath } from '../../storage/segment.ts'
import { missingNats, skipNote, skipWithout } from '../peers/peers.ts'
import { blobOf, putFields } from '../support/blobs.ts'
import {
  type Board,
  type BoardOptions,
  boardDirectory,
  expectStartRefused,
  startBoard,
  tryStartBoard,
} from '../support/board-process.ts'
import { type Box, makeBoxes } from '../support/boxes.ts'
import { Client, person } from '../support/client.ts'
import { HookTarget } from '../support/hook-target.ts'
import { Ledger, load, randomFrom } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { NatsCluster } from '../support/nats-cluster.ts'
import { patience } from '../support/patience.ts'
import { randomPart } from '../support/random-part.ts'
import { waitUntilCaughtUp } from '../support/replicas.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const missing = missingNats()
const ada = person('ada of two boxes')

describe.skipIf(skipWithout(missing))(`a board with several boxes${skipNote(missing)}`, () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await NatsCluster.start(boardDirectory())
  })
  afterAll(() => cluster.stop())

  const variants = [
    { placement: 'back', shards: '1', engine: 'uws' },
    { placement: 'threads', shards: '2', engine: 'node' },
  ]
  describe.each(randomPart(variants))(
    'with REPLICATE_ACK=local, placed as $placement',
    ({ placement, shards, engine }) => {
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
        const variant = { PLACEMENT: placement, SHARDS: shards, HTTP_ENGINE: engine }
        const settings = { SERVICE_ID: `pair-${placement}`, BROADSIDE_LOOPBACK: '1', ...variant }
        ;[first, second] = (await makeBoxes(boardDirectory(), 2, cluster, settings)) as [Box, Box]
        leader = await first.serve()
        const client = await Client.of(leader)
        const key = await logKeyOf(client)
        ledger = new Ledger(new Heads(key), key)
        client.close()
        await write(leader, 100, 1)
        follower = await second.follow()
        second.copyKeysFrom(first)
      })
      afterAll(async () => {
        await leader.stop()
        await follower.stop()
      })

      test('a follower does not lead before its leader has handed over', async () => {
        await waitUntilCaughtUp(leader, follower)
        await follower.stop()
        // A leader publishes in the background: right after its start the stream may still be empty, which is refused for another reason.
        await vi.waitFor(async () => {
          const { code, errors } = await second.run('lead')
          expect([code, errors]).toEqual([1, expect.stringContaining('run broadside hand-over there')])
        }, patience)
        follower = await second.follow()
      })

      test('after a hand-over the second box leads, the first follows, and nothing is lost or delivered twice', async () => {
        const client = await Client.of(leader)
        const content = Buffer.from(`a file of ${placement}`)
        const postsBefore = [...ledger.acknowledged.values()].filter(({ event }) => event.room === 'a').length
        const upload = await client.command(ada, { ...putFields(content), room: 'a' })
        expect(upload.status).toBe(200)
        const { url = '' } = blobOf(upload)
        const target = await HookTarget.open()
        const webhook = { schema: 1, url: target.url('/a'), kinds: ['room.post'], room: 'a' }
        const created = await client.command(ada, { operation: 'webhook.create', data: JSON.stringify(webhook) })
        target.secrets.set('/a', (created.data as { webhook: { secret: string } }).webhook.secret)
        client.close()
        await write(leader, 200, 2)
        const postsIn = (): number => [...ledger.acknowledged.values()].filter(({ event }) => event.room === 'a').length
        await target.waitUntil(() => target.receivedAt('/a').length === postsIn() - postsBefore)
        const delivered = target.receivedAt('/a').length
        // The leader records each answer shortly after the target has sent it.
        await vi.waitFor(async () => {
          const metrics = await (await fetch(new URL('/metrics', leader.address))).text()
          expect(metrics).toContain('broadside_deliveries_waiting 0\n')
        }, patience)
        const deliveredAt = Date.now()
        // Every 10 s the follower fetches how far the leader’s deliveries have come.
        const file = join(second.directory, 'deliveries.json')
        await vi.waitFor(() => expect(statSync(file).mtimeMs).toBeGreaterThan(deliveredAt), patience)
        await follower.stop()
        await leader.stop()
        const handedOver = await first.run('hand-over', '--json')
        expect([handedOver.code, handedOver.errors]).toEqual([0, ''])
        expect(JSON.parse(handedOver.output)).toEqual({ data: first.directory })
        const refused = await expectStartRefused(first.options('serve'))
        expect(refused.output).toContain('which signs nothing')
        const lead = await second.run('lead', '--json')
        expect([lead.code, lead.errors]).toEqual([0, ''])
        expect(JSON.parse(lead.output)).toMatchObject({ data: second.directory, epoch: 2 })
        leader = await second.serve()
        await write(leader, 100, 3)
        follower = await first.follow()
        await waitUntilCaughtUp(leader, follower)
        const followerClient = await Client.of(follower)
        await ledger.check(followerClient, 20)
        followerClient.close()
        expect(await (await fetch(new URL(url, leader.address))).text()).toBe(String(content))
        // Deliveries that the follower knew of are not repeated.
        await target.waitUntil(() => target.receivedAt('/a').length === postsIn() - postsBefore)
        expect(new Set(target.receivedAt('/a').map(({ id }) => id)).size).toBe(target.receivedAt('/a').length)
        expect(target.receivedAt('/a').every(({ verified }) => verified)).toBe(true)
        expect(target.receivedAt('/a').length).toBeGreaterThan(delivered)
        await target.close()
      })

      test('after another hand-over the first box leads again, and hand-over and lead can be run twice', async () => {
        await leader.stop()
        await follower.stop()
        // After a kill, hand-over and lead are run again, however far the first run got.
        for (let run = 0; run < 2; run++) expect((await second.run('hand-over')).code).toBe(0)
        const expected = { code: 0, output: expect.stringContaining('epoch 3') }
        expect(await first.run('lead')).toMatchObject(expected)
        expect(await first.run('lead')).toMatchObject(expected)
        leader = await first.serve()
        await write(leader, 100, 4)
        follower = await second.follow()
        await waitUntilCaughtUp(leader, follower)
        await follower.stop()
        await leader.stop()
        for (const box of [first, second])
          expect((await box.run('fsck', '--signatures')).output).toContain('Everything agrees.')
      })
    },
  )

  describe('with REPLICATE_ACK=quorum', () => {
    let boxes: Box[]
    let boards: Board[]
    let ledger: Ledger
    const settings = { SERVICE_ID: 'three', REPLICATE_ACK: 'quorum', SHARDS: '2' }
    beforeAll(async () => {
      boxes = await makeBoxes(boardDirectory(), 3, cluster, settings)
      const [first, ...others] = boxes as [Box, Box, Box]
      boards = [await first.serve()]
      const client = await Client.of(boards[0]!)
      const key = await logKeyOf(client)
      ledger = new Ledger(new Heads(key), key)
      client.close()
      for (const box of others) {
        box.copyKeysFrom(first)
        boards.push(await box.join())
      }
    })
    afterAll(async () => {
      await Promise.all(boards.map((board) => board.stop()))
    })

    /** The number of the board that leads now, other than this one. */
    async function leaderOtherThan(excluded: number): Promise<number> {
      return vi.waitFor(
        async () => {
          const found = boards.findIndex(
            ({ lines }, n) => n !== excluded && lines.join('\n').includes('replication.begun'),
          )
          if (found === -1) throw new Error('no board leads')
          await fetch(boards[found]!.address)
          return found
        },
        { ...patience, interval: 200 },
      )
    }

    test('after the leader is killed under load, another box leads, nothing acknowledged is lost, and the old leader follows', async () => {
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
      const newLeader = await leaderOtherThan(0)
      let newClient = await Client.of(boards[newLeader]!)
      await ledger.check(newClient, 30)
      console.info(`another box led after ${Date.now() - killedAt} ms`)
      await load({ client: newClient, ledger, random: randomFrom(10), posts: 50, inFlight: 4, rooms: ['a', 'b'] })
      await ledger.check(newClient, 30)
      newClient.close()
      // The old leader removes from its journals what only it has, and follows.
      boards[0] = await boxes[0]!.join()
      await waitUntilCaughtUp(boards[newLeader]!, boards[0]!)
      newClient = await Client.of(boards[0]!)
      await ledger.check(newClient, 30)
      newClient.close()
    })

    test('a leader that is stopped hands over, and another box leads', async () => {
      const oldLeader = await leaderOtherThan(-1)
      const client = await Client.of(boards[oldLeader]!)
      await load({ client, ledger, random: randomFrom(11), posts: 100, inFlight: 8, rooms: ['a', 'b'] })
      client.close()
      const stoppedAt = Date.now()
      await boards[oldLeader]!.stop()
      const epoch = async () => (await Promise.all(boxes.map((box) => box.ends()))).find((ends) => ends?.epoch === 3)
      await vi.waitFor(async () => expect(await epoch()).toBeDefined(), { ...patience, interval: 100 })
      console.info(`another box led after ${Date.now() - stoppedAt} ms`)
      // Started as a leader, it says that another box leads and how it follows. That is no fault.
      const { code, output } = await expectStartRefused(boxes[oldLeader]!.options('serve'))
      const lines = output.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
      expect([code, lines.at(-1)]).toEqual([75, expect.objectContaining({ level: 'warn', event: 'replaced' })])
      expect(lines.at(-1)).toMatchObject({ problem: expect.stringContaining('broadside follow --may-lead') })
      expect(lines.filter(({ level }) => level === 'error')).toEqual([])
      boards[oldLeader] = await boxes[oldLeader]!.join()
      const followerClient = await Client.of(boards[oldLeader]!)
      await vi.waitFor(() => ledger.check(followerClient, 30), { ...patience, interval: 500 })
      followerClient.close()
    })

    test('a box that finds that another was faster says so, and follows', async () => {
      const leader = await vi.waitFor(async () => {
        const found = await currentLeader()
        expect(found).toBeGreaterThanOrEqual(0)
        return found
      }, patience)
      const slower = (leader + 1) % boxes.length
      await boards[slower]!.stop()
      const { directory, env } = boxes[slower]!.options('follow')
      const logged = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
      const refused = await leadAfter(readConfig(directory, env), 1)
      const lines = logged.mock.calls.map(([line]) => JSON.parse(String(line)) as Record<string, unknown>)
      logged.mockRestore()
      expect(refused).toBe(undefined)
      expect(lines.find(({ event }) => event === 'lead.not_taken')).toEqual({
        time: expect.any(String),
        level: 'info',
        event: 'lead.not_taken',
        problem: 'Another box was faster, or the leader is back. This box follows it.',
      })
      boards[slower] = await boxes[slower]!.join()
      await waitUntilCaughtUp(boards[leader]!, boards[slower]!)
    })

    const currentLeader = async (): Promise<number> =>
      (await Promise.all(boxes.map((each) => each.ends()))).findIndex((ends) => ends !== undefined)

    test('without a majority of servers a leader that followers can reach is not replaced, and every box answers reads', async () => {
      const leader = await vi.waitFor(async () => {
        const found = await currentLeader()
        expect(found).toBeGreaterThanOrEqual(0)
        return found
      }, patience)
      const takeovers = () => boards.flatMap(({ lines }) => lines).filter((line) => line.includes('lead.begun')).length
      const [takeoversBefore, epoch] = [takeovers(), (await boxes[leader]!.ends())!.epoch]
      await Promise.all(['n1', 'n2'].map((name) => cluster.kill(name)))
      const failures: string[] = []
      for (const until = Date.now() + 40_000; Date.now() < until; await sleep(500))
        for (const [n, { address }] of boards.entries())
          await fetch(`${address}/api/stats`).catch((error: unknown) => failures.push(`box ${n}: ${error}`))
      expect(failures).toEqual([])
      await Promise.all(['n1', 'n2'].map((name) => cluster.startServer(name)))
      const client = await Client.of(boards[leader]!)
      await load({ client, ledger, random: randomFrom(13), posts: 5, inFlight: 1, rooms: ['a', 'b'] })
      client.close()
      expect([takeovers(), (await boxes[leader]!.ends())?.epoch]).toEqual([takeoversBefore, epoch])
    })

    test('after the leader and the server that leads the stream are killed together, another box leads within 40 s', async () => {
      const oldLeader = await currentLeader()
      const { epoch } = (await boxes[oldLeader]!.ends())!
      const server = await cluster.leaderOf('broadside-three')
      const killedAt = Date.now()
      await Promise.all([boards[oldLeader]!.kill(), cluster.kill(server)])
      const newLeader = await vi.waitFor(
        async () => {
          const found = await currentLeader()
          expect((await boxes[found]?.ends())?.epoch).toBe(epoch + 1)
          return found
        },
        { timeout: 40_000, interval: 200 },
      )
      console.info(`another box led after ${Date.now() - killedAt} ms`)
      const client = await Client.of(boards[newLeader]!)
      await load({ client, ledger, random: randomFrom(12), posts: 50, inFlight: 4, rooms: ['a', 'b'] })
      await ledger.check(client, 30)
      client.close()
      await cluster.startServer(server)
      boards[oldLeader] = await boxes[oldLeader]!.join()
      await waitUntilCaughtUp(boards[newLeader]!, boards[oldLeader]!)
    })

    test('a board that answered by quorum does not start without REPLICATE, and shows nothing while its stream is unavailable', async () => {
      const box = boxes[await currentLeader()]!
      await Promise.all(boards.map((board) => board.stop()))
      const unreplicated = {
        REPLICATE: '',
        REPLICATE_ACK: '',
        REPLICATE_KEY_FILE: '',
        REPLICATE_SYSTEM_KEY_FILE: '',
        REPLICA_KEY_FILE: '',
      }
      const { env, ...options } = box.options('serve')
      const refused = await expectStartRefused({ ...options, env: { ...env, ...unreplicated } })
      expect(refused.output).toContain('This board has answered by quorum, so another board may lead now.')
      const launched = Promise.withResolvers<Board>()
      const unreachable = { ...env, REPLICATE: 'nats://127.0.0.1:9', REPLICATE_ACK: 'local' }
      const ended = tryStartBoard({ ...options, env: unreachable, onLaunch: launched.resolve })
      const board = await launched.promise
      await vi.waitFor(() => expect(board.lines.join('\n')).toContain('replication.interrupted'), patience)
      await sleep(2_000)
      await expect(fetch(box.address)).rejects.toThrow()
      board.signal('SIGTERM')
      expect(await ended).toMatchObject({ code: 0, output: expect.stringContaining('start.stopped') })
    })
  })

  test('after a hand-over a follower that never read the stream can lead', async () => {
    const [first, second] = (await makeBoxes(boardDirectory(), 2, cluster, { SERVICE_ID: 'unread' })) as [Box, Box]
    const leader = await first.serve()
    const client = await Client.of(leader)
    expect((await client.post(ada, { room: 'a', text: 'over HTTP alone' })).status).toBe(200)
    client.close()
    const { env, ...options } = second.options('follow')
    const withoutStream = { REPLICATE: '', REPLICATE_KEY_FILE: '', REPLICATE_SYSTEM_KEY_FILE: '' }
    const follower = await startBoard({ ...options, env: { ...env, ...withoutStream } })
    await waitUntilCaughtUp(leader, follower)
    await follower.stop()
    await leader.stop()
    second.copyKeysFrom(first)
    expect(await first.run('hand-over')).toMatchObject({ code: 0, errors: '' })
    expect(await second.run('lead')).toMatchObject({ code: 0, errors: '' })
    const newLeader = await second.serve()
    const newClient = await Client.of(newLeader)
    expect((await newClient.post(ada, { room: 'a', text: 'led' })).status).toBe(200)
    newClient.close()
    await newLeader.stop()
  })

  test('a follower that lacks what was written before the stream began does not lead, and says so', async () => {
    const [first, second] = (await makeBoxes(boardDirectory(), 2, cluster, { SERVICE_ID: 'early' })) as [Box, Box]
    const withoutStream = { REPLICATE: '', REPLICATE_KEY_FILE: '', REPLICATE_SYSTEM_KEY_FILE: '' }
    const startAlone = ({ env, ...options }: BoardOptions) =>
      startBoard({ ...options, env: { ...env, ...withoutStream } })
    const alone = await startAlone(first.options('serve'))
    const follower = await startAlone(second.options('follow'))
    await waitUntilCaughtUp(alone, follower)
    await follower.stop()
    const client = await Client.of(alone)
    expect((await client.post(ada, { room: 'a', text: 'before the stream' })).status).toBe(200)
    client.close()
    await alone.stop()
    const leader = await first.serve()
    await vi.waitFor(() => expect(leader.lines.join('\n')).toContain('replication.begun'), patience)
    await leader.stop()
    second.copyKeysFrom(first)
    expect(await first.run('hand-over')).toMatchObject({ code: 0, errors: '' })
    const { code, errors } = await second.run('lead')
    expect([code, errors]).toEqual([1, expect.stringContaining('before the first message of the stream')])
  })

  test('after the keys of the stream were replaced, a box that was restarted leads if the leader is gone', async () => {
    const settings = { SERVICE_ID: 'resealed', REPLICATE_ACK: 'quorum' }
    const [first, second] = (await makeBoxes(boardDirectory(), 2, cluster, settings)) as [Box, Box]
    let leader = await first.serve()
    second.copyKeysFrom(first)
    let follower = await second.join()
    const post = async (text: string): Promise<void> => {
      const client = await Client.of(leader)
      expect((await client.post(ada, { room: 'a', text })).status).toBe(200)
      client.close()
      await waitUntilCaughtUp(leader, follower)
    }
    await post('under the first keys')
    const chainOf = ({ directory }: Box) => sealIn(machine.disk, directory)?.chain
    const chain = chainOf(first)
    await follower.stop()
    await leader.stop()
    for (const { directory } of [first, second]) rmSync(join(directory, 'stream-seal.json'))
    leader = await first.join()
    follower = await second.join()
    await post('under the second keys')
    const { epoch } = (await first.ends())!
    await Promise.all([leader.kill(), follower.kill()])
    follower = await second.join()
    await vi.waitFor(async () => expect((await second.ends())?.epoch).toBe(epoch + 1), patience)
    expect(chainOf(second)).not.toBe(chain)
    await follower.stop()
  })

  test('if the stream no longer shows which box led last, no box starts automatically', async () => {
    const settings = { SERVICE_ID: 'outdated', REPLICATE_ACK: 'quorum' }
    const [first] = (await makeBoxes(boardDirectory(), 2, cluster, settings)) as [Box, Box]
    const leader = await first.serve()
    const client = await Client.of(leader)
    expect((await client.post(ada, { room: 'a', text: 'two days ago' })).status).toBe(200)
    client.close()
    await leader.kill()
    // As if all its messages were older than it retains them.
    const connection = await cluster.connection()
    const { streams } = await jetstreamManager(connection, { checkAPI: false })
    const name = 'broadside-outdated'
    const { config } = await streams.info(name)
    await streams.update(name, { max_age: 1e9, duplicate_window: 1e9 })
    await vi.waitFor(async () => expect((await streams.info(name)).state.messages).toBe(0), patience)
    await streams.update(name, { max_age: config.max_age, duplicate_window: config.duplicate_window })
    await connection.close()
    for (const options of [first.options('serve'), first.options('follow', true)])
      expect((await expectStartRefused(options)).output).toContain('No box has led this board for 48 hours')
  })

  test('with REPLICATE_ACK=copy a write is answered once a follower has it on disk', async () => {
    const settings = { SERVICE_ID: 'copied', REPLICATE_ACK: 'copy', SHARDS: '2' }
    const [first, second] = (await makeBoxes(boardDirectory(), 2, cluster, settings)) as [Box, Box]
    // A start does not wait for followers: they wait for the leader.
    const leader = await first.serve()
    const follower = await second.follow()
    const client = await Client.of(leader)
    const newestSegments = () =>
      [0, 1].map((shard) => {
        const directory = shardDirectory(second.directory, shard)
        return readFileSync(segmentPath(directory, listSegments(machineDisk, directory, 'log').at(-1)!), 'latin1')
      })
    for (let n = 0; n < 20; n++) {
      expect((await client.post(ada, { room: 'a', text: `copied ${n}` })).status).toBe(200)
      expect(newestSegments().some((segment) => segment.includes(`"copied ${n}"`))).toBe(true)
    }
    await follower.kill()
    let isAnswered = false
    const pending = client.post(ada, { room: 'a', text: 'alone' }).finally(() => {
      isAnswered = true
    })
    const health = async () => (await fetch(`${leader.address}/healthz`)).text()
    await vi.waitFor(
      async () => expect(await health()).toContain('replication: No follower has confirmed the newest writes'),
      { ...patience, timeout: 10_000 },
    )
    expect(leader.lines.filter((line) => line.includes('replication.waits'))).toHaveLength(1)
    expect(isAnswered).toBe(false)
    const restarted = await second.follow()
    expect((await pending).status).toBe(200)
    await vi.waitFor(async () => expect(await health()).toBe('ok\n'), patience)
    client.close()
    await restarted.stop()
    await leader.stop()
  })
})
