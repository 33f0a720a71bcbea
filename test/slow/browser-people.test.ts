/** People with a key in their browser: a first post, a reply where it belongs, votes, edits, files, follows on two devices, moderation. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { complaintsOf, missingBrowser, openPage } from '../support/browser.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('browser ada')
let board: Board
let client: Client
let folder: string

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
  folder = mkdtempSync(join(tmpdir(), 'broadside-people-'))
})
afterAll(() => {
  client.close()
  rmSync(folder, { recursive: true, force: true })
})

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
/** Where a person looks at pictures of these pages, they are put in this folder. */
const picture = async (page: Page, name: string) => {
  const place = process.env.SCREENSHOTS
  if (place !== undefined) await page.screenshot({ path: join(place, `${name}.png`), fullPage: false })
}

describe.skipIf(skipWithout(missingBrowser))(`in Chromium${skipNote(missingBrowser)}`, () => {
  test('a newcomer posts with a name in at most four clicks from the front page', async () => {
    await client.post(ada, { room: 'lobby', text: 'Welcome. What brings you here?' })
    const page = await openPage({ viewport: { width: 1280, height: 900 } })
    const complaints = complaintsOf(page)
    let clicks = 0
    const click = async (name: string, role: 'link' | 'button') => {
      clicks++
      await page.getByRole(role, { name, exact: true }).click()
    }
    await page.goto(`${board.address}/`)
    await picture(page, 'home')
    await click('Write something', 'link')
    await page.getByLabel('Write to lobby').fill('Hello, this is my first post.')
    await page.getByLabel('Your name here').fill('newcomer')
    await picture(page, 'first-post')
    const saved = page.waitForEvent('download')
    await click('Post', 'button')
    await page.getByText('Posted:').waitFor()
    expect((await saved).suggestedFilename()).toMatch(/^broadside-key-[0-9a-f]{8}\.json$/)
    expect(clicks).toBeLessThanOrEqual(4)
    await expect.poll(() => page.locator('#account').textContent()).toBe('@newcomer')
    await page.locator('.threads').getByText('Hello, this is my first post.').waitFor()
    await picture(page, 'first-post-done')
    const { data } = await client.get('/api/events?room=lobby&limit=1')
    expect(data.events).toMatchObject([{ text: 'Hello, this is my first post.', author: { handle: 'newcomer' } }])
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('in a thread of 241 posts the permalink opens at its post, which is answered, quoted, voted on and edited in place', async () => {
    const root = (await client.post(ada, { room: 'long', text: 'A long thread' })).data.event_id!
    const ids: string[] = []
    for (let n = 1; n <= 240; n++)
      ids.push((await client.post(ada, { room: 'long', text: `reply ${n}`, reply_to: root })).data.event_id!)
    const target = ids[150]!
    const page = await openPage({ viewport: { width: 390, height: 844 }, colorScheme: 'dark' })
    const complaints = complaintsOf(page)
    await page.goto(`${board.address}/e/${target}`)
    const post = page.locator(`#e-${target}`)
    await post.getByRole('button', { name: 'Reply' }).waitFor()
    expect(await post.evaluate((each) => each.classList.contains('target'))).toBe(true)
    await expect
      .poll(() => post.evaluate((each) => each.getBoundingClientRect().top))
      .toSatisfy((top: number) => top >= 0 && top < 844)
    await picture(page, 'permalink-dark-390')

    await post.getByRole('button', { name: 'Reply' }).click()
    const field = page.getByLabel(/^Reply to [0-9a-f]{8}$/)
    await field.fill('In the middle of it')
    await picture(page, 'reply-in-place-dark-390')
    await post.locator('.in-place').getByRole('button', { name: 'Reply', exact: true }).click()
    const answer = page.locator('.replies .post').filter({ hasText: 'In the middle of it' })
    await answer.waitFor()

    // A vote, taken back by the same button.
    await post.getByRole('button', { name: 'For: 0' }).click()
    await post.getByRole('button', { name: 'For: 1', pressed: true }).click()
    await post.getByRole('button', { name: 'For: 0', pressed: false }).click()
    await post.getByRole('button', { name: 'For: 1', pressed: true }).waitFor()

    await answer.locator('.menu summary').click()
    await picture(page, 'menu-dark-390')
    await button(page, 'Edit').click()
    await page.getByLabel('Your post').fill('In the middle of it, once more')
    await button(page, 'Save').click()
    await page.locator('.post').getByText('edited, 2 versions').waitFor()

    await post.locator('.menu summary').click()
    await button(page, 'Quote').click()
    await expect.poll(() => field.inputValue()).toBe('> reply 151\n\n')
    await field.press('End')
    await field.fill('> reply 151\n\nYes, **indeed**.')
    await post.locator('.in-place').getByRole('button', { name: 'Preview' }).click()
    await post.locator('.preview strong').getByText('indeed').waitFor()
    await picture(page, 'quote-preview-dark-390')
    await post.locator('.in-place').getByRole('button', { name: 'Reply', exact: true }).click()
    await page.locator('.post blockquote').getByText('reply 151').waitFor()
    const { event } = (await client.get(`/api/events/${target}`)).data as unknown as { event: { votes: object } }
    expect(event.votes).toMatchObject({ up: 1, down: 0 })
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('a picture is attached, and replies of others arrive while the thread is read', async () => {
    const page = await openPage({ viewport: { width: 1280, height: 900 } })
    const complaints = complaintsOf(page)
    await page.goto(`${board.address}/room/lobby#write`)
    await page.getByLabel('Write to lobby').fill('A picture of it')
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    )
    await page.getByLabel('Attach files').setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: png })
    await page.getByText('dot.png').waitFor()
    await button(page, 'Post').click()
    const following = page.waitForResponse((answer) => answer.url().includes('/api/events?room=lobby'))
    await page.getByRole('link', { name: 'see it' }).click()
    await page.locator('.files').getByText('dot.png').waitFor()
    const href = (await page.locator('.files a').getAttribute('href'))!
    expect(Buffer.from(await (await fetch(board.address + href)).arrayBuffer())).toEqual(png)

    const root = page.url().split('/').at(-1)!
    await following
    await client.post(ada, { room: 'lobby', text: 'What a dot', reply_to: root })
    const reply = page.locator('.replies .post').filter({ hasText: 'What a dot' })
    await reply.waitFor()
    await picture(page, 'thread-1280')
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('what is followed is counted alike in a second browser with the same key file', async () => {
    const first = await openPage({ acceptDownloads: true })
    await first.goto(`${board.address}/account`)
    await first.getByLabel('Passphrase for the file, if you want one').fill('a passphrase')
    const saving = first.waitForEvent('download')
    await button(first, 'Make a key').click()
    const file = join(folder, 'second.json')
    await (await saving).saveAs(file)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ version: 2, kdf: 'PBKDF2-SHA-256', rounds: 600_000 })
    await first.getByRole('heading', { name: 'Your profile' }).waitFor()
    await picture(first, 'account')
    await client.post(ada, { room: 'followed', text: 'begun' })
    await first.goto(`${board.address}/room/followed`)
    await button(first, 'Follow').click()
    await button(first, 'Following').waitFor()
    for (const text of ['one', 'two', 'three']) await client.post(ada, { room: 'followed', text })

    const second = await openPage()
    await second.goto(`${board.address}/account`)
    await second.getByLabel('Key file').setInputFiles(file)
    await second.getByLabel('Passphrase of this file').fill('not it')
    await button(second, 'Open').click()
    await second.getByText('the passphrase does not open this file').waitFor()
    await second.getByLabel('Passphrase of this file').fill('a passphrase')
    await button(second, 'Open').click()
    await second.locator('.badge').getByText('3').waitFor()
    await second.goto(`${board.address}/room/followed`)
    await second.getByText('3 new since your last visit').waitFor()
    await picture(second, 'unread')
    await expect
      .poll(async () => {
        await second.goto(`${board.address}/`)
        await second.locator('#account svg').waitFor()
        return second.locator('.badge').isHidden()
      })
      .toBe(true)
    await first.context().close()
    await second.context().close()
  })
})
