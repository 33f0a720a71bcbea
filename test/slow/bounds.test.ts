import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person, walkPages } from '../support/client.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const [ada, ben, eve] = [person('ada'), person('ben'), person('eve')]
let client: Client

beforeAll(async () => {
  const board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
})
afterAll(() => client.close())

test('a page of long texts ends early and says that more follows, and nothing is left out', async () => {
  const ids: string[] = []
  for (let n = 0; n < 40; n++) {
    const { data } = await client.post(ada, {
      room: 'long',
      text: `${n} ${'\u0001'.repeat(32_000)}`,
      ...(n === 0 ? {} : { reply_to: ids[0]! }),
    })
    ids.push(data.event_id!)
  }
  for (const path of [
    '/api/events?room=long&limit=200&order=asc',
    `/api/thread/${ids[0]}?limit=200`,
    '/api/events?room=long&limit=200',
  ]) {
    const pages = await walkPages(client, path)
    expect(pages.length).toBeGreaterThan(3)
    for (const { text } of pages) expect(text.length).toBeLessThan(2_000_000)
    const seen = pages.flatMap(({ data }) => data.events!.map(({ event_id }) => event_id))
    expect(path.includes('asc') || path.includes('thread') ? seen : seen.toReversed()).toEqual(ids)
  }
})

test('only the uploader of a file may attach it to posts, so nobody else decides how long it lives', async () => {
  const put = await client.command(ada, { operation: 'blob.put', room: 'files', filename: 'a.txt', data: 'SGVsbG8K' })
  const { blob } = put.data as unknown as { blob: { id: string } }
  expect(put.code).toBe('not_found')
  expect(blob).toBeUndefined()
  await client.post(ada, { room: 'files', text: 'begins' })
  const made = await client.command(ada, { operation: 'blob.put', room: 'files', filename: 'a.txt', data: 'SGVsbG8K' })
  const { id } = (made.data as unknown as { blob: { id: string } }).blob
  const stolen = await client.post(eve, { room: 'files', text: 'mine', attachments: [id] })
  expect([stolen.status, stolen.code, stolen.field]).toEqual([403, 'forbidden', 'attachments'])
  expect((await client.get(`/a/${id}`)).status).toBe(200)
  expect((await client.post(ada, { room: 'files', text: 'hers', attachments: [id] })).status).toBe(200)
})

test('a retry by a removed member is answered with the fact and time of the original', async () => {
  await client.command(ada, { operation: 'room.create', room: 'den', visibility: 'private', members: [ben.id] })
  const signed = client.sign(ben, { operation: 'post', room: 'den', text: 'inside' })
  expect((await client.send(signed.body)).status).toBe(200)
  await client.command(ada, { operation: 'room.member.remove', room: 'den', target: ben.id })
  const again = await client.send(signed.body)
  expect(again.status).toBe(200)
  expect(again.data.receipt).toMatchObject({ event_id: signed.eventId, duplicate: true })
  expect(again.text).not.toContain('inside')
})

test('an edit that turns a post into advertising is screened like a post', async () => {
  await client.command(ada, { operation: 'room.create', room: 'calm' })
  await client.command(ada, { operation: 'room.policy.set', room: 'calm', data: '{"promotion":"moderate"}' })
  const { data } = await client.post(eve, { room: 'calm', text: 'A harmless question about knots.' })
  const advert = 'https://spam.example/buy?ref=1 https://spam.example/more'
  await client.post(eve, { room: 'calm', text: advert, data: JSON.stringify({ schema: 1, supersedes: data.event_id }) })
  await vi.waitFor(
    async () => expect((await client.get(`/api/events/${data.event_id}`)).data.event).toMatchObject({ hidden: true }),
    patience,
  )
})

test('refused writes count against their author’s limit per minute', async () => {
  const strict = await startBoard({ directory: boardDirectory(), env: { BROADSIDE_LIMITS: 'on' } })
  const own = await Client.of(strict)
  const codes = new Set<string | undefined>()
  // The allowance refills with time: on a slow machine it takes more writes.
  for (let n = 0; n < 1_000 && !codes.has('rate_limited'); n++)
    codes.add((await own.command(eve, { operation: 'room.leave', room: 'lobby' })).code)
  expect([...codes]).toContain('rate_limited')
  own.close()
})
