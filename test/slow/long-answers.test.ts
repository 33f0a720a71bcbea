/**
 * Lists of texts by strangers: each answer ends early if its texts are long, says that more follows, and nothing is left out or repeated.
 * Every answer passes through the main thread, so none may be long.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sizes } from '../../actors/kernel/limits.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person, walkPages } from '../support/client.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const [ada, ben] = [person('ada'), person('ben')]
/** A page of 256 KiB, and one text of 32,768 bytes that each take six characters. */
const charsMax = 262_144 + 6 * 32_768 + 10_000
const long = '\u0001'.repeat(sizes.text_bytes - 8)
let client: Client

beforeAll(async () => {
  client = await Client.of(await startBoard({ directory: boardDirectory(), env: { SHARDS: '2' } }))
})
afterAll(() => client.close())

type Made = { readonly event_id?: string; readonly tool?: { readonly subject_id: string } }

async function run(who: typeof ada, fields: Fields): Promise<Made> {
  const { status, text, data } = await client.command(who, fields)
  expect([fields.operation, status, status === 200 ? '' : text.slice(0, 300)]).toEqual([fields.operation, 200, ''])
  return data as Made
}

/** All answers of a signed read, one after the other. */
async function walkSigned(who: typeof ada, fields: Fields): Promise<{ text: string; data: Record<string, unknown> }[]> {
  const answers: { text: string; data: Record<string, unknown> }[] = []
  let cursor = ''
  do {
    const { text, data } = await client.command(who, { ...fields, ...(cursor === '' ? {} : { cursor }) } as Fields)
    answers.push({ text, data: data as Record<string, unknown> })
    cursor = data.next_cursor ?? ''
  } while (cursor !== '')
  return answers
}

/** Each answer is bounded, there is more than one, and together they contain each of these once. */
function expectAll(
  answers: readonly { readonly text: string }[],
  found: readonly unknown[],
  expected: readonly unknown[],
) {
  expect(answers.length).toBeGreaterThan(1)
  expect(Math.max(...answers.map(({ text }) => text.length))).toBeLessThan(charsMax)
  expect([...found].sort()).toEqual([...expected].sort())
}

test('an inbox is paged, whoever fills it', async () => {
  const ids: string[] = []
  for (let n = 0; n < 25; n++) {
    const room = n % 2 === 0 ? 'mail' : 'post'
    ids.push((await run(ben, { operation: 'post', room, text: `${n}${long.slice(9)}`, to: ada.id })).event_id!)
  }
  const answers = await walkSigned(ada, { operation: 'inbox.get', limit: 200 })
  const items = answers.flatMap(({ data }) => data.items as { event: { event_id: string } }[])
  expectAll(
    answers,
    items.map(({ event }) => event.event_id),
    ids,
  )
})

test('rooms are paged, whatever their descriptions', async () => {
  const names = Array.from({ length: 25 }, (_, n) => `about-${n}`)
  for (const room of names) await run(ada, { operation: 'room.create', room, text: long })
  const answers = await walkPages(client, '/api/rooms?limit=200&query=about')
  expectAll(
    answers,
    answers.flatMap(({ data }) => data.rooms!.map(({ name }) => name)),
    names,
  )
})

test('identities are paged, whatever their profiles', async () => {
  const data = JSON.stringify({ schema: 1, description: '\u0001'.repeat(sizes.profile_description_bytes) })
  const handles = Array.from({ length: 60 }, (_, n) => `person-${n}`)
  for (const handle of handles) {
    await run(person(handle), { operation: 'post', room: 'people', text: 'x', handle })
    await run(person(handle), { operation: 'identity.profile.set', data })
  }
  const answers = await walkPages(client, '/api/identities?limit=200&query=person')
  expectAll(
    answers,
    answers.flatMap(({ data: { identities } }) => identities!.map(({ handle }) => handle)),
    handles,
  )
})

test('reviews of a tool are paged', async () => {
  const { tool } = await run(ada, {
    operation: 'tools.publish',
    data: JSON.stringify({
      schema: 1,
      name: 'Weather',
      description: 'Says it.',
      category: 'data',
      url: 'https://a.example/weather',
    }),
  })
  const target = tool!.subject_id
  const ids: string[] = []
  for (let n = 0; n < 20; n++)
    ids.push(
      (await run(person(`reviewer ${n}`), { operation: 'tools.review', target, kind: 'works', text: long })).event_id!,
    )
  const answers = await walkPages(client, `/api/reviews?subject=${target}&limit=200`)
  const reviews = answers.flatMap(({ text }) => (JSON.parse(text) as { data: { reviews: Made[] } }).data.reviews)
  expectAll(
    answers,
    reviews.map(({ event_id }) => event_id),
    ids,
  )
})

test('all versions of a post are paged, numbered consecutively', async () => {
  const { event_id: id } = await run(ada, { operation: 'post', room: 'versions', text: `0${long.slice(1)}` })
  const ids = [id!]
  for (let n = 1; n < 20; n++) {
    const data = JSON.stringify({ schema: 1, supersedes: id })
    ids.push((await run(ada, { operation: 'post', room: 'versions', text: `${n}${long.slice(9)}`, data })).event_id!)
  }
  const answers = (await walkPages(client, `/api/history/${id}?limit=200`)).map(({ text, data }) => ({
    text,
    data: data as unknown as { first_number: number; previous_id?: string; events: { event_id: string }[] },
  }))
  expect(answers.length).toBeGreaterThan(3)
  expect(Math.max(...answers.map(({ text }) => text.length))).toBeLessThan(2 * charsMax)
  expect(answers.flatMap(({ data: { events } }) => events.map(({ event_id }) => event_id))).toEqual(ids)
  for (const { data } of answers) {
    expect(ids[data.first_number - 1]).toBe(data.events[0]!.event_id)
    expect(data.previous_id).toBe(data.first_number === 1 ? undefined : ids[data.first_number - 2])
  }
})
