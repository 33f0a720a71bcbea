/** One browser, several tabs: they have one key between them, and none goes on with a key that was forgotten in another. */
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { button, keyFileOf, missingBrowser, openPage, saveScreenshot } from '../support/browser.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('tabs ada')
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
  for (const room of ['one', 'two']) await client.post(ada, { room, text: 'begun' })
})
afterAll(() => client.close())

const keyOf = (page: Page): Promise<string | undefined> =>
  page.evaluate(() => JSON.parse(localStorage.getItem('me') ?? '{}').key)

/** Another tab, which hears nothing of the others: a tab that was asleep. */
async function sleepyTab(context: BrowserContext): Promise<Page> {
  const page = await context.newPage()
  await page.addInitScript("addEventListener('storage', (event) => event.stopImmediatePropagation(), true)")
  return page
}

async function post(page: Page, room: string, text: string): Promise<void> {
  await page.getByLabel(`Write to ${room}`).fill(text)
  await button(page, 'Post').click()
  await page.getByText('Posted:').waitFor()
}

async function authorIn(room: string): Promise<unknown> {
  const { events } = (await client.get(`/api/events?room=${room}&limit=1`)).data as unknown as { events: object[] }
  return (events[0] as { author: object }).author
}

describe.skipIf(skipWithout(missingBrowser))(`in Chromium${skipNote(missingBrowser)}`, () => {
  test('a newcomer who posts in two tabs is one author, in a tab that was asleep too', async () => {
    const first = await openPage()
    const second = await first.context().newPage()
    const asleep = await sleepyTab(first.context())
    await first.goto(`${board.address}/room/one#write`)
    for (const tab of [second, asleep]) {
      await tab.goto(`${board.address}/room/two#write`)
      await tab.getByText('Posting makes a key').waitFor()
    }
    await first.getByLabel('Your name here').fill('twotabs')
    await post(first, 'one', 'from the first tab')
    await second.getByRole('link', { name: '@twotabs' }).first().waitFor()
    expect(await second.getByText('Posting makes a key').count()).toBe(0)
    await saveScreenshot(second, 'second-tab')
    await post(second, 'two', 'from the second tab')
    const author = await authorIn('one')
    expect(await authorIn('two')).toEqual(author)
    await post(asleep, 'two', 'from the tab that was asleep')
    expect(await authorIn('two')).toEqual(author)
    await first.context().close()
  })

  test('two tabs that write to one room keep what was typed in each, over a reload, until it is posted', async () => {
    const first = await openPage()
    const second = await first.context().newPage()
    for (const tab of [first, second]) await tab.goto(`${board.address}/room/one#write`)
    const text = (tab: Page) => tab.getByLabel('Write to one')
    await text(first).fill('typed in the first tab')
    await text(second).fill('typed in the second tab')
    await first.reload()
    await expect.poll(() => text(first).inputValue()).toBe('typed in the first tab')
    await button(second, 'Post').click()
    await second.getByText('Posted:').waitFor()
    await first.reload()
    await expect.poll(() => text(first).inputValue()).toBe('typed in the first tab')
    await button(first, 'Post').click()
    await first.getByText('Posted:').waitFor()
    for (const tab of [first, second]) {
      await tab.reload()
      await text(tab).waitFor()
      expect(await text(tab).inputValue()).toBe('')
    }
    await first.context().close()
  })

  test('two tabs that edit one post keep what was typed in each, over a reload, until it is saved or canceled', async () => {
    const first = await openPage()
    const second = await first.context().newPage()
    await first.goto(`${board.address}/room/two#write`)
    await post(first, 'two', 'to be edited')
    await first.getByRole('link', { name: 'see it' }).click()
    await second.goto(first.url())
    const text = (tab: Page) => tab.getByLabel('Your post')
    const edit = async (tab: Page) => {
      await tab.locator('.post.target > .under .menu summary').click()
      await button(tab, 'Edit').click()
      await text(tab).waitFor()
    }
    const reload = async (tab: Page) => {
      await tab.reload()
      await edit(tab)
    }
    for (const tab of [first, second]) await edit(tab)
    await text(first).fill('typed in the first tab')
    await text(second).fill('typed in the second tab')
    await reload(first)
    expect(await text(first).inputValue()).toBe('typed in the first tab')
    await second.locator('.in-place').getByRole('button', { name: 'Cancel' }).click()
    await reload(first)
    expect(await text(first).inputValue()).toBe('typed in the first tab')
    await reload(second)
    expect(await text(second).inputValue()).toBe('to be edited')

    // What one tab saves, the other does not replace without being asked for, and its own text is not lost.
    await text(second).fill('saved in the second tab')
    await button(second, 'Save').click()
    await second.locator('.post.target > .text').getByText('saved in the second tab').waitFor()
    await reload(first)
    expect(await text(first).inputValue()).toBe('saved in the second tab')
    await button(first, 'Restore your unsaved changes').click()
    expect(await text(first).inputValue()).toBe('typed in the first tab')
    await button(first, 'Save').click()
    await first.locator('.post.target > .text').getByText('typed in the first tab').waitFor()
    expect(await first.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))).not.toContain(
      'typed',
    )
    await first.context().close()
  })

  test('a key that was made in one tab is not replaced by another one, made or loaded in a tab that was asleep', async () => {
    const first = await openPage()
    const second = await first.context().newPage()
    const [making, loading] = [await sleepyTab(first.context()), await sleepyTab(first.context())]
    for (const tab of [first, second, making, loading]) {
      await tab.goto(`${board.address}/account`)
      await button(tab, 'Make a key').waitFor()
    }
    await button(first, 'Make a key').click()
    await first.getByRole('heading', { name: 'Your profile' }).waitFor()
    const key = (await keyOf(first))!
    await second.getByText(key).waitFor()
    await button(making, 'Make a key').click()
    await making.getByText(key).waitFor()
    await loading.getByLabel('Key file').setInputFiles(keyFileOf(ada))
    await loading.getByText('this browser has another key already').waitFor()
    await saveScreenshot(loading, 'another-key')
    await first.reload()
    await first.getByText(key).waitFor()
    await first.context().close()
  })

  test('a forgotten key leaves no draft, and no tab that writes or shows a private room', async () => {
    await client.command(ada, { operation: 'room.create', room: 'quiet-tabs', visibility: 'private' })
    await client.post(ada, { room: 'quiet-tabs', text: 'for members only' })
    const page = await openPage()
    const [open, inside, asleep] = [
      await page.context().newPage(),
      await page.context().newPage(),
      await sleepyTab(page.context()),
    ]
    await page.goto(`${board.address}/account`)
    await button(page, 'Make a key').click()
    await page.getByRole('heading', { name: 'Your profile' }).waitFor()
    const { id } = await page.evaluate(() => JSON.parse(localStorage.getItem('me')!))
    await client.command(ada, { operation: 'room.member.add', room: 'quiet-tabs', target: id })
    await inside.goto(`${board.address}/room/quiet-tabs`)
    await inside.getByText('for members only').waitFor()
    await inside.getByLabel('Write to quiet-tabs').fill('a secret draft')
    for (const tab of [open, asleep]) {
      await tab.goto(`${board.address}/room/one#write`)
      await tab.locator('form.write').getByText('as ').waitFor()
    }
    await button(page, 'Forget this key on this device').click()
    await button(page, 'Forget it').click()
    await button(page, 'Make a key').waitFor()
    await button(inside, 'Make a key and save a copy').waitFor()
    expect(await inside.content()).not.toContain('for members only')
    await saveScreenshot(inside, 'closed-private-room')
    await open.getByText('Posting makes a key').waitFor()
    await expect.poll(() => open.locator('#account').textContent()).toBe('Sign in with a key')
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain('secret')
    const before = await authorIn('one')
    await asleep.getByLabel('Write to one').fill('by a forgotten key')
    await button(asleep, 'Post').click()
    await asleep.getByText('the key of this browser was changed in another tab').waitFor()
    expect(await authorIn('one')).toEqual(before)
    await page.context().close()
  })
})
