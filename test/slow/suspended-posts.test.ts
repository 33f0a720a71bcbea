/** `identity.suspend` with `hide_posts`: every post of an identity is hidden wherever posts are shown, and later restored exactly. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { program } from '../support/program.ts'
import { runProgram } from '../support/run-program.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [operator, mallory, eve, bob, owner] = ['operator', 'mallory', 'eve', 'bob', 'owner'].map(person) as [
  Person,
  Person,
  Person,
  Person,
  Person,
]
type Person = ReturnType<typeof person>
const directory = boardDirectory()
const env = { SHARDS: '2', OPERATORS: operator.id }
let board: Board
let client: Client

const hidePosts = JSON.stringify({ schema: 1, hide_posts: true })
const suspend = (target: Person, data: { data?: string } = { data: hidePosts }) =>
  client.command(operator, { operation: 'identity.suspend', target: target.id, reason: 'floods rooms', ...data })
const unsuspend = (target: Person) => client.command(operator, { operation: 'identity.unsuspend', target: target.id })
const post = async (who: Person, fields: Record<string, string>) => {
  const answer = await client.post(who, fields)
  expect(answer.text).toContain('event_id')
  return answer.data.event_id!
}
const isHidden = async (id: string) => (await client.get(`/api/events/${id}`)).data.event!.hidden
const isHiddenIn = async (reader: Person, id: string) =>
  (await client.command(reader, { operation: 'event.get', event_id: id })).data.event!.hidden

async function until(what: () => Promise<boolean>): Promise<void> {
  while (!(await what())) await sleep(20)
}

beforeAll(async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
})
afterAll(() => client.close())

/** Everything that shows or counts a post. */
const shownAt = (room: string, id: string, root: string, author: Person) => [
  `/api/events/${id}`,
  `/api/events?room=${room}`,
  `/api/events?query=needle&room=${room}`,
  `/search?q=needle&room=${room}`,
  `/api/threads?room=${room}`,
  `/api/threads?author=${author.id}`,
  `/api/thread/${root}`,
  `/api/room?room=${room}`,
  `/api/pages?room=${room}`,
  `/api/identities/${author.id}`,
  `/room/${room}`,
  `/room/${room}?view=posts`,
  `/room/${room}.atom`,
  `/room/${room}.json`,
  `/e/${id}`,
  `/e/${root}`,
  `/e/${root}.atom`,
  `/e/${id}/history`,
  `/e/${id}/line`,
  `/i/${author.id}`,
  `/i/${author.id}.atom`,
  `/tail/${room}?n=50`,
  `/oembed?url=${encodeURIComponent(`${board.address}/e/${id}`)}`,
  `/v1/export?room=${room}`,
]

test('posts hidden by a suspension look everywhere as if room.hide had hidden them', async () => {
  const texts: string[][] = []
  for (const [who, room] of [
    [mallory, 'one'],
    [eve, 'two'],
  ] as const) {
    const root = await post(bob, { room, text: 'plain root' })
    const id = await post(who, { room, text: 'needle reply', reply_to: root })
    const thread = await post(who, { room, text: 'needle thread' })
    await post(bob, { room, text: 'plain reply', reply_to: thread })
    await client.post(who, { text: 'needle edited', data: JSON.stringify({ schema: 1, supersedes: id }) })
    if (who === mallory) {
      const { data } = await suspend(mallory)
      expect(data).toMatchObject({ suspension: { suspended: true, hide_posts: true } })
    } else {
      expect((await suspend(eve, {})).data).toMatchObject({ suspension: { suspended: true } })
      const hide = { operation: 'room.hide', reason: 'its author is suspended' }
      for (const event_id of [id, thread])
        expect((await client.command(operator, { ...hide, event_id })).status).toBe(200)
    }
    await until(async () => (await isHidden(id)) && (await isHidden(thread)))
    // Search and tails follow within moments.
    await until(async () => !(await client.get(`/api/events?query=needle&room=${room}`)).text.includes('needle reply'))
    const answers = await Promise.all(shownAt(room, id, root, who).map((path) => client.get(path)))
    const shape = (text: string) =>
      text
        .replaceAll(/<!--.*?-->/gs, '')
        .replaceAll(id, 'ID')
        .replaceAll(root, 'ROOT')
        .replaceAll(thread, 'THREAD')
    texts.push(
      answers.map(({ status, text }, n) => {
        const path = shownAt(room, 'ID', 'ROOT', who)[n]!.replaceAll(who.id, 'WHO').replaceAll(room, 'ROOM')
        expect(text, path).not.toMatch(/needle (reply|thread|edited)/)
        expect(text, path).not.toContain('no_such_path')
        const counted = shape(text).match(
          /"(hidden|count|threads|replies|reason|participants|has_more)":("[^"]*"|\w+)/g,
        )
        return `${path} ${status} ${(counted ?? []).join(' ')}`
      }),
    )
  }
  expect(texts[0]).toEqual(texts[1])
})

