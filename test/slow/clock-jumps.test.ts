import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Operation } from '../../actors/kernel/operation.ts'
import { operations } from '../../actors/operations.ts'
import { pages } from '../../src/board/pages.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, now, person, type SignedCommand } from '../support/client.ts'
import { fakeClock, missingFakeClock } from '../support/fake-clock.ts'
import { Ledger } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

/** Addresses of an operation's GET that may find a text: with only what it needs, and with each further parameter. */
function doorsOf({ get, required }: Operation, values: Readonly<Record<string, string>>): string[] {
  const field = /\{(\w+)\}/.exec(get!.path)?.[1]
  const path = field === undefined ? get!.path : get!.path.replace(`{${field}}`, values[field] ?? 'none')
  const known = get!.query.filter((each) => values[each.field] !== undefined)
  const least = known.filter((each) => required.some((name) => name === each.field))
  return [[], ...known.filter((each) => !least.includes(each)).map((each) => [each])].map((more) => {
    const query = new URLSearchParams(
      [...least, ...more].map(({ name, field }): [string, string] => [name, values[field]!]),
    )
    return query.size === 0 ? path : `${path}?${query}`
  })
}

const hour = 3_600
const day = 24 * hour

describe.skipIf(skipWithout(missingFakeClock))(`on a machine whose clock jumps${skipNote(missingFakeClock)}`, () => {
  const directory = boardDirectory()
  const clockFile = join(boardDirectory(), 'offset')
  const ada = person('ada')
  let board: Board
  let client: Client
  let ledger: Ledger
  /** Seconds by which the board's clock is ahead of ours. */
  let offset = 0
  const first: { readonly signed: SignedCommand; readonly answer: Answer }[] = []

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
      ledger.record(signed, answer)
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
  /** Events are ordered by number, and no timestamp is before that of the previous post in its room. */
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
    '%s while it runs: order and stamps hold, retries are recognized, and the time window moves along',
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
      // Commands signed for the previous time are stale; a used nonce stays used for other content.
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
    'restarted after %s at another time it continues where it was',
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

  test('at its second an expired text is gone from every cached GET answer, with no write since', async () => {
    const marked = await client.send('{"operation":"changes.list","data":"{\\"schema\\":1,\\"after\\":-1}"}')
    const { cursor } = (await client.get('/api/updates')).data as { cursor: string }
    const post = async (fields: Readonly<Record<string, string | number>>) =>
      (await client.post(ada, fields, { timestamp: now() + offset })).data.event_id!
    const id = await post({ room: 'quiet', text: 'for a minute: plugh, xyzzy', ttl: 60 })
    const edit = await post({ text: 'better said: plugh, xyzzy', data: JSON.stringify({ schema: 1, supersedes: id }) })
    const values = {
      room: 'quiet',
      page: 'main',
      kind: 'note',
      target: ada.id,
      query: 'xyzzy',
      'data.order': 'asc',
    }
    const { after } = marked.data as { after?: number }
    const doors = operations
      .filter(({ get }) => get !== undefined && get.path !== '/api/updates')
      .flatMap((operation) =>
        [id, edit].flatMap((event_id) =>
          doorsOf(operation, { ...values, event_id }).map((path) => ({ name: operation.name, path })),
        ),
      )
      .concat({ name: 'changes.list', path: `/api/changes?after=${after}` })
    const shownPages = pages.map(({ path }) => ({
      name: path,
      path: path
        .replace('{event_id}', id)
        .replace('{room}', 'quiet')
        .replace('{identity}', ada.id)
        .replace(/^\/search$/, '/search?query=xyzzy'),
    }))
    const more = [`/api/updates?cursor=${cursor}`, '/v1/export'].map((path) => ({ name: path, path }))
    const showing = async () => {
      const found = new Map<string, string>()
      for (const { name, path } of [...doors, ...shownPages, ...more]) {
        const { text, headers } = await client.get(path)
        if (text.includes('plugh')) found.set(`${name} ${path}`, headers.etag ?? '')
      }
      return found
    }
    const before = await showing()
    const names = new Set([...before.keys()].map((key) => key.split(' ')[0]))
    for (const name of ['event.get', 'event.history', 'events.list', 'thread.get', 'log.proof'])
      expect(names).toContain(name)
    for (const name of ['changes.list', '/room/{room}', '/e/{event_id}', '/e/{event_id}/proof', '/search'])
      expect(names).toContain(name)
    expect(await showing()).toEqual(before)
    const { event } = (await client.get(`/api/events/${id}`)).data
    jumpTo((event as unknown as { expires_at: number }).expires_at - now() + 1)
    const isGone = async () =>
      (await client.send(JSON.stringify({ operation: 'event.get', event_id: id }))).data.event?.text === undefined
    await vi.waitUntil(isGone, patience)
    expect(await showing()).toEqual(new Map())
    for (const [key, etag] of before) {
      const again = await client.get(key.split(' ')[1]!, { 'if-none-match': etag })
      expect([key, again.status]).toEqual([key, 200])
    }
  })

  test('an expired text does not come back when the clock goes back', async () => {
    const { data } = await client.post(
      ada,
      { room: 'brief', text: 'gone in an hour', ttl: hour },
      { timestamp: now() + offset },
    )
    // By a command: GET answers are cached.
    const textNow = async () =>
      (await client.send(JSON.stringify({ operation: 'event.get', event_id: data.event_id }))).data.event?.text
    expect(await textNow()).toBe('gone in an hour')
    // The timestamp of the post may be ahead of the clock because of the jumps before.
    jumpTo(offset + 60 * day)
    await vi.waitUntil(async () => (await textNow()) === undefined, patience)
    jumpTo(offset - 60 * day)
    expect(await textNow()).toBeUndefined()
  })
})
