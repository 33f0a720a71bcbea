/** `broadside import` of other systems' formats: each sample as its source has it, twice, and files that no honest program wrote. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { dataOf, type Json, summaryOf } from '../support/answers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { zipOf } from '../support/zip.ts'

const owner = person('owner of a room without imports')
const samples = resolve('test/samples')
const folder = boardDirectory()
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
})
afterAll(async () => {
  client?.close()
  await board?.stop()
})

let states = 0

/** Each import has its own state unless `state` names one: samples are read in place. */
async function runImport(path: string, options: readonly string[] = [], state = `state ${++states}`) {
  const terminal = capturedTerminal()
  const fixed = ['--url', board.address, '--seed', 'samples', '--state', join(folder, state)]
  const code = await main(['import', path, ...fixed, ...options], terminal)
  return { code, ...terminal.said }
}

function written(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

type Event = {
  readonly event_id: string
  readonly text: string
  readonly format: string
  readonly reply_to?: string
  readonly author: { readonly id: string; readonly handle?: string }
  readonly source?: Json
}

async function eventsOf(room: string): Promise<Event[]> {
  const { events } = dataOf(await client.get(`/api/events?room=${room}&limit=100`))
  return (events as Event[]).toReversed()
}

/** First words of each post -> those of the post it replies to. */
async function threadsOf(room: string): Promise<Record<string, string | undefined>> {
  const events = await eventsOf(room)
  const words = (text = '') => text.split('\n')[0]!.slice(0, 24)
  const texts = new Map(events.map(({ event_id: id, text }) => [id, words(text)]))
  return Object.fromEntries(events.map(({ text, reply_to: id }) => [words(text), id && texts.get(id)]))
}

type Sample = {
  readonly file: string
  readonly room: string
  readonly options: readonly string[]
  readonly code: number
  readonly threads: Record<string, string | undefined>
  readonly sources: readonly unknown[]
  readonly report: readonly string[]
}

const key = 'Who has the key of the b'
const flour = 'Flour for a slow dough'
const clock = 'A clock that runs on pon'
const beans = '@Tom Beck the beans & pe'
const list: readonly Sample[] = [
  {
    file: 'mail.mbox',
    room: 'boats',
    options: ['--room', 'boats'],
    code: 1,
    threads: {
      [key]: undefined,
      'Der Schlüssel liegt unte': key,
      'Le café est fermé lundi,': 'Der Schlüssel liegt unte',
      'I answer a mail that thi': key,
    },
    sources: [
      { system: 'mbox', id: 'key-1@harbour.example', author: 'Ines Marlow', at: 1_551_518_100 },
      { system: 'mbox', id: 'key-2@werft.example', author: 'Jonas Bär', at: 1_551_520_931 },
      { system: 'mbox', id: 'key-3@quai.example', author: 'Claire, du quai', at: 1_551_530_400 },
      { system: 'mbox', id: 'key-4@laituri.example', author: 'pekka', at: 1_551_542_400 },
    ],
    report: [
      '1 mails that are not messages:\n  message 5 (line 72): it has no author (From)',
      '1 attachments of mails were not imported.',
      '1 mails without a text part were skipped.',
      '1 reply was attached to the nearest posted ancestor',
    ],
  },
  {
    file: 'discourse-topic.json',
    room: 'bread',
    options: ['--room', 'bread', '--system', 'oven-forum'],
    code: 0,
    threads: {
      [flour]: undefined,
      'Strong, and a spoon of r': flour,
      'A whole spoon?': 'Strong, and a spoon of r',
      'I answer a post that was': flour,
    },
    sources: [
      { system: 'oven-forum', id: '17/1', author: 'tessa', at: 1_620_117_000 },
      { system: 'oven-forum', id: '17/2', author: 'omar', at: 1_620_203_400 },
      { system: 'oven-forum', id: '17/3', author: 'tessa', at: 1_620_289_800 },
      { system: 'oven-forum', id: '17/7', author: 'lin', at: 1_620_635_400 },
    ],
    report: [
      '2 whispers and small actions were skipped.',
      '1 hidden and deleted posts were skipped.',
      '1 posts are not in the file, though their topic lists them.',
    ],
  },
  {
    file: 'slack',
    room: 'garden',
    options: [],
    code: 0,
    threads: {
      [beans]: undefined,
      'Which row is <first>?': beans,
      '3 mm since midnight @her': undefined,
      'The one at the wall.': beans,
    },
    sources: [
      { system: 'slack', id: 'garden/1551510060.000200', author: 'rosa.l', at: 1_551_510_060 },
      { system: 'slack', id: 'garden/1551510120.000300', author: 'Tom Beck', at: 1_551_510_120 },
      { system: 'slack', id: 'garden/1551510180.000400', author: 'rain gauge', at: 1_551_510_180 },
      { system: 'slack', id: 'garden/1551600000.000100', author: 'rosa.l', at: 1_551_600_000 },
    ],
    report: [
      '2 files of private channels and direct messages were skipped.',
      '1 messages about who joined, left or changed something were skipped.',
      '1 files of messages were not imported.',
    ],
  },
  {
    file: 'hackernews.jsonl',
    room: 'ponds',
    options: ['--room', 'ponds'],
    code: 0,
    threads: {
      [clock]: undefined,
      'Does it stop in winter?': clock,
      'No: https://pond.example': 'Does it stop in winter?',
      'An answer to a comment t': undefined,
    },
    sources: [
      { system: 'hackernews', id: '9001', author: 'mossy', at: 1_551_510_000 },
      { system: 'hackernews', id: '9002', author: 'lathe', at: 1_551_510_600 },
      { system: 'hackernews', id: '9003', author: 'mossy', at: 1_551_511_200 },
      { system: 'hackernews', id: '9005', author: 'heron', at: 1_551_511_400 },
    ],
    report: [
      '1 deleted and dead items were skipped.',
      '1 items that the API did not have were skipped.',
      '1 reply starts a thread',
    ],
  },
  {
    file: 'corpus.jsonl',
    room: 'attic',
    options: [],
    code: 0,
    threads: { Boxes: undefined, 'Lamps.': 'Boxes', 'No date is known of this': 'Lamps.' },
    sources: [
      { system: 'jsonl', id: 'm1', author: 'vera', at: 1_551_510_000 },
      { system: 'jsonl', id: 'm2', author: 'olaf', at: 1_551_513_600 },
      { system: 'jsonl', id: 'm3', author: 'vera' },
    ],
    report: [],
  },
]

describe.each(list)('the sample $file', ({ file, room, options, code, threads, sources, report }) => {
  const path = join(samples, file)

  test('is posted once in its threads, with its sources, and omissions are reported', async () => {
    const first = await runImport(path, options, file)
    expect(first.err).toBe('')
    for (const each of report) expect(first.out).toContain(each)
    expect(first.code).toBe(code)
    expect(await threadsOf(room)).toEqual(threads)
    const byId = (one: Json, other: Json) => (String(one.id) < String(other.id) ? -1 : 1)
    const shown = (await eventsOf(room)).map(({ source }) => source!)
    expect(shown.toSorted(byId)).toEqual(sources)

    const before = await eventsOf(room)
    // What a run that was killed after its first post leaves.
    const rows = readFileSync(join(folder, file), 'utf8').split('\n')
    writeFileSync(join(folder, `${file} cut`), `${rows.slice(0, 2).join('\n')}\n["mbox:to`)
    const resumed = await runImport(path, options, `${file} cut`)
    expect(resumed.out).toContain('1 was posted by an earlier run of this import.')
    const again = await runImport(path, options, file)
    expect(again.out).toContain('0 posted')
    // Without the state of the first run the board still recognizes the requests.
    const blind = await runImport(path, options)
    expect(blind.out).toMatch(/of them were already on the board/)
    expect((await eventsOf(room)).map(({ event_id: id }) => id)).toEqual(before.map(({ event_id: id }) => id))
  })
})

test('one author of a system has one key, and no author of another system has it', async () => {
  const [first, second, third] = await eventsOf('bread')
  expect(first!.author.id).toBe(third!.author.id)
  expect(second!.author.id).not.toBe(first!.author.id)
  const path = written(
    'other.jsonl',
    '{"id":1,"type":"story","by":"tessa","time":1551510000,"title":"Another tessa"}\n',
  )
  await runImport(path, ['--room', 'other-tessa'])
  const [other] = await eventsOf('other-tessa')
  expect(other!.author.id).not.toBe(first!.author.id)
  expect(other!.author.handle).toBeUndefined()
})

test('the claimed time and author are shown in pages, lists, feeds and the CLI, as the importer’s', async () => {
  const [root] = await eventsOf('boats')
  const said = 'imported: Ines Marlow, 2019-03-02'
  for (const path of ['/room/boats', `/e/${root!.event_id}`, '/', '/room/boats.atom', `/e/${root!.event_id}.json`])
    expect((await client.get(path)).text, path).toContain(said)
  expect((await client.get(`/i/${root!.author.id}`)).text).toContain(said)
  const { threads } = dataOf(await client.get('/api/threads?room=boats')) as { threads: Json[] }
  expect(threads[0]).toMatchObject({ source: { system: 'mbox', author: 'Ines Marlow' } })
  const terminal = capturedTerminal()
  expect(await main(['read', 'boats', '--url', board.address], terminal)).toBe(0)
  expect(terminal.said.out).toContain('imported="Ines Marlow, 2019-03-02"')
  const threadList = capturedTerminal()
  expect(await main(['threads', 'boats', '--url', board.address], threadList)).toBe(0)
  expect(threadList.said.out).toContain(said)
  const export_ = await client.get('/v1/export?room=boats')
  expect(export_.text).toContain('"source":{"system":"mbox","id":"key-1@harbour.example"')
})

test('lists are in the order in which the board accepted the posts, whatever time is claimed', async () => {
  const claim = (at: number) =>
    JSON.stringify({ schema: 1, source: { system: 'x', id: String(at), author: '@root', at } })
  for (const at of [3, 1, 2]) await client.post(owner, { room: 'order', text: `claims ${at}`, data: claim(at) })
  expect((await eventsOf('order')).map(({ text }) => text)).toEqual(['claims 3', 'claims 1', 'claims 2'])
  expect((await eventsOf('order'))[0]!.author.handle).toBeUndefined()
})

test.each([
  ['a name of two lines', { author: 'one\ntwo' }],
  ['a name that turns the direction', { author: 'one\u202etwo' }],
  ['a name too long', { author: 'x'.repeat(129) }],
  ['no id', { id: '' }],
  ['a system that is no slug', { system: 'Not A Slug' }],
  ['a time past the year 9999', { at: 253_402_300_800 }],
  ['a time before 1970', { at: -1 }],
  ['another key', { more: 1 }],
])('a source with %s is refused', async (_, changed) => {
  const source = { system: 'x', id: '1', author: 'someone', at: 1, ...changed }
  const answer = await client.post(owner, { room: 'order', text: 'x', data: JSON.stringify({ schema: 1, source }) })
  expect(summaryOf(answer)).toMatch(/^400 invalid_field data\.source/)
})

describe('a room whose policy has imports false', () => {
  beforeAll(async () => {
    await client.command(owner, { operation: 'room.create', room: 'quiet' })
    await client.command(owner, { operation: 'room.policy.set', room: 'quiet', data: '{"imports":false}' })
  })
  const source = { system: 'x', id: '1', author: 'someone' }

  test('refuses imported posts and versions, and accepts others', async () => {
    const imported = { room: 'quiet', text: 'x', data: JSON.stringify({ schema: 1, source }) }
    expect(summaryOf(await client.post(owner, imported))).toBe('403 room_write_restricted data.source')
    const own = await client.post(owner, { room: 'quiet', text: 'my own' })
    const version = { schema: 1, supersedes: own.data.event!.event_id, source }
    const edit = { room: 'quiet', text: 'y', data: JSON.stringify(version) }
    expect(summaryOf(await client.post(owner, edit))).toBe('403 room_write_restricted data.source')
    expect((await eventsOf('quiet')).map(({ text }) => text)).toEqual(['my own'])
  })

  test('an import reports that, and resumes when the owner allows it', async () => {
    const path = join(samples, 'hackernews.jsonl')
    const refused = await runImport(path, ['--room', 'quiet'], 'quiet')
    expect(refused.code).toBe(1)
    expect(refused.out).toContain('4 refused by the board:')
    expect(refused.out).toContain('this room does not accept imported posts')
    expect(refused.out).toContain('room.policy.set')
    await client.command(owner, { operation: 'room.policy.set', room: 'quiet', data: '{"imports":true}' })
    expect((await runImport(path, ['--room', 'quiet'], 'quiet')).out).toContain('4 posted')
  })
})

describe('options', () => {
  test.each([
    [['mail.mbox'], '--room ROOM'],
    [['mail.mbox', '--room', 'Not A Room'], '--room must be'],
    [['mail.mbox', '--room', 'x', '--format', 'maildir'], '--format must be one of jsonl, mbox'],
    [['corpus.jsonl', '--room', 'x'], 'corpus.jsonl is in another format, name that with --format.'],
    [['corpus.jsonl', '--room', 'x', '--format', 'jsonl'], 'whose lines name their rooms.\n'],
  ] as const)('%j is an invalid command line', async ([file, ...options], words) => {
    const { code, err } = await runImport(join(samples, file), options)
    expect(code).toBe(2)
    expect(err).toContain(words)
  })

  test.each([
    [['slack', '--format', 'mbox'], 'only the slack format'],
    [['mail.mbox', '--format', 'slack'], 'neither a directory nor a zip'],
    [['missing.mbox'], 'cannot be read'],
  ] as const)('%j cannot be read', async ([file, ...options], words) => {
    const { code, err } = await runImport(join(samples, file), options)
    expect(code).toBe(1)
    expect(err).toContain(words)
  })

  test('--format reads a file whose content suggests another', async () => {
    const path = written('shown-as-mbox', '{"no":"mail"}\n')
    const { code, out } = await runImport(path, ['--format', 'mbox', '--room', 'none'])
    expect([code, out.includes('0 posted')]).toEqual([0, true])
  })
})

describe('hostile mail', () => {
  const from = (n: number) => `From x@y.example Sat Mar  2 09:15:0${n % 10} 2019`
  const mail = (n: number, headers: string, text = `text ${n}`) =>
    `${from(n)}\nFrom: w${n}@y.example\n${headers}\n\n${text}\n\n`

  test('circular, self and empty references become threads, and nothing is lost', async () => {
    const path = written(
      'circle.mbox',
      [
        mail(1, 'Message-ID: <a@y>\nIn-Reply-To: <b@y>'),
        mail(2, 'Message-ID: <b@y>\nIn-Reply-To: <a@y>'),
        mail(3, 'Message-ID: <c@y>\nReferences: <c@y> <c@y>'),
        mail(4, `Message-ID: <d@y>\nReferences: ${'<gone@y> '.repeat(5_000)}<a@y>`),
        mail(5, 'Message-ID: <a@y>', 'the id again'),
        mail(6, 'X-Nothing: no id'),
      ].join(''),
    )
    const { code, out } = await runImport(path, ['--room', 'circle'])
    expect(out).toContain('5 posted')
    expect(out).toContain('message 5 (line 29): the id mbox:a@y appears before')
    expect(code).toBe(1)
    const threads = await threadsOf('circle')
    expect(Object.keys(threads).toSorted()).toEqual(['text 1', 'text 2', 'text 3', 'text 4', 'text 6'])
    expect(threads).toMatchObject({ 'text 2': 'text 1', 'text 4': 'text 1', 'text 3': undefined })
  })

  test('broken MIME, deep nesting, huge lines and headers are reported, and the next mail is read', async () => {
    const nested = Array.from({ length: 100 }, (_, n) => `Content-Type: multipart/mixed; boundary=b${n}\n\n--b${n}\n`)
    const path = written(
      'broken.mbox',
      [
        mail(1, 'Content-Type: multipart/mixed; boundary="never', 'unclosed'),
        mail(2, 'Content-Transfer-Encoding: base64', '%%% not base64 %%%'),
        mail(3, 'Content-Type: text/plain; charset=x-no-such-charset', 'café'),
        mail(4, nested.join('').trimEnd()),
        mail(5, `X-Long: ${'x'.repeat(300_000)}`),
        mail(6, 'Subject: huge', 'y'.repeat(5 * 1024 * 1024)),
        mail(7, 'Subject: =?utf-8?Q?=00=E2=80=AEturned?=', 'a NUL \0 inside'),
        mail(8, 'Content-Type: text/html', `${'<div>'.repeat(50_000)}deep`),
        `${from(9)}\n\n\n`,
        mail(9, 'Content-Type: text/html', '<i></i>'.repeat(50_000)),
        mail(10, 'Subject: last', 'the last one'),
      ].join(''),
    )
    const { out } = await runImport(path, ['--room', 'broken'])
    expect(out).toContain('message 5')
    expect(out).toContain('message 6 (line')
    expect(out).toContain('message 9')
    expect(out).toMatch(/message 10 .* its text has more than 262144 characters with its markup/)
    const texts = (await eventsOf('broken')).map(({ text }) => text)
    expect(texts.at(-1)).toContain('the last one')
    expect(texts.some((text) => text.includes('a NUL  inside'))).toBe(true)
  })
})

describe('hostile records', () => {
  test('Discourse: wrong types, a duplicate post and private messages are reported; the rest is posted', async () => {
    const post = { username: 'ann', created_at: 'not a time', cooked: '<p>said</p>', topic_id: 3, post_number: 1 }
    const path = written(
      'hostile-discourse.json',
      JSON.stringify([
        { post_stream: { posts: [post, post, null, 7, { ...post, post_number: 'x' }] }, id: 3, title: 'T\n\nitle' },
        { post_stream: { posts: [{ ...post, topic_id: 4 }] }, archetype: 'private_message', id: 4 },
        { post_stream: 'none', id: 5 },
        { ...post, topic_id: 6, username: '' },
        'nothing',
      ]),
    )
    const { code, out } = await runImport(path, ['--room', 'hostile-discourse'])
    expect([code, out.includes('1 posted')]).toEqual([1, true])
    expect(out).toContain('1 posts of private messages were skipped.')
    expect((await eventsOf('hostile-discourse')).map(({ text }) => text)).toEqual(['T  itle\n\nsaid'])
  })

  test('an array, gzip and one record per line are the same items', async () => {
    const lines = readFileSync(join(samples, 'hackernews.jsonl'), 'utf8')
    const items: unknown[] = lines
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const array = written('array.json', JSON.stringify(items, null, 2))
    const packed = written('packed.gz', gzipSync(lines))
    expect((await runImport(array, ['--room', 'array'])).out).toContain('4 posted')
    expect((await runImport(packed, ['--room', 'packed'])).out).toContain('4 posted')
    expect(await threadsOf('array')).toEqual(await threadsOf('packed'))
  })
})

describe('zips and directories of Slack', () => {
  const users = { name: 'users.json', bytes: Buffer.from('[{"id":"U1","name":"uma"}]') }
  const day = (text: string, ts = '1551510060.000200') =>
    Buffer.from(JSON.stringify([{ type: 'message', user: 'U1', text, ts }]))
  const channels = (...names: string[]) => ({
    name: 'channels.json',
    bytes: Buffer.from(JSON.stringify(names.map((name, n) => ({ id: `C${n}`, name })))),
  })

  test('a zip is imported like its directory, also if the export is in a subdirectory', async () => {
    const from = join(samples, 'slack')
    const names = readdirSync(from, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.json'))
    const members = names.map((name) => ({ name: `team export/${name}`, bytes: readFileSync(join(from, name)) }))
    const { out, code } = await runImport(written('team.zip', zipOf(members)), ['--room', 'team'])
    expect([code, out.includes('5 posted')]).toEqual([0, true])
    expect(Object.keys(await threadsOf('team'))).toHaveLength(5)
  })

  test('a zip bomb, wrong sizes and names that leave the directory end with an error', async () => {
    const bomb = { name: 'bombed/1.json', bytes: Buffer.alloc(80 * 1024 * 1024, 0x20) }
    const last = { name: 'bombed/2.json', bytes: day('after the bomb') }
    const bombed = written('bomb.zip', zipOf([users, channels('bombed'), bomb, last]))
    const { out, code } = await runImport(bombed)
    expect(code).toBe(1)
    expect(out).toContain('bombed/1.json has more than 67108864 bytes')
    expect((await eventsOf('bombed')).map(({ text }) => text)).toEqual(['after the bomb'])

    const liar = written('liar.zip', zipOf([users, channels('bombed'), { ...bomb, claimedBytes: 10 }]))
    expect((await runImport(liar)).out).toContain('bombed/1.json cannot be read')

    for (const name of ['../outside.json', '/etc/outside.json', 'a/../../outside.json']) {
      const { code: left, err } = await runImport(
        written('outside.zip', zipOf([users, channels('a'), { name, bytes: day('x') }])),
      )
      expect([left, err.includes('cannot be read')], name).toEqual([1, true])
    }
    expect((await runImport(written('cut.zip', zipOf([users, channels('a')]).subarray(0, 80)))).code).toBe(1)
    expect((await runImport(written('none.zip', zipOf([])))).err).toContain('no users.json')
  })

  test('links in a directory are not followed; unlisted channels and broken days are reported', async () => {
    const secret = written('secret.json', day('a secret outside of the export'))
    const root = join(folder, 'export')
    for (const name of ['open', 'hidden']) mkdirSync(join(root, name), { recursive: true })
    writeFileSync(join(root, 'users.json'), users.bytes)
    writeFileSync(join(root, 'channels.json'), channels('open').bytes)
    symlinkSync(secret, join(root, 'open', '2019-03-01.json'))
    symlinkSync(join(samples, 'slack', 'garden'), join(root, 'linked'))
    writeFileSync(
      join(root, 'open', '2019-03-02.json'),
      day('<@U1> <@U2|una> <@U3> <#C0> <!subteam^S1|@team> <mailto:a@b|a@b> <'),
    )
    writeFileSync(join(root, 'open', '2019-03-03.json'), '{"not":"a list"}')
    writeFileSync(
      join(root, 'open', '2019-03-04.json'),
      '[null, 7, {"type":"message","ts":"x"}, {"type":"message","ts":"1.1","text":"no author"}]',
    )
    writeFileSync(join(root, 'hidden', '2019-03-02.json'), day('private'))
    const { out, code } = await runImport(`${root}/`)
    expect(code).toBe(1)
    expect(out).toContain('5 records that are not messages:')
    expect(out).toContain('1 files of private channels and direct messages were skipped.')
    expect((await eventsOf('open')).map(({ text }) => text)).toEqual(['@uma @una @U3 #open @team a@b <'])
  })
})
