/** Pages for people: each answers, is valid, keeps what strangers wrote inert, and is never older than the board. */
import { HtmlValidate } from 'html-validate'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sizes } from '../../actors/kernel/limits.ts'
import { operations } from '../../actors/operations.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { patience } from '../support/patience.ts'
import { ada, bob, eve, fillSampleBoard, payloads, type SampleBoard } from '../support/sample-board.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

let shown: SampleBoard

beforeAll(async () => {
  const board = await startBoard({ directory: boardDirectory() })
  shown = await fillSampleBoard(board.address)
})
afterAll(() => shown?.client.close())

const get = (path: string, headers: Readonly<Record<string, string>> = {}) => shown.client.get(path, headers)

/** The body of a page, without the style element that every page has. */
const bodyOf = (html: string) => html.replace(/<style>.*?<\/style>/s, '')

test('every page is valid HTML with one first-level heading, a language, a skip link and a description', async () => {
  const validator = new HtmlValidate({ extends: ['html-validate:recommended'], rules: { 'long-title': 'off' } })
  const wrong: string[] = []
  for (const path of shown.paths) {
    const { status, text, headers } = await get(path)
    if (status !== 200) wrong.push(`${path}: ${status} ${text.slice(-400)}`)
    const report = await validator.validateString(text)
    for (const { messages } of report.results)
      for (const { ruleId, message, line, column } of messages)
        wrong.push(`${path}:${line}:${column} ${ruleId} ${message}`)
    if (text.match(/<h1[ >]/g)?.length !== 1) wrong.push(`${path}: not one h1`)
    if (
      !/<html lang="en">/.test(text) ||
      !text.includes('class="skip"') ||
      !/name="description" content="[^"]+"/.test(text)
    )
      wrong.push(`${path}: frame`)
    if (headers['content-type'] !== 'text/html; charset=utf-8') wrong.push(`${path}: ${headers['content-type']}`)
  }
  expect(wrong.slice(0, 10)).toEqual([])
})

test('a document is described in a preview by its words, without its Markdown', async () => {
  expect((await get(`/d/${shown.doc}`)).text).toContain('name="description" content="Plan, again')
})

test('every page has strict headers: no inline script or style but by hash, no frame, no sniffing, no cookie', async () => {
  for (const path of [...shown.paths, '/nowhere', '/e/unknown']) {
    const { headers } = await get(path, { accept: 'text/html' })
    const policy = String(headers['content-security-policy'])
    expect(policy, path).toContain("default-src 'none'")
    expect(policy).not.toContain('unsafe')
    expect(policy).toContain("require-trusted-types-for 'script'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['referrer-policy']).toBe('no-referrer')
    expect(headers['set-cookie']).toBeUndefined()
  }
  const { headers } = await get(/src="(\/assets\/page\.[^"]+)"/.exec((await get('/')).text)![1]!)
  expect(headers['cache-control']).toContain('immutable')
  expect(headers['content-type']).toBe('text/javascript; charset=utf-8')
})

test('responses for programs are never sniffed, and never active documents', async () => {
  const id = shown.post
  const paths = [
    '/api/events',
    '/api/nothing',
    '/capabilities',
    '/openapi.json',
    '/for-agents',
    '/llms.txt',
    '/robots.txt',
    '/api/stats',
    '/api/changes',
    '/v1/export?limit=1',
    '/metrics',
    '/healthz',
    '/log/vkey',
    `/api/events/${id}`,
    '/embed/v1.js',
  ]
  for (const path of paths) {
    const { headers } = await get(path)
    expect(headers['x-content-type-options'], path).toBe('nosniff')
    expect(headers['content-type'], path).not.toContain('html')
  }
  for (const path of paths.slice(0, 7))
    expect((await get(path)).headers['content-security-policy'], path).toContain("default-src 'none'")
})

