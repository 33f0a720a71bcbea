/** Pages of a busy board that stay open: what arrives during a bad connection or while another page is read is shown, and nothing that is written goes. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { button, missingBrowser, openPage, useKey } from '../support/browser.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('live ada')
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
})
afterAll(() => client.close())

const say = async (room: string, text: string, more: object = {}): Promise<string> =>
  (await client.post(ada, { room, text, ...more })).data.event_id!
const replyTexts = (page: Page) => page.locator('.replies .post > .text').allTextContents()
const numbered = (count: number) => Array.from({ length: count }, (_, n) => `reply ${n}`)

describe.skipIf(skipWithout(missingBrowser))(`in Chromium${skipNote(missingBrowser)}`, () => {
  test('replies that could not be loaded when they arrived are loaded later', async () => {
    const root = await say('weak', 'A thread on a weak connection')
    const page = await openPage()
    await page.goto(`${board.address}/e/${root}`)
    await say('weak', 'reply 0', { reply_to: root })
    await expect.poll(() => replyTexts(page), patience).toEqual(numbered(1))
    let dropped = 0
    await page.route('**/e/*/line', async (route) => {
      dropped++
      await route.abort()
    })
    for (const text of numbered(4).slice(1)) await say('weak', text, { reply_to: root })
    await expect.poll(() => dropped, patience).toBeGreaterThan(0)
    await page.unroute('**/e/*/line')
    await expect.poll(() => replyTexts(page), patience).toEqual(numbered(4))
    await expect.poll(() => page.locator('#replies').textContent(), patience).toBe('4 replies')
    await page.context().close()
  })

  test('a vote, a follow and a page that wait for the board say so, and go on when it answers', async () => {
    const root = await say('away', 'A thread of a board that is away')
    const page = await openPage()
    await useKey(page, board, person('live ben'))
    await page.goto(`${board.address}/e/${root}`)
    const forIt = page.getByRole('button', { name: /^For/ })
    await forIt.waitFor()
    const waiting = page.getByText('The board cannot be reached; trying again.')
    const away = (each: Page) => each.route('**/v1/command', (route) => route.abort())
    for (const act of [forIt, button(page, 'Follow this thread')]) {
      await away(page)
      await act.click()
      await waiting.waitFor()
      await page.unroute('**/v1/command')
      await waiting.waitFor({ state: 'detached' })
    }
    await page.getByRole('button', { name: 'For: 1', pressed: true }).waitFor()
    await button(page, 'Following').waitFor()
    await away(page)
    await page.goto(`${board.address}/account/rooms?room=away`)
    await page.getByText('One moment.').waitFor()
    await waiting.waitFor()
    await page.unroute('**/v1/command')
    await page.getByRole('heading', { name: 'People' }).waitFor()
    expect(await page.getByText('One moment.').count()).toBe(0)
    await page.route('**/api/events/*', (route) => route.abort())
    await page.goto(`${board.address}/e/${root}`)
    await page.getByText('More', { exact: true }).click()
    await button(page, 'Quote').click()
    await page.locator('.post').getByText('That did not work: the board cannot be reached.').waitFor()
    await page.context().close()
  })

  test('a reply that is posted but cannot be shown is not called “not posted”', async () => {
    const root = await say('faint', 'A thread on a faint connection')
    const page = await openPage()
    await useKey(page, board, ada)
    await page.goto(`${board.address}/e/${root}`)
    await page.route('**/e/*/line', (route) => route.abort())
    const post = page.locator(`#e-${root}`)
    await post.getByRole('button', { name: 'Reply', exact: true }).click()
    await post.locator('textarea').fill('reply 0')
    const failed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/line'))
    await post.locator('textarea').press('Control+Enter')
    await failed
    await post.locator('button[type=submit]:not([aria-disabled])').waitFor()
    expect(await post.locator('form [role=status]').textContent()).toBe('Posted: see it. Its proof.')
    await page.unroute('**/e/*/line')
    await expect.poll(() => replyTexts(page), patience).toEqual(numbered(1))
    await page.context().close()
  })

  test('the address of a new receive URL, which is shown only once, is shown also if the list cannot be read then', async () => {
    const page = await openPage()
    await useKey(page, board, ada)
    await page.goto(`${board.address}/account/webhooks`)
    await page.getByText('New receive URL').click()
    await page.getByLabel('What it is for').fill('builds')
    await page.route('**/v1/command', (route) =>
      route.request().postData()!.includes('.list"')
        ? route.fulfill({
            status: 403,
            contentType: 'application/json',
            body: JSON.stringify({ ok: false, error: { code: 'forbidden', message: 'not now' } }),
          })
        : route.continue(),
    )
    await button(page, 'Create an address').click()
    await page.getByText('Its address').waitFor()
    await page.context().close()
  })

  test('a thread and a list to which the reader goes back have what arrived since', async () => {
    const root = await say('away', 'Read, left and read again')
    const page = await openPage()
    await page.goto(`${board.address}/room/away`)
    await page.goto(`${board.address}/e/${root}`)
    await page.goto(`${board.address}/rooms`)
    const texts = numbered(40)
    for (const text of texts) await say('away', text, { reply_to: root })
    await client.command(ada, { operation: 'event.redact', event_id: root, reason: 'second thoughts' })
    await say('away', 'Begun while the reader was away')
    await page.goBack()
    await expect.poll(() => replyTexts(page), patience).toEqual(texts)
    await page.getByText('The text is gone: second thoughts.').waitFor()
    await expect.poll(() => page.locator('#replies').textContent(), patience).toBe('40 replies')
    await page.goBack()
    await page.locator('.threads').getByText('Begun while the reader was away').waitFor()
    await page.context().close()
  })

  test('a reply that is being written stays while its post becomes too old for the live list', async () => {
    await say('burst', 'the oldest post')
    const page = await openPage()
    await useKey(page, board, ada)
    await page.goto(`${board.address}/room/burst?view=posts`)
    await page.getByText('Live: new posts appear automatically.').waitFor()
    const list = page.locator('[data-live-room]')
    const most = Number(await list.getAttribute('data-live-max'))
    await button(page, 'Reply').click()
    const reply = page.locator('.in-place textarea')
    await reply.fill('half a reply')
    for (let n = 0; n < most + 20; n++) await say('burst', `post ${n}`)
    await page.getByText(`Live. ${most + 20} new since you opened this page.`).waitFor()
    expect(await reply.inputValue()).toBe('half a reply')
    await reply.press('End')
    await reply.press('Control+Enter')
    await page.getByText('Posted.').waitFor()
    // Only this post is kept beyond the limit.
    expect(await list.locator('> article', { hasText: 'the oldest post' }).count()).toBeGreaterThan(0)
    expect(await list.locator('> article').count()).toBeLessThanOrEqual(most + 2)
    await page.context().close()
  })
})
