/** REPLICATE_ACK=quorum: nothing is answered or shown before two of three servers have it on their disks. */
import { setTimeout as sleep } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parseHeader } from '../../src/replication/batch.ts'
import { missingNats, skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard, tryStartBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { NatsCluster, sealOf } from '../support/nats-cluster.ts'
import { patience } from '../support/patience.ts'
import { randomPart } from '../support/random-part.ts'
import { StreamReader } from '../support/stream-reader.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const missing = missingNats()
const ada = person('ada')
const bob = person('bob')

/** Everything that a board has put into its stream, decrypted. */
async function carried(cluster: NatsCluster, { service, directory }: Setting): Promise<string> {
  const connection = await cluster.connection()
  const manager = await jetstreamManager(connection, { checkAPI: false })
  const stream = `broadside-${service}`
  const seal = sealOf(directory)
  const { first_seq: first, last_seq: last } = (await manager.streams.info(stream)).state
  const found: Buffer[] = []
  for (let seq = Math.max(1, first); seq <= last; seq++) {
    const message = (await manager.streams.getMessage(stream, { seq }))!
    const header = parseHeader(message.header.get('Broadside'))!
    found.push(seal.open({ header, bytes: message.data }))
  }
  await connection.close()
  return Buffer.concat(found).toString('latin1')
}

type Setting = { readonly service: string; readonly directory: string }

const placements = [
  { placement: 'back', shards: '1', engine: 'uws' },
  { placement: 'threads', shards: '2', engine: 'node' },
  { placement: 'clerks', shards: '1', engine: 'uws' },
]

describe.skipIf(skipWithout(missing))(`a board that answers when its stream has it${skipNote(missing)}`, () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await NatsCluster.start(boardDirectory())
  })
  afterAll(() => cluster.stop())

  describe.each(randomPart(placements))('placed as $placement, $shards shards', ({ placement, shards, engine }) => {
    const setting = { service: `quorum-${placement}`, directory: boardDirectory() }
    const env = () => ({
      ...cluster.env,
      REPLICATE_ACK: 'quorum',
      SERVICE_ID: setting.service,
      PLACEMENT: placement,
      SHARDS: shards,
      HTTP_ENGINE: engine,
    })
    let board: Board
    let client: Client
    const begin = async () => {
      board = await startBoard({ directory: setting.directory, env: env() })
      client = await Client.of(board)
    }
    beforeAll(async () => {
      await begin()
      expect(
        (await client.command(ada, { operation: 'room.create', room: 'attic', visibility: 'private' })).status,
      ).toBe(200)
    })
    afterAll(async () => {
      client.close()
      await board.stop()
    })

    test('each answered post is in the stream, public and private ones', async () => {
      for (let n = 0; n < 6; n++)
        for (const room of ['lobby', 'attic']) {
          const text = `${room} has number ${n} of ${placement}`
          expect((await client.post(ada, { room, text })).status).toBe(200)
          expect(await carried(cluster, setting)).toContain(text)
        }
    })

    test('without a majority of servers nothing new is answered or shown; when they are back it is, once', async () => {
      const before = await client.post(ada, { room: 'lobby', text: 'before' })
      const tail = new StreamReader(board.address, '/tail/lobby?last=1')
      await tail.until((text) => text.includes('before'))
      await Promise.all(['n1', 'n2'].map((name) => cluster.kill(name)))
      const open = client.sign(ada, { operation: 'post', room: 'lobby', text: 'in between' })
      const hidden = client.sign(ada, { operation: 'post', room: 'attic', text: 'in private' })
      let answered = 0
      const answers = [open, hidden].map(({ body }) => client.send(body).finally(() => answered++))
      await vi.waitFor(
        async () => expect(await (await fetch(`${board.address}/healthz`)).text()).toContain('replication:'),
        patience,
      )
      const listed = await client.get('/api/events?room=lobby')
      expect(listed.data.events?.map(({ text }) => text)).toContain('before')
      expect(listed.text).not.toContain('in between')
      expect((await client.get(`/api/events/${before.data.event_id}`)).status).toBe(200)
      expect((await client.get('/api/log/checkpoint')).data.checkpoint).toBe(before.data.receipt?.checkpoint)
      expect(tail.text).not.toContain('in between')
      expect(answered).toBe(0)
      // A read of the private room waits as well: what it would show is not acknowledged.
      const read = client.command(ada, { operation: 'room.pages', room: 'attic' })
      await Promise.all(['n1', 'n2'].map((name) => cluster.startServer(name)))
      expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200])
      expect((await read).status).toBe(200)
      await tail.until((text) => text.includes('in between'))
      tail.close()
      const again = await client.send(open.body)
      expect(again.data.receipt?.duplicate).toBe(true)
      const texts = (await client.get('/api/events?room=lobby&limit=200')).data.events!.map(({ text }) => text)
      expect(texts.filter((text) => text === 'in between')).toHaveLength(1)
      const stream = await carried(cluster, setting)
      for (const text of ['in between', 'in private']) expect(stream).toContain(text)
    })

    test('after a kill under load all answered posts are in the stream, and the next start shows nothing else', async () => {
      const texts: string[] = []
      let n = 0
      const lane = async () => {
        for (;;) {
          const text = `load ${placement} ${n++}`
          const room = n % 3 === 0 ? 'attic' : 'lobby'
          const { status } = await client.post(ada, { room, text })
          if (status === 200) texts.push(text)
        }
      }
      const lanes = Array.from({ length: 16 }, () => lane().catch(() => {}))
      await vi.waitFor(() => expect(texts.length).toBeGreaterThan(150), patience)
      await board.kill()
      await Promise.all(lanes)
      client.close()
      const stream = await carried(cluster, setting)
      expect(texts.filter((text) => !stream.includes(`"${text}"`))).toEqual([])
      await begin()
      const shown = await (await fetch(`${board.address}/v1/export?room=lobby`)).text()
      const after = await carried(cluster, setting)
      const posts = shown.split('\n').flatMap((line) => /"text":"(load [a-z]+ \d+)"/.exec(line)?.[1] ?? [])
      expect(posts.length).toBeGreaterThan(90)
      expect(posts.filter((text) => !after.includes(`"${text}"`))).toEqual([])
    })

    test('many at once are answered, each once', async () => {
      const answers = await Promise.all(
        Array.from({ length: 400 }, (_, n) =>
          client.post(n % 2 === 0 ? ada : bob, { room: 'lobby', text: `many ${n}` }),
        ),
      )
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
      const leaves = answers.map(({ data }) => data.receipt!.log_index)
      expect(new Set(leaves).size).toBe(400)
    })
  })

  test('when the server that leads the stream is killed, writes continue within seconds', async () => {
    const setting = { service: 'quorum-less', directory: boardDirectory() }
    const env = { ...cluster.env, REPLICATE_ACK: 'quorum', SERVICE_ID: setting.service }
    const board = await startBoard({ directory: setting.directory, env })
    const client = await Client.of(board)
    expect((await client.post(ada, { room: 'lobby', text: 'with three' })).status).toBe(200)
    const lost = await cluster.leaderOf(`broadside-${setting.service}`)
    await cluster.kill(lost)
    const killedAt = Date.now()
    try {
      // A write that waits too long has no answer, and is sent again.
      const { body } = client.sign(ada, { operation: 'post', room: 'lobby', text: 'with two' })
      await vi.waitFor(async () => expect((await client.send(body)).status).toBe(200), patience)
      console.info(`written ${Date.now() - killedAt} ms after the kill`)
      // For another two minutes the others do not say that it is offline.
      for (let n = 0; n < 8; n++) {
        const sentAt = Date.now()
        expect((await client.post(ada, { room: 'lobby', text: `with two, ${n}` })).status).toBe(200)
        expect(Date.now() - sentAt).toBeLessThan(2_000)
        await sleep(1_000)
      }
    } finally {
      await cluster.startServer(lost)
      client.close()
      await board.stop()
    }
  })

  test('a start that waits for the stream exits when it is told to', async () => {
    const nowhere = { ...cluster.env, REPLICATE: 'nats://127.0.0.1:9', REPLICATE_ACK: 'quorum' }
    const launched = Promise.withResolvers<Board>()
    const ended = tryStartBoard({ directory: boardDirectory(), env: nowhere, onLaunch: launched.resolve })
    const board = await launched.promise
    await vi.waitFor(() => expect(board.lines.join('\n')).toContain('replication.interrupted'), patience)
    board.signal('SIGTERM')
    expect(await ended).toMatchObject({ code: 0, output: expect.stringContaining('start.stopped') })
  })

  test('a board that another has replaced exits, and says why', async () => {
    const setting = { service: 'quorum-over', directory: boardDirectory() }
    const env = { ...cluster.env, REPLICATE_ACK: 'quorum', SERVICE_ID: setting.service }
    const board = await startBoard({ directory: setting.directory, env })
    const client = await Client.of(board)
    expect((await client.post(ada, { room: 'lobby', text: 'mine' })).status).toBe(200)
    const connection = await cluster.connection()
    await connection.request(`broadside.${setting.service}.frames`, 'of another')
    await connection.close()
    await expect(client.post(ada, { room: 'lobby', text: 'too late' })).rejects.toThrow()
    client.close()
    await vi.waitFor(() => expect(board.lines.join('\n')).toContain('Another board writes to the stream'), patience)
    expect(board.lines.join('\n')).toContain('"event":"fatal"')
  })
})
