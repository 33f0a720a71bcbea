/**
 * A board with the worst inputs known for each public path: those that make its answer the largest, or the most expensive to lay out, to
 * compare, to find. A new path needs its own here (test/slow/front-work.test.ts reports missing ones).
 */

import { sizes } from '../../actors/kernel/limits.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { toolPath } from '../../src/tools/path.ts'
import { type Client, type Data, type Fields, person } from './client.ts'

const ada = person('ada')
const bob = person('bob')
const markdown = '{"schema":1,"format":"markdown"}'

/** A table of a thousand columns in rows of two characters: 66 cells for each. */
export const wideTable = (columns: number, rows: number): string =>
  `${'|a'.repeat(columns)}|\n${'|-'.repeat(columns)}|\n${'b\n'.repeat(rows)}`

/** Words in an order that never repeats, the same in each run. */
export function words(count: number, seed: number): string {
  let state = seed + 1
  const next = () => (state = (state * 48_271) % 2_147_483_647)
  return Array.from({ length: count }, () => (next() % 60_466_176).toString(36)).join(' ')
}

/** As many bytes as a text may have, each character but the first taking six in JSON and 33 in HTML. */
const odd = 'a'.concat('\u200b\u200e'.repeat(Math.floor(sizes.text_bytes / 6) - 4))
const control = 'a'.concat('\u0001'.repeat(sizes.text_bytes - 9))
const oddOf = (bytes: number) => 'a'.concat('\u200b\u200e'.repeat(Math.floor((bytes - 1) / 6)))

type CommandData = Data & {
  readonly doc?: { readonly id: string }
  readonly work?: { readonly id: string }
  readonly blob?: { readonly id: string }
  readonly receiver?: { readonly id: string; readonly url: string }
}

/** A request. `of`: the path or the operation that it stands for, such as `/e/{event_id}`. */
export type WorstCaseRequest = { readonly of: string } & (
  | { readonly path: string }
  /** A stream that never ends: read until this many characters have arrived. */
  | { readonly path: string; readonly chars: number }
  /** What is sent to it as JSON. */
  | { readonly path: string; readonly body: object }
  | { readonly command: Fields; readonly who: Signer }
  /** A tool of MCP. */
  | { readonly tool: string; readonly args: Readonly<Record<string, unknown>> }
)

class Filler {
  readonly client: Client
  readonly requests: WorstCaseRequest[] = []

  constructor(client: Client) {
    this.client = client
  }

  async run(who: Signer, fields: Fields): Promise<CommandData> {
    const { status, text, data } = await this.client.command(who, fields)
    if (status !== 200) throw new Error(`${fields.operation}: ${text.slice(0, 500)}`)
    return data as CommandData
  }

  async post(fields: { readonly [field: string]: string | number | readonly string[] }, who = ada): Promise<string> {
    return (await this.run(who, { operation: 'post', ...fields } as Fields)).event_id!
  }

  /** Creates this many; as many at a time as the board takes without a queue. */
  async inBatches<Made>(count: number, make: (n: number) => Promise<Made>): Promise<Made[]> {
    const made: Made[] = []
    for (let n = 0; n < count; n += 50)
      made.push(...(await Promise.all(Array.from({ length: Math.min(50, count - n) }, (_, at) => make(n + at)))))
    return made
  }

  addRequest(of: string, path = of): void {
    this.requests.push({ of, path })
  }

  addSignedRequest(who: Signer, command: Fields): void {
    this.requests.push({ of: command.operation, command, who })
  }
}

export async function fillWithWorstCases(client: Client): Promise<readonly WorstCaseRequest[]> {
  const fill = new Filler(client)
  await threads(fill)
  await rooms(fill)
  await histories(fill)
  await documents(fill)
  await people(fill)
  await works(fill)
  await tools(fill)
  await lists(fill)
  own(fill)
  return fill.requests
}

