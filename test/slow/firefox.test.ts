/** The pages in Firefox, as in Chromium: what a newcomer does from the front page on, and what a moderator does. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'puppeteer-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person, seedOf } from '../support/client.ts'
import { missingFirefox, openFirefox, savedFile, schemes, withName, withText } from '../support/firefox.ts'
import { patience } from '../support/patience.ts'
import { randomPart } from '../support/random-part.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('firefox ada')
const operator = person('firefox operator')
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
type Shown = { readonly event_id: string }
const widths = { light: 1280, dark: 390 } as const
let board: Board
let client: Client
let folder: string
/** Posts of a thread of 241, the first reply first. */
const replies: string[] = []

beforeAll(async () => {
  if (missingFirefox !== undefined) return
  folder = mkdtempSync(join(tmpdir(), 'broadside-firefox-files-'))
  writeFileSync(join(folder, 'dot.png'), png)
  const seed = seedOf(operator).toString('base64url')
  const own = { type: 'broadside-key', public_key: operator.publicKey, id: operator.id, seed }
  writeFileSync(join(folder, 'operator.json'), JSON.stringify(own))
  board = await startBoard({ directory: boardDirectory(), env: { OPERATORS: operator.id } })
  client = await Client.of(board)
  await client.post(ada, { room: 'lobby', text: 'Welcome. What brings you here?' })
  const root = (await client.post(ada, { room: 'long', text: 'A long thread' })).data.event_id!
  for (let n = 1; n <= 240; n++)
    replies.push((await client.post(ada, { room: 'long', text: `reply ${n}`, reply_to: root })).data.event_id!)
})
afterAll(() => {
  client?.close()
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
})

/** Nothing overflows at either width; screenshots for people are put into a folder. */
async function look(page: Page, name: string, scheme: string): Promise<void> {
  const before = page.viewport()!
  for (const width of Object.values(widths)) {
    await page.setViewport({ ...before, width })
    const over = await page.evaluate<[], () => number>('document.documentElement.scrollWidth - innerWidth' as never)
    expect([name, width, Math.max(0, over)]).toEqual([name, width, 0])
    const place = process.env.SCREENSHOTS
    if (place !== undefined) await page.screenshot({ path: join(place, `firefox-${name}-${scheme}-${width}.png`) })
  }
  await page.setViewport(before)
}
const fill = (page: Page, name: string, text: string) => page.locator(withName('textbox', name)).fill(text)
const press = (page: Page, name: string) => page.locator(withName('button', name)).click()
const appears = (page: Page, words: string) => page.locator(withText(words)).wait()
const putFile = async (page: Page, label: string, path: string) => {
  const found = await page.waitForSelector(`input[type="file"][aria-label="${label}"]`)
  await found!.uploadFile(path)
}

