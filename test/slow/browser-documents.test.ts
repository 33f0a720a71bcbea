/** Documents in the browser, written by two people at the same time: nothing that was typed is lost, and every conflict can be ended there. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Signer } from '../../src/cli/sign.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { button, missingBrowser, openPage, saveScreenshot, useKey } from '../support/browser.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const [ada, ben] = [person('documents ada'), person('documents ben')]
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
  await client.command(ada, { operation: 'room.create', room: 'plans' })
  await client.command(ben, { operation: 'room.join', room: 'plans' })
})
afterAll(() => client.close())

async function signedIn(signer: Signer): Promise<Page> {
  const page = await openPage()
  await useKey(page, board, signer)
  return page
}

const textOf = (page: Page) => page.getByLabel('Text, in Markdown')
const createdBy = async (signer: Signer, room: string, text: string): Promise<string> => {
  const data = JSON.stringify({ schema: 1, title: 'A plan' })
  const answer = await client.command(signer, { operation: 'docs.create', room, text, data })
  return (answer.data as unknown as { doc: { id: string } }).doc.id
}
const written = (signer: Signer, target: string, base: number, text: string) =>
  client.command(signer, {
    operation: 'docs.write',
    target,
    text,
    data: JSON.stringify({ schema: 1, base_version: base }),
  })
const newest = async (id: string) =>
  ((await client.get(`/api/docs/${id}`)).data as unknown as { doc: { version: number; text: string } }).doc

/** Holds the commands of the page back until they are released. */
async function holdCommands(page: Page): Promise<{ held: Promise<void>; release: () => void }> {
  const { promise: held, resolve: isHeld } = Promise.withResolvers<void>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await page.route('**/v1/command', async (route) => {
    isHeld()
    await released
    await route.continue()
  })
  return { held, release }
}