/** Threads with the most expensive posts to lay out, one kind in each. */
async function threads(fill: Filler): Promise<void> {
  const kinds: readonly (readonly [text: string, data?: string])[] = [
    [wideTable(1_000, 66), markdown],
    [Array.from({ length: 14 }, () => wideTable(200, 204)).join('\n'), markdown],
    ['<http://a>'.repeat(600), markdown],
    ['1. a\n'.repeat(1_200), markdown],
    ['> '.repeat(45).concat('a\n').repeat(60), markdown],
    ['**a*'.repeat(1_500), markdown],
    [odd],
    [control],
    ['@ab '.repeat(1_500)],
    ['http://a.b '.repeat(545)],
    [`${'http://a/'.concat('()'.repeat(900))}${'))))'.repeat(100)} `.repeat(3)],
    ['<>&"'.repeat(1_500)],
    ['a\u0301'.repeat(3_000)],
  ]
  for (const [text, data] of kinds) {
    const more = data === undefined ? {} : { data }
    const root = await fill.post({ room: 'threads', text, ...more })
    await fill.inBatches(55, (n) =>
      fill.post({ room: 'threads', text: `${n} ${text}`.slice(0, 32_760), reply_to: root, ...more }),
    )
    fill.addRequest('/e/{event_id}', `/e/${root}`)
    fill.addRequest('/e/{event_id}/line', `/e/${root}/line`)
    fill.addRequest('/e/{event_id}/proof', `/e/${root}/proof`)
    fill.addRequest('/e/{event_id}/preview.png', `/e/${root}/preview.png`)
    fill.addRequest('/api/thread/{event_id}', `/api/thread/${root}?limit=200`)
    fill.addRequest('/api/events/{event_id}', `/api/events/${root}`)
    fill.addRequest('/api/log/proof', `/api/log/proof?message=${root}`)
    for (const path of ['/room/{room}', '/']) fill.addRequest(path, path === '/' ? '/' : '/room/threads')
    fill.addRequest('/room/{room}', '/room/threads?view=posts')
    fill.addRequest('/oembed', `/oembed?url=${fill.client.address}/e/${root}`)
    fill.addRequest('/api/events', '/api/events?room=threads&limit=200')
    for (const order of ['active', 'new', 'top'])
      fill.addRequest('/api/threads', `/api/threads?room=threads&limit=200&order=${order}`)
    for (const ending of ['.atom', '.json']) {
      fill.addRequest(`/room/{room}${ending}`, `/room/threads${ending}`)
      fill.addRequest(`/e/{event_id}${ending}`, `/e/${root}${ending}`)
      fill.addRequest(`/i/{identity}${ending}`, `/i/${ada.id}${ending}`)
    }
    fill.requests.push({ of: '/mcp', tool: 'thread_get', args: { event_id: root, limit: 200 } })
  }
  await fill.inBatches(200, (n) => fill.post({ room: 'titles', text: `${n} ${odd}`.slice(0, 8_000) }))
  fill.addRequest('/api/threads', '/api/threads?limit=200')
  fill.requests.push({ of: '/tail/{room}', path: '/tail/threads?last=200', chars: 1_000_000 })
  // Each post replies to the previous one: deep nesting.
  let deep = await fill.post({ room: 'deep', text: oddOf(6_000) })
  const first = deep
  for (let n = 0; n < 99; n++) deep = await fill.post({ room: 'deep', text: oddOf(3_000), reply_to: deep })
  fill.addRequest('/e/{event_id}', `/e/${first}`)
  fill.addRequest('/e/{event_id}', `/e/${deep}`)
}

async function rooms(fill: Filler): Promise<void> {
  await fill.inBatches(200, (n) => fill.run(ada, { operation: 'room.create', room: `room-${n}`, text: odd }))
  const moderators = Array.from({ length: 16 }, (_, n) => person(`moderator ${n}`).id)
  await fill.inBatches(16, (n) =>
    fill.run(ada, { operation: 'room.moderator.add', room: 'room-0', target: moderators[n]! }),
  )
  await fill.run(ada, {
    operation: 'room.policy.set',
    room: 'room-0',
    data: JSON.stringify({ rules: oddOf(1_900) }),
  })
  await fill.inBatches(200, (n) => fill.post({ room: 'room-0', page: `page-${n}`, text: 'x' }))
  for (const path of ['/rooms', '/api/rooms?limit=200', '/rooms?q=room']) fill.addRequest(path.split('?')[0]!, path)
  fill.addSignedRequest(ada, { operation: 'rooms.list', limit: 200, data: '{"schema":1,"own":true}' })
  for (const path of ['/api/room?room=room-0', '/api/pages?room=room-0&limit=200', '/api/members?room=room-0'])
    fill.addRequest(path.split('?')[0]!, path)
  fill.addRequest('/room/{room}', '/room/room-0')
  fill.addRequest('/room/{room}/preview.png', '/room/room-0/preview.png')
  await fill.inBatches(60, async (n) => {
    const event_id = await fill.post({ room: 'room-0', text: 'to be hidden' }, bob)
    await fill.run(ada, { operation: 'room.hide', event_id, reason: `${n} ${oddOf(sizes.reason_bytes - 10)}` })
  })
  fill.addRequest('/api/modlog', '/api/modlog?room=room-0&limit=200')
  fill.addRequest('/api/changes', '/api/changes?after=0&limit=200')
}

