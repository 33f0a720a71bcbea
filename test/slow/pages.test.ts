/**
 * Pages in a real browser: live over lost connections, accessible (axe-core), readable without scripts, and immune to what strangers wrote.
 * With SCREENSHOTS=directory a picture of every page is saved there, at two widths and in both themes.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { collectErrors, missingBrowser, openPage } from '../support/browser.ts'
import { person } from '../support/client.ts'
import { corpus, corpusTexts } from '../support/corpus.ts'
import { randomPart } from '../support/random-part.ts'
import { ada, fillSampleBoard, payloads, type SampleBoard } from '../support/sample-board.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const pictures = process.env.SCREENSHOTS ?? ''
const directory = boardDirectory()
let board: Board
let shown: SampleBoard

beforeAll(async () => {
  board = await startBoard({ directory })
  shown = await fillSampleBoard(board.address)
})
afterAll(() => shown?.client.close())

/** Rows of the corpus that are shown. */
const rowsMax = Number(process.env.PAGE_ROWS ?? 400)
const themes = ['light', 'dark'] as const
const widths = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 900 } } as const

/** What the browser has and Node does not. */
type Window = { readonly axe: { run(options: object): Promise<{ violations: readonly Violation[] }> } }
type Violation = { readonly id: string; readonly help: string; readonly nodes: readonly { readonly html: string }[] }

const numbersOn = async (page: Page): Promise<number[]> => {
  const texts = await page.locator('[data-live-room] .text').allTextContents()
  return texts.flatMap((text) => /^live (\d+)$/.exec(text)?.slice(1).map(Number) ?? [])
}

/** The seqs of the posts that the live list shows. */
const placesOn = (page: Page): Promise<number[]> =>
  page
    .locator('[data-live-room] article')
    .evaluateAll((posts) => posts.map((post) => Number((post as unknown as { dataset: { seq: string } }).dataset.seq)))

const lookAgain = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const { document } = globalThis as unknown as { document: EventTarget }
    document.dispatchEvent(new Event('visibilitychange'))
  })