describe.skipIf(skipWithout(missingBrowser))(`in Chromium${skipNote(missingBrowser)}`, () => {
  test('two edits of the same lines are put together on the page, also after a reload', async () => {
    const id = await createdBy(ada, 'plans', 'first\n\nlast\n')
    const page = await signedIn(ben)
    await page.goto(`${board.address}/d/${id}`)
    await button(page, 'Edit this document').click()
    await textOf(page).fill('first by Ben\n\nlast\n')
    await written(ada, id, 1, 'first by Ada\n\nlast\n')
    await button(page, 'Save').click()
    await page.getByText('Not saved yet: put what you want of version 2 into your text').waitFor()
    expect(await textOf(page).inputValue()).toBe('first by Ben\n\nlast\n')
    await page.locator('article').getByText('first by Ada').waitFor()
    await page.getByText('The text of version 2, to copy from').click()
    expect(await page.locator('#document-acts pre').textContent()).toBe('first by Ada\n\nlast\n')
    await saveScreenshot(page, 'document-conflict', true)
    await page.reload()
    await page.getByText('These are your unsaved changes.').waitFor()
    await textOf(page).fill('first by Ada and Ben\n\nlast\n')
    await button(page, 'Save').click()
    await page.getByText('Saved: see what version 3 changed.').waitFor()
    expect(await newest(id)).toMatchObject({ version: 3, text: 'first by Ada and Ben\n\nlast\n' })
    await page.context().close()
  })

  test('what is typed while a document is saved stays, whether it is merged or not, and is saved next', async () => {
    const id = await createdBy(ada, 'plans', 'first\n\nmiddle\n\nlast\n')
    const page = await signedIn(ben)
    await page.goto(`${board.address}/d/${id}`)
    await button(page, 'Edit this document').click()
    const saveAndType = async (saved: string, typed: string) => {
      await textOf(page).fill(saved)
      const { held, release } = await holdCommands(page)
      await button(page, 'Save').click()
      await held
      await textOf(page).fill(typed)
      release()
      await page.getByText('What you typed since then is not saved yet.').waitFor()
      expect(await textOf(page).inputValue()).toBe(typed)
    }
    await written(ada, id, 1, 'first by Ada\n\nmiddle\n\nlast\n')
    await saveAndType('first\n\nmiddle\n\nlast by Ben\n', 'first\n\nmiddle by Ben\n\nlast by Ben\n')
    expect((await newest(id)).text).toBe('first by Ada\n\nmiddle\n\nlast by Ben\n')
    await button(page, 'Save').click()
    await page.getByText('Both texts were merged').waitFor()
    const both = 'first by Ada\n\nmiddle by Ben\n\nlast by Ben\n'
    expect(await newest(id)).toMatchObject({ version: 4, text: both })
    await saveAndType(`${both}\nmore\n`, `${both}\nmore and more\n`)
    await button(page, 'Save').click()
    await page.getByText('Saved: see what version 6 changed.').waitFor()
    expect((await newest(id)).text).toBe(`${both}\nmore and more\n`)
    await page.context().close()
  })

  test('two tabs that edit one document have one text, which no tab overwrites with an older one', async () => {
    const id = await createdBy(ada, 'plans', 'begun\n')
    const first = await signedIn(ben)
    const second = await first.context().newPage()
    for (const tab of [first, second]) {
      await tab.goto(`${board.address}/d/${id}`)
      await button(tab, 'Edit this document').click()
    }
    await textOf(first).fill('begun\n\nin the first tab\n')
    await expect.poll(() => textOf(second).inputValue(), patience).toContain('in the first tab')
    await textOf(second).fill('begun\n\nin the first tab\n\nin the second tab\n')
    await expect.poll(() => textOf(first).inputValue(), patience).toContain('in the second tab')
    await second.reload()
    await second.getByText('These are your unsaved changes.').waitFor()
    expect(await textOf(second).inputValue()).toBe('begun\n\nin the first tab\n\nin the second tab\n')
    await first.goto(`${board.address}/rooms`)
    await textOf(second).fill('begun\n\nin both tabs\n')
    await first.goBack()
    await expect.poll(() => textOf(first).inputValue(), patience).toBe('begun\n\nin both tabs\n')
    await button(second, 'Save').click()
    await second.getByText('Saved: see what version 2 changed.').waitFor()
    await first.locator('article').getByText('in both tabs').waitFor()
    await button(first, 'Edit this document').waitFor()
    expect((await newest(id)).text).toBe('begun\n\nin both tabs\n')
    await first.context().close()
  })

  test('a reader who may not write a document is told who may, and joins them there', async () => {
    const id = await createdBy(ada, 'plans', 'for members')
    const alone = await createdBy(ada, '', 'for its owner alone')
    const page = await signedIn(person('documents cleo'))
    await page.goto(`${board.address}/d/${alone}`)
    await page.getByText('Only its owner writes this document.').waitFor()
    await page.goto(`${board.address}/d/${id}`)
    await page.getByText('Only its owner and the members of plans write this document.').waitFor()
    expect(await button(page, 'Edit this document').count()).toBe(0)
    await button(page, 'Join the room').click()
    await button(page, 'Edit this document').click()
    await textOf(page).fill('by a new member')
    await button(page, 'Save').click()
    await page.getByText('Saved:').waitFor()
    await page.context().close()
  })

  test('a document is deleted by who made it or by a moderator of its room, and by no one else', async () => {
    const [byAda, byBen] = [await createdBy(ada, 'plans', 'made by Ada'), await createdBy(ben, 'plans', 'made by Ben')]
    const member = await signedIn(ben)
    await member.goto(`${board.address}/d/${byAda}`)
    await button(member, 'Edit this document').waitFor()
    expect(await member.getByText('Delete this document').count()).toBe(0)
    await member.goto(`${board.address}/d/${byBen}`)
    await member.getByText('Delete this document').waitFor()
    await member.context().close()
    const moderator = await signedIn(ada)
    for (const id of [byAda, byBen]) {
      await moderator.goto(`${board.address}/d/${id}`)
      await moderator.getByText('Delete this document').click()
      await moderator.getByLabel('Reason, public').fill('out of date')
      await saveScreenshot(moderator, 'document-deletion')
      await button(moderator, 'Delete it').click()
      await moderator.getByText('This document is deleted.').waitFor()
      expect(await moderator.getByText('made by').count()).toBe(0)
      expect((await client.get(`/api/docs/${id}`)).code).toBe('not_found')
    }
    await moderator.context().close()
  })

  test('in a closed room, the page of a document offers no edit, and the list offers no new document', async () => {
    await client.command(ada, { operation: 'room.create', room: 'archive' })
    const id = await createdBy(ada, 'archive', 'of former days')
    const page = await signedIn(ada)
    await page.goto(`${board.address}/d/${id}`)
    await button(page, 'Edit this document').waitFor()
    await client.command(ada, {
      operation: 'room.policy.set',
      room: 'archive',
      data: JSON.stringify({ closed: true }),
    })
    await page.reload()
    await page.getByText('The room of this document is closed: it is read-only.').waitFor()
    await page.getByText('Delete this document').waitFor()
    expect(await button(page, 'Edit this document').count()).toBe(0)
    await saveScreenshot(page, 'document-of-a-closed-room')
    await page.goto(`${board.address}/room/archive?view=documents`)
    await page.getByText('This room is closed').waitFor()
    await page.locator('#account .seal').waitFor()
    expect(await page.getByText('New document').count()).toBe(0)
    await page.context().close()
  })

  test('a new document is only offered to those who may create one, as soon as they may', async () => {
    for (const [room, write] of [
      ['clubs', 'members'],
      ['edicts', 'owner'],
    ] as const) {
      await client.command(ada, { operation: 'room.create', room })
      await client.command(ada, { operation: 'room.policy.set', room, data: JSON.stringify({ write }) })
    }
    const page = await signedIn(person('documents dora'))
    await page.goto(`${board.address}/room/edicts?view=documents`)
    await page.getByText('Only the owner of this room creates documents here.').waitFor()
    await page.goto(`${board.address}/room/clubs?view=documents`)
    await page.getByText('Only members create documents here.').waitFor()
    expect(await page.getByText('New document').count()).toBe(0)
    await button(page, 'Join the room').click()
    await page.getByText('New document').waitFor()
    await page.context().close()
  })

  test('a new document appears in the open list of documents', async () => {
    await client.command(ada, { operation: 'room.create', room: 'drafts' })
    const page = await signedIn(ada)
    await page.goto(`${board.address}/room/drafts?view=documents`)
    await page.getByText('There are no documents here yet.').waitFor()
    for (const title of ['The first', 'The second']) {
      if (!(await page.getByLabel('Title').isVisible())) await page.getByText('New document').click()
      await page.getByLabel('Title').fill(title)
      await textOf(page).fill(`${title} text`)
      await button(page, 'Create it').click()
      await page.locator('.content > .rows').getByText(title).waitFor()
      await page.getByText('Created: see it.').waitFor()
    }
    expect(await page.locator('.content > .rows > li').count()).toBe(2)
    expect(await page.getByText('There are no documents here yet.').count()).toBe(0)
    await page.context().close()
  })

  test('members of a private room create, list, read and edit its documents in the browser, and nobody else sees one', async () => {
    await client.command(ada, { operation: 'room.create', room: 'cellar', visibility: 'private' })
    await client.command(ada, { operation: 'room.member.add', room: 'cellar', target: ben.id })
    const page = await signedIn(ada)
    await page.goto(`${board.address}/room/cellar`)
    await page.getByText('Documents', { exact: true }).click()
    await page.getByText('There are no documents here yet.').waitFor()
    await page.getByText('New document').click()
    await page.getByLabel('Title').fill('The recipe')
    await textOf(page).fill('# Barrel\n\nmore **salt**')
    await button(page, 'Create it').click()
    await page.locator('#document-acts .rows').getByRole('link', { name: 'The recipe' }).click()
    await page.getByRole('heading', { level: 1, name: 'The recipe' }).waitFor()
    await page.locator('article strong', { hasText: 'salt' }).waitFor()
    const address = page.url()
    await page.getByText('Delete this document').waitFor()
    await saveScreenshot(page, 'private-document')

    const other = await signedIn(ben)
    await other.goto(address)
    await button(other, 'Edit this document').click()
    await textOf(other).fill('# Barrel\n\nless **pepper**')
    await button(other, 'Save').click()
    await other.getByText('Saved: see what version 2 changed.').waitFor()
    await other.locator('article strong', { hasText: 'pepper' }).waitFor()
    await other.locator('p.line', { hasText: 'version 2' }).waitFor()
    expect(await other.evaluate<string>('document.activeElement.textContent')).toBe('Save')
    const tab = await other.context().newPage()
    await tab.goto(`${board.address}/account`)
    await button(tab, 'Forget this key on this device').click()
    await button(tab, 'Forget it').click()
    await other.getByText('This document opens with the key of a member of its room').waitFor()
    expect(await other.content()).not.toMatch(/recipe|pepper/)

    const stranger = await signedIn(person('documents eve'))
    await stranger.goto(address)
    await stranger.locator('#document-acts').getByText('The board says: this room is private').waitFor()
    expect((await client.get(new URL(address).pathname, { accept: 'text/html' })).text).not.toMatch(/recipe|pepper/)
    for (const each of [page, other, stranger]) await each.context().close()
  })

  test('a document of a private room has a history for its members, which shows every version and no one else sees', async () => {
    await client.command(ada, { operation: 'room.create', room: 'vault', visibility: 'private' })
    const long = `Much **more** salt. ${'And a sentence about salt. '.repeat(20)}\n\n`.repeat(80)
    const id = await createdBy(ada, 'vault', '# Barrel\n\nmore **salt**\n')
    await written(ada, id, 1, '# Barrel\n\nless **pepper**\n')
    await written(ada, id, 2, `# Barrel\n\nless **pepper**\n\n${long}`)
    const page = await signedIn(ada)
    await page.goto(`${board.address}/d/${id}`)
    await page.locator('article strong', { hasText: 'more' }).last().waitFor()
    await page.getByRole('link', { name: 'what each version changed' }).click()
    await page.getByRole('heading', { level: 1, name: '3 versions' }).waitFor()
    await page.locator('article ins', { hasText: 'Much **more** salt.' }).waitFor()
    await page.getByRole('link', { name: 'Version 2' }).click()
    await page.getByRole('heading', { name: 'What version 2 changed' }).waitFor()
    expect(await page.locator('article del').allTextContents()).toEqual(['more', 'salt'])
    expect(await page.locator('article ins').allTextContents()).toEqual(['less', 'pepper'])
    expect(await page.locator('[aria-current]', { hasText: 'Version' }).textContent()).toBe('Version 2')
    await saveScreenshot(page, 'private-history')
    await page.getByRole('link', { name: 'Version 1' }).click()
    await page.getByText('This is the first version.').waitFor()
    await page.getByRole('link', { name: 'read it in full' }).click()
    await page.getByText('This is version 1. The newest is 3.').waitFor()
    await page.locator('article strong', { hasText: 'salt' }).waitFor()
    expect(await button(page, 'Edit this document').count()).toBe(0)
    await page.getByRole('link', { name: 'The newest is 3.' }).click()
    await button(page, 'Edit this document').waitFor()

    const stranger = await signedIn(person('documents eve'))
    for (const path of [`/d/${id}/history`, `/d/${id}/history?version=2`, `/d/${id}?version=1`]) {
      await stranger.goto(board.address + path)
      await stranger.locator('#document-acts').getByText('The board says: this room is private').waitFor()
      expect(await stranger.content()).not.toMatch(/Barrel|pepper/)
    }
    await page.goto(`${board.address}/d/${id}/history?version=2`)
    await page.locator('article ins').first().waitFor()
    const tab = await page.context().newPage()
    await tab.goto(`${board.address}/account`)
    await button(tab, 'Forget this key on this device').click()
    await button(tab, 'Forget it').click()
    await page.getByText('This document opens with the key of a member of its room').waitFor()
    expect(await page.content()).not.toMatch(/Barrel|pepper/)
    for (const each of [page, stranger]) await each.context().close()
  })

  test('what is typed while a document is created stays', async () => {
    const page = await signedIn(ada)
    await page.goto(`${board.address}/room/plans?view=documents`)
    await page.getByText('New document').click()
    await page.getByLabel('Title').fill('Typed on')
    await textOf(page).fill('one')
    const { held, release } = await holdCommands(page)
    await button(page, 'Create it').click()
    await held
    await textOf(page).fill('one and two')
    release()
    await page.getByText('Created:').waitFor()
    expect(await textOf(page).inputValue()).toBe('one and two')
    await page.context().close()
  })
})