describe.skipIf(skipWithout(missingFirefox))(`in Firefox${skipNote(missingFirefox)}`, () => {
  test.each(randomPart(schemes))(
    'a newcomer posts, replies, votes, edits, attaches and follows, in the %s theme',
    async (scheme) => {
      const page = await openFirefox(scheme, widths[scheme])
      const wrong: string[] = []
      page.on('pageerror', (error) => wrong.push(String(error)))
      await page.goto(`${board.address}/`)
      await look(page, 'home', scheme)
      let clicks = 0
      const click = async (role: 'link' | 'button', name: string) => {
        clicks++
        await page.locator(withName(role, name)).click()
      }
      await click('link', 'Write something')
      await fill(page, 'Write to lobby', `Hello in ${scheme}`)
      await fill(page, 'Your name here, if you want one: @', `${scheme}-fox`)
      await click('button', 'Post')
      await appears(page, 'Posted')
      expect(clicks).toBeLessThanOrEqual(4)
      const { data } = await client.get('/api/events?room=lobby&limit=1')
      expect(data.events).toMatchObject([{ text: `Hello in ${scheme}`, author: { handle: `${scheme}-fox` } }])
      await look(page, 'posted', scheme)

      const target = replies[scheme === 'light' ? 150 : 90]!
      const post = `#e-${target}`
      await page.goto(`${board.address}/e/${target}`)
      await page.locator(`${post}.target .acts`).wait()
      const top = () => page.$eval(post, (each) => each.getBoundingClientRect().top)
      await expect.poll(top, patience).toSatisfy((at: number) => at >= 0 && at < 900)
      await page.locator(`${post} ${withText('Reply')}`).click()
      await page.locator(`${post} textarea`).fill('In the middle of it')
      await look(page, 'reply', scheme)
      await putFile(page, 'Attach files', join(folder, 'dot.png'))
      await page.locator(`${post} .in-place .files li`).wait()
      await page.locator(`${post} .in-place button[type="submit"]`).click()
      await page.waitForFunction(
        'document.body.innerText.includes("In the middle of it") && !document.querySelector(".in-place")',
      )
      const { events } = (await client.get('/api/events?room=long&limit=1')).data as unknown as { events: Shown[] }
      const [{ event_id: own, ...reply }] = events as [Shown]
      expect(reply).toMatchObject({
        text: 'In the middle of it',
        reply_to: target,
        attachments: [{ filename: 'dot.png' }],
      })

      await page.locator(`${post} .vote`).click()
      await page.locator(`${post} .vote[aria-pressed="true"][aria-label="For: 1"]`).wait()
      await page.locator(`#e-${own} .menu summary`).click()
      await page.locator(`#e-${own} .menu ${withText('Edit')}`).click()
      await page.locator(`#e-${own} .in-place textarea`).fill('In the middle of it, once more')
      await page.locator(`#e-${own} .in-place button[type="submit"]`).click()
      await page.locator(`#e-${own} ${withText('edited, 2 versions')}`).wait()
      await look(page, 'edited', scheme)

      await page.goto(`${board.address}/room/lobby`)
      await press(page, 'Follow')
      await page.locator(withName('button', 'Following')).wait()
      for (const text of ['one', 'two', 'three']) await client.post(ada, { room: 'lobby', text })
      const file = await savedFile(scheme)
      const other = scheme === 'light' ? 'dark' : 'light'
      const second = await openFirefox(other, widths[other])
      await second.goto(`${board.address}/account`)
      await putFile(second, 'Key file', file)
      await second.locator('.badge:not([hidden])').wait()
      expect(await second.$eval('.badge', (each) => each.textContent)).toBe('3')
      await second.goto(`${board.address}/room/lobby`)
      await appears(second, '3 new since your last visit')
      await look(second, 'unread', other)
      expect(wrong).toEqual([])
      await page.browserContext().close()
      await second.browserContext().close()
    },
  )

  test.each(randomPart(schemes))(
    'a moderator hides a post and suspends its author, in the %s theme',
    async (scheme) => {
      const spammer = person(`firefox spammer ${scheme}`)
      const spam = (await client.post(spammer, { room: 'lobby', text: `Buy now, ${scheme}` })).data.event_id!
      await client.command(ada, { operation: 'report', event_id: spam, reason: 'advertising' })
      const page = await openFirefox(scheme, widths[scheme])
      await page.goto(`${board.address}/account`)
      await putFile(page, 'Key file', join(folder, 'operator.json'))
      await page.locator('#own .who').wait()
      await look(page, 'account', scheme)
      await page.goto(`${board.address}/moderate`)
      await page.locator('input[placeholder="Reason, public"]').fill('Advertising')
      await look(page, 'moderate', scheme)
      await press(page, 'Hide the post')
      await appears(page, 'Hidden.')
      await fill(page, 'Suspend @handle or id', spammer.id)
      await page.locator('form input[name="reason"]').fill('Advertising')
      await press(page, 'Suspend')
      await appears(page, 'Suspended')
      expect((await client.get(`/api/events/${spam}`)).data.event).toMatchObject({
        hidden: true,
        reason: 'Advertising',
      })
      expect((await client.post(spammer, { room: 'lobby', text: 'again' })).text).toContain('"suspended"')
      await page.browserContext().close()
    },
  )

  test('rooms and webhooks have their pages', async () => {
    const page = await openFirefox('dark', 390)
    await page.goto(`${board.address}/account`)
    await putFile(page, 'Key file', join(folder, 'operator.json'))
    await page.locator('#own .who').wait()
    await page.goto(`${board.address}/account/rooms`)
    await fill(page, 'Name, of a-z 0-9 _ -', 'foxes')
    await press(page, 'Create the room')
    await appears(page, 'Created')
    await page.locator(withName('link', 'invite people')).click()
    await press(page, 'Create an invite')
    await appears(page, 'They join with it')
    await look(page, 'room', 'dark')
    await page.goto(`${board.address}/account/webhooks`)
    await page.locator(withText('New receive URL')).click()
    await press(page, 'Create an address')
    await appears(page, 'shown only now')
    await look(page, 'webhooks', 'dark')
    await page.browserContext().close()
  })
})
