/** Moves of threads in slow setups: over kills, in a browser, from the command line and over MCP. The rooms are on different shards. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import { opensslSigner } from '../../src/cli/sign.ts'
import { createKey } from '../../src/client/broadside.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { Board, boardDirectory, startBoard, tryStartBoard } from '../support/board-process.ts'
import { button, collectErrors, missingBrowser, openPage, saveScreenshot } from '../support/browser.ts'
import { Client, person, type SignedCommand } from '../support/client.ts'
import { findDamage } from '../support/find-damage.ts'
import { callTool, OauthClient } from '../support/oauth-client.ts'
import { program } from '../support/program.ts'
import { randomPart } from '../support/random-part.ts'
import { runProgram } from '../support/run-program.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const [owner, ada] = [person('owner of both'), person('ada')]
const own = 'garden'
/** On the other shard of two. */
const other = Array.from({ length: 20 }, (_, n) => `tools-${n}`).find((name) => shardOf(name, 2) !== shardOf(own, 2))!
const env = { SHARDS: '2' }

const moved = (thread: string, to: string) => ({
  operation: 'thread.move',
  event_id: thread,
  data: JSON.stringify({ schema: 1, to }),
})

/** The rooms that list this thread. */
async function listsOf(client: Client, thread: string): Promise<string[]> {
  const lists = await Promise.all(
    [own, other].map(async (room) => {
      const { threads } = (await client.get(`/api/threads?room=${room}&order=new&limit=200`)).data as unknown as {
        threads: { thread: string }[]
      }
      return threads.some(({ thread: id }) => id === thread) ? [room] : []
    }),
  )
  return lists.flat()
}

async function withRooms(client: Client, moderators: readonly string[] = []): Promise<string> {
  for (const room of [own, other]) {
    expect((await client.command(owner, { operation: 'room.create', room })).status).toBe(200)
    for (const target of moderators)
      for (const operation of ['room.member.add', 'room.moderator.add'])
        expect((await client.command(owner, { operation, room, target })).status).toBe(200)
  }
  return (await client.post(ada, { room: own, text: 'Which saw for old apple trees?' })).data.event_id!
}

const journals = [
  ['the room that decides', `shard-0${shardOf(own, 2)}`],
  ['the log', 'log'],
] as const

test.skipIf(skipWithout(missingProgram('strace'))).each(randomPart(journals))(
  'kills at the syncs of the journal of %s leave each move complete or not begun',
  async (_name, part) => {
    const directory = boardDirectory()
    const first = await startBoard({ directory, env })
    const setUp = await Client.of(first)
    const thread = await withRooms(setUp)
    setUp.close()
    await first.stop()
    let where = own
    let cut = 0
    for (let nth = 2; nth <= 6; nth += 2) {
      const file = join(directory, part, '00000000000000000001.log')
      const trace = ['-P', file, '-e', 'trace=fdatasync', '-e', `inject=fdatasync:signal=KILL:when=${nth}`]
      const doomed = await tryStartBoard({
        directory,
        env,
        under: ['strace', '-f', '-qq', '-o', '/dev/null', ...trace],
      })
      let last: SignedCommand | undefined
      if (doomed instanceof Board) {
        const client = await Client.of(doomed).catch(() => undefined)
        for (let n = 0; client !== undefined && n < 8; n++) {
          const to = where === own ? other : own
          const signed = client.sign(owner, moved(thread, to))
          const answer = await client.send(signed.body).catch(() => undefined)
          if (answer === undefined) {
            last = signed
            cut++
            break
          }
          expect(answer.text).toContain(`"listed_in":"${to}"`)
          where = to
        }
        client?.close()
        await doomed.kill()
      }
      const board = await startBoard({ directory, env })
      const client = await Client.of(board)
      const found = await listsOf(client, thread)
      expect(found).toHaveLength(1)
      if (last === undefined) expect(found).toEqual([where])
      else {
        // The same bytes again: decided once, whatever was on disk.
        const to = where === own ? other : own
        expect((await client.send(last.body)).text).toContain(`"listed_in":"${to}"`)
        expect(await listsOf(client, thread)).toEqual([to])
        where = to
      }
      // The room that decides and the reader of its records agree.
      expect((await client.command(owner, moved(thread, where))).code).toBe('wrong_state')
      client.close()
      await board.stop()
      expect(findDamage(directory)).toEqual([])
    }
    expect(cut).toBeGreaterThan(0)
  },
)

