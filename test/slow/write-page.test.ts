/** A person with only a browser: creates a key, posts, replies, redacts, joins a private room; and nobody else ever has the key. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openKeyFile } from '../../src/cli/key-file.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { collectErrors, missingBrowser, openPage, saveScreenshot, useKey } from '../support/browser.ts'
import { Client, person } from '../support/client.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('ada')
const directory = boardDirectory()
let board: Board
let client: Client
let folder: string

beforeAll(async () => {
  board = await startBoard({ directory })
  client = await Client.of(board)
  folder = mkdtempSync(join(tmpdir(), 'broadside-writer-'))
})
afterAll(() => {
  client.close()
  rmSync(folder, { recursive: true, force: true })
})

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
/** Opens the form for a new thread. */
const begin = async (page: Page) => page.getByRole('link', { name: 'New thread' }).click()
const identityOf = (page: Page): Promise<string> =>
  page.evaluate(() => JSON.parse(localStorage.getItem('me') ?? '{}').id)
const forget = async (page: Page) => {
  await page.goto(new URL('/account', page.url()).href)
  await button(page, 'Forget this key on this device').click()
  await button(page, 'Forget it').click()
  await button(page, 'Make a key').waitFor()
}

describe.skipIf(skipWithout(missingBrowser))(`in Chromium${skipNote(missingBrowser)}`, () => {
  test('a person creates a key that stays in the browser, posts, replies and redacts', async () => {
    const page = await openPage()
    const complaints = collectErrors(page)
    const sent: string[] = []
    page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`))
    await page.goto(`${board.address}/room/lobby?view=posts`)
    await begin(page)
    await page.getByLabel('Write to lobby').fill('Hello from a browser. "Grüße" 🌍\n\u2028 and a second line')
    await page.getByLabel('Save a copy of my key').uncheck()
    await button(page, 'Post').click()
    await expect.poll(() => page.locator('.posts .post .text').first().textContent()).toContain('Hello from a browser.')
    const [posted] = (await client.get('/api/events?room=lobby&limit=1')).data.events as unknown as {
      event_id: string
      text: string
      author: { id: string; public_key: string }
    }[]
    expect(posted!.text).toBe('Hello from a browser. "Grüße" 🌍\n\u2028 and a second line')
    expect(posted!.author.id).toBe(await identityOf(page))
    // The field is empty again, and the post is shown once though the live stream brings it too.
    await expect.poll(() => page.getByLabel('Write to lobby').inputValue()).toBe('')
    expect(await page.locator('.posts .post').count()).toBe(1)

    // Another page, later, with the same key: a reply.
    await page.goto(`${board.address}/e/${posted!.event_id}`)
    await page.getByLabel('Reply to the thread').fill('A reply to myself')
    await page.locator('#write').getByRole('button', { name: 'Reply', exact: true }).click()
    await page.getByText('Posted:').waitFor()
    const thread = (await client.get(`/api/thread/${posted!.event_id}`)).data.events as unknown as { text?: string }[]
    expect(thread.map(({ text }) => text)).toEqual([posted!.text, 'A reply to myself'])

    await page.reload()
    await page.locator('.post .menu summary').first().click()
    await button(page, 'Take back').first().click()
    await page.getByPlaceholder('Reason, public').first().fill('second thoughts')
    await button(page, 'Delete the text').first().click()
    await expect
      .poll(async () => (await client.get(`/api/events/${posted!.event_id}`)).data.event)
      .toMatchObject({ hidden: true, reason: 'second thoughts' })

    // Nothing can read the key out, and nothing of it was ever sent anywhere.
    const isReadable = await page.evaluate(async () => {
      type Keys = { get(name: string): { result: { privateKey: object }; onsuccess: () => void } }
      const opened = await new Promise<{ transaction(of: string): { objectStore(of: string): Keys } }>((done) => {
        const indexed = (
          globalThis as unknown as { indexedDB: { open(name: string): { result: never; onsuccess(): void } } }
        ).indexedDB
        const opening = indexed.open('broadside')
        opening.onsuccess = () => done(opening.result)
      })
      const { privateKey } = await new Promise<{ privateKey: object }>((done) => {
        const asked = opened.transaction('keys').objectStore('keys').get('own')
        asked.onsuccess = () => done(asked.result)
      })
      return crypto.subtle.exportKey('jwk', privateKey as Parameters<typeof crypto.subtle.exportKey>[1]).then(
        () => true,
        () => false,
      )
    })
    expect(isReadable).toBe(false)
    expect(sent.filter((each) => /"(d|seed)":/.test(each))).toEqual([])
    expect(await page.context().cookies()).toEqual([])
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('a preview is gone once its text is posted', async () => {
    const page = await openPage()
    await useKey(page, board, ada)
    await page.goto(`${board.address}/room/lobby#write`)
    for (const text of ['one **word**', 'another **word**']) {
      await page.getByLabel('Write to lobby').fill(text)
      await page.getByLabel('Markdown').check()
      await button(page, 'Preview').click()
      await page.locator('.preview strong').waitFor()
      await button(page, 'Post').click()
      await page.getByText('Posted:').waitFor()
      expect(await page.locator('.preview').isVisible()).toBe(false)
      await button(page, 'Preview').waitFor()
    }
    await page.context().close()
  })

  test('a post addressed to a handle is signed with the id of its owner', async () => {
    const ben = person('addressed ben')
    await client.command(ben, { operation: 'identity.register', handle: 'addressed-ben' })
    const page = await openPage()
    await page.goto(`${board.address}/room/lobby`)
    await begin(page)
    await page.getByLabel('Write to lobby').fill('For you alone, in public')
    await page.getByLabel('Addressed to').fill('@nobody-here')
    await button(page, 'Post').click()
    await page.getByText('no identity on this board has the handle @nobody-here').waitFor()
    await page.getByLabel('Addressed to').fill('@addressed-ben')
    await button(page, 'Post').click()
    await page.getByText('Posted:').waitFor()
    const { items } = (await client.command(ben, { operation: 'inbox.get' })).data as unknown as {
      items: { type: string; event: { to: string; text: string } }[]
    }
    expect(items).toMatchObject([{ type: 'addressed', event: { to: ben.id, text: 'For you alone, in public' } }])
    await page.context().close()
  })

  test('the keyboard shortcut works like the button: once, and not for a text that is too long', async () => {
    const page = await openPage()
    await client.post(ada, { room: 'keys', text: 'begun' })
    await page.goto(`${board.address}/room/keys`)
    await begin(page)
    const field = page.getByLabel('Write to keys')
    const sent: string[] = []
    let answer = () => {}
    const held = new Promise<void>((done) => {
      answer = done
    })
    await page.route('**/v1/command', async (route) => {
      const body = route.request().postData() ?? ''
      if (JSON.parse(body).operation !== 'post') return route.continue()
      sent.push(body)
      await held
      await route.continue()
    })
    await field.fill('x'.repeat(32_769))
    await field.press('Control+Enter')
    await field.fill('once')
    await field.press('Control+Enter')
    await expect.poll(() => sent.length).toBe(1)
    await field.press('Control+Enter')
    await field.pressSequentially('!')
    await field.press('Control+Enter')
    await field.press('Backspace')
    await field.press('Meta+Enter')
    answer()
    await page.getByText('Posted:').waitFor()
    const { events } = (await client.get('/api/events?room=keys')).data as unknown as { events: { text: string }[] }
    expect(events.map(({ text }) => text)).toEqual(['once', 'begun'])
    expect(sent).toHaveLength(1)
    await page.context().close()
  })

  test('files are attached under any name, also by drag and drop, and each that does not fit is named', async () => {
    const page = await openPage()
    await page.goto(`${board.address}/room/lobby#write`)
    await page.getByLabel('Write to lobby').fill('with files')
    await page.getByLabel('Save a copy of my key').uncheck()
    const file = (name: string, content = 'x') => ({ name, mimeType: 'text/plain', buffer: Buffer.from(content) })
    const big = 'x'.repeat(1_048_577)
    await page
      .getByLabel('Attach files')
      .setInputFiles([file('big.txt', big), file('none.txt', ''), file('huge.txt', big)])
    const problems =
      'big.txt is too large: a file may have 1 MiB. none.txt is empty. huge.txt is too large: a file may have 1 MiB.'
    await page.getByText(problems).waitFor()
    const names = ['a\u202etxt.exe', 'tab\there.txt', `${'é'.repeat(100)}.jpeg`, '\u200e']
    await page.getByLabel('Attach files').setInputFiles(names.map((name) => file(name)))
    const prevented = await page.evaluate<boolean>(`(() => {
      const dataTransfer = new DataTransfer()
      dataTransfer.items.add(new File(['dropped'], 'dropped.txt', { type: 'text/plain' }))
      const events = ['dragover', 'drop'].map((type) => new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }))
      for (const event of events) document.querySelector('form.write textarea').dispatchEvent(event)
      return events.every(({ defaultPrevented }) => defaultPrevented)
    })()`)
    expect(prevented).toBe(true)
    await button(page, 'Post').click()
    await page.getByText('Posted:').waitFor()
    const { events } = (await client.get('/api/events?room=lobby&limit=1')).data as unknown as {
      events: { attachments: { filename: string }[] }[]
    }
    expect(events[0]!.attachments.map(({ filename }) => filename)).toEqual([
      'atxt.exe',
      'tabhere.txt',
      `${'é'.repeat(61)}.jpeg`,
      'attachment.bin',
      'dropped.txt',
    ])
    await page.context().close()
  })

  test('a key saved on creation works on the command line, and in another browser', async () => {
    const page = await openPage({ acceptDownloads: true })
    await page.goto(`${board.address}/account`)
    const downloading = page.waitForEvent('download')
    await button(page, 'Make a key').click()
    const file = join(folder, 'key.json')
    await (await downloading).saveAs(file)
    writeFileSync(join(folder, 'mine.json'), readFileSync(file), { mode: 0o600 })
    await page.getByRole('heading', { name: 'Your profile' }).waitFor()
    const id = await identityOf(page)
    expect((await openKeyFile(join(folder, 'mine.json'))).key.id).toBe(id)

    const other = await openPage()
    await other.goto(`${board.address}/account`)
    await other.getByLabel('Key file').setInputFiles(file)
    await other.getByRole('heading', { name: 'Your profile' }).waitFor()
    expect(await identityOf(other)).toBe(id)
    await forget(other)
    expect(await identityOf(other)).toBe(undefined)
    await other.context().close()
    await page.context().close()
  })

  test('a draft survives a kill of the board, a reload, and a refusal, and is posted once', async () => {
    await client.command(ada, { operation: 'room.create', room: 'costly' })
    await client.command(ada, { operation: 'room.policy.set', room: 'costly', data: '{"proof_bits":10}' })
    const page = await openPage()
    await page.goto(`${board.address}/room/costly`)
    await begin(page)
    const field = page.getByLabel('Write to costly')
    await field.fill('x'.repeat(32_769))
    await page.getByText('32769 bytes are too long').waitFor()
    await field.fill('worth some work')
    await page.reload()
    await field.waitFor()
    expect(await field.inputValue()).toBe('worth some work')
    const port = board.port
    await board.kill()
    client.close()
    await button(page, 'Post').click()
    await page.locator('form.write').getByText('cannot be reached').waitFor()
    board = await startBoard({ directory, port })
    client = await Client.of(board)
    await page.getByText('Posted:').waitFor()
    const { events } = (await client.get('/api/events?room=costly')).data as unknown as { events: { text: string }[] }
    expect(events.map(({ text }) => text)).toEqual(['worth some work'])
    await page.context().close()
  })

  test('a private room is joined with an invite, read, followed and written to; else nothing is shown', async () => {
    await client.command(ada, { operation: 'room.create', room: 'quiet-place', visibility: 'private' })
    await client.post(ada, { room: 'quiet-place', text: 'for members <b>only</b>' })
    const made = await client.command(ada, { operation: 'room.invite.create', room: 'quiet-place' })
    const { code } = (made.data as unknown as { invite: { code: string } }).invite
    const page = await openPage()
    const complaints = collectErrors(page)
    await page.goto(`${board.address}/room/quiet-place`)
    await button(page, 'Make a key and save a copy').click()
    await page.getByText('Your key is not a member of this room').waitFor()
    expect(await page.content()).not.toContain('for members')
    await page.getByLabel('Invite').fill(code)
    await button(page, 'Join').click()
    await page.getByText('for members <b>only</b>').waitFor()
    await page.getByLabel('Write to quiet-place').fill('from a browser')
    await button(page, 'Post').click()
    const listed = { operation: 'events.list', room: 'quiet-place' }
    await expect.poll(async () => (await client.command(ada, listed)).data.events?.length).toBe(2)
    await client.post(ada, { room: 'quiet-place', text: 'welcome' })
    await expect
      .poll(() => page.locator('.private.posts .text').allTextContents())
      .toEqual(['welcome', 'from a browser', 'for members <b>only</b>'])
    // The browser itself logs the status of the refused page and of refused reads.
    expect(complaints.filter((each) => !each.includes('Failed to load resource'))).toEqual([])
    await page.context().close()
  })

  test('a member opens a private room without a question: its topic, Markdown, authors, and files that their key saves', async () => {
    const room = 'quiet-garden'
    await client.command(ada, { operation: 'room.create', room, visibility: 'private', text: 'Only for us' })
    const { blob } = (
      await client.command(ada, {
        operation: 'blob.put',
        room,
        filename: 'Übersicht.txt',
        media_type: 'text/plain',
        data: Buffer.from('between us').toString('base64url'),
      })
    ).data as unknown as { blob: { id: string } }
    const data = '{"schema":1,"format":"markdown"}'
    await client.post(ada, { room, text: '# Hello **members**', attachments: [blob.id], data })
    const page = await openPage({ acceptDownloads: true })
    await page.goto(`${board.address}/account`)
    await button(page, 'Make a key').click()
    await page.getByRole('heading', { name: 'Your profile' }).waitFor()
    await client.command(ada, { operation: 'room.member.add', room, target: await identityOf(page) })
    await page.goto(`${board.address}/room/${room}`)
    await page.locator('.private strong').getByText('members').waitFor()
    expect(await page.locator('.head .lead').textContent()).toBe('Only for us')
    expect(await page.locator('.private .person').getAttribute('href')).toBe(`/i/${ada.id}`)
    const downloading = page.waitForEvent('download')
    await button(page, 'Übersicht.txt').click()
    const download = await downloading
    expect(download.suggestedFilename()).toBe('Übersicht.txt')
    expect(readFileSync(await download.path(), 'utf8')).toBe('between us')
    await saveScreenshot(page, 'private-room')
    await page.context().close()
  })

  test('members of a private room answer posts, edit and take back their own, and its owner hides one and shows it again', async () => {
    const room = 'quiet-attic'
    const ben = person('attic ben')
    await client.command(ada, { operation: 'room.create', room, visibility: 'private' })
    await client.command(ada, { operation: 'room.member.add', room, target: ben.id })
    await client.post(ada, { room, text: 'Who brings the salt?' })
    const [owner, member] = [await openPage(), await openPage()]
    const complaints = collectErrors(member)
    await useKey(owner, board, ada)
    await useKey(member, board, ben)
    await owner.goto(`${board.address}/room/${room}`)
    await owner.getByText('Who brings the salt?').waitFor()
    await member.goto(`${board.address}/room/${room}`)
    const place = member.locator('.in-place')
    const textOn = (page: Page, text: string) => page.locator('.posts .text').getByText(text).waitFor()
    const focused = () => member.evaluate<string>('document.activeElement.textContent')
    await button(member, 'Reply').click()
    await place.locator('textarea').fill('a half answer')
    await button(member, 'Cancel').click()
    expect(await focused()).toBe('Reply')
    await button(member, 'Reply').click()
    expect(await place.locator('textarea').inputValue()).toBe('a half answer')
    await place.locator('textarea').fill('I do.')
    await place.getByRole('button', { name: 'Reply' }).click()
    await textOn(owner, 'I do.')
    expect(await owner.locator('.posts .context').textContent()).toContain('Who brings the salt?')
    expect(await focused()).toContain('I do.')
    await saveScreenshot(member, 'private-reply')

    await button(member, 'Edit').click()
    await place.locator('textarea').fill('I do, and pepper.')
    await button(member, 'Save').click()
    for (const page of [owner, member]) await textOn(page, 'I do, and pepper.')
    expect(await member.getByRole('button', { name: 'Hide' }).count()).toBe(0)
    await button(member, 'Edit').click()
    expect(await place.locator('textarea').inputValue()).toBe('I do, and pepper.')
    await place.getByRole('button', { name: 'Cancel' }).click()
    // What changes a post that has the focus keeps it there.
    await button(member, 'Take back').focus()
    const toMember = owner.locator('.posts .post', { has: owner.locator('.context') })
    await toMember.getByRole('button', { name: 'Hide' }).click()
    await owner.getByLabel('Reason').fill('off topic')
    await button(owner, 'Hide the post').click()
    for (const page of [owner, member]) await textOn(page, 'Hidden by a moderator: off topic')
    expect(await focused()).toContain('Hidden by a moderator')
    await button(owner, 'Show again').click()
    await button(owner, 'Show the post again').click()
    for (const page of [owner, member]) await textOn(page, 'I do, and pepper.')

    // What is taken back is in no reply either.
    await owner
      .locator('.posts .post', { hasNot: owner.locator('.context') })
      .getByRole('button', { name: 'Take back' })
      .click()
    await button(owner, 'Delete the text').click()
    for (const page of [owner, member]) {
      await textOn(page, '(Taken back by its author.)')
      expect(await page.content()).not.toContain('Who brings the salt?')
    }
    // Refusals are no errors of the page: of the room before there is a key, and of an identity that has not posted in public.
    expect(complaints.filter((each) => !each.includes('Failed to load resource'))).toEqual([])
    for (const page of [owner, member]) await page.context().close()
  })

  test('a private room offers what its policy allows: in one that is closed, nothing is written', async () => {
    const room = 'quiet-shed'
    const cleo = person('shed cleo')
    const policy = (data: object) =>
      client.command(ada, { operation: 'room.policy.set', room, data: JSON.stringify(data) })
    await client.command(ada, { operation: 'room.create', room, visibility: 'private' })
    await client.command(ada, { operation: 'room.member.add', room, target: cleo.id })
    await client.post(cleo, { room, text: 'by Cleo' })
    const page = await openPage()
    await useKey(page, board, cleo)
    const offered = async () => {
      await page.goto(`${board.address}/room/${room}`)
      await page.getByText('by Cleo').waitFor()
      const buttons = await page.locator('.posts button').allTextContents()
      return { form: await page.getByLabel(`Write to ${room}`).count(), buttons }
    }
    const all = ['Reply', 'Edit', 'Take back']
    expect(await offered()).toEqual({ form: 1, buttons: all })
    await policy({ write: 'owner' })
    expect(await offered()).toEqual({ form: 0, buttons: all })
    await page.getByText('Only the owner of this room starts threads here.').waitFor()
    await policy({ write: 'open', reply: 'none' })
    expect(await offered()).toEqual({ form: 1, buttons: ['Edit', 'Take back'] })
    await policy({ reply: 'anyone', closed: true })
    expect(await offered()).toEqual({ form: 0, buttons: ['Take back'] })
    await page.getByText('This room is closed: it is read-only.').waitFor()
    await page.context().close()
  })

  test('an open private room says whether it is followed, loses nothing, keeps nothing redacted, and pages back', async () => {
    const room = 'quiet-hall'
    const say = async (text: string) => (await client.post(ada, { room, text })).data.event_id!
    const redact = (id: string) =>
      client.command(ada, { operation: 'event.redact', event_id: id, reason: 'taken back' })
    await client.command(ada, { operation: 'room.create', room, visibility: 'private' })
    const early = await say('an early secret')
    await Promise.all(Array.from({ length: 55 }, (_, n) => say(`n ${n}`)))
    const secret = await say('a secret')
    const way = await startTcpProxy(board.port)
    const page = await openPage()
    await page.goto(`${way.address}/room/${room}`)
    await button(page, 'Make a key and save a copy').click()
    await button(page, 'Try again').waitFor()
    const id = await identityOf(page)
    await client.command(ada, { operation: 'room.member.add', room, target: id })
    await button(page, 'Try again').click()
    const status = () => page.locator('.live').textContent()
    const texts = () => page.locator('.private.posts .text').allTextContents()
    await expect.poll(status).toContain('Live')
    expect(await page.locator('h1').allTextContents()).toEqual([room])
    expect(await page.locator('main').textContent()).not.toContain('private_room')
    expect(await texts()).toHaveLength(50)
    await button(page, 'Older').click()
    await expect.poll(async () => (await texts()).length).toBe(57)
    expect((await texts()).at(-1)).toBe('an early secret')
    expect(await button(page, 'Older').isVisible()).toBe(false)

    way.block()
    await expect.poll(status).toContain('trying again')
    for (const each of [early, secret]) await redact(each)
    await redact(await say('never seen'))
    await say('meanwhile')
    way.unblock()
    await expect.poll(status).toContain('Live')
    await expect.poll(async () => (await texts()).slice(0, 2)).toEqual(['meanwhile', '(taken back)'])
    await expect.poll(async () => (await texts()).at(-1)).toBe('(taken back)')
    expect(await texts()).toHaveLength(58)
    const live = await say('and live')
    await expect.poll(async () => (await texts())[0]).toBe('and live')
    expect(await page.locator('main > [role=status]').textContent()).toContain(': and live')
    await redact(live)
    await expect.poll(async () => (await texts())[0]).toBe('(taken back)')

    await client.command(ada, { operation: 'room.member.remove', room, target: id })
    await expect.poll(status).toContain('Live updates for this room have stopped. The board says: this room is private')
    await forget(page)
    await page.goto(`${way.address}/room/${room}`)
    await button(page, 'Make a key and save a copy').waitFor()
    expect(await texts()).toEqual([])
    await page.context().close()
    way.close()
  })
})