describe.skipIf(skipWithout(missingBrowser))(`in a browser${skipNote(missingBrowser)}`, () => {
  test('a hundred posts arrive while the lobby is open, over a lost connection: all, once, in order', async () => {
    const way = await startTcpProxy(board.port)
    const page = await openPage()
    const complaints = collectErrors(page)
    await page.goto(`${way.address}/room/lobby?view=posts`)
    await page.waitForSelector('#live[data-state=on]')
    for (let n = 0; n < 100; n++) {
      await shown.client.post(ada, { text: `live ${n}` })
      if (n === 40) way.disconnect()
    }
    await expect.poll(() => numbersOn(page)).toEqual(Array.from({ length: 100 }, (_, n) => 99 - n))
    expect(complaints.filter((each) => !/ERR_|Failed to load/.test(each))).toEqual([])
    way.close()
  })

  test('after many connection attempts nothing is missing, and nothing old is on top', async () => {
    const way = await startTcpProxy(board.port)
    const [room, before, meanwhile] = ['patient', 60, 210]
    const { client } = shown
    const many = (count: number) =>
      Promise.all(Array.from({ length: count }, () => client.post(ada, { room, text: 'one of many' })))
    await many(before)
    const { event_id: secret } = (await client.post(ada, { room, text: 'for a moment' })).data
    const page = await openPage()
    await page.goto(`${way.address}/room/${room}?view=posts`)
    await page.waitForSelector('#live[data-state=on]')
    const first = await placesOn(page)
    expect(first).toEqual(Array.from({ length: 50 }, (_, n) => before + 1 - n))
    way.block()
    for (let attempts = 0; attempts < 4; attempts++) {
      const failed = page.waitForEvent('requestfailed', (request) => request.url().includes('/tail/'))
      await lookAgain(page)
      await failed
    }
    await many(meanwhile)
    await client.command(ada, { operation: 'event.redact', event_id: secret!, reason: 'over' })
    const unseen = (await client.post(ada, { room, text: 'nobody reads this' })).data.event_id!
    await client.command(ada, { operation: 'event.redact', event_id: unseen, reason: 'at once' })
    await client.post(ada, { room, text: 'the last' })
    way.unblock()
    await lookAgain(page)
    const newest = before + 1 + meanwhile
    await expect
      .poll(() => placesOn(page))
      .toEqual([newest + 2, ...Array.from({ length: 50 + meanwhile }, (_, n) => newest - n)])
    await expect.poll(() => page.locator(`#e-${secret} .text`).textContent()).toContain('The text is gone: over')
    expect(await page.textContent('#live')).toContain(`Live. ${meanwhile + 1} new`)
    way.close()
  })

  test('a page from a board with more posts than the one that answers now switches to the current list', async () => {
    const { client } = shown
    const room = 'put-back'
    await client.post(ada, { room, text: 'kept' })
    const page = await openPage()
    const address = `${board.address}/room/${room}?view=posts`
    const lost = '0'.repeat(32)
    await page.route(
      address,
      async (route) => {
        const html = await (await route.fetch()).text()
        const { event_id: id } = (await client.get(`/api/events?room=${room}`)).data.events![0] as { event_id: string }
        await route.fulfill({ body: html.replaceAll(id, lost).replace('>kept<', '>lost<'), contentType: 'text/html' })
      },
      { times: 1 },
    )
    await page.goto(address)
    const texts = () => page.locator('[data-live-room] .text').allTextContents()
    await expect.poll(texts).toEqual(['kept'])
    await client.post(ada, { room, text: 'live again' })
    await expect.poll(texts).toEqual(['live again', 'kept'])
    await page.context().close()
  })

  test('edits and redactions change a post in place, also those during a lost connection', async () => {
    const way = await startTcpProxy(board.port)
    const { client } = shown
    const ids = await Promise.all(
      ['to edit', 'to redact', 'to redact unheard'].map(
        async (text) => (await client.post(ada, { room: 'changing', text })).data.event_id!,
      ),
    )
    const page = await openPage()
    await page.goto(`${way.address}/room/changing?view=posts`)
    await page.waitForSelector('#live[data-state=on]')
    const textOf = (id: string) => page.locator(`#e-${id} .text`).textContent()
    const supersedes = JSON.stringify({ schema: 1, supersedes: ids[0] })
    await client.post(ada, { room: 'changing', text: 'edited', data: supersedes })
    await client.command(ada, { operation: 'event.redact', event_id: ids[1]!, reason: 'gone' })
    await expect.poll(() => textOf(ids[0]!)).toBe('edited')
    await expect.poll(() => textOf(ids[1]!)).toContain('The text is gone: gone')
    // If it expired before the page had shown it, another one lives longer.
    const texts: (string | null)[] = []
    for (let ttl = 2; !texts.includes('not for long') && ttl < 1_000; ttl *= 4) {
      const short = (await client.post(ada, { room: 'changing', text: 'not for long', ttl })).data.event_id!
      const shown = async () => {
        texts.push(await textOf(short))
        return texts.at(-1)
      }
      await expect.poll(shown, { interval: 10 }).toContain('The text is gone: expired')
    }
    expect(texts).toContain('not for long')
    way.disconnect()
    await client.command(ada, { operation: 'event.redact', event_id: ids[2]!, reason: 'unheard' })
    await expect.poll(() => textOf(ids[2]!)).toContain('The text is gone: unheard')
    way.close()
  })

  test('a post that arrives live looks as it does after a reload', async () => {
    const { client } = shown
    const room = 'alike'
    const say = async (fields: object) => {
      const { status, text, data } = await client.post(ada, { room, ...fields })
      expect(status, text).toBe(200)
      return data.event_id!
    }
    const data = (more: object) => JSON.stringify({ schema: 1, ...more })
    const markdown = data({ format: 'markdown' })
    const first = await say({
      text: 'the first of them, and it says more than fits into one line of a reply to it: '.repeat(2),
    })
    const page = await openPage()
    const complaints = collectErrors(page)
    await page.goto(`${board.address}/room/${room}?view=posts`)
    await page.waitForSelector('#live[data-state=on]')
    const put = { operation: 'blob.put', room, filename: 'notes.txt', media_type: 'text/plain' }
    const { blob } = (await client.command(ada, { ...put, data: Buffer.alloc(1_500).toString('base64url') }))
      .data as unknown as { blob: { id: string } }
    await say({ text: 'See https://example.com/a_(b), @ada.\n\tAnd so on.', reply_to: first, page: 'side' })
    const laidOut = await say({
      text: '## Plan\n\n- one\n- *two*\n\n| a | b |\n|---|---|\n| 1 | `2` |',
      data: markdown,
    })
    await say({ text: 'kept for a day', kind: 'result', ttl: 86_400, reply_to: laidOut })
    await say({ text: `**cut** ${'and long '.repeat(120)}`, data: markdown, attachments: [blob.id] })
    await say({ text: `plain ${'and long '.repeat(120)}` })
    await say({ text: `turned \u202egnp.exe, piled Z${'\u0301'.repeat(12)}, joined \u{1f469}\u200d\u{1f680}` })
    const [plain, better] = [await say({ text: 'to be edited' }), await say({ text: '*to be edited*', data: markdown })]
    await say({ text: 'edited', data: data({ supersedes: plain }) })
    await say({ text: '**edited**', data: data({ supersedes: better, format: 'markdown' }) })
    for (const text of payloads) await say({ text, data: markdown })
    await say({ text: 'the last' })
    /** Every post as tags, attributes and texts, except whether it is new and how long ago it was. */
    const standing = (of: Page) =>
      of.evaluate(() => {
        type Node = {
          readonly nodeType: number
          readonly textContent: string
          readonly tagName: string
          readonly attributes: Iterable<{ name: string; value: string }>
          readonly childNodes: Iterable<Node>
        }
        const told = (node: Node): unknown => {
          if (node.nodeType === 3) return node.textContent.trim()
          const attributes = [...node.attributes].map(({ name, value }) => `${name}=${value.replace(/ ?fresh$/, '')}`)
          const head = [node.tagName.toLowerCase(), ...attributes.sort()]
          if (head[0] === 'time') return head.filter((each) => !each.startsWith('title='))
          return [head, ...[...node.childNodes].map(told).filter((each) => each !== '')]
        }
        const { document } = globalThis as unknown as {
          document: { querySelectorAll(selector: string): Iterable<Node> }
        }
        return [...document.querySelectorAll('[data-live-room] article')].map((each) => JSON.stringify(told(each)))
      })
    const anew = await openPage()
    await anew.goto(page.url())
    // The buttons under a post appear once the script of the page has looked for a key.
    const count = 10 + payloads.length
    await expect.poll(() => anew.locator('[data-live-room] article .acts').count()).toBe(count)
    const expected = await standing(anew)
    expect(expected).toHaveLength(count)
    await expect.poll(() => standing(page)).toEqual(expected)
    expect(complaints).toEqual([])
  })

  test.each(themes)('axe-core finds nothing wrong on any page, %s', async (colorScheme) => {
    const page = await openPage({ colorScheme, viewport: widths.desktop, bypassCSP: true })
    const wrong: string[] = []
    for (const path of randomPart([...shown.paths, '/nowhere'])) {
      await page.goto(board.address + path)
      if (path.startsWith('/embed')) await page.locator('[role=log] li').first().waitFor()
      await page.evaluate(axe)
      // Themes differ only in their colors.
      for (const viewport of colorScheme === 'light' ? [widths.desktop, widths.phone] : [widths.desktop]) {
        await page.setViewportSize(viewport)
        const { violations } = await page.evaluate(
          (options) => (globalThis as unknown as Window).axe.run(options),
          // axe-core checks the size of targets only on request.
          colorScheme === 'light'
            ? { rules: { 'target-size': { enabled: true } } }
            : { runOnly: ['color-contrast', 'link-in-text-block'] },
        )
        for (const { id, help, nodes } of violations)
          wrong.push(`${path} at ${viewport.width} ${id}: ${help}: ${nodes[0]?.html.slice(0, 160)}`)
      }
    }
    expect(wrong).toEqual([])
  })

  test.each(Object.entries(widths))(
    'no page scrolls sideways, each stays in its columns and is saved as a picture, %s',
    async (name, viewport) => {
      if (pictures !== '') mkdirSync(pictures, { recursive: true })
      const wide: string[] = []
      for (const colorScheme of pictures === '' ? (['light'] as const) : themes) {
        const page = await openPage({ colorScheme, viewport })
        for (const path of [...shown.paths, ...shown.longWordPaths, '/nowhere', `/room/${'z'.repeat(64)}`]) {
          await page.goto(board.address + path)
          const [scroll, inner, headLeft, contentLeft] = await page.evaluate(() => {
            type Box = { getBoundingClientRect(): { left: number } }
            const { document, innerWidth } = globalThis as unknown as {
              document: { documentElement: { scrollWidth: number }; querySelector(selector: string): Box }
              innerWidth: number
            }
            const left = (selector: string) => document.querySelector(selector).getBoundingClientRect().left
            return [document.documentElement.scrollWidth, innerWidth, left('.head'), left('.content')] as const
          })
          if (scroll > inner) wide.push(`${path}: ${scroll} > ${inner}`)
          if (headLeft !== contentLeft) wide.push(`${path}: the text does not begin below its heading`)
          const file = `${name}-${colorScheme}${path.replace(/[^\w.-]+/g, '-').replace(/[0-9a-f]{32,64}/, 'id')}.png`
          if (pictures !== '') await page.screenshot({ path: join(pictures, file), fullPage: true })
        }
      }
      expect(wide).toEqual([])
    },
  )

  test('at 320 pixels, as at a zoom of 400%, the search field has room for words, signed in or not', async () => {
    const page = await openPage({ viewport: { width: 320, height: 640 } })
    const room = async () => (await page.getByLabel('Search terms').boundingBox())!.width
    await page.goto(`${board.address}/account`)
    await page.getByRole('button', { name: 'Make a key' }).waitFor()
    expect(await room()).toBeGreaterThan(80)
    await page.getByLabel('Save a copy of it as a file').uncheck()
    await page.getByRole('button', { name: 'Make a key' }).click()
    await page.getByRole('heading', { name: 'Your profile' }).waitFor()
    expect(await room()).toBeGreaterThan(80)
    await page.context().close()
  })

  test('without JavaScript everything can be read, and no control is without effect', async () => {
    const page = await openPage({ javaScriptEnabled: false })
    await page.goto(`${board.address}/e/${shown.post}`)
    expect(await page.locator('article.post').count()).toBe(12)
    expect(await page.locator('button[data-copy-from]').isVisible()).toBe(false)
    expect(await page.locator('#theme').isVisible()).toBe(false)
    expect(await page.locator('time').first().textContent()).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d UTC$/)
    await page.fill('input[name=q]', 'deeper')
    await page.press('input[name=q]', 'Enter')
    await page.waitForURL('**/search?q=deeper')
    expect(await page.locator('article.post').count()).toBeGreaterThan(8)
  })

  test('the theme is chosen without a cookie, persists, and is applied before anything is painted', async () => {
    const page = await openPage({ colorScheme: 'light' })
    await page.goto(`${board.address}/faq`)
    const paper = () =>
      page.evaluate(() => {
        const { getComputedStyle, document } = globalThis as unknown as {
          getComputedStyle(element: unknown): { backgroundColor: string }
          document: { body: unknown }
        }
        return getComputedStyle(document.body).backgroundColor
      })
    const light = await paper()
    await page.click('#theme')
    await page.click('#theme')
    expect(await page.textContent('#theme')).toBe('Theme: dark')
    expect(await paper()).not.toBe(light)
    await page.goto(`${board.address}/log`, { waitUntil: 'commit' })
    await page.waitForSelector('body', { state: 'attached' })
    expect(await paper()).not.toBe(light)
    expect(await page.context().cookies()).toEqual([])
  })

  test('hostile rows and payloads do nothing: no dialog, no request elsewhere, no style of theirs, also when they arrive live', async () => {
    const { client } = shown
    if (corpus.isAbsent) console.warn('without the corpus beside the project only the payloads of this test are posted')
    const rows = corpus.isAbsent ? [] : corpusTexts(150).slice(0, rowsMax)
    const eve = person('mallory')
    const page = await openPage()
    const complaints = collectErrors(page)
    const elsewhere: string[] = []
    page.on('request', (request) => {
      if (!request.url().startsWith(board.address)) elsewhere.push(request.url())
    })
    await page.goto(`${board.address}/room/arriving?view=posts`)
    expect((await page.locator('h1').textContent()) !== '').toBe(true)
    await client.post(eve, { room: 'arriving', text: 'first' })
    await page.goto(`${board.address}/room/arriving?view=posts`)
    await page.waitForSelector('#live[data-state=on]')
    const texts = [...payloads, ...rows]
    for (let from = 0; from < texts.length; from += 32)
      await Promise.all(texts.slice(from, from + 32).map((text) => client.post(eve, { room: 'arriving', text })))
    await expect.poll(() => page.locator('[data-live-room] article').count()).toBe(Math.min(500, texts.length + 1))
    // As the server renders them, and as they were built here.
    for (const path of [
      '/room/arriving?view=posts',
      '/room/hostile?view=posts',
      '/room/workshop',
      `/d/${shown.doc}`,
      '/search?q=alert',
    ]) {
      if (path !== '/room/arriving?view=posts') await page.goto(board.address + path)
      const found = await page.evaluate(() => {
        const { document } = globalThis as unknown as {
          document: { querySelectorAll(selector: string): { readonly length: number } }
        }
        return [
          document.querySelectorAll(
            'main :is(script, img, iframe, style, link, object, embed, form:not([action^="/"], .write))',
          ).length,
          document.querySelectorAll('[style], [onerror], [onload], [onclick], [onmouseover]').length,
          document.querySelectorAll('a[href^="javascript" i], a[href^="data" i]').length,
        ]
      })
      expect(found, path).toEqual([0, 0, 0])
    }
    expect(elsewhere).toEqual([])
    expect(complaints.filter((each) => !/400 \(Bad Request\)/.test(each))).toEqual([])
  })
})
