/** What belongs to a key, in the browser: name, profile, a new key, delegates, rooms and their members, webhooks, works, reviews. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { signerFromSeed } from '../../src/cli/sign.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { button, collectErrors, missingBrowser, openPage, saveScreenshot } from '../support/browser.ts'
import { person } from '../support/client.ts'
import { WebhookBoard } from '../support/webhook-board.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('keys ada')
let hooked: WebhookBoard
let folder: string

beforeAll(async () => {
  hooked = await WebhookBoard.open()
  folder = mkdtempSync(join(tmpdir(), 'broadside-keys-'))
})
afterAll(async () => {
  await hooked.close()
  rmSync(folder, { recursive: true, force: true })
})

const views = [
  { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  { colorScheme: 'dark', viewport: { width: 390, height: 844 } },
] as const

/** A browser with its own key that has a name. `file`: where its key was saved. */
async function signedIn(handle: string, view: (typeof views)[number] = views[0]) {
  const page = await openPage(view)
  await page.goto(`${hooked.board.address}/account`)
  const saving = page.waitForEvent('download')
  await button(page, 'Make a key').click()
  const file = join(folder, `${handle}.json`)
  await (await saving).saveAs(file)
  await page.getByLabel('A name, 2 to 32').fill(handle)
  await button(page, 'Take this name').click()
  await page.getByText(`@${handle}. A name stays`).waitFor()
  await page.getByRole('heading', { name: 'Your profile' }).waitFor()
  // Until it has a name the board does not know the key, and says so for each read signed with it.
  return { page, complaints: collectErrors(page), file }
}

const signerOf = (file: string) => signerFromSeed(Buffer.from(JSON.parse(readFileSync(file, 'utf8')).seed, 'base64url'))
const saved = async (page: Page, name: string, act: () => Promise<void>): Promise<string> => {
  const saving = page.waitForEvent('download')
  await act()
  const file = join(folder, name)
  await (await saving).saveAs(file)
  return file
}

/** The id of the element that has the focus. */
const focusOf = (page: Page) => page.locator(':focus').getAttribute('id')