test('it reaches private rooms and rooms of every shard, and its end restores exactly what it hid', async () => {
  const [carl, rooms] = [person('carl'), ['blue', 'red', 'green', 'gray']]
  const secret = { operation: 'room.create', room: 'den', visibility: 'private', members: [carl.id] }
  expect((await client.command(owner, secret)).status).toBe(200)
  const shown: string[] = []
  for (const room of rooms) shown.push(await post(carl, { room, text: `from ${room}` }))
  const inside = await post(carl, { room: 'den', text: 'inside' })
  const [before, meanwhile, taken] = [
    await post(carl, { room: 'blue', text: 'hidden before' }),
    await post(carl, { room: 'blue', text: 'hidden meanwhile' }),
    await post(carl, { room: 'blue', text: 'taken back' }),
  ]
  const hide = (event_id: string) => client.command(operator, { operation: 'room.hide', event_id, reason: 'advert' })
  expect((await hide(before)).status).toBe(200)
  expect((await client.command(carl, { operation: 'event.redact', event_id: taken, reason: 'mine' })).status).toBe(200)

  expect((await suspend(carl, {})).status).toBe(200)
  expect(await isHidden(shown[0]!)).toBe(false)
  // A suspension that hides nothing may become one that does.
  expect((await suspend(carl)).status).toBe(200)
  expect((await suspend(carl)).code).toBe('wrong_state')
  await until(async () => (await Promise.all(shown.map(isHidden))).every(Boolean))
  await until(() => isHiddenIn(owner, inside))
  expect((await client.get(`/api/identities/${carl.id}`)).text).toContain('"hide_posts":true')
  const restore = await client.command(operator, { operation: 'room.restore', event_id: shown[0]!, reason: 'no' })
  expect(restore.text).toContain('identity.unsuspend shows it again')
  expect((await hide(meanwhile)).status).toBe(200)

  expect((await unsuspend(carl)).status).toBe(200)
  await until(async () => !(await Promise.all(shown.map(isHidden))).some(Boolean))
  await until(async () => !(await isHiddenIn(owner, inside)))
  expect([await isHidden(before), await isHidden(meanwhile)]).toEqual([true, true])
  expect((await client.get(`/api/events/${taken}`)).text).toContain('tombstone')
  expect((await client.get(`/api/events/${before}`)).data.event!.reason).toBe('advert')
})

test('a kill in the middle loses nothing: the next start completes a suspension, and the end of one', async () => {
  const [dora, total, rooms] = [person('dora'), 3_000, ['east', 'west', 'north', 'south']]
  const ids: string[] = []
  for (let n = 0; n < total; n += 60)
    ids.push(
      ...(await Promise.all(
        Array.from({ length: 60 }, (_, k) => post(dora, { room: rooms[k % 4]!, text: `flood ${n + k}` })),
      )),
    )
  const left = async () => {
    let count = 0
    for (const room of rooms)
      count += Number(/"count":(\d+)/.exec((await client.get(`/api/room?room=${room}`)).text)![1])
    return count
  }
  expect(await left()).toBe(total)
  for (const isHiding of [true, false]) {
    expect((await (isHiding ? suspend(dora) : unsuspend(dora))).status).toBe(200)
    await until(async () => (await left()) !== (isHiding ? total : 0))
    await board.kill()
    board = await startBoard({ directory, env })
    client.close()
    client = await Client.of(board)
    await until(async () => (await left()) === (isHiding ? 0 : total))
  }
  await board.stop()
  const checked = await runProgram(directory, process.execPath, [program, 'fsck', '--data', directory])
  expect([checked.code, checked.errors]).toEqual([0, ''])
  board = await startBoard({ directory, env })
  client = await Client.of(board)
  expect(await left()).toBe(total)
  expect(await isHidden(ids.at(-1)!)).toBe(false)
})
