/** A board with one of everything that has a page, for tests of pages: their paths and readers. */
import { toolPath } from '../../src/tools/path.ts'
import { Client, type Data, person } from './client.ts'

export const ada = person('ada')
export const bob = person('bob')
export const eve = person('eve')

/** What strangers write to break out of a page (fault matrix, W4). */
export const payloads = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "'-alert(1)-'",
  '</style><style>*{display:none}</style>',
  '</textarea></title><svg onload=alert(1)>',
  'javascript:alert(1)',
  '[click](javascript:alert(1)) ![x](https://example.invalid/track.png)',
  '<a href="data:text/html,<script>alert(1)</script>">x</a>',
  '\u202egnp.exe\u202c \u2066x\u2069 \u200bzero\u200b \u001b[2J \u0007 \u00ad \ufeff',
  '{{constructor.constructor("alert(1)")()}} <!-- --> ]]> &lt;script&gt;',
  'https://example.invalid/"onmouseover="alert(1)" https://a:b@example.invalid/ https://example.invalid/<b>',
  'Z\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308\u0309\u030a\u030b\u030c\u030d\u030e\u030f\u0310\u0311\u0312algo',
] as const

/** A word that cannot be broken, as long as a text, a name, a title or a tag may be. */
const word = (letter: string, length: number) => letter.repeat(length)

export type SampleBoard = {
  readonly client: Client
  /** Ids of a post with replies, an edited one, a redacted one, a document, and one in a private room. */
  readonly post: string
  readonly edited: string
  readonly redacted: string
  readonly doc: string
  readonly hidden: string
  /** Every path that has a page, of every kind. */
  readonly paths: readonly string[]
  /** Pages of things whose names and texts are one word each. */
  readonly longWordPaths: readonly string[]
}

type SendPost = (who: typeof ada, fields: Parameters<Client['post']>[1]) => Promise<string>
type RunCommand = (who: typeof ada, fields: Parameters<Client['command']>[1]) => Promise<CommandData>
type CommandData = Data & {
  readonly doc?: { readonly id: string }
  readonly blob?: { readonly id: string }
  readonly work?: { readonly id: string }
}

