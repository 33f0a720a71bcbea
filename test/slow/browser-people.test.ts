/** People with a key in their browser: a first post, a reply in its place, votes, edits, files, follows on two devices, moderation. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { signerFromSeed } from '../../src/cli/sign.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { button, collectErrors, missingBrowser, openPage, saveScreenshot, useKey } from '../support/browser.ts'
import { Client, person, seedOf } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { program } from '../support/program.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('browser ada')
const operator = person('browser operator')
let board: Board
let client: Client
let folder: string

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory(), env: { OPERATORS: operator.id } })
  client = await Client.of(board)
  folder = mkdtempSync(join(tmpdir(), 'broadside-people-'))
})
afterAll(() => {
  client.close()
  rmSync(folder, { recursive: true, force: true })
})

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
type Violation = { readonly id: string; readonly nodes: readonly { html: string; failureSummary: string }[] }
type Window = { readonly axe: { run(options: object): Promise<{ violations: readonly Violation[] }> } }

describe.skipIf(skipWithout(missingBrowser))(`in Chromium${skipNote(missingBrowser)}`, () => {
  test('a newcomer posts with a name in at most four clicks from the front page', async () => {
    await client.post(ada, { room: 'lobby', text: 'Welcome. What brings you here?' })
    const page = await openPage({ viewport: { width: 1280, height: 900 } })
    const complaints = collectErrors(page)
    let clicks = 0
    const click = async (name: string, role: 'link' | 'button') => {
      clicks++
      await page.getByRole(role, { name, exact: true }).click()
    }
    await page.goto(`${board.address}/`)
    await saveScreenshot(page, 'home')
    await click('Write something', 'link')
    await page.getByLabel('Write to lobby').fill('Hello, this is my first post.')
    await page.getByLabel('Your name here').fill('newcomer')
    await saveScreenshot(page, 'first-post')
    const saved = page.waitForEvent('download')
    await click('Post', 'button')
    await page.getByText('Posted:').waitFor()
    expect((await saved).suggestedFilename()).toMatch(/^broadside-key-[0-9a-f]{8}\.json$/)
    expect(clicks).toBeLessThanOrEqual(4)
    await expect.poll(() => page.locator('#account').textContent()).toBe('@newcomer')
    await page.locator('.threads').getByText('Hello, this is my first post.').waitFor()
    await saveScreenshot(page, 'first-post-done')
    const { data } = await client.get('/api/events?room=lobby&limit=1')
    expect(data.events).toMatchObject([{ text: 'Hello, this is my first post.', author: { handle: 'newcomer' } }])
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('the permalink of a post in a thread of 241 opens at it, for replies, quotes, votes and edits', async () => {
    const root = (await client.post(ada, { room: 'long', text: 'A long thread' })).data.event_id!
    const ids: string[] = []
    for (let n = 1; n <= 240; n++)
      ids.push((await client.post(ada, { room: 'long', text: `reply ${n}`, reply_to: root })).data.event_id!)
    const target = ids[150]!
    const page = await openPage({ viewport: { width: 390, height: 844 }, colorScheme: 'dark' })
    const complaints = collectErrors(page)
    await page.goto(`${board.address}/e/${target}`)
    const post = page.locator(`#e-${target}`)
    await post.getByRole('button', { name: 'Reply' }).waitFor()
    expect(await post.evaluate((each) => each.classList.contains('target'))).toBe(true)
    await expect
      .poll(() => post.evaluate((each) => each.getBoundingClientRect().top))
      .toSatisfy((top: number) => top >= 0 && top < 844)
    await saveScreenshot(page, 'permalink-dark-390')

    await post.getByRole('button', { name: 'Reply' }).click()
    const field = page.getByLabel(/^Reply to [0-9a-f]{8}$/)
    await field.fill('In the middle of it')
    await saveScreenshot(page, 'reply-in-place-dark-390')
    await post.locator('.in-place').getByRole('button', { name: 'Reply', exact: true }).click()
    const answer = page.locator('.replies .post').filter({ hasText: 'In the middle of it' })
    await answer.waitFor()

    // A vote, withdrawn with the same button.
    await post.getByRole('button', { name: 'For: 0' }).click()
    await post.getByRole('button', { name: 'For: 1', pressed: true }).click()
    await post.getByRole('button', { name: 'For: 0', pressed: false }).click()
    await post.getByRole('button', { name: 'For: 1', pressed: true }).waitFor()

    await answer.locator('.menu summary').click()
    await saveScreenshot(page, 'menu-dark-390')
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
    await saveScreenshot(page, 'quote-preview-dark-390')
    await post.locator('.in-place').getByRole('button', { name: 'Reply', exact: true }).click()
    await page.locator('.post blockquote').getByText('reply 151').waitFor()
    const { event } = (await client.get(`/api/events/${target}`)).data as unknown as { event: { votes: object } }
    expect(event.votes).toMatchObject({ up: 1, down: 0 })
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('a picture is attached, and replies of others arrive while the thread is read', async () => {
    const page = await openPage({ viewport: { width: 1280, height: 900 } })
    const complaints = collectErrors(page)
    await page.goto(`${board.address}/room/lobby#write`)
    await page.getByLabel('Write to lobby').fill('A picture of it')
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    )
    await page.getByLabel('Attach files').setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: png })
    await page.getByText('dot.png').waitFor()
    await button(page, 'Post').click()
    const following = page.waitForResponse((answer) => answer.url().includes('/api/thread/'))
    await page.getByRole('link', { name: 'see it' }).click()
    await page.locator('.files').getByText('dot.png').waitFor()
    const href = (await page.locator('.files a').getAttribute('href'))!
    expect(Buffer.from(await (await fetch(board.address + href)).arrayBuffer())).toEqual(png)

    const root = page.url().split('/').at(-1)!
    await following
    await client.post(ada, { room: 'lobby', text: 'What a dot', reply_to: root })
    const reply = page.locator('.replies .post').filter({ hasText: 'What a dot' })
    await reply.waitFor()
    await saveScreenshot(page, 'thread-1280')
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('a canceled edit is gone, and unsaved changes never replace a newer version without being asked for', async () => {
    const page = await openPage()
    await page.goto(`${board.address}/account`)
    await button(page, 'Make a key').click()
    await page.getByRole('heading', { name: 'Your profile' }).waitFor()
    await page.goto(`${board.address}/room/lobby#write`)
    await page.getByLabel('Write to lobby').fill('first version')
    await button(page, 'Post').click()
    await page.getByRole('link', { name: 'see it' }).click()
    const id = new URL(page.url()).pathname.split('/').at(-1)!
    const field = page.getByLabel('Your post')
    const edit = async (on: Page) => {
      await on.locator(`#e-${id} > .under .menu summary`).click()
      await button(on, 'Edit').click()
      await on.getByLabel('Your post').waitFor()
    }
    const textNow = async () => (await client.get(`/api/events/${id}`)).data.event
    await edit(page)
    await field.fill('rubbish')
    await page.locator('.in-place').getByRole('button', { name: 'Cancel' }).click()
    await edit(page)
    expect(await field.inputValue()).toBe('first version')

    // Left without Cancel, the changes are there again.
    await field.fill('half a change')
    await page.reload()
    await edit(page)
    expect(await field.inputValue()).toBe('half a change')
    await page.getByText('These are your unsaved changes.').waitFor()

    // Another tab saves a newer version while this one has its form open: it is shown before it is replaced.
    const other = await page.context().newPage()
    await other.goto(page.url())
    await edit(other)
    await other.getByLabel('Your post').fill('second version')
    await button(other, 'Save').click()
    await other.locator(`#e-${id} > .text`).getByText('second version').waitFor()
    await field.fill('half a change, and more')
    await button(page, 'Save').click()
    await page.getByText('this post was changed elsewhere').waitFor()
    await page.locator('.preview').getByText('second version').waitFor()
    await saveScreenshot(page, 'edited-elsewhere')
    expect(await textNow()).toMatchObject({ text: 'second version' })

    await edit(other)
    await other.getByLabel('Your post').fill('third version')
    await button(other, 'Save').click()
    await other.locator(`#e-${id} > .text`).getByText('third version').waitFor()
    await page.reload()
    await edit(page)
    expect(await field.inputValue()).toBe('third version')
    await saveScreenshot(page, 'unsaved-changes')
    await button(page, 'Restore your unsaved changes').click()
    expect(await field.inputValue()).toBe('half a change, and more')
    await button(page, 'Save').click()
    await page.locator(`#e-${id} > .text`).getByText('half a change, and more').waitFor()
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain('half a change')
    await page.context().close()
  })

  test('the keyboard keeps its place: after buttons, forms, votes, menus, and a reply in place', async () => {
    const root = (await client.post(ada, { room: 'keyboard', text: 'A thread for the keyboard' })).data.event_id!
    const page = await openPage()
    await page.goto(`${board.address}/account`)
    await button(page, 'Make a key').click()
    await page.getByLabel('A name, 2 to 32').fill('keyboard')
    await button(page, 'Take this name').press('Enter')
    await page.getByText('@keyboard. A name stays').waitFor()
    await expect.poll(() => page.locator('#own').evaluate((own) => own.matches(':focus-within'))).toBe(true)
    // Until it has a name the board does not know the key, and says so for each read signed with it.
    const complaints = collectErrors(page)
    await page.getByLabel('Who you are').fill('I type.')
    const isFocused = (of: Locator) => of.evaluate((each) => each.matches(':focus'))
    const save = button(page, 'Save')
    await save.press('Enter')
    await page.getByText('Saved. Everyone can read it.').waitFor()
    expect(await isFocused(save)).toBe(true)

    await page.goto(`${board.address}/e/${root}`)
    const post = page.locator(`#e-${root}`)
    const under = post.locator(':scope > .under')
    const follow = page.locator('[data-follow-thread]')
    await follow.waitFor()
    await follow.press('Enter')
    await button(page, 'Following').waitFor()
    expect(await isFocused(follow)).toBe(true)
    const vote = under.getByRole('button', { name: /^For/ })
    await vote.press('Enter')
    await under.getByRole('button', { name: 'For: 1', pressed: true }).waitFor()
    expect(await isFocused(vote)).toBe(true)

    const below = page.locator('#write')
    await below.locator('textarea').fill('from **below**')
    const preview = below.locator('button', { hasText: 'review' })
    await preview.press('Enter')
    await below.locator('.preview').getByText('from **below**').waitFor()
    expect(await isFocused(preview)).toBe(true)
    const submit = below.getByRole('button', { name: 'Reply', exact: true })
    await submit.press('Enter')
    await below.getByText('Posted:').waitFor()
    expect(await isFocused(submit)).toBe(true)

    const replyButton = under.getByRole('button', { name: 'Reply' })
    const text = page.locator('.in-place textarea')
    await replyButton.press('Enter')
    await text.press('Escape')
    expect(await isFocused(replyButton)).toBe(true)
    const more = under.locator('summary')
    await more.press('Enter')
    await under.getByRole('button', { name: 'Quote' }).press('Enter')
    await expect.poll(() => text.inputValue()).toContain('> A thread')
    await page.locator('.in-place').getByRole('button', { name: 'Cancel' }).press('Enter')
    expect(await isFocused(more)).toBe(true)
    await more.press('Enter')
    await under.getByRole('button', { name: 'Copy link' }).press('Escape')
    expect(await isFocused(more)).toBe(true)

    await replyButton.press('Enter')
    await text.fill('from in between')
    await text.press('Control+Enter')
    const made = page.locator('.replies .post').filter({ hasText: 'from in between' })
    await expect.poll(async () => (await made.count()) === 1 && isFocused(made)).toBe(true)
    await expect.poll(() => page.getByRole('status').allTextContents()).toContain('Posted.')
    await saveScreenshot(page, 'focus-on-reply')
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('unread counts of follows are the same in a second browser with the same key file', async () => {
    const first = await openPage({ acceptDownloads: true })
    await first.goto(`${board.address}/account`)
    await first.getByLabel('Passphrase for the file, if you want one').fill('a passphrase')
    const saving = first.waitForEvent('download')
    await button(first, 'Make a key').click()
    const file = join(folder, 'second.json')
    await (await saving).saveAs(file)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ version: 2, kdf: 'PBKDF2-SHA-256', rounds: 600_000 })
    await first.getByRole('heading', { name: 'Your profile' }).waitFor()
    await saveScreenshot(first, 'account')
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
    await saveScreenshot(second, 'unread')
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

  test('a member follows a private room, and the count of what is new there is in no place that others see', async () => {
    const [owner, member] = [person('follows owner'), person('follows member')]
    await client.command(owner, { operation: 'room.create', room: 'hollow', visibility: 'private' })
    await client.command(owner, { operation: 'room.member.add', room: 'hollow', target: member.id })
    const page = await openPage()
    await useKey(page, board, member)
    await page.goto(`${board.address}/room/hollow`)
    await button(page, 'Follow').click()
    await button(page, 'Following').waitFor()
    await page.goto(`${board.address}/rooms`)
    for (const text of ['one', 'two', 'three']) await client.post(owner, { room: 'hollow', text })
    const other = await openPage()
    await useKey(other, board, member)
    await other.locator('.badge').getByText('3').waitFor()
    await other.goto(`${board.address}/inbox`)
    await other.getByRole('link', { name: 'hollow' }).click()
    await other.getByText('3 new since your last visit').waitFor()
    await saveScreenshot(other, 'private-room-followed')
    await expect
      .poll(async () => {
        await other.goto(`${board.address}/`)
        await other.locator('#account svg').waitFor()
        return other.locator('.badge').isHidden()
      }, patience)
      .toBe(true)
    for (const path of [
      '/api/events',
      '/api/changes?after=0',
      '/api/rooms',
      `/api/identities/${member.id}`,
      '/v1/export',
    ])
      expect((await client.get(path)).text, path).not.toContain('hollow')
    await other.goto(`${board.address}/room/hollow`)
    await button(other, 'Following').click()
    await button(other, 'Follow').waitFor()
    const follows = await client.command(member, { operation: 'follows.list' })
    expect(follows.data).toMatchObject({ follows: [] })
    for (const each of [page, other]) await each.context().close()
  })

  test('an operator with a key for a day hides a spammer’s post, suspends them and removes the rest, in the browser', async () => {
    const spammer = person('browser spammer')
    const spam: string[] = []
    for (const n of [1, 2, 3])
      spam.push((await client.post(spammer, { room: 'lobby', text: `Buy now ${n}` })).data.event_id!)
    await client.command(ada, { operation: 'identity.register', handle: 'browser-ada' })
    await client.command(ada, { operation: 'report', event_id: spam[0]!, reason: 'advertising' })
    const file = join(folder, 'operate.json')
    const seed = seedOf(operator).toString('base64url')
    const own = JSON.stringify({ type: 'broadside-key', public_key: operator.publicKey, id: operator.id, seed })
    writeFileSync(join(folder, 'operator.json'), own, { mode: 0o600 })
    const scopes = 'board:read,board:moderate,board:operate'
    const given = ['delegate', file, '--key', join(folder, 'operator.json'), '--url', board.address, '--scopes', scopes]
    execFileSync(process.execPath, [program, ...given])
    const tooLong = spawnSync(process.execPath, [program, ...given.with(1, join(folder, 'long.json')), '--hours', '25'])
    expect(String(tooLong.stderr)).toContain('lasts at most 86400 seconds')

    const page = await openPage({ viewport: { width: 1280, height: 900 } })
    await page.goto(`${board.address}/moderate`)
    await page.getByLabel('Key file of the delegation').setInputFiles(file)
    await page.getByText('Reported by').waitFor()
    await page.getByText('@browser-ada: advertising').waitFor()
    await saveScreenshot(page, 'moderate')
    await page.goto(`${board.address}/e/${spam[2]}`)
    await page.locator(`#e-${spam[2]}`).getByText('More', { exact: true }).first().click()
    await button(page, 'Moderate').click()
    await page.getByRole('link', { name: 'Buy now 3' }).waitFor()
    await page.getByPlaceholder('Reason, public').first().fill('Advertising')
    await button(page, 'Suspend and hide all posts').click()
    await page.getByText('The board hides all their posts').waitFor()
    const shown = () => Promise.all(spam.map(async (id) => (await client.get(`/api/events/${id}`)).data.event))
    const [hidden, whole] = [true, false].map((is) => spam.map(() => expect.objectContaining({ hidden: is })))
    await expect.poll(shown).toEqual(hidden)
    expect((await client.post(spammer, { room: 'lobby', text: 'again' })).text).toContain('"suspended"')

    await page.getByLabel('End the suspension of').fill(spammer.id)
    await button(page, 'End the suspension').click()
    await page.getByText('What it hid is shown again').waitFor()
    await expect.poll(shown).toEqual(whole)
    expect((await client.post(spammer, { room: 'lobby', text: 'sorry' })).status).toBe(200)

    await page.getByLabel('Room', { exact: true }).fill('lobby')
    await button(page, 'Open').click()
    await page.getByLabel('Ban @handle or id from this room').fill(spammer.id)
    await page.getByLabel('Reason, public').last().fill('Advertising')
    await page.locator('select[name=days]').selectOption('A week')
    await button(page, 'Ban').click()
    await page.getByText('Banned: they can no longer write').waitFor()
    expect((await client.post(spammer, { room: 'lobby', text: 'again' })).text).toContain(
      'you are banned from this room',
    )
    await button(page, 'Open').click()
    await button(page, 'End the ban').click()
    await page.getByText('The ban is over.').waitFor()
    expect((await client.post(spammer, { room: 'lobby', text: 'sorry' })).status).toBe(200)
    await page.context().close()
  })

  test('the rooms that a person is in, also private ones, are listed in every browser with their key, until they leave', async () => {
    const [owner, member] = [person('rooms owner'), person('rooms member')]
    await client.command(owner, { operation: 'room.create', room: 'hideaway', visibility: 'private' })
    await client.command(owner, { operation: 'room.member.add', room: 'hideaway', target: member.id })
    await client.command(owner, { operation: 'room.create', room: 'forecourt' })
    const page = await openPage()
    await useKey(page, board, member)
    const list = page.locator('section', { has: page.getByRole('heading', { name: 'Rooms that you are in' }) })
    await page.goto(`${board.address}/account/rooms`)
    await list.getByRole('link', { name: 'hideaway' }).waitFor()
    await page.getByLabel('Name, of a-z').fill('den')
    await page.getByLabel('Private: only its members').check()
    await button(page, 'Create the room').click()
    await list.getByRole('link', { name: 'den' }).waitFor()
    await page.getByText('Created:').waitFor()
    await page.goto(`${board.address}/account/rooms?room=forecourt`)
    await button(page, 'Join the room').click()
    await page.getByText('You are its member').waitFor()
    await page.goto(`${board.address}/account/rooms`)
    const linesOf = async (shown: typeof list) => (await shown.locator('li').allTextContents()).sort()
    const lines = () => linesOf(list)
    const [den, hideaway, forecourt] = [
      'denprivateownerPeople and policy',
      'hideawayprivatememberPeople and policy',
      'forecourtmemberPeople and policy',
    ]
    await expect.poll(lines).toEqual([den, forecourt, hideaway])
    await saveScreenshot(page, 'own-rooms')
    const other = await openPage()
    await useKey(other, board, member)
    await other.goto(`${board.address}/account/rooms`)
    const section = other.locator('section', { has: other.getByRole('heading', { name: 'Rooms that you are in' }) })
    await expect.poll(() => linesOf(section)).toEqual([den, forecourt, hideaway])
    await section.getByRole('link', { name: 'hideaway' }).click()
    await other.getByLabel('Write to hideaway').waitFor()
    await other.context().close()
    await client.command(owner, { operation: 'room.member.remove', room: 'hideaway', target: member.id })
    await page.reload()
    await expect.poll(lines).toEqual([den, forecourt])
    await page.goto(`${board.address}/account/rooms?room=forecourt`)
    await button(page, 'Leave the room').click()
    await page.getByText('You are not a member').waitFor()
    await page.goto(`${board.address}/account/rooms`)
    await expect.poll(lines).toEqual([den])
    await page.goto(`${board.address}/account`)
    await button(page, 'Forget this key on this device').click()
    await button(page, 'Forget it').click()
    await button(page, 'Make a key').waitFor()
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain('den')
    await page.context().close()
  })

  test('the inbox shows a reply, a mention and a conversation, and marks them as seen when shown', async () => {
    const page = await openPage({ viewport: { width: 390, height: 844 } })
    await page.goto(`${board.address}/room/lobby#write`)
    await page.getByLabel('Write to lobby').fill('Who can help me?')
    await page.getByLabel('Your name here').fill('asker')
    await button(page, 'Post').click()
    await page.getByText('Posted:').waitFor()
    const { events } = (await client.get('/api/events?room=lobby&limit=1')).data as unknown as {
      events: { event_id: string; author: { id: string } }[]
    }
    const [{ event_id: id, author }] = events as [(typeof events)[number]]
    await client.post(ada, { room: 'lobby', text: 'I can, @asker', reply_to: id })
    await client.command(ada, { operation: 'conversation.open', members: [author.id], text: 'In private' })
    await page.goto(`${board.address}/inbox`)
    await page.getByRole('link', { name: 'I can, @asker' }).first().waitFor()
    await saveScreenshot(page, 'inbox-390')
    await button(page, 'Accept').click()
    await page.waitForURL(/\/room\/dm-/)
    await page.getByText('In private').waitFor()
    await page.getByRole('heading', { name: /^Conversation with @browser-ada$/ }).waitFor()
    await saveScreenshot(page, 'conversation-390')
    await page.context().close()
  })

  test('messages in a conversation are new for those who accepted or began it, until they read them or stop following', async () => {
    const [asked, begun] = [person('talks asked'), person('talks begun')]
    for (const [signer, handle] of [
      [asked, 'talks-asked'],
      [begun, 'talks-begun'],
    ] as const)
      await client.post(signer, { room: 'lobby', text: 'hello', handle })
    const [page, other] = [await openPage(), await openPage()]
    await useKey(page, board, asked)
    await useKey(other, board, begun)
    await other.goto(`${board.address}/inbox`)
    await other.getByText('Write to someone in private').click()
    await other.getByLabel('To @handle').fill('@talks-asked')
    await other.getByLabel('Message').fill('Shall we talk?')
    await button(other, 'Send').click()
    await other.getByText('Sent:').waitFor()
    await page.goto(`${board.address}/inbox`)
    await button(page, 'Accept').click()
    await page.getByText('Shall we talk?').waitFor()
    const talk = new URL(page.url()).pathname.split('/').at(-1)!
    const talks = (each: Page) =>
      each.locator('section', { has: each.getByRole('heading', { name: 'Conversations' }) }).locator('li')
    for (const [reader, writer] of [
      [page, begun],
      [other, asked],
    ] as const) {
      await reader.goto(`${board.address}/rooms`)
      await client.post(writer, { room: talk, text: 'Yes?' })
      await reader.goto(`${board.address}/inbox`)
      await talks(reader).getByText('1 new').waitFor()
      await reader.locator('.badge').getByText('1').waitFor()
      await reader.getByText('Nothing new.').waitFor()
      await saveScreenshot(reader, 'conversation-new')
      await talks(reader).getByRole('link', { name: 'open' }).click()
      await reader.getByText('1 new since your last visit').waitFor()
      // What arrives while it is read is not new either.
      await reader.getByText('Live: new posts').waitFor()
      await client.post(writer, { room: talk, text: `and more, ${reader === page ? 1 : 2}` })
      await reader
        .locator('.posts')
        .getByText(`and more, ${reader === page ? 1 : 2}`)
        .waitFor()
      await reader.goto(`${board.address}/inbox`)
      await talks(reader).getByText('messages').waitFor()
      expect(await talks(reader).getByText('1 new').count()).toBe(0)
    }
    await page.goto(`${board.address}/room/${talk}`)
    await button(page, 'Following').click()
    await button(page, 'Follow').waitFor()
    await client.post(begun, { room: talk, text: 'Gone?' })
    await page.goto(`${board.address}/inbox`)
    await talks(page).getByText('messages').waitFor()
    expect(await page.locator('.badge').isHidden()).toBe(true)
    for (const each of [page, other]) await each.context().close()
  })

  test('the inbox goes on to older items, with the keyboard, to the first one', async () => {
    const author = person('much answered')
    const root = (await client.post(author, { room: 'answers', text: 'What do you think?' })).data.event_id!
    for (let n = 0; n < 120; n++) await client.post(ada, { room: 'answers', text: `answer ${n}`, reply_to: root })
    const page = await openPage()
    await useKey(page, board, author)
    await page.getByRole('link', { name: 'Inbox: 50+ unread' }).waitFor()
    await page.goto(`${board.address}/inbox`)
    const items = page.locator('section', { has: page.getByRole('heading', { name: 'To you' }) }).locator('li')
    const texts = () => items.locator('p').allTextContents()
    const answers = Array.from({ length: 120 }, (_, n) => `answer ${119 - n}`)
    await expect.poll(texts).toEqual(answers.slice(0, 50))
    await button(page, 'Older').focus()
    await page.keyboard.press('Enter')
    await expect.poll(texts).toEqual(answers.slice(0, 100))
    await expect.poll(() => button(page, 'Older').getAttribute('aria-disabled')).toBe(null)
    await page.keyboard.press('Enter')
    await expect.poll(texts).toEqual(answers)
    expect(await button(page, 'Older').count()).toBe(0)
    await page.context().close()
  })

  test('what is typed for a room, a document, a work or a message survives a reload until it is sent', async () => {
    const page = await openPage({ acceptDownloads: true })
    await page.goto(`${board.address}/account`)
    const saving = page.waitForEvent('download')
    await button(page, 'Make a key').click()
    const { seed } = JSON.parse(readFileSync(await (await saving).path(), 'utf8'))
    await page.getByRole('heading', { name: 'Your profile' }).waitFor()
    await page.goto(`${board.address}/work`)
    await page.getByText('Request work').click()
    await page.getByLabel('What is to be done').fill('a half request')
    await page.getByLabel('Practice: costs and pays nothing').check()
    await page.reload()
    await expect.poll(() => page.getByLabel('What is to be done').inputValue()).toBe('a half request')
    expect(await page.getByLabel('Practice: costs and pays nothing').isChecked()).toBe(true)
    await page.goto(`${board.address}/inbox`)
    await page.getByText('Write to someone in private').click()
    await page.getByLabel('Message').fill('a half message')
    await page.reload()
    await expect.poll(() => page.getByLabel('Message').inputValue()).toBe('a half message')
    await page.goto(`${board.address}/account/rooms`)
    await page.getByLabel('Name, of a-z').fill('half-a-room')
    await page.getByLabel('Private: only its members').check()
    await page.getByLabel('Its threads are on the front page').uncheck()
    await page.reload()
    await expect.poll(() => page.getByLabel('Name, of a-z').inputValue()).toBe('half-a-room')
    expect(await page.getByLabel('Private: only its members').isChecked()).toBe(true)
    expect(await page.getByLabel('Its threads are on the front page').isChecked()).toBe(false)
    await button(page, 'Create the room').click()
    await page.getByText('Created:').waitFor()
    await page.reload()
    await page.getByRole('link', { name: 'half-a-room' }).waitFor()
    expect(await page.getByLabel('Name, of a-z').inputValue()).toBe('')

    await page.goto(`${board.address}/room/lobby?view=documents`)
    await page.getByText('New document').click()
    await page.getByLabel('Title').fill('A kept plan')
    await page.reload()
    const text = page.getByLabel('Text, in Markdown')
    await text.fill('one\n\ntwo\n\nthree')
    await button(page, 'Create it').click()
    await page.getByText('Created:').waitFor()
    expect(await page.getByLabel('Title').inputValue()).toBe('')
    await page.getByRole('link', { name: 'see it' }).click()
    await button(page, 'Edit this document').click()
    await text.fill('one, first\n\ntwo\n\nthree')
    await page.reload()
    await expect.poll(() => text.inputValue()).toBe('one, first\n\ntwo\n\nthree')
    await page.getByText('These are your unsaved changes.').waitFor()

    // Another device writes meanwhile: the draft still starts from the version that it was begun with.
    const target = new URL(page.url()).pathname.split('/').at(-1)!
    const data = { schema: 1, base_version: 1 }
    const given = { operation: 'docs.write', target, text: 'one\n\ntwo\n\nthree, last', data: JSON.stringify(data) }
    expect((await client.command(signerFromSeed(Buffer.from(seed, 'base64url')), given)).status).toBe(200)
    await page.reload()
    await button(page, 'Save').click()
    await page.getByText('Both texts were merged').waitFor()
    expect(await text.inputValue()).toBe('one, first\n\ntwo\n\nthree, last')
    await page.locator('article').getByText('one, first').waitFor()
    await page.locator('aside').getByText('3 of 3').waitFor()
    await saveScreenshot(page, 'document-saved')
    await text.fill('rubbish')
    await button(page, 'Cancel').click()
    await page.reload()
    await button(page, 'Edit this document').click()
    await expect.poll(() => text.inputValue()).toBe('one, first\n\ntwo\n\nthree, last')
    await page.context().close()
  })

  test('everything is marked as read at once, and reported to the board in one command', async () => {
    const page = await openPage()
    await page.goto(`${board.address}/account`)
    await button(page, 'Make a key').click()
    await page.getByRole('heading', { name: 'Your profile' }).waitFor()
    const rooms = ['marked-a', 'marked-b', 'marked-c']
    for (const room of rooms) {
      await client.post(ada, { room, text: 'begun' })
      await page.goto(`${board.address}/room/${room}`)
      await button(page, 'Follow').click()
      await button(page, 'Following').waitFor()
    }
    // The reload reports that the last room is read: the board takes one report a minute.
    await page.reload()
    await button(page, 'Following').waitFor()
    for (const room of rooms) await client.post(ada, { room, text: 'news' })
    const reports: string[] = []
    page.on('request', (request) => {
      const body = request.postData() ?? ''
      if (body.includes('"inbox.seen"')) reports.push(JSON.parse(body).data)
    })
    await page.goto(`${board.address}/inbox`)
    await page.getByText('1 new').nth(2).waitFor()
    await button(page, 'Mark everything as read').press('Enter')
    await page.getByText('Nothing new.').waitFor()
    expect(await page.locator('.badge').isHidden()).toBe(true)
    await page.getByRole('heading', { name: 'In what you follow' }).waitFor()
    await expect.poll(() => reports.some((each) => JSON.parse(each).rooms.length === 3)).toBe(true)
    const later = await page.context().newPage()
    await later.goto(`${board.address}/inbox`)
    await later.getByText('Nothing new.').waitFor()
    await page.context().close()
  })

  test.each([
    { colorScheme: 'light', width: 1280 },
    { colorScheme: 'dark', width: 1280 },
    { colorScheme: 'light', width: 390 },
    { colorScheme: 'dark', width: 390 },
  ] as const)(
    'axe-core finds nothing wrong with what scripts add, $colorScheme at $width',
    async ({ colorScheme, width }) => {
      const page = await openPage({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true })
      const name = `${colorScheme}-${width}`
      const wrong: unknown[] = []
      const check = async (what: string) => {
        await page.evaluate(axe)
        const { violations } = await page.evaluate(() =>
          (globalThis as unknown as Window).axe.run({
            resultTypes: ['violations'],
            runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'],
          }),
        )
        for (const { id, nodes } of violations) wrong.push([what, id, nodes[0]?.html, nodes[0]?.failureSummary])
        expect(await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
        await saveScreenshot(page, `${what}-${name}`)
      }
      await page.goto(`${board.address}/account`)
      await button(page, 'Make a key').waitFor()
      await check('account-without-a-key')
      await page.goto(`${board.address}/room/lobby#write`)
      await page.getByLabel('Write to lobby').fill('Is this open to everybody?')
      await check('composer-of-a-newcomer')
      await button(page, 'Post').click()
      await page.getByText('Posted:').waitFor()
      const { events } = (await client.get('/api/events?room=lobby&limit=1')).data as unknown as {
        events: { event_id: string }[]
      }
      const { event_id: id } = await client
        .post(ada, { room: 'lobby', text: 'Yes', reply_to: events[0]!.event_id })
        .then(({ data }) => data as { event_id: string })
      await page.goto(`${board.address}/e/${id}`)
      await page.getByRole('button', { name: /^For/ }).first().waitFor()
      // An open menu covers what is below it.
      await check('thread')
      await page.goto(`${board.address}/account`)
      await page.getByRole('heading', { name: 'Your profile' }).waitFor()
      await check('account')
      await page.goto(`${board.address}/inbox`)
      await page.getByRole('heading', { name: 'Conversations' }).waitFor()
      await check('inbox')
      await page.goto(`${board.address}/moderate`)
      await page.getByRole('heading', { name: 'For the operator' }).waitFor()
      await check('moderate')
      await page.goto(`${board.address}/account/rooms`)
      await page.getByRole('heading', { name: 'New room' }).waitFor()
      await page.getByText('More rules').click()
      await check('rooms')
      await page.goto(`${board.address}/account/webhooks`)
      await page.getByText('None yet.').first().waitFor()
      await page.getByText('New webhook').click()
      await page.getByText('New receive URL').click()
      await check('webhooks')
      await page.goto(`${board.address}/tools`)
      await page.locator('.rows h3 a').first().click()
      await page.getByText('Write a review').click()
      await check('tool')
      await page.goto(`${board.address}/room/lobby`)
      await page.locator('#account svg').waitFor()
      await check('room')
      const hall = `hall-${colorScheme}-${width}`
      const { id: reader } = await page.evaluate(() => JSON.parse(localStorage.getItem('me')!))
      await client.command(ada, { operation: 'room.create', room: hall, visibility: 'private' })
      await client.command(ada, { operation: 'room.member.add', room: hall, target: reader })
      const { event_id: asked } = (await client.post(ada, { room: hall, text: 'Who comes?' })).data
      await client.post(ada, { room: hall, text: 'I do', reply_to: asked! })
      const made = await client.command(ada, {
        operation: 'docs.create',
        room: hall,
        text: 'one',
        data: '{"schema":1,"title":"A list"}',
      })
      const { doc } = made.data as unknown as { doc: { id: string } }
      const written = {
        operation: 'docs.write',
        target: doc.id,
        text: 'one two',
        data: '{"schema":1,"base_version":1}',
      }
      await client.command(ada, written)
      await page.goto(`${board.address}/room/${hall}`)
      await button(page, 'Follow').waitFor()
      await button(page, 'Reply').first().click()
      await page.locator('.in-place textarea').waitFor()
      await check('private-room')
      await page.goto(`${board.address}/d/${doc.id}/history`)
      await page.locator('article ins').waitFor()
      await check('private-history')
      await page.route('**/v1/command', (route) => route.abort())
      await page.goto(`${board.address}/inbox`)
      await page.getByText('The board cannot be reached').waitFor()
      await check('waiting')
      expect(wrong).toEqual([])
      await page.context().close()
    },
  )

  test('a work is requested, claimed, submitted, rejected, and a document is written and merged, in the browser', async () => {
    const requester = await openPage()
    const worker = await openPage()
    for (const page of [requester, worker]) {
      await page.goto(`${board.address}/account`)
      await button(page, 'Make a key').click()
      await page.getByRole('heading', { name: 'Your profile' }).waitFor()
    }
    // Practice is only listed with its room.
    await requester.goto(`${board.address}/work?room=lobby`)
    await requester.getByText('Request work').click()
    await requester.getByLabel('Title').fill('A short poem')
    await requester.getByLabel('What is to be done').fill('Write a poem of four lines about boards.')
    await requester.getByLabel('Practice: costs and pays nothing').check()
    await button(requester, 'Request this work').click()
    await requester.locator('.content > .rows').getByText('A short poem').waitFor()
    await requester.getByRole('link', { name: 'see it' }).click()
    await button(requester, 'Cancel it').waitFor()
    await worker.goto(requester.url())
    await button(worker, 'Claim it').click()
    await worker.getByLabel('Your result').fill('Boards are nice, once or twice.')
    await button(worker, 'Submit the result').click()
    await worker.getByRole('heading', { name: 'The result' }).waitFor()
    await requester.reload()
    await saveScreenshot(requester, 'work-to-review')
    await requester.getByLabel('Why').fill('It has two lines and not four, as was asked for.')
    await button(requester, 'Reject it').click()
    await requester.locator('.timeline').getByText('work.reject').waitFor()
    await worker.reload()
    await button(worker, 'Concede').click()
    await worker.locator('.timeline').getByText('work.concede').waitFor()

    await requester.goto(`${board.address}/room/lobby?view=documents`)
    await requester.getByText('New document').click()
    await requester.getByLabel('Title').fill('A plan')
    await requester.getByLabel('Text, in Markdown').fill('one\n\ntwo\n\nthree')
    await button(requester, 'Create it').click()
    await requester.getByRole('link', { name: 'see it' }).click()
    await button(requester, 'Edit this document').click()
    await worker.goto(requester.url())
    await button(worker, 'Join the room').click()
    await button(worker, 'Edit this document').click()
    await worker.getByLabel('Text, in Markdown').fill('one, first\n\ntwo\n\nthree')
    await button(worker, 'Save').click()
    await worker.getByText('Saved:').waitFor()
    await requester.getByLabel('Text, in Markdown').fill('one\n\ntwo\n\nthree, last')
    await button(requester, 'Save').click()
    await requester.getByText('Both texts were merged').waitFor()
    expect(await requester.getByLabel('Text, in Markdown').inputValue()).toContain('one, first')
    await requester.context().close()
    await worker.context().close()
  })
})
