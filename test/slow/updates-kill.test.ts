/** Followers by updates.get through two kills of the board while others post: nothing is lost, duplicated or leaked. */
import { expect, test, vi } from 'vitest'
import type { Signer } from '../../src/cli/sign.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type EventJson, person } from '../support/client.ts'
import { randomPart } from '../support/random-part.ts'
import { fetchUpdates } from '../support/updates.ts'

vi.setConfig({ testTimeout: 900_000 })

const [owner, member, stranger] = [person('owner'), person('member'), person('stranger')]
const rooms = ['open-a', 'open-b', 'inner']

test.each(randomPart(['uws', 'node']))('kill -9 twice under pollers on the %s engine', async (engine) => {
  const directory = boardDirectory()
  const env = { HTTP_ENGINE: engine, SHARDS: '2' }
  let board = await startBoard({ directory, env })
  const { port } = board
  const client = await Client.of(board)
  /** Resolves when the board is back. */
  let back: Promise<unknown> = Promise.resolve()
  const made = await client.command(owner, {
    operation: 'room.create',
    room: 'inner',
    visibility: 'private',
    members: [member.id],
  })
  expect(made.status).toBe(200)

  const acknowledged = new Map<string, string>()
  let posting = true
  let deaths = 0
  const write = async (writer: number): Promise<void> => {
    for (let n = 0; posting; n++) {
      const room = rooms[(writer + n) % rooms.length]!
      try {
        const answer = await client.post(n % 2 === 0 ? owner : member, { room, text: `${writer} ${n}` })
        if (answer.status === 200) acknowledged.set(answer.data.event_id!, room)
      } catch {
        await back
      }
    }
  }

  /** Polls until it has got the last post of every room that it may read. */
  const last = new Map<string, string>()
  const follow = async (limit: number, signer?: Signer): Promise<EventJson[]> => {
    const heard: EventJson[] = []
    const asked = { kinds: ['event.posted'], wait: 2, limit }
    const own = signer === stranger || signer === undefined ? rooms.slice(0, 2) : rooms
    let { cursor } = await fetchUpdates(client, {}, signer)
    started()
    const isDone = () =>
      last.size === rooms.length && own.every((room) => heard.some(({ event_id }) => event_id === last.get(room)))
    while (!isDone()) {
      try {
        const page = await fetchUpdates(client, { ...asked, cursor }, signer)
        heard.push(...page.updates.map(({ event }) => event!))
        cursor = page.cursor
      } catch (error) {
        if (String(error).includes('updates.get')) throw error
        await back
      }
    }
    return heard
  }
  let waiting = 5
  let started = (): void => {}
  const allStarted = new Promise<void>((resolve) => {
    started = () => --waiting === 0 && resolve()
  })
  const followers = [follow(200), follow(3), follow(200, member), follow(2, owner), follow(7, stranger)]
  await allStarted

  const writers = [0, 1, 2, 3].map(write)
  while (deaths < 2) {
    const enough = acknowledged.size + 150
    while (acknowledged.size < enough) await new Promise((resolve) => setTimeout(resolve, 5))
    let isBack = (): void => {}
    back = new Promise<void>((resolve) => {
      isBack = resolve
    })
    await board.kill()
    board = await startBoard({ directory, env, port })
    deaths++
    isBack()
  }
  const enough = acknowledged.size + 50
  while (acknowledged.size < enough) await new Promise((resolve) => setTimeout(resolve, 5))
  posting = false
  await Promise.all(writers)
  for (const room of rooms) last.set(room, (await client.post(owner, { room, text: 'the last' })).data.event_id!)

  const found = await Promise.all(followers)
  found.forEach((heard, follower) => {
    const own = follower === 2 || follower === 3 ? rooms : rooms.slice(0, 2)
    for (const room of rooms) {
      const seqs = heard.filter((event) => event.room === room).map(({ seq }) => seq)
      // Numbers in a room have no gaps, so this is every post that the room ever accepted, once and in order.
      const expected = own.includes(room) ? seqs.map((_, n) => n + 1) : []
      expect({ follower, room, seqs }).toEqual({ follower, room, seqs: expected })
    }
    const ids = new Set(heard.map(({ event_id }) => event_id))
    const missing = [...acknowledged].filter(([id, room]) => own.includes(room) && !ids.has(id))
    expect({ follower, missing }).toEqual({ follower, missing: [] })
  })
  client.close()
})
