/**
 * A shard's thread dies in the middle of works and posts, while the board around it lives on: a retry of what had no answer is done once,
 * the courier delivers everything once and in order, and nobody waits forever.
 */
import { setTimeout } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person } from '../support/client.ts'
import { killableThreads } from '../support/killable-threads.ts'
import { logKeyOf, proveEvent } from '../support/log-checks.ts'
import { patience } from '../support/patience.ts'
import { StreamReader } from '../support/stream-reader.ts'

vi.setConfig({ testTimeout: 900_000 })

test.each([
  ['clerks', 2],
  ['back', 1],
])(
  'placed as %s, a shard that dies and restarts loses nothing, does nothing twice, and blocks nobody',
  async (placement, shards) => {
    const board: Board = await startBoard({
      directory: boardDirectory(),
      env: {
        SHARDS: String(shards),
        PLACEMENT: placement,
        ...killableThreads(shards),
      },
    })
    const client = await Client.of(board)
    const died = () => board.lines.filter((line) => line.includes('"thread.died"')).length
    let isOver = false
    let answers = 0
    /** Sends the same bytes until they are answered. */
    const insist = async (who: Signer, fields: Fields): Promise<string> => {
      const { body, eventId } = client.sign(who, fields)
      for (;;) {
        // If the outcome is unknown the connection ends without an answer.
        const answer = await client.send(body).catch(() => undefined)
        if (answer?.status === 200) {
          answers++
          return eventId
        }
        if (answer !== undefined && answer.status !== 429) throw new Error(`${fields.operation}: ${answer.text}`)
        await setTimeout(20)
      }
    }
    const named = person('named')
    await insist(named, { operation: 'identity.register', handle: 'named-once' })
    const dens = Array.from({ length: 4 }, (_, n) => `den-${n}`)
    expect(new Set(dens.map((room) => shardOf(room, shards))).size).toBe(shards)
    for (const room of dens) {
      await insist(named, { operation: 'room.create', room, visibility: 'private' })
      await insist(named, { operation: 'post', room, text: 'inside' })
    }
    const posted: string[] = []
    const works: string[] = []
    const write = async (n: number): Promise<void> => {
      for (let at = 0; !isOver; at++) {
        const fields = { operation: 'post', room: `room-${(n + at) % 4}`, text: `${n} ${at}` }
        posted.push(await insist(person(`writer ${n}`), fields))
      }
    }
    const work = async (n: number): Promise<void> => {
      const [ada, bob] = [person(`requester ${n}`), person(`worker ${n}`)]
      for (let at = 0; !isOver; at++) {
        const room = `room-${(n + at) % 4}`
        const data = '{"schema":1,"title":"Practice","simulated":true}'
        const id = await insist(ada, { operation: 'work.create', room, text: `ask ${n} ${at}`, amount: 10, data })
        await insist(bob, { operation: 'work.claim', event_id: id, ttl: 7_200 })
        const reply = await insist(bob, { operation: 'post', room, text: `result ${n} ${at}`, reply_to: id })
        await insist(bob, { operation: 'work.submit', event_id: id, amount: 1, target: reply })
        await insist(ada, { operation: 'work.accept', event_id: id })
        works.push(id)
      }
    }
    /** If the board cuts it off before its past has arrived, it is opened again. */
    const follow = async (tail: string): Promise<StreamReader> => {
      for (;;) {
        const reader = new StreamReader(board.address, tail)
        if ((await reader.until((text) => text.includes('inside'))).includes('inside')) return reader
      }
    }
    const busy = [...Array.from({ length: 6 }, (_, n) => write(n)), ...Array.from({ length: 4 }, (_, n) => work(n))]
    for (let death = 1; death <= 2 * shards; death++) {
      const before = answers
      await vi.waitFor(() => expect(answers).toBeGreaterThan(before + 100), patience)
      const den = dens.find((room) => shardOf(room, shards) === (death - 1) % shards)!
      const { data } = await client.command(named, { operation: 'room.read_token', room: den })
      const { tail } = data as unknown as { tail: string }
      const cut = await follow(tail)
      board.signal('SIGUSR2')
      await vi.waitFor(() => expect(died()).toBe(death), patience)
      // A returning follower gets new posts, though the thread is only starting, and earlier followers leave later.
      const back = await follow(tail)
      expect(await cut.until(() => false)).toContain('an internal error closed this stream')
      await insist(named, { operation: 'post', room: den, text: `said after death ${death}` })
      await vi.waitFor(() => expect(back.text).toContain(`said after death ${death}`), patience)
      back.close()
    }
    const before = answers
    await vi.waitFor(() => expect(answers).toBeGreaterThan(before + 100), patience)
    isOver = true
    await Promise.all(busy)
    for (const room of dens) {
      const { data } = await client.command(named, { operation: 'events.list', room })
      expect([room, ...new Set(data.events!.map(({ author }) => author.handle))]).toEqual([room, 'named-once'])
    }
    expect(works.length).toBeGreaterThan(0)
    const noticesOf = async (id: string) => {
      const { data } = await client.get(`/api/thread/${id}?limit=200`)
      const notices = data.events!.filter(({ kind }) => kind === 'notice').map(({ text }) => text!.split(/[:.,]/)[0])
      return [id, notices.map((words) => words!.split(' ')[0])]
    }
    // The last of them are in flight when the last command has been answered.
    for (const id of works) await expect.poll(() => noticesOf(id)).toEqual([id, ['Open', 'Claimed', 'A', 'Accepted']])
    const key = await logKeyOf(client)
    for (const id of posted.slice(-20)) await proveEvent(client, key, id)
    client.close()
  },
)

test('a thread that dies on a quiet board takes no reader with it: answered posts can be read at once', async () => {
  const board = await startBoard({
    directory: boardDirectory(),
    env: {
      SHARDS: '1',
      PLACEMENT: 'back',
      ...killableThreads(1),
    },
  })
  const client = await Client.of(board)
  for (let death = 1; death <= 3; death++) {
    // A thread that has just started refuses for a moment: the board is still loading its delegations.
    const { body, eventId } = client.sign(person('ada'), { operation: 'post', text: `before ${death}` })
    await vi.waitFor(async () => expect((await client.send(body)).status).toBe(200), patience)
    board.signal('SIGUSR2')
    await vi.waitFor(
      () => expect(board.lines.filter((line) => line.includes('"thread.died"'))).toHaveLength(death),
      patience,
    )
    const read = await client.get('/api/events?room=lobby&limit=1')
    expect([read.status, read.data.events?.[0]?.event_id]).toEqual([200, eventId])
  }
  client.close()
  expect((await board.stop()).code).toBe(0)
})