describe('what strangers wrote', () => {
  /** Elements and attributes that no user text can produce. */
  const tagsOf = (html: string) => [...html.matchAll(/<([a-zA-Z][^\s/>]*)/g)].map(([, name]) => name!.toLowerCase())
  const known = new Set(
    'html head meta title script style link body a header form input button nav ul ol li div main p span article section aside footer h1 h2 h3 h4 h5 h6 b strong em code pre br small table thead tbody tr th td details summary dl dt dd svg path rect text g desc defs marker figure figcaption time label select option ins del blockquote hr s bdi noscript'.split(
      ' ',
    ),
  )

  test('is text in every page: no element, no handler, no address that runs', async () => {
    for (const path of shown.paths) {
      const { text } = await get(path)
      const body = bodyOf(text)
      expect(
        tagsOf(body).filter((name) => !known.has(name)),
        path,
      ).toEqual([])
      // Our own tags have quoted attributes; a quote inside one is written as a numeric entity.
      for (const [tag] of body.matchAll(/<[a-z][^>]*>/g)) {
        expect(tag.replace(/="[^"]*"/g, ''), `${path} ${tag}`).not.toMatch(/["'=]/)
        expect(tag.replace(/="[^"]*"/g, '=')).not.toMatch(/\s(on\w+|style|srcdoc|formaction)=/)
      }
      for (const [, href] of body.matchAll(/(?:href|src|action)="([^"]*)"/g))
        expect(href, path).toMatch(/^(\/|#|\?|https?:\/\/)/)
      // The theme script in the head and the scripts at the end; /embed shows the one it documents.
      expect(body.match(/<script>/g)).toHaveLength(1)
      expect(body.match(/<script /g)!.length).toBe(
        body.match(/<script (type="module" src="\/assets\/[a-z]+\.[\w-]{12}\.js"|src="\/embed\/v1\.js" [^>]*)>/g)!
          .length,
      )
    }
  })

  test('shows invisible and bidirectional characters by their number, everywhere', async () => {
    for (const path of ['/room/hostile?view=posts', '/room/workshop?view=posts', `/d/${shown.doc}`]) {
      const { text } = await get(path)
      const [bad] = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.exec(text.replace(/[\n\t\u200d]/g, '')) ?? []
      expect(bad?.codePointAt(0)?.toString(16), path).toBeUndefined()
      expect(text).toContain('<span class="odd">U+202E</span>')
    }
    const { text } = await get('/room/hostile?view=posts')
    expect(text.match(/\p{M}+/gu)!.every((marks) => marks.length <= 6)).toBe(true)
  })

  test('links pass on no rank, opener or referrer; a link that runs or disguises its target is not a link', async () => {
    for (const path of ['/room/hostile?view=posts', `/d/${shown.doc}`, '/search?q=click']) {
      for (const [link] of (await get(path)).text.matchAll(/<a href="https?:[^>]*>/g))
        expect(link).toContain('rel="nofollow ugc noopener noreferrer"')
    }
    const { text } = await get('/room/hostile?view=posts')
    expect(text).not.toMatch(/href="(javascript|data):/i)
    expect(text).not.toMatch(/href="https:\/\/a:b@/)
    expect(text).not.toContain('<img')
    expect((await get(`/e/${shown.post}`)).text).toContain('href="https://example.com/a_(b)"')
  })
})

test('a page is never older than what was confirmed, and a redacted text is in no page or preview', async () => {
  const { client } = shown
  const posted = await client.post(ada, { text: 'only just here', handle: 'ada' })
  const id = posted.data.event_id!
  const places = ['/', '/room/lobby', '/room/lobby?view=posts', `/e/${id}`, '/i/ada', '/search?q=only+just']
  for (const path of places) expect((await get(path)).text, path).toContain('only just here')
  const before = (await get(`/e/${id}/preview.png`)).headers.etag
  await client.command(ada, { operation: 'event.redact', event_id: id, reason: 'test' })
  for (const path of places) expect((await get(path)).text, path).not.toContain('only just here')
  expect((await get(`/e/${id}/preview.png`)).headers.etag).not.toBe(before)
  const { text } = await get(`/e/${shown.redacted}`)
  expect(text).not.toContain('a secret that goes')
  expect(text).toContain('It held a &#34;password&#34;.')
})

test('a room shows its threads, all its posts, or its documents; the front page shows the threads of all rooms', async () => {
  const { client } = shown
  const root = (
    await client.post(ada, {
      room: 'three-views',
      text: '# How do I begin?\n\nI have a key.',
      data: '{"schema":1,"format":"markdown"}',
    })
  ).data.event_id!
  await client.post(bob, { room: 'three-views', text: 'With a post.', reply_to: root })
  const threads = (await get('/room/three-views')).text
  expect(threads).toContain(`<h3 dir="auto"><a class="bare" href="/e/${root}">How do I begin?</a></h3>`)
  expect(threads).toContain('<p class="count"><b>1</b> reply</p>')
  expect(threads).not.toContain('With a post.')
  expect((await get('/room/three-views?view=posts')).text).toContain('With a post.')
  expect((await get('/room/three-views?view=documents')).text).toContain('There are no documents here yet')
  expect((await get('/')).text).toContain(`href="/e/${root}">How do I begin?</a>`)
  expect((await get('/?order=new')).text).toContain(`href="/e/${root}">How do I begin?</a>`)
  expect((await get('/?order=top&window=all')).text).toContain('aria-label="votes of the last"')
  await client.command(ada, { operation: 'event.redact', event_id: root, reason: 'test' })
  expect((await get('/')).text).not.toContain('How do I begin?')
})

test('the address of a post opens its page of the thread, and quotes the post it answers if that is on another page', async () => {
  const { client } = shown
  const root = (await client.post(ada, { room: 'deep', text: 'The first of many' })).data.event_id!
  const ids = [root]
  for (let n = 1; n <= 240; n++)
    ids.push(
      (await client.post(bob, { room: 'deep', text: `reply ${n}.`, reply_to: n === 230 ? ids[5]! : root })).data
        .event_id!,
    )
  const { text } = await get(`/e/${ids[230]}`)
  expect(text).toContain(`id="e-${ids[230]}" tabindex="-1" autofocus`)
  expect(text).toContain('reply 205.')
  expect(text).not.toContain('reply 204.')
  expect(text).toMatch(/in reply to <a href="\/e\/[0-9a-f]{32}"><span>@?\w+: <bdi>reply 5\.<\/bdi><\/span>/)
  expect(text).toContain('240 replies')
  const earlier = /<a rel="prev" href="([^"]+)">/.exec(text)![1]!.replaceAll('&#38;', '&')
  const before = (await get(earlier)).text
  expect(before).toContain('reply 105.')
  expect(before).not.toContain('reply 104.')
  const first = /<a rel="prev" href="([^"]+)">/.exec(before)![1]!.replaceAll('&#38;', '&')
  expect((await get(first)).text).toContain('The first of many')
  expect((await get(`/e/${root}`)).text).not.toContain('autofocus')
})

test('a work’s page shows each transition immediately', async () => {
  const { client } = shown
  const data = JSON.stringify({ schema: 1, title: 'Follow me', simulated: true })
  const offered = await client.command(ada, { operation: 'work.create', room: 'workshop', text: 'x', amount: 3, data })
  const { id } = (offered.data as unknown as { work: { id: string } }).work
  const stateOn = async (path: string) => /<span class="tag [a-z]*">(\w+)<\/span>/.exec((await get(path)).text)?.[1]
  expect(await stateOn(`/work/${id}`)).toBe('open')
  await client.command(bob, { operation: 'work.claim', event_id: id, data: '{"schema":1}' })
  expect(await stateOn(`/work/${id}`)).toBe('claimed')
  await client.command(bob, { operation: 'work.release', event_id: id, amount: 1 })
  expect(await stateOn(`/work/${id}`)).toBe('open')
  await client.command(ada, { operation: 'work.cancel', event_id: id, reason: 'enough' })
  expect(await stateOn(`/work/${id}`)).toBe('cancelled')
  expect((await get(`/work/${id}`)).text).toContain('they are back')
})

test('the same bytes are not sent twice: 304 until something changes, and gzip for clients that accept it', async () => {
  const same = (text: string) => text.replace(/data-live-change="\d+"/, '')
  // Notices of the works above may still be in flight to the room.
  const first = await vi.waitFor(async () => {
    const page = await get('/room/workshop')
    const again = await get('/room/workshop', { 'if-none-match': page.headers.etag! })
    expect(again.status).toBe(304)
    const packed = await fetch(`${shown.client.address}/room/workshop`, { headers: { 'accept-encoding': 'gzip' } })
    expect(packed.headers.get('content-encoding')).toBe('gzip')
    expect(packed.headers.get('etag')).not.toBe(page.headers.etag)
    expect(packed.headers.get('vary')).toBe('accept-encoding')
    expect(same(await packed.text())).toBe(same(page.text))
    return page
  }, patience)
  await shown.client.post(bob, { room: 'workshop', text: 'and now it is another page' })
  const after = await get('/room/workshop', { 'if-none-match': first.headers.etag! })
  expect(after.status).toBe(200)
  expect(after.text).toContain('and now it is another page')
})

test('a page of a room continues after the newest post of the room, however old its own posts are', async () => {
  await shown.client.post(bob, { text: 'on the main page' })
  const newest = (await shown.client.get('/api/events?room=lobby&limit=1')).data.events as unknown as [
    { event_id: string },
  ]
  const { text } = await get('/room/lobby?page=reports&view=posts')
  expect(text).toContain(`data-live-newest="${newest[0].event_id}"`)
})

test('the first page fits into 50 KB and one round trip, whatever is in the lobby', async () => {
  for (let n = 0; n < 10; n++) await shown.client.post(eve, { text: '<&"\u202e'.repeat(4_000) })
  const { text } = await get('/')
  expect(text.length).toBeLessThan(150_000)
  const packed = await fetch(`${shown.client.address}/`, { headers: { 'accept-encoding': 'gzip' } })
  // Undici decompresses; the bytes on the wire are what counts.
  const { gzipSync } = await import('node:zlib')
  expect(gzipSync(await packed.text()).length).toBeLessThan(14_600)
})

test('nothing of a private room is on any page; its addresses answer as the API does', async () => {
  for (const path of [...shown.paths, '/search?q=members']) {
    const { text } = await get(path)
    expect(text, path).not.toContain('only for members')
    expect(text, path).not.toContain('closed-room')
  }
  const refused = async (path: string) => {
    const { status, text } = await get(path)
    return [status, text.includes('only for members')]
  }
  expect(await refused('/room/closed-room')).toEqual([403, false])
  expect(await refused(`/e/${shown.hidden}`)).toEqual([403, false])
  expect(await refused('/room/no-such-room')).toEqual([400, false])
  expect(await refused(`/e/${shown.hidden}/preview.png`)).toEqual([403, false])
})

test('a preview shows a text of any allowed size as a page would, or what it changed', async () => {
  const preview = async (body: object) => {
    const answer = await fetch(`${shown.client.address}/preview`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return [answer.status, await answer.text()]
  }
  const holding = (part: string) => [200, expect.stringContaining(part)]
  expect(await preview({ text: 'a **word**', format: 'markdown' })).toEqual(holding('<strong>word</strong>'))
  expect(await preview({ text: 'a <b>', before: 'the <b>' })).toEqual(holding('<del>the</del><ins>a</ins> &#60;b&#62;'))
  expect(await preview({ text: 'same', before: 'same' })).toEqual(holding('The text is the same.'))
  const longest = `**a**${' word'.repeat(sizes.doc_text_bytes)}`.slice(0, sizes.doc_text_bytes)
  expect(await preview({ text: longest, format: 'markdown' })).toEqual(holding('<strong>a</strong>'))
  for (const wrong of [{}, { text: 'a' }, { text: 'a', before: 1 }, { text: `${longest} `, before: '' }])
    expect((await preview(wrong))[0], JSON.stringify(wrong).slice(0, 80)).toBe(400)
})

test('an invalid address gets an error page in the same look; programs get JSON', async () => {
  const cases: [path: string, status: number][] = [
    ['/room/NOT-A-ROOM', 400],
    ['/room/lobby?cursor=%00', 400],
    ['/room/lobby?cursor=AAAA', 400],
    ['/e/zz', 400],
    [`/d/${shown.doc}?version=0`, 400],
    [`/d/${shown.doc}?version=99`, 400],
    ['/i/%3Cscript%3E', 400],
    ['/i/nobody', 400],
    ['/docs/no.such', 400],
    ['/room/lobby/deeper/still', 404],
    ['/assets/page.000000000000.js', 404],
    ['/search?q=%zz', 400],
    ['/tools/%ff', 400],
  ]
  for (const [path, status] of cases) {
    const answer = await get(path, { accept: 'text/html' })
    expect([path, answer.status]).toEqual([path, status])
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(answer.text).toContain('<h1>')
    expect(bodyOf(answer.text)).not.toContain('<script>alert')
  }
  const json = await get('/nowhere', { accept: '*/*' })
  expect([json.status, json.headers['content-type'], json.code]).toEqual([
    404,
    'application/json; charset=utf-8',
    'no_such_path',
  ])
  expect((await get('/search?q=-only')).text).toContain('role="alert"')
  expect((await get('/tools?max_price=$1')).text).toContain('Write the maximum price as a number of dollars')
  expect((await get('/', { accept: '*/*' })).headers['content-type']).toBe('text/html; charset=utf-8')
})

test('a list with an expired cursor links to its beginning, and only private content asks for a key', async () => {
  const query = '?page=reports&view=posts&cursor=bad'
  for (const path of [
    `/room/lobby${query}`,
    '/rooms?q=w&cursor=bad',
    '/work?state=open&cursor=bad',
    '/tools?q=hash&cursor=bad',
    '/search?q=deeper&cursor=bad',
  ]) {
    const { status, text } = await get(path)
    expect([path, status, text.includes('data-write=')]).toEqual([path, 400, false])
    const first = path.replace('&cursor=bad', '').replaceAll('&', '&#38;')
    expect(text, path).toContain(`<a href="${first}">The first page of this list</a>`)
  }
  expect((await get('/room/no-such-room')).text).not.toContain('data-write=')
  expect((await get('/room/lobby?page=NO')).text).not.toContain('The first page of this list')
  expect((await get('/room/closed-room?cursor=bad')).text).toContain('data-write="private"')
})

test('the feed of works and the embed script are linked where one looks for them, and a room’s with its name', async () => {
  expect((await get('/work')).text).toContain(
    '<link rel="alternate" type="application/atom+xml" title="Newest works" href="/work.atom">',
  )
  expect((await get('/room/workshop')).text).toContain('href="/embed?room=workshop"')
  for (const path of ['/faq', '/docs']) {
    const { text } = await get(path)
    expect([path, text.includes('href="/embed"'), text.includes('href="/work.atom"')]).toEqual([path, true, true])
  }
  const line = async (path: string) => /data-room=&#34;([^ ]*)&#34; async/.exec((await get(path)).text)?.[1]
  expect(await line('/embed')).toBe('lobby')
  expect(await line('/embed?room=workshop')).toBe('workshop')
  expect(await line('/embed?room=%22%3E%3Cscript%3E')).toBe('lobby')
  expect((await get('/work?room=workshop')).text).toMatch(/<input type="text" name="room" value="workshop"/)
})

test('a sign-in that ended or began badly is a page for a person and JSON for a program, in the same words', async () => {
  const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
  for (const [path, status, words] of [
    ['/oauth/interaction/abcdefghijklmnopqrstu', 400, /^this sign-in is not in progress in this browser/],
    ['/oauth/authorize', 400, /client_id/],
    ['/oauth/authorize?client_id=%3Cb%3E', 400, /^this board does not know this client_id: .* and add it again/],
    ['/oauth/authorize?client_id=https%3A%2F%2F127.0.0.1%2Fclient', 400, /must be JSON at a public https address/],
    ['/oauth/nothing', 404, /^there is nothing at \/oauth\/nothing/],
  ] as const) {
    const program = await get(path, { accept: '*/*' })
    expect([program.status, program.headers['content-type']], path).toEqual([
      status,
      expect.stringContaining('application/json'),
    ])
    const { error, error_description: said } = JSON.parse(program.text) as Record<string, string>
    expect(said, path).toMatch(words)
    const person = await get(path, { accept })
    expect([person.status, person.headers['content-type'], person.headers['cache-control']], path).toEqual([
      status,
      'text/html; charset=utf-8',
      'no-store',
    ])
    expect(person.headers['content-security-policy'], path).toContain("default-src 'none'")
    expect(person.text, path).toContain(`<p class="crumbs">${status} ${error}</p>`)
    expect(person.text.replaceAll('&#39;', "'"), path).toContain(`The board says: ${said}.`)
  }
})

test('/docs has every operation with its fields, refusals, answer and example, from the declarations', async () => {
  const { text: index } = await get('/docs')
  for (const operation of operations) {
    expect(index).toContain(`href="/docs/${operation.name}"`)
    const { status, text } = await get(`/docs/${operation.name}`)
    expect(status, operation.name).toBe(200)
    for (const name of [...operation.required, ...operation.optional]) expect(text).toContain(`<code>${name}</code>`)
    for (const code of operation.refusals) expect(text).toContain(`/docs/refusals#${code}`)
  }
  const { data } = await get('/capabilities')
  const { limits } = data as unknown as { limits: Record<string, number | null> }
  const { text } = await get('/docs/limits')
  for (const name of Object.keys(limits)) expect(text).toContain(`<code>${name}</code>`)
})

test('lists can be paged forward and back', async () => {
  for (let n = 0; n < 60; n++) await shown.client.post(bob, { room: 'long', text: `number ${n}.` })
  const first = (await get('/room/long?view=posts')).text
  const next = /<a rel="next" href="([^"]+)">/.exec(first)![1]!.replaceAll('&#38;', '&')
  const second = (await get(next)).text
  const numbers = (text: string) => [...text.matchAll(/number (\d+)\.<\/p>/g)].map(([, n]) => Number(n))
  expect([...numbers(first), ...numbers(second)]).toEqual(Array.from({ length: 60 }, (_, n) => 59 - n))
  expect(second).toContain('Back to the first page')
  expect(second).not.toContain('data-live-room')
})

test('previews are inert PNGs of the stated size', async () => {
  for (const path of ['/preview.png', '/room/hostile/preview.png', `/e/${shown.post}/preview.png`]) {
    const answer = await fetch(shown.client.address + path)
    const bytes = Buffer.from(await answer.arrayBuffer())
    expect(answer.headers.get('content-type')).toBe('image/png')
    expect(answer.headers.get('content-security-policy')).toContain('sandbox')
    expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([1200, 630])
    expect(bytes.length).toBeLessThan(30_000)
  }
  expect((await get(`/e/${shown.post}`)).text).toContain(`/e/${shown.post}/preview.png`)
})

test('attachments are downloads, never pages', async () => {
  const { text } = await get('/room/lobby?view=posts')
  const [, href] = /<a href="(\/a\/[0-9a-f]{32})" download>/.exec(text)!
  const { headers } = await get(href!)
  expect(String(headers['content-disposition'])).toMatch(/^attachment/)
  expect(headers['content-security-policy']).toContain('sandbox')
  expect(headers['content-type']).not.toContain('html')
  expect(payloads.length).toBeGreaterThan(10)
})

test('a post counts the same on every page, people have their names, and pages accept the API’s parameter names', async () => {
  const lobby = (await get('/room/lobby')).text
  const [, posts] = /<p class="quiet">(\d+) posts<\/p>/.exec(lobby)!
  expect(lobby).toContain(`${posts} posts in the last 30 days`)
  expect((await get('/room/workshop')).text).toMatch(/<dt>owner<\/dt>\s*<dd><a class="person".*?<b>@ada<\/b>/)
  expect((await get('/log')).text).toContain('<dt>signature on the newest head</dt><dd>1</dd>')
  const work = shown.paths.find((path) => /^\/work\/[0-9a-f]{32}$/.test(path))!
  const { text: paid } = await get(work)
  expect(paid).toMatch(/<td[^>]*><a href="\/i\/[0-9a-f]{64}" title="identity [0-9a-f]{64}">@\w+<\/a>/)
  // Taking a hold moves nothing a second time.
  expect(paid.match(/<td[^>]*>escrow<\/td>/g)).toHaveLength(2)
  expect(paid).not.toContain('taken out of escrow')
  for (const [api, own] of [
    ['/tools?query=hash', '/tools?q=hash'],
    ['/search?query=tail', '/search?q=tail'],
    ['/work?kind=open', '/work?state=open'],
    ['/rooms?query=work', '/rooms?q=work'],
  ] as const) {
    const [one, other] = [await get(api), await get(own)]
    expect([api, one.status, bodyOf(one.text)]).toEqual([api, 200, bodyOf(other.text)])
  }
})

test('every page leads to how to run a board, and the answer names the package and whom to ask for it', async () => {
  for (const path of shown.paths) expect((await get(path)).text, path).toContain('href="/faq#own"')
  const { text } = await get('/faq')
  const answer = text.slice(text.indexOf('<h3 id="own">'))
  for (const words of ['broadside-1.0.0.tgz', 'href="/contact"', 'broadside serve']) expect(answer).toContain(words)
  for (const question of ['How do I write here?', 'I lost my key.']) expect(text).toContain(`<h3>${question}</h3>`)
})
