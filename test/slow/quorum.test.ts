/** What a board answers and shows whose writes wait for the stream (REPLICATE_ACK=quorum), on real NATS servers. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect, nkeyAuthenticator } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { missingNats, skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard, tryBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { Heads, logKeyOf } from '../support/judge.ts'
import { Ledger, load, randomFrom } from '../support/load.ts'
import { NatsCluster } from '../support/nats-cluster.ts'
import { StreamReader } from '../support/stream-reader.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const missing = missingNats()
const ada = person('ada')

/** Reads the stream of a board as the board does. */
class StreamText {
  readonly #cluster: NatsCluster
  readonly #name: string
  #text = ''
  #read = 0

  constructor(cluster: NatsCluster, serviceId: string) {
    this.#cluster = cluster
    this.#name = `broadside-${serviceId.replaceAll('.', '_')}`
  }

  /** All that is in it now. */
  async now(): Promise<string> {
    const connection = await connect({
      servers: this.#cluster.servers.map(({ port }) => `127.0.0.1:${port}`),
      authenticator: nkeyAuthenticator(Buffer.from(readFileSync(this.#cluster.keyFile, 'latin1').trim())),
    })
    const manager = await jetstreamManager(connection, { checkAPI: false })
    const { last_seq: last } = (await manager.streams.info(this.#name)).state
    while (this.#read < last) {
      const message = await manager.streams.getMessage(this.#name, { seq: ++this.#read })
      this.#text += Buffer.from(message!.data).toString('utf8')
    }
    await connection.close()
    return this.#text
  }

  async has(text: string): Promise<boolean> {
    return (await this.now()).includes(text)
  }
}

/** Is it there without an answer after a while, in which it would have been given long ago? */
async function isUnanswered(answer: Promise<unknown>): Promise<boolean> {
  return Promise.race([answer.then(() => false), sleep(1_500).then(() => true)])
}

describe.skipIf(skipWithout(missing))(`a board whose writes wait for the stream${skipNote(missing)}`, () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await NatsCluster.start(boardDirectory())
  })
  afterAll(() => cluster.stop())

  const boardOf = async (serviceId: string, more: Readonly<Record<string, string>>) => {
    const env = { ...cluster.env, REPLICATE_ACK: 'quorum', SERVICE_ID: serviceId, ...more }
    const directory = boardDirectory()
    const start = () => startBoard({ directory, env })
    return { board: await start(), directory, start, stream: new StreamText(cluster, serviceId) }
  }

  test.each([
    { serviceId: 'one.board', more: { SHARDS: '1', PLACEMENT: 'back' } },
    { serviceId: 'two.board', more: { SHARDS: '2', PLACEMENT: 'threads' } },
  ])('what is answered or shown is in the stream, public or private ($serviceId)', async ({ serviceId, more }) => {
    const { board, stream } = await boardOf(serviceId, more)
    const client = await Client.of(board)
    expect(
      (await client.command(ada, { operation: 'room.create', room: 'cellar', visibility: 'private' })).status,
    ).toBe(200)
    expect((await client.post(ada, { room: 'open', text: 'the first of all' })).status).toBe(200)
    const tail = new StreamReader(board.address, '/tail/open?last=0')
    for (let n = 0; n < 10; n++) {
      const text = `the text of number ${n}.`
      const posted = await client.post(ada, { room: n % 2 === 0 ? 'open' : 'cellar', text })
      expect(posted.status, posted.text).toBe(200)
      expect(await stream.has(text)).toBe(true)
      if (n % 2 === 0) expect(await tail.until((shown) => shown.includes(text))).toContain(text)
    }
    tail.close()
    client.close()
    await board.stop()
  })

  test.each([
    { serviceId: 'away.one', more: { SHARDS: '1', PLACEMENT: 'back' } },
    { serviceId: 'away.two', more: { SHARDS: '2', PLACEMENT: 'threads' } },
  ])('without a majority nothing new is answered or shown, and later everything once ($serviceId)', async (given) => {
    const { board, stream } = await boardOf(given.serviceId, given.more)
    const client = await Client.of(board)
    const made = { operation: 'room.create', room: 'cellar', visibility: 'private' }
    expect((await client.command(ada, made)).status).toBe(200)
    const before = await client.post(ada, { room: 'open', text: 'before' })
    const tail = new StreamReader(board.address, '/tail/open?last=0')
    // The board's own turn after a first post: one that waits would keep the next from the disk.
    await sleep(500)
    await Promise.all(['n1', 'n2'].map((name) => cluster.kill(name)))
    const signed = client.sign(ada, { operation: 'post', room: 'open', text: 'while they are away' })
    const posted = client.send(signed.body)
    const inCellar = client.post(person('ada'), { room: 'cellar', text: 'below, while they are away' })
    expect(await isUnanswered(Promise.race([posted, inCellar]))).toBe(true)
    // It is on this disk, and nowhere else.
    const isHere = ['shard-00', ...(given.more.SHARDS === '2' ? ['shard-01'] : [])].some((shard) =>
      readFileSync(join(board.directory, shard, '00000000000000000001.log'), 'utf8').includes('while they are away'),
    )
    expect(isHere).toBe(true)
    expect((await client.get(`/api/events/${before.data.event_id}`)).status).toBe(200)
    expect((await client.get('/api/events?room=open&limit=50')).text).not.toContain('while they are away')
    expect((await client.get('/v1/export')).text).not.toContain(signed.eventId)
    expect(tail.text).not.toContain('while they are away')
    await Promise.all(['n1', 'n2'].map((name) => cluster.begin(name)))
    expect((await posted).status).toBe(200)
    expect((await inCellar).status).toBe(200)
    await tail.until((shown) => shown.includes('while they are away'))
    expect((await stream.now()).split('below, while they are away').length).toBe(2)
    const { events } = (await client.get('/api/events?room=open&limit=50')).data
    expect(events?.filter(({ text }) => text === 'while they are away').length).toBe(1)
    tail.close()
    client.close()
    await board.stop()
  })

  test('killed under load and started again, the stream has all that was answered, and nothing else is shown first', async () => {
    const { board, start, stream, directory } = await boardOf('killed.board', { SHARDS: '1' })
    let client = await Client.of(board)
    const key = await logKeyOf(client)
    const ledger = new Ledger(new Heads(key), key)
    const onAcknowledged = (count: number) => {
      if (count === 150) void board.kill()
    }
    const options = { client, ledger, random: randomFrom(5), posts: 2_000, inFlight: 16, rooms: ['a', 'b'] }
    await load({ ...options, onAcknowledged })
    client.close()
    expect(ledger.acknowledged.size).toBeGreaterThanOrEqual(150)
    const carried = await stream.now()
    for (const { event } of ledger.acknowledged.values()) expect(carried).toContain(event.text)
    // A start without a majority shows nothing: what is on disk may be there alone.
    await Promise.all(['n1', 'n2'].map((name) => cluster.kill(name)))
    let launched: Board | undefined
    const env = { ...cluster.env, REPLICATE_ACK: 'quorum', SERVICE_ID: 'killed.board', SHARDS: '1' }
    const starting = tryBoard({
      directory,
      env,
      onLaunch: (each) => {
        launched = each
      },
    })
    expect(await isUnanswered(starting)).toBe(true)
    await launched!.kill()
    await starting
    await Promise.all(['n1', 'n2'].map((name) => cluster.begin(name)))
    const again = await start()
    client = await Client.of(again)
    const all = await stream.now()
    for (const { event, signed } of ledger.acknowledged.values()) {
      const found = await client.get(`/api/events/${signed.eventId}`)
      expect(found.data.event?.text).toBe(event.text)
    }
    for (const room of ['a', 'b']) {
      const { events = [] } = (await client.get(`/api/events?room=${room}&limit=200`)).data
      for (const { text = '' } of events) expect(all).toContain(text)
    }
    client.close()
    await again.stop()
  })

  test('it ends with the sentence that says what to do where another board writes', async () => {
    const { board } = await boardOf('deposed.board', {})
    const connection = await connect({
      servers: cluster.servers.map(({ port }) => `127.0.0.1:${port}`),
      authenticator: nkeyAuthenticator(Buffer.from(readFileSync(cluster.keyFile, 'latin1').trim())),
    })
    const client = await Client.of(board)
    expect((await client.post(ada, { room: 'a', text: 'mine' })).status).toBe(200)
    await connection.request('broadside.deposed_board.frames', 'of another')
    await expect(client.post(ada, { room: 'a', text: 'nobody may hear of this' })).rejects.toThrow()
    expect((await board.ended).code).toBe(70)
    const fatal = board.lines.findLast((line) => line.includes('"fatal"'))
    expect(fatal).toContain('Another board writes to the stream')
    expect(fatal).toContain('stop the other, delete the stream')
    client.close()
    await connection.close()
  })
})
