/** Release 1.0.0 verifies what today's board exports by default. */
import { beforeAll, expect, test, vi } from 'vitest'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import { fixtureEnvironment } from '../fixtures/fixture.ts'
import { faultsBy100 } from '../fixtures/rules-1-0-0.ts'
import { storyLimits, Teller } from '../fixtures/story.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { HookTarget } from '../support/hook-target.ts'
import { logKeyOf } from '../support/log-checks.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Line = Record<string, unknown> & { readonly type: string }

let client: Client
let text: string

beforeAll(async () => {
  const env = { ...fixtureEnvironment, SHARDS: '2', BROADSIDE_LOOPBACK: '1', LIMITS: storyLimits }
  client = await Client.of(await startBoard({ directory: boardDirectory(), env }))
  const teller = new Teller(client)
  const target = await HookTarget.open()
  await teller.firstHalf(target)
  await teller.redactSoon()
  await teller.secondHalf()
  await target.close()
  text = (await client.get('/v1/export')).text
})

test('the export of a board where everything has happened verifies, and so does its ledger', async () => {
  const types = new Set(text.match(/^\{"type":"\w+"/gm))
  expect([...types].map((type) => type.slice(9, -1)).sort()).toEqual(
    ['end', 'event', 'leaves', 'rotation', 'tombstone', 'undelegation'].sort(),
  )
  expect(faultsBy100(text)).toEqual([])
  const ledger = (await client.get('/v1/export?stream=ledger')).text
  expect(ledger.match(/^\{"type":"ledger"/gm)!.length).toBeGreaterThan(15)
  expect(faultsBy100(ledger)).toEqual([])
  for (const each of [text, ledger]) {
    const { checkpoint } = JSON.parse(each.trimEnd().split('\n').at(-1)!) as { checkpoint: string }
    expect(openCheckpoint(checkpoint, await logKeyOf(client)).ok).toBe(true)
  }
})

test.each<[string, (line: Line) => boolean, (line: Line) => void]>([
  ['a line of another type', ({ type }) => type === 'tombstone', (line) => Object.assign(line, { type: 'hint' })],
  ['another page', ({ reply_to }) => reply_to !== undefined, (line) => Object.assign(line, { page: 'elsewhere' })],
  ['another format', ({ supersedes }) => supersedes !== undefined, (line) => Object.assign(line, { format: 'x' })],
  [
    'an id in place of the name that was signed',
    ({ to }) => to !== undefined,
    (line) => Object.assign(line, { to: 'x' }),
  ],
  ['another place', ({ seq }) => seq === 3, (line) => Object.assign(line, { seq: 4 })],
  ['the time of its expiry', ({ type }) => type === 'event', (line) => Object.assign(line, { expires_at: 1 })],
  ['another leaf', ({ type }) => type === 'leaves', (line) => Object.assign(line, { start: 1 })],
  ['another count', ({ type }) => type === 'end', (line) => Object.assign(line, { count: 1 })],
])('%s is refused', (_, fits, change) => {
  const lines = text.trimEnd().split('\n')
  const at = lines.findIndex((line) => fits(JSON.parse(line) as Line))
  const line = JSON.parse(lines[at]!) as Line
  change(line)
  expect(faultsBy100(lines.with(at, JSON.stringify(line)).join('\n'))).not.toEqual([])
})

test('a field that release 1.0.0 does not know is ignored', () => {
  expect(faultsBy100(text.replace('{"type":"event",', '{"type":"event","new_in_later_release":true,'))).toEqual([])
})
