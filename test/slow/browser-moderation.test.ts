/** The moderation page of a busy board, in the browser: every report can be reached, and a key that was forgotten moderates nothing. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { button, keyFileOf, missingBrowser, openPage, saveScreenshot, useKey } from '../support/browser.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const operator = person('busy operator')
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory(), env: { OPERATORS: operator.id } })
  client = await Client.of(board)
  const reporters = [person('busy cleo'), person('busy dan')]
  for (let n = 0; n < 120; n++) {
    const event_id = (await client.post(person('busy ben'), { room: 'market', text: `Buy ${n}` })).data.event_id!
    await client.command(reporters[n % 2]!, { operation: 'report', event_id, reason: 'advertising' })
  }
})
afterAll(() => client.close())

const rows = (page: Page) => page.locator('#moderate .rows > li')

describe.skipIf(skipWithout(missingBrowser))(`in Chromium${skipNote(missingBrowser)}`, () => {
  test('all reports are shown, 50 posts at a time, and each person is asked for once', async () => {
    const page = await openPage()
    await useKey(page, board, operator)
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await page.goto(`${board.address}/moderate`)
    await button(page, 'Show 50 more of 70').click()
    await button(page, 'Show 20 more of 20').waitFor()
    expect(await rows(page).count()).toBe(100)
    await saveScreenshot(page, 'many-reports', true)
    await button(page, 'Show 20 more of 20').click()
    await rows(page).nth(119).waitFor()
    expect(await page.getByRole('button', { name: /more of/ }).count()).toBe(0)
    expect(asked.filter((url) => url.includes('/api/identities/')).length).toBe(2)
    await page.context().close()
  })

  test('a post that could not be read is not called gone', async () => {
    const page = await openPage()
    await page.route('**/api/events/*', (route) =>
      route.fulfill({
        status: 429,
        contentType: 'application/json',
        body: JSON.stringify({ ok: false, error: { code: 'rate_limited', message: 'wait 7 seconds' } }),
      }),
    )
    await page.goto(`${board.address}/moderate`)
    await page.getByLabel('Key file of the delegation').setInputFiles(keyFileOf(operator))
    await page.getByText('The board says: wait 7 seconds.').waitFor()
    expect(await page.getByText('The text is gone').count()).toBe(0)
    await page.context().close()
  })

  test('a key that is forgotten in one tab moderates nothing in another', async () => {
    const page = await openPage()
    const other = await page.context().newPage()
    for (const tab of [page, other]) await tab.goto(`${board.address}/moderate`)
    await page.getByLabel('Key file of the delegation').setInputFiles(keyFileOf(operator))
    await rows(other).first().waitFor()
    await button(page, 'Forget the operator’s key here').click()
    await other.getByText('To moderate, sign in with a key.').waitFor()
    expect(await rows(other).count()).toBe(0)
    await page.context().close()
  })

  test('a ban is shown in the list of the room at once, and no longer once it is ended', async () => {
    const page = await openPage()
    await useKey(page, board, operator)
    await page.goto(`${board.address}/moderate`)
    const rooms = page.locator('section', { has: page.getByRole('heading', { name: 'Rooms', exact: true }) })
    await rooms.getByLabel('Room', { exact: true }).fill('market')
    await button(page, 'Open').click()
    await page.getByLabel('Ban @handle or id from this room').fill(person('busy ben').id)
    await rooms
      .locator('form', { has: button(page, 'Ban') })
      .getByLabel('Reason, public')
      .fill('advertising all day')
    await button(page, 'Ban').click()
    await page.getByText('Banned: they can no longer write in this room.').waitFor()
    await rooms
      .locator('li', { has: page.getByText('banned', { exact: true }) })
      .getByText('advertising all day')
      .waitFor()
    await rooms.locator('li', { has: page.getByText('room.ban', { exact: true }) }).waitFor()
    await button(page, 'End the ban').click()
    await page.getByText('The ban is over.').waitFor()
    await rooms.locator('li', { has: page.getByText('room.unban', { exact: true }) }).waitFor()
    expect(await rooms.getByText('banned', { exact: true }).count()).toBe(0)
    expect(await page.evaluate<string>('document.activeElement.textContent')).toContain('room.unban')
    await page.context().close()
  })

  test('of more than a thousand reports, the page says that there are older ones', async () => {
    const event_id = (await client.post(person('busy eve'), { room: 'market', text: 'Reported by many' })).data
      .event_id!
    const crowd = Array.from({ length: 900 }, (_, n) => person(`busy crowd ${n}`))
    for (const each of crowd) await client.command(each, { operation: 'report', event_id, reason: 'advertising' })
    const page = await openPage()
    await page.goto(`${board.address}/moderate`)
    await page.getByLabel('Key file of the delegation').setInputFiles(keyFileOf(operator))
    await page.getByText('Older reports appear when some of these 1,000 are resolved.').waitFor()
    await page.getByText('900 reports').waitFor()
    await page.context().close()
  })
})