describe.skipIf(skipWithout(missingBrowser))(`in Chromium${skipNote(missingBrowser)}`, () => {
  test('a name and a profile are set, and a rotated key posts while the old one is refused', async () => {
    const { client } = hooked
    const { page, complaints, file } = await signedIn('renewed')
    const old = signerOf(file)
    await page.getByLabel('Who you are').fill('I translate texts about boards.')
    await page.getByLabel('What you can do').fill('translation, review')
    await page.getByLabel('Where else to find you').fill('https://example.com/renewed')
    await button(page, 'Save').click()
    await page.getByText('Saved. Everyone can read it.').waitFor()
    await page.goto(`${hooked.board.address}/i/renewed`)
    await page.getByText('I translate texts about boards.').waitFor()
    await saveScreenshot(page, 'profile')

    await page.goto(`${hooked.board.address}/account`)
    await page.getByText('Move to a new key', { exact: true }).first().click()
    const next = await saved(page, 'renewed-next.json', async () => {
      await button(page, 'Move to a new key').click()
    })
    const fresh = signerOf(next)
    await page.getByText(fresh.publicKey).waitFor()
    expect((await client.get('/api/identities/@renewed')).data).toMatchObject({
      identity: {
        public_key: fresh.publicKey,
        id: old.id,
        profile: { capabilities: ['translation', 'review'], links: ['https://example.com/renewed'] },
      },
    })
    expect((await client.post(old, { room: 'lobby', text: 'by the old key' })).text).toContain('"key_rotated"')
    const other = await openPage()
    await other.goto(`${hooked.board.address}/account`)
    await other.getByLabel('Key file').setInputFiles(file)
    await other.getByText('forget it on the page of your key, then open the file of the new one there').waitFor()
    await other.context().close()
    await page.goto(`${hooked.board.address}/room/lobby#write`)
    await page.getByLabel('Write to lobby').fill('By the new key, under the same name')
    await button(page, 'Post').click()
    await page.getByText('Posted:').waitFor()
    const { data } = await client.get('/api/events?room=lobby&limit=1')
    expect(data.events).toMatchObject([{ author: { handle: 'renewed', id: old.id } }])
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('a profile that is being written stays when the name is taken, and over a reload, until it is saved', async () => {
    const page = await openPage()
    await page.goto(`${hooked.board.address}/account`)
    await button(page, 'Make a key').click()
    const about = page.getByLabel('Who you are')
    await about.fill('I write about boards.')
    await page.getByLabel('A name, 2 to 32').fill('profiled')
    await button(page, 'Take this name').click()
    await page.getByText('@profiled. A name stays').waitFor()
    await expect.poll(() => about.inputValue()).toBe('I write about boards.')
    await page.reload()
    await expect.poll(() => about.inputValue()).toBe('I write about boards.')
    await button(page, 'Save').click()
    await page.getByText('Saved. Everyone can read it.').waitFor()
    expect(await about.inputValue()).toBe('I write about boards.')
    expect(await page.evaluate(() => localStorage.getItem('draft profile'))).toBe(null)
    await page.reload()
    await expect.poll(() => about.inputValue()).toBe('I write about boards.')
    await page.context().close()
  })

  test('a key of which no copy was saved is called that, and a copy is saved later', async () => {
    const page = await openPage({ acceptDownloads: true })
    await page.goto(`${hooked.board.address}/account`)
    await page.getByLabel('Passphrase for the file').fill('a passphrase')
    await page.getByLabel('Save a copy of it as a file').uncheck()
    await button(page, 'Make a key').click()
    await page.getByText('No copy of this key was saved.').waitFor()
    await saveScreenshot(page, 'key-without-a-copy')
    const file = await saved(page, 'later.json', () => button(page, 'Save a copy now').click())
    await expect.poll(() => page.getByText('No copy of this key was saved.').count()).toBe(0)
    const { id } = await page.evaluate(() => JSON.parse(localStorage.getItem('me')!))
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ version: 2, id })
    await page.context().close()

    const other = await openPage({ acceptDownloads: true })
    await other.goto(`${hooked.board.address}/account`)
    await other.getByLabel('Save a copy of it as a file').uncheck()
    await button(other, 'Make a key').click()
    await other.getByText('No copy of this key was saved.').waitFor()
    expect(await other.getByText('is its only copy').count()).toBe(0)
    await other.getByLabel('A name, 2 to 32').fill('unsaved')
    await button(other, 'Take this name').click()
    await other.getByText('@unsaved. A name stays').waitFor()
    await button(other, 'Move to a new key, with a file').click()
    await saved(other, 'moved.json', () => button(other, 'Move to a new key').click())
    await other.getByText('is its only copy').waitFor()
    expect(await other.getByText('No copy of this key was saved.').count()).toBe(0)
    await other.context().close()
  })

  test('a browser that stores nothing for the board is told so, wherever a key is needed', async () => {
    const { board, client } = hooked
    const event = (await client.post(ada, { room: 'stores', text: 'A thread' })).data.event_id!
    const page = await openPage()
    // As browsers do that block the cookies of a site.
    await page.addInitScript(`
      const refuse = () => { throw new DOMException('denied', 'SecurityError') }
      Object.defineProperty(globalThis, 'localStorage', { get: refuse })
      IDBFactory.prototype.open = refuse`)
    const words = page.getByText('This browser stores nothing for this site, so it cannot keep a key.')
    for (const path of ['/account', '/room/stores#write']) {
      await page.goto(board.address + path)
      await words.waitFor()
    }
    await page.goto(`${board.address}/e/${event}`)
    await button(page, 'Reply').click()
    await page.waitForURL('**/account')
    await words.waitFor()
    await page.context().close()
  })

  test('a full browser posts, though it keeps no draft, and says when a text is too long', async () => {
    const { board } = hooked
    const page = await openPage()
    await page.goto(`${board.address}/room/stores#write`)
    const complaints = collectErrors(page)
    await page.evaluate("Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }")
    const text = page.getByLabel('Write to stores')
    await text.fill('x'.repeat(40_000))
    await page.getByText('40000 bytes are too long').waitFor()
    await text.fill('short')
    await button(page, 'Post').click()
    await page.getByText('Posted:').waitFor()
    expect(complaints.filter((each) => each.startsWith('error:'))).toEqual([])
    await page.context().close()
  })

  test('a file that is no key file is called that, whatever is in it', async () => {
    const page = await openPage()
    await page.goto(`${hooked.board.address}/account`)
    for (const [n, text] of [
      '{"type":"broadside-key"}x',
      'not JSON',
      '{}',
      '-----BEGIN PRIVATE KEY-----\n!',
    ].entries()) {
      const file = join(folder, `bad-${n}.json`)
      writeFileSync(file, text)
      await page.getByLabel('Key file').setInputFiles([])
      await expect.poll(() => page.locator('#own .problem').textContent()).toBe('')
      await page.getByLabel('Key file').setInputFiles(file)
      await expect
        .poll(() => page.locator('#own .problem').textContent())
        .toBe('That did not work: this is not a key file that this page can read.')
    }
    await page.context().close()
  })

  test('a device with a wrong clock posts with the time of the board, or is told how wrong its clock is', async () => {
    const { board, client } = hooked
    const page = await openPage()
    await page.addInitScript('const now = Date.now; Date.now = () => now() - 3 * 3_600_000')
    await page.goto(`${board.address}/room/lobby#write`)
    await page.getByLabel('Write to lobby').fill('three hours late')
    await button(page, 'Post').click()
    await page.getByText('Posted:').waitFor()
    const { data } = await client.get('/api/events?room=lobby&limit=1')
    expect(data.events).toMatchObject([{ text: 'three hours late' }])
    const error = { code: 'stale_timestamp', message: 'timestamp must be within 300 s' }
    await page.route('**/v1/command', (route) =>
      route.fulfill({ status: 400, headers: { date: new Date().toUTCString() }, json: { ok: false, error } }),
    )
    await page.getByLabel('Write to lobby').fill('once more')
    await button(page, 'Post').click()
    await page.getByText('Your device’s clock is 3 hours slow. Set it, then try again.').waitFor()
    await page.context().close()
  })

  test('a refusal names the controls of the pages, not the operations of the API', async () => {
    const { board, client } = hooked
    await client.command(ada, { operation: 'room.create', room: 'locked-room' })
    const root = (await client.post(ada, { room: 'locked-room', text: 'begun' })).data.event_id!
    const page = await openPage()
    await page.goto(`${board.address}/e/${root}`)
    const below = page.locator('#write')
    await below.locator('textarea').fill('too late')
    const lock = { operation: 'thread.lock', event_id: root, data: '{"schema":1,"locked":true}' }
    expect((await client.command(ada, lock)).status).toBe(200)
    await below.getByRole('button', { name: 'Reply', exact: true }).click()
    await below.getByText('a moderator of the room can open it with “Unlock” under Moderation').waitFor()
    await saveScreenshot(page, 'refusal-in-words')
    await page.context().close()
  })

  test('another key is delegated for a week, is listed, acts in the name, and is revoked', async () => {
    const { client } = hooked
    const { page, complaints, file } = await signedIn('lender')
    await page.getByText('Let another key act for you').click()
    await page.getByLabel('What it is for').fill('my agent')
    await saveScreenshot(page, 'account-delegation', true)
    const agent = await saved(page, 'agent.json', async () => {
      await button(page, 'Make the key and save its file').click()
    })
    await page.getByText('my agent').waitFor()
    expect((await client.post(signerOf(agent), { room: 'lobby', text: 'for its owner' })).data.event).toMatchObject({
      author: { id: signerOf(file).id },
    })
    await button(page, 'Revoke').click()
    await expect.poll(() => page.getByText('my agent').isHidden()).toBe(true)
    expect((await client.post(signerOf(agent), { room: 'lobby', text: 'once more' })).status).toBe(403)
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('a private room is created with its policy, joined with an invite, and its members are managed', async () => {
    const { client, board } = hooked
    const { page: owner, complaints, file } = await signedIn('roomowner')
    await owner.goto(`${board.address}/rooms`)
    await owner.getByRole('link', { name: 'New room' }).click()
    await owner.getByLabel('Name, of a-z').fill('atelier')
    await owner.getByLabel('What it is about').fill('Drafts, before they are public.')
    await owner.getByLabel('Private: only its members').check()
    await owner.getByLabel('Who may start threads').selectOption('Members')
    await owner.getByLabel('Rules, shown in the room').fill('Be kind to drafts.')
    await owner.getByText('More rules').click()
    await owner.getByLabel('Posts of one person in a minute').fill('30')
    await saveScreenshot(owner, 'new-room', true)
    await button(owner, 'Create the room').click()
    await owner.getByText('Created:').waitFor()
    expect(
      (await client.command(signerOf(file), { operation: 'room.policy.get', room: 'atelier' })).data,
    ).toMatchObject({
      policy: { write: 'members', reply: 'anyone', rules: 'Be kind to drafts.', posts_per_minute: 30 },
    })
    await owner.getByRole('link', { name: 'invite people' }).click()
    await owner.getByLabel('It lasts').selectOption('An hour')
    await button(owner, 'Create an invite').click()
    const code = (await owner.locator('[role="status"] code').textContent())!
    expect(code).toMatch(/^atelier\./)
    await saveScreenshot(owner, 'room-people', true)

    const { page: guest } = await signedIn('roomguest', views[1])
    await guest.goto(`${board.address}/account/rooms`)
    await guest.getByLabel('The code that you were given').fill(code)
    await button(guest, 'Join').click()
    await guest.getByRole('link', { name: 'open the room' }).click()
    await guest.getByLabel('Write to atelier').fill('A first draft')
    await button(guest, 'Post').click()
    await guest.locator('.private').getByText('A first draft').waitFor()
    await guest.getByRole('link', { name: 'People and invites' }).click()
    await guest.getByText('You are its member').waitFor()
    expect(await button(guest, 'Create an invite').count()).toBe(0)
    await saveScreenshot(guest, 'room-guest-dark-390', true)

    await owner.reload()
    await button(owner, 'Make a moderator').click()
    await button(owner, 'Make an ordinary member').waitFor()
    expect(await focusOf(owner)).toBe('rooms')
    await guest.reload()
    await guest.getByText('You are its moderator').waitFor()
    await button(owner, 'Remove').click()
    await expect.poll(() => owner.getByText('@roomguest').isHidden()).toBe(true)
    await guest.reload()
    await guest.getByText('The board says').waitFor()
    await owner.getByLabel('@handle or id').first().fill('roomguest')
    await button(owner, 'Add as a member').click()
    await button(owner, 'Make a moderator').waitFor()
    await guest.reload()
    await button(guest, 'Leave the room').click()
    await guest.getByText('You have left this room.').waitFor()
    expect(await focusOf(guest)).toBe('rooms')
    expect(complaints).toEqual([])
    await owner.context().close()
    await guest.context().close()
  })

  test('a webhook is created, delivers, and is deleted; a receive URL receives, and its items are shown', async () => {
    const { board, client, target } = hooked
    const { page, complaints } = await signedIn('hooks')
    await client.post(ada, { room: 'hooked', text: 'a room to hear of' })
    await page.goto(`${board.address}/account`)
    await page.getByRole('link', { name: 'Webhooks' }).click()
    await page.getByText('New webhook').click()
    await page.getByLabel('Address', { exact: true }).fill(target.url('/browser'))
    await page.getByLabel('Posts of a room').check()
    await page.getByLabel('Room, for its posts or documents').fill('hooked')
    await saveScreenshot(page, 'webhooks-new', true)
    await button(page, 'Create the webhook').click()
    await page.getByText('Deliveries are signed with this secret').waitFor()
    target.secrets.set('/browser', (await page.getByText(/^whsec_/).textContent())!)
    await client.post(ada, { room: 'hooked', text: 'delivered to a browser’s webhook' })
    expect(await hooked.waitForDeliveries('/browser', 1)).toHaveLength(1)
    const deliveries = page
      .locator('details')
      .filter({ hasText: /^Deliveries/ })
      .locator('summary')
    await deliveries.click()
    await expect
      .poll(async () => {
        await deliveries.click()
        await deliveries.click()
        return page.locator('.tag.good', { hasText: 'delivered' }).count()
      })
      .toBe(1)
    await saveScreenshot(page, 'webhooks', true)

    await page.getByText('New receive URL').click()
    await page.getByLabel('What it is for').fill('builds')
    await button(page, 'Create an address').click()
    const address = (await page.getByText(`${board.address}/in/`).textContent())!
    expect((await fetch(address, { method: 'POST', body: '{"build":"<b>green</b>"}' })).status).toBe(200)
    await page.reload()
    await page.getByText('1 received').waitFor()
    await page.getByText('What was received').click()
    await page.locator('pre').getByText('{"build":"<b>green</b>"}').waitFor()
    await saveScreenshot(page, 'webhooks-received', true)
    const before = target.secrets.get('/browser')
    await button(page, 'New secret').click()
    const words = await page.getByText('Its new secret, shown only now').textContent()
    const secret = /whsec_[A-Za-z0-9+/=]+/.exec(words!)![0]
    expect(secret).not.toBe(before)
    target.secrets.set('/browser', secret)
    await client.post(ada, { room: 'hooked', text: 'signed with both secrets' })
    expect((await hooked.waitForDeliveries('/browser', 2)).map(({ verified }) => verified)).toEqual([true, true])
    await button(page, 'Delete').first().click()
    await page.getByText('None yet.').waitFor()
    expect(await page.locator(':focus').textContent()).toBe('None yet.')
    await button(page, 'New address').click()
    await page.getByText('Its new address, shown only now').waitFor()
    expect((await fetch(address, { method: 'POST', body: 'late' })).status).toBe(400)
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('a tool is reviewed on its page, and the newest review counts', async () => {
    const { board, client } = hooked
    const { page, complaints } = await signedIn('reviewer', views[1])
    await page.goto(`${board.address}/tools`)
    await page.locator('.rows h3 a').first().click()
    await page.getByText('Write a review').click()
    await page.getByLabel('What you found').selectOption('It works in part')
    await page.getByLabel('In your words').fill('Slow, but right.')
    await page.reload()
    await page.getByLabel('In your words').waitFor()
    expect(await page.getByLabel('In your words').inputValue()).toBe('Slow, but right.')
    expect(await page.getByLabel('What you found').inputValue()).toBe('mixed')
    await saveScreenshot(page, 'review-dark-390')
    await button(page, 'Post the review').click()
    await page.getByText('Posted:').waitFor()
    expect(await page.getByLabel('In your words').inputValue()).toBe('')
    const subject = await page.locator('#review').getAttribute('data-subject')
    await page.getByLabel('What you found').selectOption('It works')
    await page.getByLabel('In your words').fill('Fast now.')
    await button(page, 'Post the review').click()
    const counted = async () => (await client.get(`/api/reviews?subject=${subject}`)).data
    await expect.poll(counted).toMatchObject({ reviews: [{ kind: 'works', text: 'Fast now.' }] })
    await page.reload()
    await page.locator('.rows').getByText('Fast now.').waitFor()
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('works are canceled, released, sent back for changes, accepted, rejected and disputed with their buttons', async () => {
    const { board } = hooked
    const { page: requester, complaints } = await signedIn('requester')
    const { page: worker } = await signedIn('worker', views[1])
    const done = (page: Page, what: string) => page.locator('.timeline').getByText(what).last().waitFor()
    const request = async (title: string) => {
      await requester.goto(`${board.address}/work`)
      await requester.getByText('Request work').click()
      await requester.getByLabel('Title').fill(title)
      await requester.getByLabel('What is to be done').fill('Count the words of the page.')
      await requester.getByLabel('Practice: costs and pays nothing').check()
      await button(requester, 'Request this work').click()
      await requester.getByRole('link', { name: 'see it' }).click()
      await button(requester, 'Cancel it').waitFor()
      await worker.goto(requester.url())
    }
    const deliver = async (text: string) => {
      await worker.getByLabel('Your result').fill(text)
      await button(worker, 'Submit the result').click()
      // An earlier result has a heading too: only a page rendered after the answer lacks the button.
      await button(worker, 'Submit the result').waitFor({ state: 'detached' })
      await worker.getByRole('heading', { name: 'The result' }).waitFor()
      await requester.reload()
    }
    await request('To be canceled')
    await button(requester, 'Cancel it').click()
    await done(requester, 'work.cancel')

    await request('To be accepted')
    await button(worker, 'Claim it').click()
    await button(worker, 'Give it back').click()
    await button(worker, 'Claim it').waitFor()
    await done(worker, 'work.release')
    await button(worker, 'Claim it').click()
    await deliver('About forty.')
    await requester.getByLabel('What is missing').fill('The exact number.')
    // What is to be judged is read first.
    expect(await requester.locator('main h2').allTextContents()).toEqual([
      'The request',
      'The result',
      'Your turn',
      'Credits',
      'History',
    ])
    await saveScreenshot(requester, 'work-review', true)
    await button(requester, 'Ask for changes').click()
    await done(requester, 'work.revise')
    await worker.reload()
    await deliver('Forty-two.')
    await button(requester, 'Accept the result').click()
    await done(requester, 'work.accept')

    await request('To be disputed')
    await button(worker, 'Claim it').click()
    await deliver('Seven.')
    await requester.getByLabel('Why').fill('There are more words than seven on it.')
    await button(requester, 'Reject it').click()
    await done(requester, 'work.reject')
    await worker.reload()
    await worker.getByLabel('Why').fill('The page has seven words.')
    await saveScreenshot(worker, 'work-dispute-dark-390', true)
    await button(worker, 'Dispute the rejection').click()
    await done(worker, 'work.dispute')
    expect(complaints).toEqual([])
    await requester.context().close()
    await worker.context().close()
  })

  test('a result in the making survives a reload, and is posted once if its submission has to be repeated', async () => {
    const { board, client } = hooked
    const { page } = await signedIn('repeater')
    const data = JSON.stringify({ schema: 1, title: 'To be submitted twice', simulated: true })
    const { work } = (
      await client.command(ada, { operation: 'work.create', room: 'lobby', text: 'Count to two.', amount: 1, data })
    ).data as unknown as { work: { id: string } }
    await page.goto(`${board.address}/work/${work.id}`)
    await button(page, 'Claim it').click()
    await page.getByLabel('Your result').fill('One, two.')
    await page.reload()
    await expect.poll(() => page.getByLabel('Your result').inputValue()).toBe('One, two.')
    let isRefused = false
    await page.route('**/v1/command', async (route) => {
      if (isRefused || !route.request().postData()!.includes('"work.submit"')) return route.continue()
      isRefused = true
      const error = { code: 'forbidden', message: 'not this time' }
      return route.fulfill({ status: 403, contentType: 'application/json', body: JSON.stringify({ ok: false, error }) })
    })
    await button(page, 'Submit the result').click()
    await page.getByText('The board says: not this time.').waitFor()
    await button(page, 'Submit the result').click()
    await page.getByRole('heading', { name: 'The result' }).waitFor()
    const { events } = (await client.get(`/api/thread/${work.id}`)).data
    expect(events!.filter(({ text }) => text === 'One, two.').length).toBe(1)
    await page.context().close()
  })

  test('the counts at the top of a thread go up when a reply arrives, and down when it is redacted', async () => {
    const { board, client } = hooked
    const root = (await client.post(ada, { room: 'counted', text: 'How many?' })).data.event_id!
    const page = await openPage(views[1])
    const following = page.waitForResponse((answer) => answer.url().includes('/api/thread/'))
    await page.goto(`${board.address}/e/${root}`)
    await following
    expect(await page.locator('#replies').textContent()).toBe('0 replies')
    const bob = person('keys bob')
    const reply = (await client.post(bob, { room: 'counted', text: 'One', reply_to: root })).data.event_id!
    await expect.poll(() => page.locator('#replies').textContent()).toBe('1 reply')
    expect(await page.locator('#people').textContent()).toBe('2 people')
    await client.post(ada, { room: 'counted', text: 'Two', reply_to: reply })
    await expect.poll(() => page.locator('#replies').textContent()).toBe('2 replies')
    await saveScreenshot(page, 'counts-dark-390')
    await client.command(bob, { operation: 'event.redact', event_id: reply, reason: 'mistake' })
    await expect.poll(() => page.locator('#replies').textContent()).toBe('1 reply')
    await page.context().close()
  })
})
