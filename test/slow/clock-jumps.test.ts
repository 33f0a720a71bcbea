import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, now, person, type Signed } from '../support/client.ts'
import { fakeClock, missingFakeClock } from '../support/fake-clock.ts'
import { Heads, logKeyOf } from '../support/judge.ts'
import { Ledger } from '../support/load.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const hour = 3_600
const day = 24 * hour

describe.skipIf(skipWithout(missingFakeClock))(`on a machine whose clock jumps${skipNote(missingFakeClock)}`, () => {
  const directory = boardDirectory()
  const clockFile = join(boardDirectory(), 'offset')
  const ada = person('ada')
  let board: Board
  let client: Client
  let ledger: Ledger
  /** Seconds that the board's clock is ahead of ours. */
  let offset = 0
  const first: { readonly signed: Signed; readonly answer: Answer }[] = []

  const jumpTo = (seconds: number): void => {
    offset = seconds
    writeFileSync(clockFile, `${seconds < 0 ? '' : '+'}${seconds}\n`)
  }
  const start = async (): Promise<void> => {
    const env = {
      SHARDS: '2',
      ...fakeClock(clockFile),
    }
    board = await startBoard({ directory, env })
    client = await Client.of(board)
  }
  /** Posts to a room of either shard at the board's own time. */
  const postBoth = async (text: string): Promise<Answer[]> => {
    const answers: Answer[] = []
    for (const room of ['a', 'b']) {
      const fields = { operation: 'post', room, text, request_id: `${text} ${room}` }
      const signed = client.sign(ada, fields, { timestamp: now() + offset })
      const answer = await client.send(signed.body)
      expect(answer.status, answer.text).toBe(200)
      ledger.take(signed, answer)
      first.push({ signed, answer })
      answers.push(answer)
    }
    return answers
  }
  /** Every post so far, sent again as it was: no second effect, the same outcome, however old its timestamp looks. */
  const expectKnown = async (): Promise<void> => {
    for (const { signed, answer } of first) {
      const again = await client.send(signed.body)
      expect(again.data.receipt).toMatchObject({ duplicate: true, accepted_at: answer.data.receipt!.accepted_at })
      expect(again.data.event).toEqual(answer.data.event)
    }
  }
  /** Order is that of the numbers, and no stamp lies before the one of the post before it in its room. */
  const expectOrder = async (): Promise<void> => {
    const events = await ledger.check(client, 100)
    expect(events).toHaveLength(first.length)
    for (const room of ['a', 'b']) {
      const listed = (await client.get(`/api/events?room=${room}&order=asc&limit=200`)).data.events!
      expect(listed.map(({ seq }) => seq)).toEqual(listed.map((_, index) => index + 1))
      const stamps = listed.map(({ created_at }) => created_at)
      expect(stamps).toEqual([...stamps].sort((a, b) => a - b))
    }
  }

  beforeAll(async () => {
    jumpTo(0)
    await start()
    const key = await logKeyOf(client)
    ledger = new Ledger(new Heads(key), key)
    await postBoth('before')
  })
  afterAll(() => client.close())

  test.each([
    ['an hour back', -hour],
    ['a day ahead', day],
    ['two days back', -day],
  ])(
    '%s while it runs: order and stamps hold, retries are known, the window is that of the new time',
    async (_jump, to) => {
      const before = now() + offset
      jumpTo(to)
      const jumped = now() + to
      const [answer] = await postBoth(`after ${to}`)
      const [earlier] = first
      expect(answer!.data.event!.created_at).toBeGreaterThanOrEqual(earlier!.answer.data.event!.created_at)
      expect(answer!.data.event!.created_at).toBeGreaterThanOrEqual(jumped - 2)
      await expectKnown()
      await expectOrder()
      // What was signed for the time before is stale; a used nonce stays used for other content.
      const late = await client.post(ada, { room: 'a', text: 'late' }, { timestamp: before })
      expect(late).toMatchObject({ status: 400, code: 'stale_timestamp' })
      const { nonce } = JSON.parse(first.at(-1)!.signed.body) as { nonce: string }
      const other = { room: 'b', text: 'other' }
      expect(await client.post(ada, other, { timestamp: now() + offset, nonce })).toMatchObject({
        code: 'nonce_reused',
      })
    },
  )

  test.each(['SIGTERM', 'SIGKILL'] as const)(
    'restarted after %s at another time it goes on where it was',
    async (signal) => {
      const sizes = ledger.heads.largest
      board.signal(signal)
      await board.ended
      client.close()
      jumpTo(offset - 7 * day)
      await start()
      await expectKnown()
      await postBoth(`restarted by ${signal}`)
      await expectKnown()
      await expectOrder()
      expect(ledger.heads.largest).toBe(sizes + 2)
    },
  )

  test('a text that has expired does not come back when the clock does', async () => {
    const { data } = await client.post(
      ada,
      { room: 'brief', text: 'gone in an hour', ttl: hour },
      { timestamp: now() + offset },
    )
    // Asked by a command: the answers to a GET are kept.
    const textNow = async () =>
      (await client.send(JSON.stringify({ operation: 'event.get', event_id: data.event_id }))).data.event?.text
    expect(await textNow()).toBe('gone in an hour')
    // The stamp of the post may be ahead of the clock by the jumps before.
    jumpTo(offset + 60 * day)
    await vi.waitUntil(async () => (await textNow()) === undefined, patience)
    jumpTo(offset - 60 * day)
    expect(await textNow()).toBeUndefined()
  })
})