describe('by people and programs', () => {
  let board: Board
  let client: Client
  let thread: string
  let folder: string
  const model = opensslSigner(randomBytes(32))

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env })
    client = await Client.of(board)
    folder = mkdtempSync(join(tmpdir(), 'broadside-moves-'))
    thread = await withRooms(client, [model.id])
  })
  afterAll(async () => {
    client.close()
    await board.kill()
    rmSync(folder, { recursive: true, force: true })
  })

  test('the command line pins, locks and moves', async () => {
    const key = await createKey()
    writeFileSync(join(folder, 'key.json'), key.toFile(), { mode: 0o600 })
    for (const room of [own, other])
      for (const operation of ['room.member.add', 'room.moderator.add'])
        expect((await client.command(owner, { operation, room, target: key.id })).status).toBe(200)
    const run = async (...argv: string[]) =>
      runProgram(folder, process.execPath, [program, ...argv], {
        env: { BROADSIDE_URL: board.address, BROADSIDE_KEY: 'key.json' },
      })
    for (const argv of [
      ['pin', thread, 'true'],
      ['lock', thread, 'true'],
      ['lock', thread, 'false'],
      ['move', thread, other, '--reason', 'About tools'],
    ])
      expect(await run('thread', ...argv)).toMatchObject({ code: 0 })
    expect(await listsOf(client, thread)).toEqual([other])
    // By id a thread is printed, as before, and a reply without a room goes to the thread's own room.
    expect((await run('thread', thread)).output).toContain('Which saw for old apple trees?')
    expect((await run('reply', thread, 'A pruning saw.')).code).toBe(0)
    expect((await client.get(`/api/events?room=${own}&limit=1`)).data.events).toMatchObject([{ thread }])
    const back = await run('thread', 'move', thread, own, '--json')
    expect(JSON.parse(back.output)).toMatchObject({ thread, room: own, listed_in: own })
    const refused = await run('thread', 'move', thread, own)
    expect([refused.code, refused.errors]).toEqual([1, expect.stringContaining('already listed in')])
    expect((await run('thread', 'move', '--help')).output).toContain('--reason')
  })

  test('a model moves with a tool of the moderation set, and is refused in the terms of the tool', async () => {
    const { access_token: token } = await new OauthClient(board.address).signIn(model, {
      scope: 'board:read board:moderate',
    })
    const done = await callTool(board.address, 'thread_move', { event_id: thread, to: other, reason: 'x' }, token)
    expect(done.result.structuredContent).toMatchObject({ thread, listed_in: other })
    expect(await listsOf(client, thread)).toEqual([other])
    const again = await callTool(board.address, 'thread_move', { event_id: thread, to: other }, token)
    expect(JSON.stringify(again.result)).toContain('already listed in')
    const read = await callTool(board.address, 'thread_get', { event_id: thread }, token)
    expect(read.result.structuredContent).toMatchObject({ room: own, moved: { to: other, by: model.id } })
    await callTool(board.address, 'thread_move', { event_id: thread, to: own }, token)
    expect(await listsOf(client, thread)).toEqual([own])
  })

  test.skipIf(skipWithout(missingBrowser))(
    `a moderator moves in the browser, from the page of the thread${skipNote(missingBrowser)}`,
    async () => {
      const page = await openPage({ viewport: { width: 1280, height: 900 } })
      const complaints = collectErrors(page)
      await page.goto(`${board.address}/room/${own}#write`)
      await page.getByLabel(`Write to ${own}`).fill('I know about saws.')
      await page.getByLabel('Your name here').fill('sawyer')
      await button(page, 'Post').click()
      await page.getByText('Posted:').waitFor()
      const { identity } = (await client.get('/api/identities/@sawyer')).data as unknown as { identity: { id: string } }

      const menu = async () => {
        await page.goto(`${board.address}/e/${thread}`)
        await page.locator(`#e-${thread}`).getByText('More', { exact: true }).first().click()
        await button(page, 'Report').waitFor()
      }
      await menu()
      expect(await button(page, 'Moderate').count()).toBe(0)
      for (const room of [own, other])
        for (const operation of ['room.member.add', 'room.moderator.add'])
          expect((await client.command(owner, { operation, room, target: identity.id })).status).toBe(200)
      await menu()
      await saveScreenshot(page, 'thread-menu')
      await button(page, 'Moderate').click()
      await page.getByLabel('To the room').fill(other)
      await page.getByLabel('Reason, public').nth(2).fill('About tools')
      await saveScreenshot(page, 'moderate-thread', true)
      await button(page, 'Move').click()
      await page.getByText('Moved: it is now listed in').waitFor()
      await page.getByRole('link', { name: other, exact: true }).click()
      await page.locator(`[data-thread="${thread}"]`).getByText(`from ${own}`).waitFor()
      await saveScreenshot(page, 'room-with-moved')
      await page.locator(`[data-thread="${thread}"] h3 a`).click()
      await page.getByText(`This thread was moved to ${other} by`).waitFor()
      await saveScreenshot(page, 'thread-moved')
      // An open list counts replies to a thread that was moved into it.
      const list = await openPage({ viewport: { width: 1280, height: 900 } })
      const following = list.waitForRequest(
        (request) => request.url().includes('/api/updates?') && request.url().includes('wait='),
      )
      await list.goto(`${board.address}/room/${other}`)
      await following
      await client.post(ada, { room: own, text: 'Of no concern to the other room.' })
      await client.post(ada, { text: 'Is a bow saw better?', reply_to: thread })
      await button(list, '1 new post: show').click()
      const { replies } = (await client.get(`/api/thread/${thread}?limit=1`)).data as unknown as { replies: number }
      const count = list.locator(`[data-thread="${thread}"] .count b`)
      await expect.poll(() => count.textContent()).toBe(String(replies))
      await list.context().close()
      // The reply is signed for the thread's own room.
      await page.getByLabel(/^Reply to the thread/).fill('Or a bow saw.')
      await page
        .locator('form', { hasText: 'Reply to the thread' })
        .getByRole('button', { name: 'Reply', exact: true })
        .click()
      await page.locator('.post', { hasText: 'Or a bow saw.' }).last().waitFor()
      expect((await client.get(`/api/events?room=${own}&limit=1`)).data.events).toMatchObject([{ thread }])
      const narrow = await openPage({
        viewport: { width: 390, height: 844 },
        colorScheme: 'dark',
        javaScriptEnabled: false,
      })
      await narrow.goto(`${board.address}/e/${thread}`)
      await narrow.getByText(`This thread was moved to ${other} by`).waitFor()
      // Without scripts nothing would fill its box.
      expect(await narrow.locator('.writer').isVisible()).toBe(false)
      await saveScreenshot(narrow, 'thread-moved-390')
      await narrow.goto(`${board.address}/room/${other}`)
      await narrow.getByText(`from ${own}`).waitFor()
      await saveScreenshot(narrow, 'room-with-moved-390')
      // A moderator of only the listing room may send it back, and is offered nothing else.
      const removal = { operation: 'room.moderator.remove', room: own, target: identity.id }
      expect((await client.command(owner, removal)).status).toBe(200)
      await menu()
      expect(await button(page, 'Moderate').count()).toBe(0)
      await button(page, 'Send back').click()
      await page.getByLabel('Reason').fill('Not about tools')
      await saveScreenshot(page, 'thread-send-back')
      await button(page, `List this thread in ${own} again`).click()
      await page.getByText('This thread was moved to').waitFor({ state: 'detached' })
      expect(await listsOf(client, thread)).toEqual([own])
      // /moderate requests reports, which are the operator's.
      expect(complaints.filter((each) => !each.includes('403 (Forbidden)'))).toEqual([])
    },
  )
})
