import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { type AcknowledgedPost, chooseSeed, Ledger, load, randomFrom } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { WorkClient } from '../support/work-client.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const [ada, bob] = [person('ada'), person('bob')]
const rooms = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']

describe('a board of three shards', () => {
  let board: Board
  let client: Client
  let ledger: Ledger
  const directory = boardDirectory()
  /** Recent first-time authors of public posts. */
  const authors: ReturnType<typeof person>[] = []
  const start = async () => {
    board = await startBoard({ directory, env: { SHARDS: '3' } })
    client = await Client.of(board)
  }

  beforeAll(async () => {
    await start()
    const key = await logKeyOf(client)
    ledger = new Ledger(new Heads(key), key)
  })
  afterAll(() => client.close())

  test('accepts posts of many rooms at once into one log, each where it belongs', async () => {
    const random = randomFrom(chooseSeed('three shards'))
    await load({ client, ledger, random, posts: 300, inFlight: 16, rooms })
    expect(ledger.acknowledged.size).toBe(300)
    await ledger.check(client, 60)
  })

  test('finds an event by its id whatever its shard, and recognizes a retry there', async () => {
    for (const { signed, event } of [...ledger.acknowledged.values()].slice(0, 40)) {
      expect((await client.get(`/api/thread/${signed.eventId}`)).data.root_id).toBe(event.thread)
      expect((await client.send(signed.body)).data.receipt).toMatchObject({ duplicate: true })
    }
    const [{ event }] = [...ledger.acknowledged.values()] as [AcknowledgedPost]
    for (const room of rooms.filter((each) => each !== event.room)) {
      const answer = await client.post(ada, { room, text: 'wrong room', reply_to: event.event_id })
      expect(answer).toMatchObject({ status: 400, code: 'not_found' })
    }
  })

  test('stores a handle of any room’s author, and shows one name for one identity', async () => {
    for (const [n, room] of rooms.entries()) {
      const author = person(`h${n}`)
      authors.push(author)
      const { data } = await client.post(author, {
        room: `${room}-names`,
        text: 'x',
        handle: `name-${n >> 1}`,
      })
      if (n % 2 === 0) expect(data.event?.author.handle).toBe(`name-${n >> 1}`)
      else expect(data.handle_not_applied).toBe('taken')
    }
  })

  test('hides private rooms of every shard from outsiders and shows them to members', async () => {
    const inside: { room: string; id: string }[] = []
    for (const room of rooms) {
      const name = `${room}-private`
      await client.command(ada, { operation: 'room.create', room: name, visibility: 'private' })
      inside.push({ room: name, id: (await client.post(ada, { room: name, text: 'secret' })).data.event_id! })
    }
    for (const { room, id } of inside) {
      expect(await client.get(`/api/thread/${id}`)).toMatchObject({ status: 403, code: 'private_room' })
      expect(await client.command(bob, { operation: 'events.list', room })).toMatchObject({ status: 403 })
      expect((await client.command(ada, { operation: 'event.get', event_id: id })).data.event?.text).toBe('secret')
      expect((await client.command(ada, { operation: 'events.list', room })).data.events).toHaveLength(1)
      expect(await client.get(`/api/log/proof?message=${id}`)).toMatchObject({ status: 400, code: 'not_found' })
    }
  })

  /** The names of their members that the private rooms show, by room. */
  const named = () =>
    Promise.all(
      rooms.map(async (room) => {
        const read = async (operation: string) =>
          (await client.command(bob, { operation, room: `${room}-named` })).data as {
            readonly events?: readonly { readonly author: { readonly handle?: string } }[]
            readonly members?: readonly { readonly handle?: string }[]
            readonly room?: { readonly owner_handle?: string }
            readonly entries?: readonly { readonly actor: { readonly handle?: string } }[]
          }
        const { events } = await read('events.list')
        const { members } = await read('room.members')
        const { entries } = await read('room.modlog')
        return {
          authors: events!.map(({ author }) => author.handle),
          members: members!.map(({ handle }) => handle),
          owner: (await read('room.get')).room!.owner_handle,
          actors: entries!.map(({ actor }) => actor.handle),
        }
      }),
    )
  const asClaimed = { authors: ['ada-in'], members: ['ada-in', 'bob-in'], owner: 'ada-in', actors: ['ada-in'] }

  test('shows handles in private rooms of every shard from the moment they are claimed', async () => {
    for (const room of rooms.map((each) => `${each}-named`)) {
      await client.command(ada, { operation: 'room.create', room, visibility: 'private', members: [bob.id] })
      await client.post(ada, { room, text: 'shown' })
      const { event_id } = (await client.post(bob, { room, text: 'hidden' })).data
      await client.command(ada, { operation: 'room.hide', event_id: event_id!, reason: 'x' })
    }
    await client.command(ada, { operation: 'identity.register', handle: 'ada-in' })
    await client.post(bob, { room: 'a', text: 'with a name', handle: 'bob-in' })
    expect(await named()).toEqual(rooms.map(() => asClaimed))
  })

  test.each(['SIGTERM', 'SIGKILL'] as const)(
    'is the same after %s, and refuses another number of shards or keeps its own',
    async (signal) => {
      // Grants to first-time authors are entries too, and may be in flight.
      const works = new WorkClient(client)
      for (const who of authors)
        await expect.poll(async () => (await works.balance(who)).available).toBeGreaterThanOrEqual(100)
      const before = (await client.get('/v1/export')).text
      board.signal(signal)
      await board.ended
      client.close()
      await start()
      expect((await client.get('/v1/export')).text).toBe(before)
      expect(await named()).toEqual(rooms.map(() => asClaimed))
      board.signal(signal)
      await board.ended
      client.close()
      const other = await startBoard({ directory, env: { SHARDS: '2' } }).catch(() => undefined)
      if (other === undefined) await expectStartRefused({ directory, env: { SHARDS: '2' } })
      else {
        const reader = await Client.of(other)
        expect((await reader.get('/v1/export')).text).toBe(before)
        reader.close()
        await other.stop()
      }
      await start()
    },
  )
})