export async function fillSampleBoard(address: string): Promise<SampleBoard> {
  const client = await Client.of({ address })
  const say: SendPost = async (who, fields) => {
    const { status, text, data } = await client.post(who, fields)
    if (status !== 200) throw new Error(text)
    return data.event_id!
  }
  const run: RunCommand = async (who, fields) => {
    const { status, text, data } = await client.command(who, fields)
    if (status !== 200) throw new Error(text)
    return data as CommandData
  }
  const post = await say(ada, {
    text: 'Is there a way to follow a room? See https://example.com/a_(b).',
    handle: 'ada',
  })
  let reply = await say(bob, { text: 'Yes, @ada: its tail.', reply_to: post, handle: 'bob' })
  for (let n = 0; n < 9; n++) reply = await say(n % 2 === 0 ? ada : bob, { text: `deeper ${n}`, reply_to: reply })
  await say(eve, { text: 'Beside.', reply_to: post, page: 'main', kind: 'result' })
  const markdown = '{"schema":1,"format":"markdown"}'
  const edited = await say(bob, {
    text: '# Title\n\n### deep\n\n| a | b |\n|:-:|---|\n| 1 | 2 |',
    data: markdown,
    page: 'reports',
  })
  await say(bob, {
    text: '# Title\n\nother words',
    data: JSON.stringify({ schema: 1, supersedes: edited }),
    page: 'reports',
  })
  const redacted = await say(eve, { text: 'a secret that goes' })
  await run(eve, { operation: 'event.redact', event_id: redacted, reason: 'It held a "password".' })
  const put = await run(ada, {
    operation: 'blob.put',
    room: 'lobby',
    filename: 'x"><b>.html',
    media_type: 'text/html',
    data: Buffer.from('<script>alert(1)</script>').toString('base64url'),
  })
  await say(ada, { text: 'with a file', attachments: [put.blob!.id] })
  for (const text of payloads) await say(eve, { room: 'hostile', text })
  for (const text of payloads) await say(eve, { room: 'hostile', text, data: markdown })
  await run(ada, { operation: 'room.create', room: 'workshop', text: payloads.join(' ') })
  await run(ada, {
    operation: 'room.policy.set',
    room: 'workshop',
    data: JSON.stringify({ rules: payloads.join('\n') }),
  })
  const title = payloads[1]
  const { doc } = await run(ada, {
    operation: 'docs.create',
    room: 'workshop',
    text: `# Plan\n\n${payloads.join('\n\n')}`,
    data: JSON.stringify({ schema: 1, title }),
  })
  await run(ada, {
    operation: 'docs.write',
    target: doc!.id,
    text: `# Plan, again\n\n${payloads.join('\n\n')}`,
    data: '{"schema":1,"base_version":1}',
  })
  await run(eve, {
    operation: 'identity.profile.set',
    data: JSON.stringify({
      schema: 1,
      description: payloads.join('\n'),
      capabilities: ['review'],
      links: ['https://example.invalid/\'"><script>alert(1)</script>'],
    }),
  })
  const practice = (title: string) => JSON.stringify({ schema: 1, title, simulated: true, capabilities: ['review'] })
  const offered = await run(ada, {
    operation: 'work.create',
    room: 'workshop',
    text: payloads.join('\n'),
    amount: 40,
    data: practice(title),
  })
  const work = offered.work!.id
  await run(bob, { operation: 'work.claim', event_id: work, data: '{"schema":1}' })
  const result = await say(bob, { reply_to: work, kind: 'result', text: payloads[0] })
  await run(bob, { operation: 'work.submit', event_id: work, amount: 1, target: result, data: '{"schema":1}' })
  await run(ada, { operation: 'work.accept', event_id: work, data: '{"schema":1}' })
  const open = await run(ada, {
    operation: 'work.create',
    room: 'workshop',
    text: 'Say hello.',
    amount: 7,
    data: practice('Practice'),
  })
  const longWordPaths = await fillWithLongWords(say, run)
  await run(ada, { operation: 'room.create', room: 'closed-room', visibility: 'private' })
  const hidden = await say(ada, { room: 'closed-room', text: 'only for members' })
  const { data } = await client.get('/api/identities')
  const eveId = data.identities!.find(({ handle }) => handle === undefined)!.id
  const paths = [
    '/',
    '/rooms',
    '/room/lobby',
    '/room/lobby?page=reports',
    '/room/lobby?view=posts',
    '/room/hostile',
    '/room/hostile?view=posts',
    '/room/workshop?view=documents',
    '/room/workshop',
    `/e/${post}`,
    `/e/${edited}`,
    `/e/${edited}/history`,
    `/e/${edited}/proof`,
    `/e/${redacted}`,
    `/d/${doc!.id}`,
    `/d/${doc!.id}?version=1`,
    `/d/${doc!.id}/history`,
    '/i/ada',
    `/i/${eveId}`,
    '/work',
    '/work?room=workshop&sort=reward',
    `/work/${work}`,
    `/work/${open.work!.id}`,
    '/tools',
    '/tools?q=hash',
    toolPath('broadside:hash'),
    '/tools?subject=s_0123456789abcdef',
    '/log',
    '/moderation',
    '/search',
    '/search?q=deeper',
    '/docs',
    '/docs/post',
    '/docs/tools.search',
    '/docs/signing',
    '/docs/refusals',
    '/docs/limits',
    '/docs/works',
    '/docs/credits',
    '/docs/import',
    '/faq',
    '/agents',
    '/embed',
    '/embed?room=workshop',
  ]
  return { client, post, edited, redacted, doc: doc!.id, hidden, paths, longWordPaths }
}

/**
 * Everything that a stranger names, in one word each, by ada. @returns paths of pages that show it, besides those of ada and of the lists
 */
async function fillWithLongWords(sendPost: SendPost, run: RunCommand): Promise<string[]> {
  const [room, title, long] = [word('w', 64), word('T', 110), word('L', 900)]
  await run(ada, { operation: 'room.create', room, text: long })
  await run(ada, { operation: 'room.policy.set', room, data: JSON.stringify({ rules: long }) })
  const { doc } = await run(ada, {
    operation: 'docs.create',
    room,
    text: `${long}\n\n    ${long}\n\n| ${title} | ${title} |\n|-|-|\n| a | b |`,
    data: JSON.stringify({ schema: 1, title }),
  })
  const put = await run(ada, {
    operation: 'blob.put',
    room,
    filename: word('f', 120),
    media_type: 'text/plain',
    data: 'YQ',
  })
  const [page, kind] = [word('p', 64), word('k', 64)]
  const post = await sendPost(ada, { room, page, kind, text: long, attachments: [put.blob!.id] })
  await sendPost(ada, { room, page, text: long, data: JSON.stringify({ schema: 1, supersedes: post }) })
  const { work } = await run(ada, {
    operation: 'work.create',
    room,
    text: long,
    amount: 1,
    data: JSON.stringify({ schema: 1, title, simulated: true, capabilities: [word('c', 40)] }),
  })
  const profile = {
    schema: 1,
    description: long,
    capabilities: [word('c', 40)],
    links: [`https://${word('l', 60)}.com/`],
  }
  await run(ada, { operation: 'identity.profile.set', data: JSON.stringify(profile) })
  return [
    `/room/${room}`,
    `/room/${room}?page=${page}`,
    `/e/${post}`,
    `/e/${post}/history`,
    `/e/${post}/proof`,
    `/d/${doc!.id}`,
    `/d/${doc!.id}/history`,
    `/work/${work!.id}`,
  ]
}
