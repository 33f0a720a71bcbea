/** Limits that an operator raises: for a network or an identity, by a signed command for a limited time, or in the board’s settings. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { boardDirectory, expectStartRefused } from '../support/board-process.ts'
import { seedOf } from '../support/client.ts'
import {
  detailsOf,
  limits,
  NetworkLimitedBoard,
  operator,
  sequentially,
  someone,
  statuses,
} from '../support/network-limited-board.ts'
import { program } from '../support/program.ts'
import { runProgram } from '../support/run-program.ts'

type Grant = {
  readonly id: string
  readonly target: string
  readonly factor?: number
  readonly exempt?: true
  readonly granted_by: string
  readonly expires_at: number
}
type Listed = {
  readonly grants: readonly Grant[]
  readonly configured: readonly object[]
  readonly next_cursor?: string
}

const directory = boardDirectory()
const settled = someone()
const settings = {
  ...limits,
  networks: { '198.51.100.7/25': 2, '203.0.113.0/24': null },
  identities: { [settled.id]: null },
}
let limitedBoard: NetworkLimitedBoard

beforeAll(async () => {
  limitedBoard = await NetworkLimitedBoard.start(directory, { LIMITS: JSON.stringify(settings) })
})
afterAll(() => limitedBoard.client.close())

async function listed(cursor?: string): Promise<Listed> {
  const more = cursor === undefined ? {} : { cursor }
  const answer = await limitedBoard.command('192.0.2.250', operator, { operation: 'limits.list', limit: 2, ...more })
  expect(answer.status).toBe(200)
  return answer.data as unknown as Listed
}

/** All grants, from all pages. */
async function whole(): Promise<Grant[]> {
  const found: Grant[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await listed(cursor)
    found.push(...page.grants)
    if (page.next_cursor === undefined) return found
    cursor = page.next_cursor
  }
}

const post = (address: string) => limitedBoard.post(address, someone())
const revoke = (target: string) => limitedBoard.command('192.0.2.250', operator, { operation: 'limits.revoke', target })

test('a network with a grant gets exactly that limit, and the default again when the grant is revoked', async () => {
  expect((await limitedBoard.grant('192.0.2.64/26', { factor: 2 })).status).toBe(200)
  const nine = await sequentially(9, () => post('192.0.2.65'))
  expect(statuses(nine)).toEqual([...Array<number>(8).fill(200), 'rate_limited'])
  expect(detailsOf(nine[8]!)).toMatchObject({ network: '192.0.2.65', at_once: 8, regained: 2 })
  expect((await limitedBoard.quota('192.0.2.66')).networks[0]!.allowances.new_identities).toMatchObject({ limit: 8 })
  expect((await limitedBoard.post('192.0.2.68', someone())).status).toBe(200)
  expect((await limitedBoard.quota('192.0.2.68')).networks[0]!.allowances.new_identities).toMatchObject({
    limit: 8,
    used: 1,
  })
  expect((await revoke('192.0.2.64/26')).status).toBe(200)
  expect((await limitedBoard.quota('192.0.2.66')).networks[0]!.allowances.new_identities).toMatchObject({ limit: 4 })
  expect(statuses(await sequentially(5, () => post('192.0.2.67')))).toEqual([200, 200, 200, 200, 'rate_limited'])
  expect((await revoke('192.0.2.64/26')).code).toBe('wrong_state')
})

test('an exempt network has no limit, and its quota shows none', async () => {
  expect((await limitedBoard.grant('2001:db8:99::/48', { exempt: true })).status).toBe(200)
  expect(new Set(statuses(await sequentially(20, () => post('2001:db8:99:1::1'))))).toEqual(new Set([200]))
  const { allowances } = (await limitedBoard.quota('2001:db8:99:1::1')).networks[0]!
  expect(allowances.new_identities).not.toHaveProperty('limit')
  expect((await limitedBoard.quota('2001:db8:98::1')).networks[0]!.allowances.new_identities).toMatchObject({
    limit: 4,
  })
})

test('an identity with a grant is counted separately from its network', async () => {
  const [raised, other] = [someone(), someone()]
  expect(
    statuses([await limitedBoard.post('192.0.2.70', raised), await limitedBoard.post('192.0.2.70', other)]),
  ).toEqual([200, 200])
  expect((await limitedBoard.grant(raised.id, { factor: 3 })).status).toBe(200)
  // Its own limit: 12 at once, three times.
  expect(statuses(await sequentially(14, () => limitedBoard.post('192.0.2.70', raised)))).toEqual(
    Array<number>(14).fill(200),
  )
  const quota = await limitedBoard.quota('192.0.2.70', raised)
  expect(quota).toMatchObject({ counts_apart: true, allowances: { writes: { limit: 36 } } })
  expect(quota.networks[0]!.allowances.writes!.used).toBeLessThanOrEqual(2)
  expect(await limitedBoard.quota('192.0.2.70', other)).toMatchObject({ counts_apart: false })
  expect((await limitedBoard.grant(raised.id, { exempt: true })).status).toBe(200)
  expect(statuses(await sequentially(30, () => limitedBoard.post('192.0.2.70', raised)))).toEqual(
    Array<number>(30).fill(200),
  )
})

