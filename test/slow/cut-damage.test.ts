/**
 * The end of a journal is damaged, and no backup has it: everything before the damage stays, the host is told what does not, and the log
 * ends before it. Nothing is cut without a confirmation.
 */
import { cpSync, existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import { cutDamage } from '../../src/cli/cut-damage.ts'
import { main } from '../../src/cli/main.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { findDamage } from '../support/find-damage.ts'
import { HookTarget } from '../support/hook-target.ts'
import { diskUntil } from '../support/interrupted-disk.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const ada = person('ada')
const env = { SEGMENT_BYTES: '65536', BROADSIDE_LOOPBACK: '1', DELIVERY_WAIT_PERCENT: '0' }
/** A stopped board with one shard, and one with two. */
const [made, two] = [boardDirectory(), boardDirectory()]
const posts: string[] = []
let target: HookTarget

beforeAll(async () => {
  target = await HookTarget.open()
  for (const [directory, shards] of [
    [made, '1'],
    [two, '2'],
  ] as const) {
    const board = await startBoard({ directory, env: { ...env, SHARDS: shards } })
    const client = await Client.of(board)
    const data = JSON.stringify({ schema: 1, url: target.url('/hook'), kinds: ['room.post'], room: 'lobby' })
    if (directory === made) {
      const { data: created } = await client.command(ada, { operation: 'webhook.create', data })
      target.secrets.set('/hook', (created as unknown as { webhook: { secret: string } }).webhook.secret)
    }
    for (let n = 0; n < 60; n++) {
      const answer = await client.post(ada, { room: 'lobby', text: `${n} ${'text '.repeat(300)}` })
      expect(answer.status).toBe(200)
      if (directory === made) posts.push(answer.data.event_id!)
    }
    if (directory === made) await target.waitUntil(() => target.receivedAt('/hook').length === posts.length)
    client.close()
    await board.stop()
  }
})

function copyOf(directory: string): string {
  const copy = boardDirectory()
  cpSync(directory, copy, { recursive: true })
  cpSync(`${directory}.mark`, `${copy}.mark`)
  return copy
}

const newest = (directory: string, part: string): string =>
  join(directory, part, readdirSync(join(directory, part)).findLast((name) => name.endsWith('.log'))!)

/** Changes a byte, counted from the end of what is in the file. */
function harm(file: string, fromEnd: number): void {
  const bytes = readFileSync(file)
  bytes[bytes.findLastIndex((byte) => byte !== 0) - fromEnd]! ^= 1
  writeFileSync(file, bytes)
}

async function run(directory: string, ...argv: string[]) {
  const terminal = capturedTerminal()
  const code = await main([...argv, '--data', directory], terminal)
  return { code, ...terminal.said }
}
const cut = (directory: string, ...more: string[]) => run(directory, 'restored', '--lost', '--cut-damage', ...more)

test.each([
  ['its last record is damaged', (file: string) => harm(file, 40), 1],
  ['a record amid its newest file is damaged', (file: string) => harm(file, 20_000), 5],
  ['its newest file lost its end', (file: string) => truncateSync(file, readFileSync(file).length >> 1), 1],
])('%s: what is lost is said, then cut, and the board goes on in another log', async (_what, damage, least) => {
  const directory = copyOf(made)
  damage(newest(directory, 'shard-00'))
  expect((await expectStartRefused({ directory, env })).output).toContain('fsck --explain')
  expect((await run(directory, 'fsck', '--explain')).out).toContain('broadside restored --lost --cut-damage')
  const before = readFileSync(newest(directory, 'shard-00'))
  const said = await cut(directory)
  expect([said.code, said.err]).toEqual([1, 'Nothing was changed. Add --yes to continue.\n'])
  expect(readFileSync(newest(directory, 'shard-00')).equals(before)).toBe(true)
  expect(existsSync(join(directory, 'restored.json'))).toBe(false)
  const lost = [...said.out.matchAll(/^ {2}post ([0-9a-f]{32}) in lobby, number \d+, /gm)].map(([, id]) => id!)
  expect(lost.length).toBeGreaterThanOrEqual(least)
  expect(posts.slice(-lost.length)).toEqual(lost)
  const done = await cut(directory, '--yes')
  expect([done.code, done.err]).toEqual([0, ''])
  expect(done.out).toContain('begins with an entry that says "lost after')
  expect(findDamage(directory)).toEqual([])
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  const there = posts.slice(0, -lost.length)
  for (const id of there) expect((await client.get(`/api/events/${id}`)).status).toBe(200)
  for (const id of lost) expect((await client.get(`/api/events/${id}`)).code).toBe('not_found')
  // A webhook that had delivered what is lost delivers what is written under the same numbers.
  const next = (await client.post(ada, { room: 'lobby', text: 'after the cut' })).data.event_id!
  await vi.waitFor(() => expect(target.received.map(({ body }) => body.data.event_id)).toContain(next), patience)
  client.close()
  await board.stop()
  expect((await run(directory, 'fsck', '--signatures')).out).toContain('Everything agrees.')
  expect((await cut(directory, '--yes')).err).toContain('are not damaged at their ends')
})

test('a call that is interrupted at any step is completed by the next one, and no board starts before', async () => {
  let steps = 0
  for (let isCut = true; isCut; steps++) {
    const directory = copyOf(made)
    harm(newest(directory, 'shard-00'), 40)
    try {
      cutDamage(diskUntil(steps), directory, true, capturedTerminal())
      isCut = false
    } catch (error) {
      expect((error as Error).message).toBe('interrupted')
    }
    if (steps % 5 === 0) {
      await expectStartRefused({ directory, env })
      const kept = await run(directory, 'restored')
      expect([steps, kept.code]).toEqual([steps, 1])
    }
    expect([steps, await cut(directory, '--yes')]).toMatchObject([steps, { code: 0 }])
    expect([steps, findDamage(directory)]).toEqual([steps, []])
  }
  expect(steps).toBeGreaterThan(10)
})

test('with one shard a damaged log loses nothing and need not end; with two it ends, and the next one has the rest', async () => {
  const one = copyOf(made)
  harm(newest(one, 'log'), 40)
  const refused = await cut(one, '--yes')
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('so the log need not end: move the damaged')])
  const both = copyOf(two)
  harm(newest(both, 'log'), 40)
  const done = await cut(both, '--yes')
  expect([done.code, done.out]).toEqual([0, expect.stringContaining('No record is lost')])
  const board = await startBoard({ directory: both, env: { ...env, SHARDS: '2' } })
  await board.stop()
  expect((await run(both, 'fsck')).out).toContain('Everything agrees.')
})

test('nothing is cut if an older file is damaged too, which the next start would have to replay', async () => {
  const directory = copyOf(made)
  const [oldest] = readdirSync(join(directory, 'shard-00')).filter((name) => name.endsWith('.log'))
  harm(join(directory, 'shard-00', oldest!), 20_000)
  harm(newest(directory, 'shard-00'), 40)
  const { code, err } = await cut(directory, '--yes')
  expect([code, err]).toEqual([1, expect.stringMatching(/Frame \d+ of \S+shard-00 cannot be read either/)])
  expect(existsSync(join(directory, 'restored.json'))).toBe(false)
})

test('one shard of several is not cut alone', async () => {
  const directory = copyOf(two)
  const [part] = ['shard-00', 'shard-01'].filter((each) => readFileSync(newest(directory, each)).includes('text text'))
  harm(newest(directory, part!), 40)
  const { code, err } = await cut(directory, '--yes')
  expect([code, err]).toEqual([1, expect.stringContaining('whose records depend on each other')])
  expect(existsSync(join(directory, 'restored.json'))).toBe(false)
})