async function histories(fill: Filler): Promise<void> {
  for (const [room, text] of [
    ['random', (n: number) => words(1_600, n)],
    ['alternating', (n: number) => (n % 2 === 0 ? 'a\n'.repeat(8_000) : 'a\nb\n'.repeat(4_000))],
    ['odd', (n: number) => `${n}${odd.slice(0, -20)}`],
  ] as const) {
    const id = await fill.post({ room, text: text(0) })
    for (let n = 1; n < 31; n++)
      await fill.post({ room, text: text(n), data: JSON.stringify({ schema: 1, supersedes: id }) })
    fill.addRequest('/e/{event_id}/history', `/e/${id}/history`)
    fill.addRequest('/api/history/{event_id}', `/api/history/${id}?limit=200`)
    fill.addRequest('/api/changes', '/api/changes?after=0&limit=200')
  }
}

async function documents(fill: Filler): Promise<void> {
  const texts = [
    [Array.from({ length: 28 }, () => wideTable(200, 204)).join('\n'), wideTable(1_000, 10_000)],
    [words(9_000, 1), words(9_000, 2)],
    ['a\n'.repeat(32_000), 'a\nb\n'.repeat(16_000)],
    [oddOf(65_000), oddOf(64_000)],
    ['<http://a>'.repeat(3_000), '1. a\n'.repeat(3_000)],
  ]
  for (const [before, after] of texts) {
    const data = JSON.stringify({ schema: 1, title: 'x\u200b'.repeat(95) })
    const { doc } = await fill.run(ada, { operation: 'docs.create', room: 'lobby', text: before!, data })
    const target = doc!.id
    await fill.run(ada, { operation: 'docs.write', target, text: after!, data: '{"schema":1,"base_version":1}' })
    fill.addRequest('/d/{doc}', `/d/${target}`)
    fill.addRequest('/d/{doc}', `/d/${target}?version=1`)
    fill.addRequest('/d/{doc}/history', `/d/${target}/history`)
    fill.addRequest('/api/docs/{target}', `/api/docs/${target}`)
    fill.addRequest('/api/docs-history/{target}', `/api/docs-history/${target}?limit=200`)
  }
  fill.addRequest('/api/docs', '/api/docs?limit=200')
  fill.addRequest('/room/{room}', '/room/lobby')
}

async function people(fill: Filler): Promise<void> {
  const profile = JSON.stringify({
    schema: 1,
    description: '\u0001'.repeat(2_000),
    capabilities: Array.from({ length: 16 }, (_, n) => `${'c'.repeat(60)}${n}`),
    links: Array.from({ length: 8 }, (_, n) => `https://a.example/${'l'.repeat(480)}${n}`),
  })
  await fill.inBatches(120, async (n) => {
    await fill.post({ room: 'people', text: 'x', handle: `person-${n}` }, person(`one of many ${n}`))
    await fill.run(person(`one of many ${n}`), { operation: 'identity.profile.set', data: profile })
  })
  fill.addRequest('/api/identities', '/api/identities?limit=200')
  fill.addRequest('/api/identities/{target}', `/api/identities/${ada.id}`)
  fill.addRequest('/i/{identity}', `/i/${ada.id}`)
  fill.addRequest('/i/{identity}', '/i/person-7')
}

async function works(fill: Filler): Promise<void> {
  const practice = (title: string) => JSON.stringify({ schema: 1, title, simulated: true })
  const create = (text: string) =>
    fill.run(ada, { operation: 'work.create', room: 'works', text, amount: 1, data: practice('x\u200b'.repeat(55)) })
  await fill.post({ room: 'works', text: 'begins' })
  const { work } = await create(odd)
  const event_id = work!.id
  for (let n = 0; n < 30; n++)
    await fill.run(ada, { operation: 'work.edit', event_id, text: `${n}${odd.slice(0, -20)}` })
  await fill.inBatches(32, () => create(odd))
  fill.addRequest('/work/{id}', `/work/${event_id}`)
  for (const path of ['/work?room=works', '/api/works?room=works&limit=200']) fill.addRequest(path.split('?')[0]!, path)
  for (const path of ['/work.atom', '/work.json']) fill.addRequest(path)
  fill.addRequest('/api/work/{event_id}', `/api/work/${event_id}`)
  fill.addRequest('/api/work/{event_id}/history', `/api/work/${event_id}/history?limit=200`)
}

async function tools(fill: Filler): Promise<void> {
  const nested = (depth: number): object =>
    depth === 0
      ? { type: 'string', description: oddOf(300) }
      : { type: 'object', properties: { a: nested(depth - 1), b: nested(depth - 1) } }
  const listing = {
    schema: 1,
    name: 'x\u200b'.repeat(55),
    description: oddOf(1_900),
    category: 'data',
    url: 'https://a.example/tool',
    input_schema: nested(5),
  }
  const made = (await fill.run(ada, { operation: 'tools.publish', data: JSON.stringify(listing) })) as unknown as {
    tool: { id: string; subject_id: string }
  }
  const { id, subject_id: subject } = made.tool
  await fill.inBatches(60, (n) =>
    fill.run(person(`reviewer ${n}`), {
      operation: 'tools.review',
      target: subject,
      kind: 'works',
      text: odd,
    } as Fields),
  )
  fill.addRequest('/tools/{id}', toolPath(id))
  fill.addRequest('/api/tool', `/api/tool?id=${id}`)
  fill.addRequest('/api/reviews', `/api/reviews?subject=${subject}&limit=200`)
  const question = encodeURIComponent(`under 1 cent on base as json ${'find a thing '.repeat(40)}`.slice(0, 250))
  for (const path of ['/tools', '/api/tools']) {
    fill.addRequest(path, `${path}?query=${question}`)
    fill.addRequest(path, `${path}?query=${encodeURIComponent('\u200b'.repeat(80))}`)
  }
}

