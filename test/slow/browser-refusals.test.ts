/** What a page offers a person: no form, button or action that the board would refuse, and what was done instead of it in plain words. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { button, collectErrors, missingBrowser, openPage, saveScreenshot, useKey } from '../support/browser.ts'
import { Client, person, seedOf } from '../support/client.ts'
import { program } from '../support/program.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const olga = person('refusals olga')
const operator = person('refusals operator')
let board: Board
let client: Client
let folder: string

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory(), env: { OPERATORS: operator.id } })
  folder = mkdtempSync(join(tmpdir(), 'broadside-refusals-'))
  client = await Client.of(board)
})
afterAll(() => {
  client.close()
  rmSync(folder, { recursive: true, force: true })
})

const policy = (room: string, data: object) =>
  client.command(olga, { operation: 'room.policy.set', room, data: JSON.stringify(data) })

describe.skipIf(skipWithout(missingBrowser))(`in Chromium${skipNote(missingBrowser)}`, () => {
  test('a locked thread, a closed room and a room without replies offer no reply', async () => {
    const page = await openPage({ viewport: { width: 1280, height: 900 } })
    const complaints = collectErrors(page)
    for (const room of ['locks', 'closing', 'silent', 'open-to-all'])
      await client.command(olga, { operation: 'room.create', room })
    const roots: Record<string, string> = {}
    for (const room of ['locks', 'closing', 'silent', 'open-to-all'])
      roots[room] = (await client.post(olga, { room, text: `begun in ${room}` })).data.event_id!
    await client.command(olga, { operation: 'thread.lock', event_id: roots.locks!, data: '{"schema":1,"locked":true}' })
    await policy('closing', { closed: true })
    await policy('silent', { reply: 'none' })
    const offered = async (room: string) => {
      await page.goto(`${board.address}/e/${roots[room]}`)
      await page.getByText('More', { exact: true }).waitFor()
      return {
        form: await page.locator('[data-write]').count(),
        buttons: await button(page, 'Reply').count(),
        note: await page.locator('.content > .note').allTextContents(),
      }
    }
    expect(await offered('open-to-all')).toEqual({ form: 1, buttons: 2, note: [] })
    expect(await offered('closing')).toEqual({
      form: 0,
      buttons: 0,
      note: ['The room of this thread is closed: it is read-only.'],
    })
    expect(await offered('silent')).toEqual({ form: 0, buttons: 0, note: ['This room accepts no replies.'] })
    expect(await offered('locks')).toEqual({
      form: 0,
      buttons: 0,
      note: ['This thread is locked: only moderators of its room can reply.'],
    })
    await page.locator('.menu summary').click()
    expect(await button(page, 'Quote').count()).toBe(0)
    await saveScreenshot(page, 'locked-thread')
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('Reply in a list leads to the page of a thread that takes none, which says why', async () => {
    const [locked, open] = [
      (await client.post(olga, { room: 'mixed', text: 'a locked thread' })).data.event_id!,
      (await client.post(olga, { room: 'mixed', text: 'an open thread' })).data.event_id!,
    ]
    const data = JSON.stringify({ schema: 1, locked: true })
    await client.command(operator, { operation: 'thread.lock', event_id: locked, data })
    const page = await openPage()
    await page.goto(`${board.address}/i/${olga.id}`)
    await page.locator(`#e-${open}`).getByRole('button', { name: 'Reply' }).click()
    await page.locator(`#e-${open} textarea`).waitFor()
    await page.locator(`#e-${locked}`).getByRole('button', { name: 'Reply' }).click()
    await page.waitForURL(`**/e/${locked}`)
    await page.getByText('This thread is locked: only moderators of its room can reply.').waitFor()
    await page.context().close()
  })

  test('what a moderator hid is said to be hidden, with a link to the moderation log; what its author took back is gone', async () => {
    const room = 'tidied'
    await client.command(olga, { operation: 'room.create', room })
    const ben = person('refusals ben')
    const { event_id: root = '' } = (await client.post(ben, { room, text: 'Buy my pills' })).data
    const { event_id: kept = '' } = (await client.post(ben, { room, text: 'I was wrong', reply_to: root })).data
    const live = await openPage()
    await live.goto(`${board.address}/room/${room}?view=posts`)
    await live.waitForSelector('#live[data-state=on]')
    await client.command(olga, { operation: 'room.hide', event_id: root, reason: 'off topic' })
    await client.command(ben, { operation: 'event.redact', event_id: kept, reason: 'wrong' })
    const hidden = 'Hidden by a moderator: off topic. Moderation log'
    const gone = 'The text is gone: wrong. Its place, author and proof remain.'
    const wordsOn = (page: typeof live) => page.locator('.post .text').allTextContents()
    await expect.poll(() => wordsOn(live)).toEqual([gone, hidden])
    await live.goto(`${board.address}/e/${root}`)
    expect(await wordsOn(live)).toEqual([hidden, gone])
    expect(await live.locator('h1').textContent()).toBe('A hidden post')
    expect(await live.title()).toContain('A hidden post')
    expect(await live.locator('.head .line').textContent()).not.toContain('0 people')
    await saveScreenshot(live, 'hidden-post')
    await live.getByRole('link', { name: 'Moderation log' }).click()
    await live.getByText('off topic').waitFor()
    await live.context().close()
  })

  test('a form for a post knows the limits of its board', async () => {
    const limits = JSON.stringify({ text_bytes: 40_000, blob_bytes: 524_288, attachments: 1 })
    const other = await startBoard({ directory: boardDirectory(), env: { LIMITS: limits } })
    const page = await openPage()
    await page.goto(`${other.address}/room/lobby#write`)
    const text = page.getByLabel('Write to lobby')
    const files = page.locator('input[type=file][multiple]')
    const fileOf = (name: string, bytes: number) => ({ name, mimeType: 'text/plain', buffer: Buffer.alloc(bytes, 97) })
    await text.fill('x'.repeat(40_001))
    await page.getByText('40001 bytes are too long: 40000 are allowed.').waitFor()
    await text.fill('x'.repeat(40_000))
    await files.setInputFiles(fileOf('big.txt', 524_289))
    await page.getByText('big.txt is too large: a file may have 0.5 MiB.').waitFor()
    await files.setInputFiles([fileOf('a.txt', 524_288), fileOf('b.txt', 1)])
    await page.getByText('b.txt is one too many').waitFor()
    await button(page, 'Post').click()
    await page.getByText('Posted:').waitFor()
    await page.context().close()
    await other.stop()
  })

  test('a moderator shows a hidden post again from its page, and finds the bans of a room from its people', async () => {
    const room = 'mended'
    await client.command(olga, { operation: 'room.create', room })
    const ben = person('refusals ben')
    const { event_id: root = '' } = (await client.post(ben, { room, text: 'About my pills' })).data
    const { event_id: kept = '' } = (await client.post(ben, { room, text: 'I was wrong', reply_to: root })).data
    await client.command(olga, { operation: 'room.hide', event_id: root, reason: 'off topic' })
    await client.command(ben, { operation: 'event.redact', event_id: kept, reason: 'wrong' })
    const other = await openPage()
    await useKey(other, board, ben)
    const page = await openPage()
    await useKey(page, board, olga)
    await page.goto(`${board.address}/e/${root}`)
    await button(page, 'Moderate').waitFor()
    await saveScreenshot(page, 'hidden-post-moderator')
    expect(await button(page, 'Moderate').count()).toBe(1)
    await button(page, 'Moderate').click()
    const form = page.locator('form', { has: button(page, 'Show again') })
    expect(await form.getByLabel('Hidden post').inputValue()).toBe(root)
    await form.getByLabel('Reason, public').fill('It was on topic.')
    await button(page, 'Show again').click()
    await page.getByText('Shown again.').waitFor()
    await page.goto(`${board.address}/e/${root}`)
    await page.locator('.post .text').getByText('About my pills').waitFor()
    await client.command(olga, { operation: 'room.hide', event_id: root, reason: 'off topic' })
    await other.goto(`${board.address}/e/${root}`)
    await other.locator('#write').getByText('as ').waitFor()
    expect(await button(other, 'Moderate').count()).toBe(0)

    await page.goto(`${board.address}/account/rooms?room=${room}`)
    await page.getByRole('link', { name: 'moderate it' }).click()
    await button(page, 'Open').click()
    await button(page, 'Ban').waitFor()
    for (const each of [page, other]) await each.context().close()
  })

  test('a work that could not be read for its reader is not shown as if there was nothing to do', async () => {
    const data = JSON.stringify({ schema: 1, title: 'To be read', simulated: true })
    const { work } = (
      await client.command(olga, { operation: 'work.create', room: 'lobby', text: 'Read it.', amount: 1, data })
    ).data as unknown as { work: { id: string } }
    const page = await openPage()
    await page.goto(`${board.address}/account`)
    await button(page, 'Make a key').click()
    await page.getByRole('heading', { name: 'Your profile' }).waitFor()
    const error = { code: 'rate_limited', message: 'wait 7 seconds' }
    await page.route('**/api/work/*', (route) =>
      route.fulfill({ status: 429, contentType: 'application/json', body: JSON.stringify({ ok: false, error }) }),
    )
    await page.goto(`${board.address}/work/${work.id}`)
    await page.getByText('The board says: wait 7 seconds.').waitFor()
    await page.context().close()
  })

  test('two reports of one post are one row, which is done after one act, also if the post is hidden by then', async () => {
    const reporters = [person('refusals cleo'), person('refusals dan')]
    const ids: string[] = []
    for (const text of ['Buy my pills', 'Buy my oil'])
      ids.push((await client.post(person('refusals ben'), { room: 'reported', text })).data.event_id!)
    for (const event_id of ids)
      for (const each of reporters) await client.command(each, { operation: 'report', event_id, reason: 'advertising' })
    const seed = seedOf(operator).toString('base64url')
    const own = { type: 'broadside-key', public_key: operator.publicKey, id: operator.id, seed }
    writeFileSync(join(folder, 'operator.json'), JSON.stringify(own), { mode: 0o600 })
    const file = join(folder, 'operate.json')
    const scopes = 'board:read,board:moderate,board:operate'
    const given = ['--key', join(folder, 'operator.json'), '--url', board.address, '--scopes', scopes]
    execFileSync(process.execPath, [program, 'delegate', file, ...given])

    const page = await openPage({ viewport: { width: 1280, height: 900 } })
    await page.goto(`${board.address}/moderate`)
    await page.getByLabel('Key file of the delegation').setInputFiles(file)
    const row = (text: string) => page.locator('#moderate .rows > li').filter({ hasText: text })
    await row('Buy my pills').getByText('2 reports').waitFor()
    expect(await page.locator('#moderate .rows > li').count()).toBe(2)
    const openReports = async () =>
      (await client.command(operator, { operation: 'reports.list', kind: 'open' })).data as unknown as {
        reports: { event_id: string }[]
      }
    await client.command(operator, { operation: 'room.hide', event_id: ids[0]!, reason: 'seen elsewhere' })
    await row('Buy my pills').getByRole('button', { name: 'Hide the post' }).click()
    await row('Buy my pills').getByText('Hidden.').waitFor()
    expect(await row('Buy my pills').getByRole('button').count()).toBe(0)
    expect((await openReports()).reports.map(({ event_id: id }) => id)).toEqual([ids[1], ids[1]])
    await saveScreenshot(page, 'reports')
    await row('Buy my oil').getByRole('button', { name: 'Nothing is wrong' }).click()
    await row('Buy my oil').getByText('Dismissed.').waitFor()
    expect((await openReports()).reports).toEqual([])
    await page.context().close()
  })

  test('the title and the facts of a page follow a vote, an edit and a deletion of its post', async () => {
    const page = await openPage({ viewport: { width: 1280, height: 900 } })
    await page.goto(`${board.address}/room/lobby#write`)
    await page.getByLabel('Write to lobby').fill('A frist title')
    await button(page, 'Post').click()
    await page.getByRole('link', { name: 'see it' }).click()
    const title = page.locator('h1')
    expect(await title.textContent()).toBe('A frist title')
    const facts = page.locator('aside section').first()
    const post = page.locator('.post.target')
    await post.locator('.menu summary').click()
    await button(page, 'Edit').click()
    await page.getByLabel('Your post').fill('A first title')
    await button(page, 'Save').click()
    await expect.poll(() => title.textContent()).toBe('A first title')
    await expect.poll(() => page.title()).toContain('A first title')
    await expect.poll(() => facts.textContent()).toContain('2 versions')
    await post.locator('.menu summary').click()
    await button(page, 'Take back').click()
    await button(page, 'Delete the text').click()
    await expect.poll(() => title.textContent()).toBe('[removed]')
    expect(await page.title()).not.toContain('A first title')
    expect(await page.content()).not.toContain('A first title')

    const other = (await client.post(olga, { room: 'lobby', text: 'Vote for me' })).data.event_id!
    await page.goto(`${board.address}/e/${other}`)
    await page.locator('.post.target').getByRole('button', { name: 'For: 0' }).click()
    await expect.poll(() => facts.textContent()).toContain('1 for, 0 against')
    await page.context().close()
  })

  test('a room whose members alone write says so to a newcomer, who joins it there and then writes', async () => {
    await client.command(olga, { operation: 'room.create', room: 'club' })
    const { event_id: root } = (await client.post(olga, { room: 'club', text: 'For members' })).data
    await policy('club', { write: 'members', reply: 'members' })
    const page = await openPage({ viewport: { width: 1280, height: 900 } })
    const complaints = collectErrors(page)
    await page.goto(`${board.address}/room/club`)
    await page.getByText('Only members start threads here.').waitFor()
    expect(await page.getByRole('link', { name: 'New thread' }).isVisible()).toBe(false)
    await saveScreenshot(page, 'club-newcomer')
    await button(page, 'Join the room').click()
    await button(page, 'Make a key').click()
    await page.getByRole('heading', { name: 'Your profile' }).waitFor()

    await page.goto(`${board.address}/e/${root}`)
    await page.getByText('Only members reply here.').waitFor()
    expect(await button(page, 'Reply').count()).toBe(0)
    await page.goto(`${board.address}/room/club`)
    await button(page, 'Join the room').click()
    await page.getByLabel('Write to club').fill('I am one now')
    await button(page, 'Post').click()
    await page.getByText('Posted:').waitFor()
    expect(await page.getByRole('link', { name: 'New thread' }).isVisible()).toBe(true)

    await page.goto(`${board.address}/e/${root}`)
    await page.locator(`#e-${root}`).getByRole('button', { name: 'Reply', exact: true }).waitFor()
    await page.getByLabel('Reply to the thread').fill('And I reply')
    await page.locator('#write').getByRole('button', { name: 'Reply', exact: true }).click()
    await page.getByText('Posted:').waitFor()
    await policy('club', { write: 'owner' })
    await page.goto(`${board.address}/room/club`)
    await page.getByText('Only the owner of this room starts threads here.').waitFor()
    expect(await button(page, 'Join the room').count()).toBe(0)
    // The browser itself logs that the board does not know the new key yet.
    expect(complaints.filter((each) => !each.includes('Failed to load resource'))).toEqual([])
    await page.context().close()
  })

  test('a follow that was refused is said once, and no longer after one that worked', async () => {
    await client.command(olga, { operation: 'room.create', room: 'followed' })
    const page = await openPage()
    await page.goto(`${board.address}/account`)
    await button(page, 'Make a key').click()
    await page.getByRole('heading', { name: 'Your profile' }).waitFor()
    await page.goto(`${board.address}/room/followed`)
    const follow = page.locator('[data-follow-room]')
    await follow.waitFor()
    await page.route('**/v1/command', (route) =>
      route.fulfill({
        status: 403,
        contentType: 'application/json',
        body: JSON.stringify({ ok: false, error: { code: 'forbidden', message: 'not now' } }),
      }),
    )
    for (let n = 0; n < 2; n++) {
      const answered = page.waitForResponse('**/v1/command')
      await follow.click()
      await answered
      await page.getByText('The board says: not now.').last().waitFor()
      await page.locator('[data-follow-room]:not([aria-disabled])').waitFor()
    }
    expect(await page.getByText('The board says: not now.').count()).toBe(1)
    await page.unroute('**/v1/command')
    await follow.click()
    await page.locator('[data-follow-room][aria-pressed=true]').waitFor()
    expect(await page.getByText('The board says: not now.').count()).toBe(0)
    await page.context().close()
  })

  test('a thread begun on a page is not counted there as new', async () => {
    await client.post(olga, { room: 'counted', text: 'Begun by another' })
    const page = await openPage()
    const updated = () => page.waitForResponse((answer) => answer.url().includes('/api/updates'))
    const first = updated()
    await page.goto(`${board.address}/room/counted#write`)
    await first
    const arriving = updated()
    await page.getByLabel('Write to counted').fill('Begun here')
    await button(page, 'Post').click()
    await page.locator('.threads').getByText('Begun here').waitFor()
    await arriving
    await client.post(olga, { room: 'counted', text: 'One more' })
    await button(page, '1 new post: show').click()
    await page.locator('.threads').getByText('One more').waitFor()
    expect(await page.locator('.arrived').isVisible()).toBe(false)
    await page.context().close()
  })

  test('titles in Arabic are set from right to left, in a list, on a page and while they are written', async () => {
    const room = 'arabic'
    const text = 'مرحبا بالعالم، English ثم نهاية.'
    await client.command(olga, { operation: 'room.create', room, text: 'غرفة للجميع.' })
    const { event_id: root } = (await client.post(olga, { room, text })).data
    const page = await openPage({ viewport: { width: 1280, height: 900 } })
    await page.goto(`${board.address}/room/${room}#write`)
    expect(await page.locator('.threads h3:dir(rtl)').count()).toBe(1)
    expect(await page.locator('.head .lead:dir(rtl)').count()).toBe(1)
    await page.getByLabel(`Write to ${room}`).fill(text)
    await saveScreenshot(page, 'arabic-room')
    await page.goto(`${board.address}/e/${root}`)
    expect(await page.locator('h1:dir(rtl)').count()).toBe(1)
    await saveScreenshot(page, 'arabic-thread')
    await page.context().close()
  })

  test('a printed page has no form, button or link to sign in', async () => {
    const { event_id: root } = (await client.post(olga, { room: 'printed', text: 'On paper' })).data
    const page = await openPage({ viewport: { width: 1280, height: 900 } })
    await page.goto(`${board.address}/e/${root}`)
    await button(page, 'Follow this thread').waitFor()
    await page.getByLabel('Reply to the thread').waitFor()
    await page.emulateMedia({ media: 'print' })
    for (const each of await page.locator('button, textarea, input, summary, #account').all())
      expect(await each.isVisible(), await each.evaluate(({ outerHTML }) => outerHTML)).toBe(false)
    expect(await page.getByText('On paper').first().isVisible()).toBe(true)
    await saveScreenshot(page, 'printed')
    await page.context().close()
  })
})
