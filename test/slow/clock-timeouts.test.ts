/** A clock jump has no effect on works before the operator has said that the new time is right. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, now, person } from '../support/client.ts'
import { acceptClock, fakeClock, missingFakeClock } from '../support/fake-clock.ts'
import { killableThreads } from '../support/killable-threads.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 300_000 })

const day = 86_400
const [op, ada, ben] = [person('op'), person('ada'), person('ben')]

describe.skipIf(skipWithout(missingFakeClock))(`on a machine whose clock jumps${skipNote(missingFakeClock)}`, () => {
  let stop = async (): Promise<void> => {}
  afterEach(() => stop())

  /** A board whose clock the test controls, and which can be restarted any number of times. */
  function jumpingBoard(more: Readonly<Record<string, string>>) {
    const directory = boardDirectory()
    const clockFile = join(boardDirectory(), 'offset')
    let ahead = 0
    let board: Board
    let client: Client
    const jumpTo = (seconds: number): void => {
      ahead = seconds
      writeFileSync(clockFile, `+${seconds}\n`)
    }
    const end = async () => {
      client.close()
      expect((await board.stop()).code).toBe(0)
    }
    const start = async (at: number) => {
      jumpTo(at)
      board = await startBoard({ directory, env: { OPERATORS: op.id, ...more, ...fakeClock(clockFile) } })
      client = await Client.of(board)
      stop = end
    }
    const command = async (who: typeof op, fields: Fields) => {
      const answer = await client.command(who, fields, { timestamp: now() + ahead })
      expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
      return answer.data as unknown as { readonly work: { readonly id: string } }
    }
    const work = async (id: string) => {
      const { status, data } = await client.get(`/api/work/${id}`)
      expect(status).toBe(200)
      return (data as unknown as { readonly work: { readonly state: string; readonly stored_state: string } }).work
    }
    return {
      directory,
      start,
      jumpTo,
      command,
      grant: (amount: number) => command(op, { operation: 'credit.grant', target: ada.id, amount }),
      /** A work that ben has claimed for this many seconds. */
      claimed: async (room: string, ttl: number) => {
        const data = JSON.stringify({ schema: 1, title: 'A thing to do' })
        const made = await command(ada, { operation: 'work.create', room, text: 'do this', amount: 10, data })
        const { id } = made.work
        await command(ben, { operation: 'work.claim', event_id: id, ttl, data: '{"schema":1}' })
        expect((await work(id)).state).toBe('claimed')
        return id
      },
      work,
      health: async () => (await client.get('/healthz')).text,
      metrics: async () => (await client.get('/metrics')).text,
      events: (name: string) => board.lines.filter((line) => line.includes(`"${name}"`)),
      signal: (name: 'SIGUSR2') => board.signal(name),
      restart: async (at: number) => {
        await end()
        await start(at)
      },
    }
  }

  test.each(['1', '2'])(
    'with %s shards: timeouts wait, the jump is reported, and broadside clock accept continues',
    async (shards) => {
      const board = jumpingBoard({ SHARDS: shards })
      await board.start(0)
      await board.grant(100)
      const id = await board.claimed('hall', 7_200)
      board.jumpTo(day)
      await vi.waitUntil(() => board.events('clock.jumped').length > 0, patience)
      expect(await board.health()).toMatch(
        /^ok\nclock: the clock has jumped 24 hours ahead, .*broadside clock accept\n$/,
      )
      expect(await board.metrics()).toContain('broadside_notice{name="clock"} 1\n')
      // A write of the market at the new time: no timeout takes effect with it.
      await board.grant(1)
      expect((await board.work(id)).state).toBe('claimed')
      await acceptClock(board.directory, day)
      await vi.waitUntil(async () => (await board.work(id)).state !== 'claimed', patience)
      await vi.waitUntil(async () => (await board.health()) === 'ok\n', patience)
      expect(board.events('clock.jump_over')).toHaveLength(1)
    },
  )

  test.each([
    ['threads', 2],
    ['back', 1],
  ])('placed as %s, a restarted thread keeps the timeouts waiting', async (placement, shards) => {
    const board = jumpingBoard({ SHARDS: `${shards}`, PLACEMENT: placement, ...killableThreads(shards) })
    await board.start(0)
    await board.grant(100)
    const id = await board.claimed('hall', 7_200)
    board.jumpTo(day)
    await vi.waitUntil(() => board.events('clock.jumped').length > 0, patience)
    // At the new time there is a record in every shard.
    for (const room of ['hall', 'yard', 'attic', 'loft'])
      await board.command(ada, { operation: 'post', room, text: 'x' })
    await board.grant(1)
    for (let death = 1; death <= shards; death++) {
      board.signal('SIGUSR2')
      await vi.waitUntil(() => board.events('thread.restarted').length === death, patience)
    }
    await vi.waitFor(() => board.grant(1), patience)
    // Long enough for a timeout to be recorded and shown.
    await setTimeout(5_000)
    expect(await board.work(id)).toMatchObject({ state: 'claimed', stored_state: 'claimed' })
    expect(await board.health()).toContain('\nclock: ')
    await acceptClock(board.directory, day)
    await vi.waitUntil(async () => (await board.work(id)).stored_state !== 'claimed', patience)
    expect(await board.health()).toBe('ok\n')
  })

  test('a shard that was quiet for a month, while another was not, lets works time out after a restart', async () => {
    const board = jumpingBoard({ SHARDS: '2' })
    const room = ['hall', 'yard', 'attic', 'loft'].find((name) => shardOf(name, 2) !== shardOf(marketName, 2))!
    await board.start(0)
    await board.grant(100)
    await board.command(ada, { operation: 'post', room, text: 'on day 0' })
    for (const at of [20, 32]) {
      await board.restart(at * day)
      await board.command(ada, { operation: 'post', room, text: `on day ${at}` })
    }
    expect(await board.health()).toBe('ok\n')
    const id = await board.claimed(room, 900)
    board.jumpTo(32 * day + 3_000)
    await vi.waitUntil(async () => (await board.work(id)).stored_state === 'open', patience)
    expect((await board.work(id)).state).toBe('open')
    expect(await board.health()).toBe('ok\n')
  })

  test('a board with only private posts has not jumped a month after its last public one', async () => {
    const board = jumpingBoard({ SHARDS: '2' })
    await board.start(0)
    await board.command(ada, { operation: 'room.create', room: 'den', visibility: 'private' })
    for (const at of [20, 32]) {
      await board.restart(at * day)
      expect([at, await board.health()]).toEqual([at, 'ok\n'])
      await board.command(ada, { operation: 'post', room: 'den', text: `on day ${at}` })
    }
    await board.restart(63 * day)
    expect(await board.health()).toMatch(/^ok\nclock: the clock has jumped 31 days ahead, /)
  })

  test('a clock accepted by the operator on a stopped board has not jumped for the one that starts', async () => {
    const board = jumpingBoard({ SHARDS: '1' })
    await board.start(0)
    await board.command(ada, { operation: 'post', room: 'hall', text: 'x' })
    await stop()
    await acceptClock(board.directory, 40 * day - 60)
    await board.start(40 * day)
    expect(await board.health()).toBe('ok\n')
  })
})