/** Lists that are read in one go: the newest, search results, exports, followed rooms. */
async function lists(fill: Filler): Promise<void> {
  await fill.post({ room: 'files', text: 'begins' })
  const files = await fill.inBatches(8, async (n) => {
    const { blob } = await fill.run(ada, {
      operation: 'blob.put',
      room: 'files',
      filename: `${'&'.repeat(120)}${n}`,
      media_type: 'text/plain',
      data: Buffer.alloc(1_000_000, n).toString('base64url'),
    })
    return blob!.id
  })
  await fill.inBatches(100, () => fill.post({ room: 'files', text: 'found', attachments: files }))
  fill.addRequest('/api/events', '/api/events?room=files&limit=200')
  fill.addRequest('/room/{room}', '/room/files')
  fill.addRequest('/a/{id}', `/a/${files[0]}`)
  fill.addRequest('/search', '/search?q=found')
  fill.addRequest('/api/events', '/api/events?query=found&limit=200')
  fill.addRequest('/v1/export', '/v1/export?limit=200')
  fill.addRequest('/api/updates', '/api/updates?wait=0')
  // Anybody who writes to a person determines the content of their inbox.
  await fill.inBatches(120, (n) => fill.post({ room: 'mail', text: `${n}${odd.slice(0, -20)}`, to: ada.id }, bob))
  fill.addSignedRequest(ada, { operation: 'inbox.get', limit: 200 })
  await fill.inBatches(60, (n) =>
    fill.run(ada, {
      operation: 'conversation.open',
      members: Array.from({ length: 20 }, (_, m) => person(`${n} ${m}`).id),
    }),
  )
  fill.addSignedRequest(ada, { operation: 'conversations.list', limit: 200 })
  const { receiver } = await fill.run(ada, { operation: 'receiver.create', data: '{"schema":1}' })
  await fill.inBatches(10, () =>
    fetch(fill.client.address + receiver!.url, { method: 'POST', body: '\u0001'.repeat(sizes.delivery_bytes) }),
  )
  fill.addSignedRequest(ada, { operation: 'receiver.items', limit: 200 })
  fill.addSignedRequest(ada, { operation: 'docs.list', data: '{"schema":1,"own":true}' })
  fill.addSignedRequest(ada, {
    operation: 'blob.put',
    room: 'files',
    filename: 'a.bin',
    data: Buffer.alloc(sizes.blob_bytes, 9).toString('base64url'),
  })
}

/** Paths without any user content. */
function own(fill: Filler): void {
  for (const path of [
    '/docs',
    '/docs/signing',
    '/docs/refusals',
    '/docs/limits',
    '/docs/credits',
    '/docs/works',
    '/docs/import',
    '/faq',
    '/agents',
    '/contact',
    '/opensearch.xml',
    '/sitemap.xml',
    '/favicon.ico',
    '/account',
    '/account/rooms',
    '/account/webhooks',
    '/inbox',
    '/moderate',
    '/embed',
    '/embed/v1.js',
    '/log',
    '/moderation',
    '/preview.png',
    '/capabilities',
    '/openapi.json',
    '/for-agents',
    '/llms.txt',
    '/metrics',
    '/healthz',
    '/time',
    '/api/stats',
    '/api/log/checkpoint',
    '/api/log/history',
    '/api/log/witnesses',
  ])
    fill.addRequest(path)
  for (const [text] of [[wideTable(1_000, 66)], [odd], ['<http://a>'.repeat(600)]])
    fill.requests.push({ of: '/preview', path: '/preview', body: { text: text!.slice(0, 32_760), format: 'markdown' } })
  for (const operation of ['post', 'work.create', 'tools.search', 'updates.get', 'room.policy.set'])
    fill.addRequest('/docs/{operation}', `/docs/${operation}`)
  fill.addRequest('/api/credits', '/api/credits?target=mint&limit=200')
  fill.addRequest('/api/moderation', '/api/moderation?limit=200')
  fill.addRequest('/api/log/leaves', '/api/log/leaves?start=0&end=200')
  fill.addRequest('/api/log/consistency', '/api/log/consistency?from=1&to=100')
}
