/** A room embedded in a third-party page, whose policy allows only the board's script and its streams. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { collectErrors, missingBrowser, openPage } from '../support/browser.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('ada')
const directory = boardDirectory()
let board: Board
let client: Client
let foreign: Server
let elsewhere: string
let address: string
let integrity: string

beforeAll(async () => {
  board = await startBoard({ directory })
  client = await Client.of(board)
  integrity = (JSON.parse((await client.get('/embed/v1.json')).text) as { data: { integrity: string } }).data.integrity
  foreign = createServer((request, response) => {
    const { pathname, search } = new URL(request.url!, 'http://x')
    const attributes = decodeURIComponent(search.slice(1))
    // The board, or the proxy to it at this port.
    const port = /^\/([0-9]+)$/.exec(pathname)?.[1]
    const origin = port === undefined ? board.address : `http://127.0.0.1:${port}`
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': `default-src 'none'; script-src ${origin}; connect-src ${origin}; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'`,
    })
    const more = pathname === '/module' ? 'type="module"' : pathname === '/head-at-once' ? '' : 'async'
    const script = `<script src="${origin}/embed/v1.js" integrity="${integrity}" crossorigin="anonymous" ${attributes} ${more}></script>`
    const [inHead, inBody] = pathname.startsWith('/head') ? [script, ''] : ['', script]
    response.end(`<!doctype html><html lang="en"><head><title>Elsewhere</title>${inHead}</head><body><h1>Elsewhere</h1>
${inBody.repeat(pathname === '/many' ? 8 : 1)}<p>after</p></body></html>`)
  })
  await new Promise<void>((done) => foreign.listen(0, '127.0.0.1', done))
  elsewhere = `http://127.0.0.1:${(foreign.address() as AddressInfo).port}/`
  address = `${elsewhere}?`
})
afterAll(() => {
  client.close()
  foreign.closeAllConnections()
  foreign.close()
})

/** What the browser has and Node does not. */
type Styled = { getComputedStyle(element: unknown): { backgroundColor: string } }

const texts = (page: Page) => page.locator('li p').allTextContents()

test('the script is small, pinned by its hash, and may be loaded and cached anywhere', async () => {
  const { headers, text } = await client.get('/embed/v1.js')
  expect(headers['content-type']).toBe('text/javascript; charset=utf-8')
  expect(headers['access-control-allow-origin']).toBe('*')
  expect(headers['cross-origin-resource-policy']).toBe('cross-origin')
  expect(gzipSync(text).length).toBeLessThan(6 * 1024)
  expect((await client.get('/embed/v1.js', { 'if-none-match': headers.etag! })).status).toBe(304)
})

