/** Feeds: a strict parser reads them whatever strangers write, and they are complete and free of redacted content. */
import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

const [ann, ben] = [person('feeds ann'), person('feeds ben')]
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory(), env: { OPERATORS: ben.id } })
  client = await Client.of(board)
})
afterAll(async () => {
  client?.close()
  await board?.stop()
})

async function say(fields: Record<string, string>, who = ann): Promise<string> {
  const { status, text, data } = await client.post(who, fields)
  expect([status, status === 200 ? '' : text]).toEqual([200, ''])
  return data.event!.event_id
}

/** What RFC 4287 requires of a feed and of each entry, as Python's expat reads them. */
const reading = `
import json, sys, xml.etree.ElementTree as E
a = '{http://www.w3.org/2005/Atom}'
feed = E.fromstring(sys.stdin.buffer.read())
def one(of, name):
    found = of.findall(a + name)
    assert len(found) == 1, (name, len(found))
    return found[0].text or ''
def times(of, *names):
    from datetime import datetime
    for name in names: datetime.strptime(one(of, name), '%Y-%m-%dT%H:%M:%S.%fZ')
assert feed.tag == a + 'feed'
times(feed, 'updated')
assert feed.find(a + "link[@rel='self']").get('href') == one(feed, 'id')
entries = feed.findall(a + 'entry')
for entry in entries:
    times(entry, 'updated', 'published')
    assert one(entry, 'id') == entry.find(a + 'link').get('href')
    assert entry.find(a + 'author').find(a + 'name').text
assert len({one(e, 'id') for e in entries}) == len(entries)
print(json.dumps({'title': one(feed, 'title'), 'entries': [[one(e, 'title'), one(e, 'summary')] for e in entries]}))
`

async function atom(path: string): Promise<{ title: string; entries: [title: string, text: string][] }> {
  const { status, text, headers } = await client.get(path)
  expect([status, headers['content-type'], headers['access-control-allow-origin']]).toEqual([
    200,
    'application/atom+xml; charset=utf-8',
    '*',
  ])
  const read = spawnSync('python3', ['-c', reading], { input: text, encoding: 'utf8' })
  expect(read.stderr).toBe('')
  return JSON.parse(read.stdout)
}

type JsonFeed = {
  readonly version: string
  readonly title: string
  readonly feed_url: string
  readonly items: readonly { id: string; url: string; title: string; content_text: string; date_published: string }[]
}

async function json(path: string): Promise<JsonFeed> {
  const { status, text, headers } = await client.get(path)
  expect([status, headers['content-type']]).toEqual([200, 'application/feed+json; charset=utf-8'])
  const feed = JSON.parse(text) as JsonFeed
  expect(feed.version).toBe('https://jsonfeed.org/version/1.1')
  expect(feed.feed_url.endsWith(path)).toBe(true)
  for (const item of feed.items) expect(Date.parse(item.date_published)).toBeGreaterThan(0)
  return feed
}

const hostile = ']]> <script>alert(1)</script> &amp; "quoted" \u0001 \uffff \u{1f600} \u202e --> <![CDATA['
const asText = hostile.replace('\u0001', '\ufffd').replace('\uffff', '\ufffd')

test('the feeds of a room, a thread and a person show hostile texts as text', async () => {
  const root = await say({ room: 'feeds', text: `${hostile}\nand more of it` })
  await say({ room: 'feeds', text: `reply ${hostile}`, reply_to: root }, ben)
  expect(await atom('/room/feeds.atom')).toMatchObject({ entries: [[asText, 'and more of it']] })
  expect((await json('/room/feeds.json')).items[0]).toMatchObject({ title: hostile, content_text: 'and more of it' })
  expect(await atom(`/e/${root}.atom`)).toEqual({
    title: asText,
    entries: [
      [`reply ${asText}`, `reply ${asText}`],
      [asText, `${asText}\nand more of it`],
    ],
  })
  expect((await json(`/e/${root}.json`)).items).toHaveLength(2)
  expect((await atom(`/i/${ann.id}.atom`)).entries.map(([title]) => title)).toEqual([asText])
  expect((await json(`/i/${ann.id}.json`)).items[0]!.url).toContain(`/e/${root}`)
  expect((await atom('/work.atom')).entries).toEqual([])
  expect((await json('/work.json')).items).toEqual([])
})

test('an unchanged feed is not sent again, and redacted content is gone from the next answer', async () => {
  const root = await say({ room: 'taken', text: 'A password of mine' })
  const paths = ['/room/taken', `/e/${root}`, `/i/${ann.id}`].flatMap((path) => [`${path}.atom`, `${path}.json`])
  for (const path of paths) {
    const { headers, text } = await client.get(path)
    expect(text).toContain('A password of mine')
    const again = await fetch(`${board.address}${path}`, {
      headers: { 'if-none-match': headers.etag!, 'accept-encoding': 'identity' },
    })
    expect([path, again.status]).toEqual([path, 304])
  }
  await client.command(ann, { operation: 'event.redact', event_id: root, reason: 'a slip' })
  for (const path of paths) {
    const { text, status } = await client.get(path)
    expect([path, status, text.includes('password')]).toEqual([path, 200, false])
  }
})

test('private rooms and unknown addresses have no feed', async () => {
  await client.command(ann, { operation: 'room.create', room: 'secret-feed', visibility: 'private' })
  const id = await say({ room: 'secret-feed', text: 'in private' })
  for (const path of ['/room/secret-feed.atom', `/e/${id}.json`])
    expect(await client.get(path)).toMatchObject({ status: 403, code: 'private_room' })
  for (const path of ['/room/no-such-room.atom', `/e/${'0'.repeat(32)}.atom`, '/i/nobody-at-all.json'])
    expect([path, (await client.get(path)).code]).toEqual([path, 'not_found'])
  const { text } = await client.get(`/i/${ann.id}.atom`)
  expect(text).not.toContain('in private')
})

test('pages link to their feeds', async () => {
  const root = await say({ room: 'linked', text: 'a page' })
  const places = { '/room/linked': '/room/linked', [`/e/${root}`]: `/e/${root}`, '/work': '/work' }
  for (const [page, feed] of Object.entries({ ...places, [`/i/${ann.id}`]: `/i/${ann.id}` })) {
    const { text } = await client.get(page)
    for (const ending of ['.atom', '.json'])
      expect(text).toMatch(new RegExp(`rel="alternate"[^>]* href="${feed}${ending}"`))
  }
})