test('grants are listed only for operators, and survive a restart', async () => {
  const before = await whole()
  expect(before.map(({ target }) => target)).toContain('2001:db8:99::/48')
  expect(before.every(({ granted_by }) => granted_by === operator.id)).toBe(true)
  expect((await listed()).configured).toEqual([
    { target: '198.51.100.0/25', factor: 2 },
    { target: '203.0.113.0/24', exempt: true },
    { target: settled.id, exempt: true },
  ])
  const others = someone()
  const refused = [
    await limitedBoard.command('192.0.2.80', others, { operation: 'limits.list' }),
    await limitedBoard.command('192.0.2.80', others, { operation: 'limits.revoke', target: '2001:db8:99::/48' }),
    await limitedBoard.command('192.0.2.80', others, {
      ...{ operation: 'limits.grant', target: others.id, ttl: 60, data: '{"schema":1,"exempt":true}' },
    }),
  ]
  expect(statuses(refused)).toEqual(Array<string>(3).fill('forbidden'))
  await limitedBoard.board.kill()
  limitedBoard.client.close()
  limitedBoard = await NetworkLimitedBoard.start(directory, { LIMITS: JSON.stringify(settings) })
  expect(await whole()).toEqual(before)
  expect(new Set(statuses(await sequentially(10, () => post('2001:db8:99:2::1'))))).toEqual(new Set([200]))
})

test('the board’s settings raise limits and exempt networks too', async () => {
  expect(statuses(await sequentially(9, () => post('198.51.100.1')))).toEqual([
    ...Array<number>(8).fill(200),
    'rate_limited',
  ])
  expect(new Set(statuses(await sequentially(12, () => post('203.0.113.5'))))).toEqual(new Set([200]))
  expect(new Set(statuses(await sequentially(20, () => limitedBoard.post('192.0.2.81', settled))))).toEqual(
    new Set([200]),
  )
})

test('an operator gets through when the network has used up its limit', async () => {
  const pair = [someone(), someone()]
  await sequentially(8, (n) => limitedBoard.post('192.0.2.90', pair[n % 2]!))
  expect((await limitedBoard.post('192.0.2.90', pair[0]!)).status).toBe(429)
  const grant = { operation: 'limits.grant', target: '192.0.2.90', ttl: 60, data: '{"schema":1,"exempt":true}' }
  expect((await limitedBoard.command('192.0.2.90', operator, grant)).status).toBe(200)
  expect((await post('192.0.2.90')).status).toBe(200)
})

test.each([
  [{ target: 'somewhere' }, 'target'],
  [{ target: '192.0.2.0/33' }, 'target'],
  [{ target: 'A'.repeat(64) }, 'target'],
  [{ ttl: 59 }, 'ttl'],
  [{ data: '{"schema":1}' }, 'data'],
  [{ data: '{"schema":1,"factor":2,"exempt":true}' }, 'data'],
  [{ data: '{"schema":1,"factor":1}' }, 'data.factor'],
  [{ data: '{"schema":1,"exempt":false}' }, 'data.exempt'],
])('a grant with %j is refused', async (wrong, field) => {
  const grant = { operation: 'limits.grant', target: '192.0.2.91', ttl: 60, data: '{"schema":1,"factor":2}', ...wrong }
  expect(await limitedBoard.command('192.0.2.250', operator, grant)).toMatchObject({
    status: 400,
    code: 'invalid_field',
    field,
  })
})

test.each([
  ['{"networks":["192.0.2.0/24"]}', 'networks must be an object'],
  ['{"networks":{"example.org":2}}', 'networks must name addresses and networks'],
  ['{"networks":{"192.0.2.0/24":0}}', 'an integer from 1 to 1000, or null'],
  ['{"identities":{"192.0.2.0/24":2}}', 'identities must name identity ids'],
])('a board does not start with LIMITS=%s', async (text, sentence) => {
  const { code, output } = await expectStartRefused({ directory: boardDirectory(), env: { LIMITS: text } })
  expect(code).not.toBe(0)
  expect(output).toContain(sentence)
})

test('the command line raises limits, lists the grants, and revokes them', async () => {
  const folder = boardDirectory()
  const key = join(folder, 'operator.json')
  writeFileSync(key, JSON.stringify({ seed: seedOf(operator).toString('base64url') }), { mode: 0o600 })
  const run = (...args: string[]) =>
    runProgram(folder, process.execPath, [
      program,
      'limits',
      ...args,
      '--url',
      limitedBoard.client.address,
      '--key',
      key,
    ])
  const granted = await run('grant', '192.0.2.130/25', '--factor', '7', '--hours', '2', '--reason', 'a workshop')
  expect(granted).toMatchObject({ code: 0, errors: '' })
  expect(granted.output).toMatch(/^192\.0\.2\.128\/25 {2}7 times the limits, until \S+Z {2}\(a workshop\)\n$/)
  const { output } = await run('list')
  expect(output).toContain(granted.output)
  expect(output).toContain('203.0.113.0/24  no limits, by the settings of the board\n')
  expect((await run('revoke', '192.0.2.128/25')).code).toBe(0)
  expect((await run('list')).output).not.toContain('192.0.2.128/25')
  expect((await run('revoke', '192.0.2.128/25')).errors).toContain('wrong_state')
  expect((await run('grant')).code).toBe(2)
})