describe.skipIf(skipWithout(missingBrowser))(`on a foreign page${skipNote(missingBrowser)}`, () => {
  test('without a room it says what is missing', async () => {
    const page = await openPage()
    await page.goto(`${address}data-limit="3"`)
    await expect.poll(() => page.locator('[role=status]').textContent()).toContain('data-room is missing')
    await page.close()
  })

  test('from the head of a page, the room is shown at the end of the page, and the console names the fix', async () => {
    await client.post(ada, { room: 'overhead', text: 'from the head' })
    for (const path of ['head', 'head-at-once']) {
      const page = await openPage()
      const warned = page.waitForEvent('console', { predicate: (said) => said.type() === 'warning' })
      await page.goto(`${elsewhere}${path}?data-room="overhead"`)
      await page.getByText('from the head').waitFor()
      expect(await page.locator('body > :last-child').getByText('from the head').count()).toBe(1)
      expect((await warned).text()).toContain('Move the script to where the room should be.')
      await page.context().close()
    }
  })

  test('as a module, which has no place in the page, it says what to change', async () => {
    const page = await openPage()
    const complaints = collectErrors(page)
    await page.goto(`${elsewhere}module?data-room="square"`)
    await expect.poll(() => complaints, patience).toEqual([expect.stringContaining('without type="module"')])
    await page.context().close()
  })

  test('the newest posts are shown, and posts, edits and redactions also over a restart, once and in order', async () => {
    await client.command(ada, { operation: 'room.create', room: 'square' })
    for (let n = 0; n < 5; n++) await client.post(ada, { room: 'square', text: `before ${n}` })
    const page = await openPage()
    const complaints = collectErrors(page)
    await page.goto(`${address}data-room="square" data-limit="3"`)
    await expect.poll(() => texts(page)).toEqual(['before 2', 'before 3', 'before 4'])

    const first = (await client.post(ada, { room: 'square', text: 'live 0' })).data.event_id!
    for (let n = 1; n < 30; n++) await client.post(ada, { room: 'square', text: `live ${n}` })
    await expect.poll(() => texts(page)).toEqual(['live 27', 'live 28', 'live 29'])

    const last = (await client.post(ada, { room: 'square', text: 'to be changed' })).data.event_id!
    await client.post(ada, { room: 'square', text: 'changed', data: JSON.stringify({ schema: 1, supersedes: last }) })
    await expect.poll(() => texts(page)).toEqual(['live 28', 'live 29', 'changed'])
    // An edit is none of the requested posts.
    const anew = await openPage()
    await anew.goto(`${address}data-room="square" data-limit="3"`)
    await expect.poll(() => texts(anew)).toEqual(['live 28', 'live 29', 'changed'])
    await anew.context().close()
    await client.command(ada, { operation: 'event.redact', event_id: last, reason: 'second thoughts' })
    await client.command(ada, { operation: 'event.redact', event_id: first, reason: 'not shown any more' })
    await expect.poll(() => texts(page)).toEqual(['live 28', 'live 29', '(second thoughts)'])

    const port = board.port
    await board.kill()
    client.close()
    board = await startBoard({ directory, port })
    client = await Client.of(board)
    await client.post(ada, { room: 'square', text: 'after the kill' })
    await expect.poll(() => texts(page)).toEqual(['live 29', '(second thoughts)', 'after the kill'])
    // The browser itself reports a cut connection in the console.
    expect(complaints.filter((each) => !each.includes('net::ERR_'))).toEqual([])
    await page.context().close()
  })

  test('eight on one page all show the posts, and four of them are live; a hidden page is connected to nothing', async () => {
    await client.post(ada, { room: 'octagon', text: 'begun' })
    const page = await openPage()
    await page.goto(`${elsewhere}many?data-room="octagon"`)
    await expect.poll(() => texts(page), patience).toEqual(Array(8).fill('begun'))
    const states = async () => (await page.locator('[role=status]').allTextContents()).sort()
    const [live, listed] = [Array(4).fill('live'), Array(4).fill('updated every 15 s')]
    await expect.poll(states, patience).toEqual([...live, ...listed])
    await client.post(ada, { room: 'octagon', text: 'gone on' })
    await expect
      .poll(async () => (await texts(page)).filter((text) => text === 'gone on').length, patience)
      .toBeGreaterThanOrEqual(4)
    await expect.poll(async () => (await texts(page)).filter((text) => text === 'gone on').length, patience).toBe(8)
    const openStreams = () => page.evaluate<number>(`globalThis[Symbol.for('streams of ${board.address}')].size`)
    expect(await openStreams()).toBe(4)
    await page.evaluate(
      "Object.defineProperty(document, 'visibilityState', { value: 'hidden' }); document.dispatchEvent(new Event('visibilitychange'))",
    )
    expect(await openStreams()).toBe(0)
    await page.context().close()
  })

  test('redactions, edits and posts during a lost connection are shown when it is back', async () => {
    const room = 'cut-off'
    const say = async (fields: object) => (await client.post(ada, { room, ...fields })).data.event_id!
    const redact = (id: string) =>
      client.command(ada, { operation: 'event.redact', event_id: id, reason: 'taken back' })
    const [secret, draft] = [await say({ text: 'a secret' }), await say({ text: 'a draft' })]
    const [early, last] = [await say({ text: 'known to be gone' }), await say({ text: 'the last secret' })]
    const way = await startTcpProxy(board.port)
    const page = await openPage()
    await page.goto(`${elsewhere}${new URL(way.address).port}?data-room="${room}" data-limit="5"`)
    await expect.poll(() => texts(page)).toEqual(['a secret', 'a draft', 'known to be gone', 'the last secret'])
    await redact(early)
    await expect.poll(() => texts(page)).toEqual(['a secret', 'a draft', '(taken back)', 'the last secret'])
    way.block()
    await redact(secret)
    await redact(last)
    await say({ text: 'edited', data: JSON.stringify({ schema: 1, supersedes: draft }) })
    await redact(await say({ text: 'never seen' }))
    await say({ text: 'meanwhile' })
    way.unblock()
    const after = ['(taken back)', 'edited', '(taken back)', '(taken back)', 'meanwhile']
    await expect.poll(() => texts(page)).toEqual(after)
    expect(await page.locator('.about span:visible', { hasText: 'edited' }).count()).toBe(1)
    await page.context().close()
    way.close()
  })

  test('it fetches only one page of a room, however far behind', async () => {
    await client.post(ada, { room: 'square', page: 'plans', text: 'a plan' })
    for (let n = 0; n < 5; n++) await client.post(ada, { room: 'square', text: `noise ${n}` })
    const page = await openPage()
    await page.goto(`${address}data-room="square" data-page="plans" data-limit="2"`)
    await expect.poll(() => texts(page)).toEqual(['a plan'])
    await client.post(ada, { room: 'square', text: 'more noise' })
    await client.post(ada, { room: 'square', page: 'plans', text: 'a better plan' })
    await expect.poll(() => texts(page)).toEqual(['a plan', 'a better plan'])
    await page.context().close()
  })

  test('hostile texts are plain text: no script, no markup, no reversed text', async () => {
    const hostile = [
      '<img src=x onerror=alert(1)><script>alert(2)</script>',
      '</style><style>*{display:none}</style>javascript:alert(3)',
      'a\u202ebackwards\u2066 and \u0007 bell \u200b',
    ]
    for (const text of hostile) await client.post(ada, { room: 'square', text })
    const page = await openPage()
    const complaints = collectErrors(page)
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).origin))
    await page.goto(`${address}data-room="square" data-limit="3"`)
    await expect
      .poll(() => texts(page))
      .toEqual([hostile[0], hostile[1], 'a\\u{202e}backwards\\u{2066} and \\u{7} bell \\u{200b}'])
    expect(await page.locator('img, script:not([data-room])').count()).toBe(0)
    expect([...new Set(asked)].sort()).toEqual([new URL(address).origin, board.address].sort())
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('light and dark follow the reader, or the setting of the page', async () => {
    const paper = (page: Page) =>
      page
        .locator('section')
        .evaluate((section) => (globalThis as unknown as Styled).getComputedStyle(section).backgroundColor)
    for (const [scheme, theme, colour] of [
      ['light', '', 'rgb(255, 255, 255)'],
      ['dark', '', 'rgb(24, 25, 27)'],
      ['light', 'data-theme="dark"', 'rgb(24, 25, 27)'],
      ['dark', 'data-theme="light"', 'rgb(255, 255, 255)'],
    ] as const) {
      const page = await openPage({ colorScheme: scheme })
      await page.goto(`${address}data-room="square" ${theme}`)
      await expect.poll(() => paper(page)).toBe(colour)
      await page.context().close()
    }
  })

  test('a room that cannot be read is reported', async () => {
    await client.command(ada, { operation: 'room.create', room: 'behind-doors', visibility: 'private' })
    for (const room of ['behind-doors', 'nowhere-at-all']) {
      const page = await openPage()
      await page.goto(`${address}data-room="${room}"`)
      await expect.poll(() => page.locator('[role=status]').textContent()).toBe('this room cannot be read here')
      await page.context().close()
    }
  })
})
