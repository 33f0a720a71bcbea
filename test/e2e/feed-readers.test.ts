/** Feeds in the programs that read them: xmllint, feedparser and rss-parser for Atom, feedsmith for JSON Feed. */
import { spawnSync } from 'node:child_process'
import { beforeAll, expect, test, vi } from 'vitest'
import { loadPeer } from '../peers/npm-peers.ts'
import { missingPackage, missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [ann, ben] = [person('readers ann'), person('readers ben')]
const hostile = [
  ']]> <script>alert(1)</script> &amp; &lt;b&gt; "quoted" \u0001 \uffff \u{1f600} \u202e --> <![CDATA[ <?xml?> <!DOCTYPE x>',
  '<img src=x onerror=alert(1)>',
  '&#0; &unknown; &amp;#x3c;',
  '\u05d0\u4e2d\u{1d11e} %s $x {{y}} \u0600',
]
/** XML cannot contain such characters. */
const inXml = (text: string): string => text.replace(/[\u0001\uffff]/g, '\ufffd')

let client: Client
let kinds: Readonly<Record<string, string>>

beforeAll(async () => {
  const board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
  const said: string[] = []
  for (const text of hostile) said.push((await client.post(ann, { room: 'readers', text })).data.event_id!)
  const long = `${'word '.repeat(3_000)}\n\n${'\u{1f600}'.repeat(2_000)}`
  for (const text of [...hostile, long]) await client.post(ben, { room: 'readers', text, reply_to: said[0]! })
  for (const text of hostile) {
    // The title of a work is one line without invisible characters.
    const data = JSON.stringify({ schema: 1, title: text.replace(/\p{C}/gu, '') })
    const { status, text: answer } = await client.command(ann, { operation: 'work.create', amount: 1, text, data })
    expect([status, status === 200 ? '' : answer]).toEqual([200, ''])
  }
  kinds = { room: '/room/readers', thread: `/e/${said[0]}`, identity: `/i/${ann.id}`, work: '/work' }
  return () => client.close()
})

const names = ['room', 'thread', 'identity', 'work'] as const

async function feed(kind: string, ending: '.atom' | '.json'): Promise<string> {
  const { status, text } = await client.get(`${kinds[kind]}${ending}`)
  expect([kind, status]).toEqual([kind, 200])
  return text
}

/** An entry as a feed reader returns it. */
type Entry = { readonly id?: unknown; readonly link?: unknown; readonly title?: unknown; readonly at?: unknown }

function check(kind: string, entries: readonly Entry[], shown: (text: string) => string): void {
  expect(entries.length).toBeGreaterThanOrEqual(hostile.length)
  expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length)
  for (const { id, link, at } of entries) {
    expect(link).toBe(id)
    expect(String(id)).toMatch(new RegExp(`^${client.address}/e/[0-9a-f]{32}$`))
    expect(Math.abs(Date.parse(String(at)) - Date.now())).toBeLessThan(3_600_000)
  }
  const titles = entries.map(({ title }) => String(title))
  for (const text of hostile)
    expect([kind, titles.some((title) => title.startsWith(shown(text).slice(0, 12))), titles]).toEqual([
      kind,
      true,
      titles,
    ])
}

const noLint = missingProgram('xmllint')
test.skipIf(skipWithout(noLint))(`xmllint finds every Atom feed well formed${skipNote(noLint)}`, async () => {
  for (const kind of names) {
    const { status, stderr } = spawnSync('xmllint', ['--noout', '--nonet', '-'], { input: await feed(kind, '.atom') })
    expect([kind, status, String(stderr)]).toEqual([kind, 0, ''])
  }
})

const pythonReader = `
import json, sys, feedparser
# As it stands: what a reader would have to clean away is to be seen.
read = feedparser.parse(sys.stdin.buffer.read(), sanitize_html=False, response_headers={'content-type': 'application/atom+xml; charset=utf-8'})
print(json.dumps({
    'bozo': str(read.get('bozo_exception', '')), 'version': read.version, 'types': sorted({e.title_detail.type for e in read.entries}),
    'entries': [{'id': e.id, 'link': e.link, 'title': e.title, 'at': e.updated if e.updated_parsed and e.published_parsed else ''} for e in read.entries],
}))`
/** The Python of Debian sees the packages of Debian. */
const python = ['python3', '/usr/bin/python3'].find((each) => spawnSync(each, ['-c', 'import feedparser']).status === 0)
const noParser =
  python === undefined ? 'feedparser is missing; install it as root with: sh test/peers/install.sh' : undefined
test.skipIf(skipWithout(noParser))(
  `feedparser reads every Atom feed without warnings${skipNote(noParser)}`,
  async () => {
    for (const kind of names) {
      const { stdout, stderr } = spawnSync(python!, ['-c', pythonReader], { input: await feed(kind, '.atom') })
      expect(String(stderr)).toBe('')
      const { entries, ...about } = JSON.parse(String(stdout)) as { entries: Entry[] }
      expect(about).toEqual({ bozo: '', version: 'atom10', types: ['text/plain'] })
      check(kind, entries, inXml)
    }
  },
)

type RssParser = new () => {
  parseString(text: string): Promise<{ items: (Entry & { isoDate: string })[]; feedUrl: string; link: string }>
}
const noRss = missingPackage('rss-parser')
test.skipIf(skipWithout(noRss))(`rss-parser reads every Atom feed${skipNote(noRss)}`, async () => {
  const { default: Parser } = await loadPeer<{ default: RssParser }>('rss-parser')
  for (const kind of names) {
    const { items, feedUrl, link } = await new Parser().parseString(await feed(kind, '.atom'))
    expect([feedUrl, link]).toEqual([`${client.address}${kinds[kind]}.atom`, `${client.address}${kinds[kind]}`])
    check(
      kind,
      items.map(({ isoDate, ...item }) => ({ ...item, at: isoDate })),
      inXml,
    )
  }
})

type Feedsmith = {
  parseJsonFeed(value: unknown): { items: (Entry & { url: string; date_published: string; content_text: string })[] }
}
const noSmith = missingPackage('feedsmith')
test.skipIf(skipWithout(noSmith))(`feedsmith reads every JSON Feed${skipNote(noSmith)}`, async () => {
  const { parseJsonFeed } = await loadPeer<Feedsmith>('feedsmith')
  for (const kind of names) {
    const { items } = parseJsonFeed(await feed(kind, '.json'))
    const entries = items.map(({ url, date_published, ...item }) => ({ ...item, link: url, at: date_published }))
    check(kind, entries, (text) => text)
    for (const { content_text } of items) expect([...content_text].length).toBeLessThanOrEqual(2_000)
  }
})
