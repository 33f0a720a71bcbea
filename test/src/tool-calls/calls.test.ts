/**
 * Calls of third-party tools: a problem caused by one caller affects nobody else, neither through its input nor through its concurrency.
 */

import { expect, test } from 'vitest'
import type { CallFacts } from '../../../actors/tool-calls/tool-calls.ts'
import type { Decided, Found } from '../../../src/command/plan.ts'
import type { Verified } from '../../../src/command/verified.ts'
import { urlBytesMax } from '../../../src/outgoing/target.ts'
import type { Outcome, Relay, Relayed } from '../../../src/tool-calls/relay.ts'
import { type CallData, dataFault } from '../../../src/tool-calls/relayed.ts'
import { Calls, type CallsOptions, type Holder, Slots } from '../../../src/tool-calls/service.ts'

const url = 'https://tool.example/t'
const listing = { kind: 'http', url, mcp_url: '', method: '', price: '', name: 'Tool' }

/** A desk of calls whose tool answers when `end` is called. */
function desk(price = '') {
  const ends: (() => void)[] = []
  const fail: (() => void)[] = []
  const made: Relayed[] = []
  const relay = {
    make: (call: Relayed) =>
      new Promise<Outcome>((done) => {
        made.push(call)
        ends.push(() => done({ tool: 't', status: 200, paid_by: 'allowance', duration_ms: 1 }))
        fail.push(() => done({ tool: 't', status: 500, paid_by: 'allowance', duration_ms: 1 }))
      }),
    notMade: async () => ({ tool: 't', status: 0, failure: 'circuit_open', paid_by: 'allowance', duration_ms: 0 }),
  } as unknown as Relay
  const read: CallsOptions['read'] = ({ op }, answer) => {
    const found =
      op === 'tools.listing'
        ? { listing: { ...listing, price }, subject: 's', listed: true }
        : { allowance: {}, open: false }
    answer({ ok: true, value: found } as never)
  }
  const calls = new Calls({
    read,
    relay,
    own: {} as never,
    operators: new Set(),
    pays: false,
    secret: Buffer.alloc(32),
    now: () => 0,
    wallSeconds: () => 0,
    report: (error) => {
      throw error
    },
  })
  let commands = 0
  const command = (identity: string, address: string, data: CallData = {}, signedIn?: string): Verified<'tools.call'> =>
    ({
      command: { target: 't' },
      data,
      source: { address, signedIn },
      signer: { id: identity },
      sha: Buffer.alloc(32, String(commands++).padStart(16, '0'), 'latin1'),
    }) as unknown as Verified<'tools.call'>
  const prepared = (verified: Verified<'tools.call'>): Found => {
    let found: Found
    calls.prepare(verified, (each) => {
      found = each
    })
    return found
  }
  /** As the accepting actor does it: what the call eventually answers, or the refusal. */
  const call = (
    verified: Verified<'tools.call'>,
  ): Promise<unknown> | { readonly code: string; readonly retryAfter?: number } => {
    const found = prepared(verified)
    if (found === undefined || 'refusal' in found) return found!.refusal
    found.settle?.(undefined)
    const decided: Decided<'tools.call'> = { at: 0, isPublic: false, facts: found.args as CallFacts }
    return new Promise((done) => calls.finish(verified, decided, false, done))
  }
  return { call, prepared, command, made, ends, fail }
}

test('an address that a query makes too long is refused as the caller’s input, to the byte', () => {
  const address = { url, method: '', mcp: false }
  const room = urlBytesMax - url.length - '?q='.length
  expect(dataFault(address, { query: { q: 'x'.repeat(room) } })).toBeUndefined()
  const long = dataFault(address, { query: { q: 'x'.repeat(room + 1) } })
  expect([long?.key, long?.message]).toEqual([
    'query',
    expect.stringMatching(/^"query" in data .* 2049 bytes .* 2048 /),
  ])
  // As it is sent, not as it is written.
  expect(dataFault(address, { query: { q: '🌍'.repeat(room / 12 + 1) } })).toMatchObject({ key: 'query' })
  expect(dataFault({ ...address, mcp: true }, { query: { q: 'x'.repeat(9_999) } })).toBeUndefined()
  // A caller can do nothing about that one.
  expect(dataFault({ ...address, url: `${url}/${'x'.repeat(3_000)}` }, {})).toBeUndefined()
})

test('a caller whose inputs cannot be sent, any number of times, keeps nobody from the tool', async () => {
  const { call, command, made, ends } = desk()
  for (let n = 0; n < 20; n++)
    expect(call(command('attacker', '192.0.2.1', { query: { q: 'x'.repeat(2_100) } }))).toMatchObject({
      code: 'invalid_field',
      field: 'data.query',
    })
  const answer = call(command('somebody', '198.51.100.1'))
  expect(made).toHaveLength(1)
  ends[0]!()
  expect(await answer).toMatchObject({ values: { status: 200 } })
})

test('one identity has an eighth of the slots, one network a quarter, and each end frees a slot', async () => {
  const { call, command, made, ends } = desk()
  const first = command('a', '192.0.2.1')
  const answers = [call(first)]
  for (let n = 1; n < 8; n++) answers.push(call(command('a', '192.0.2.1')))
  expect(call(command('a', '198.51.100.1'))).toMatchObject({ code: 'rate_limited', retryAfter: 1 })
  for (let n = 0; n < 8; n++) answers.push(call(command('b', '192.0.2.1')))
  expect(call(command('c', '192.0.2.1'))).toMatchObject({ code: 'rate_limited', retryAfter: 1 })
  // A repetition waits for the first, and takes nobody's slot.
  answers.push(call(first))
  expect(made).toHaveLength(16)
  // Others are served, until the board itself has no slot left.
  for (let n = 0; n < 48; n++) answers.push(call(command(`d${n}`, `203.0.113.${n}`)))
  expect(call(command('e', '203.0.113.99'))).toMatchObject({ code: 'overloaded', retryAfter: 1 })
  expect(made).toHaveLength(64)
  for (const end of ends) end()
  for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ values: { status: 200 } })
  expect(call(command('a', '192.0.2.1'))).toBeInstanceOf(Promise)
})

test('networks of one /48, and sign-ins at one address, have half of the slots together', () => {
  for (const from of [
    (n: number) => [`a${n}`, `2001:db8:1:${n}::1`] as const,
    (n: number) => [`b${n}`, '192.0.2.1', `b${n}`] as const,
  ]) {
    const { call, command, made } = desk()
    for (let n = 0; n < 32; n++) {
      const [identity, address, signedIn] = from(n)
      expect(call(command(identity, address, {}, signedIn))).toBeInstanceOf(Promise)
    }
    const [identity, address, signedIn] = from(99)
    expect(call(command(identity, address, {}, signedIn))).toMatchObject({ code: 'rate_limited', retryAfter: 1 })
    expect(call(command('c', '198.51.100.1'))).toBeInstanceOf(Promise)
    expect(made).toHaveLength(33)
  }
})

test('only the sign-in whose input always fails at a tool is blocked, not all that share its host’s address', async () => {
  const { call, command, made, fail, ends } = desk()
  const failed = async (identity: string, n: number) => {
    const answer = call(command(identity, '192.0.2.1', {}, identity))
    fail[n]!()
    await answer
  }
  for (let n = 0; n < 5; n++) await failed('a', n)
  await call(command('a', '192.0.2.1', {}, 'a'))
  expect(made).toHaveLength(5)
  const other = call(command('b', '192.0.2.1', {}, 'b'))
  expect(made).toHaveLength(6)
  ends[5]!()
  await other
})

test('a call counts for the /64 and the /48 of an address, or for the host of a sign-in apart from its network', () => {
  const { prepared, command } = desk()
  const facts = (address: string, signedIn?: string) => {
    const found = prepared(command('a', address, {}, signedIn))
    return (found as { args: CallFacts }).args
  }
  const [one, same, near, far] = ['2001:db8:1:1::1', '2001:db8:1:1::2', '2001:db8:1:2::1', '2001:db8:2:1::1'].map(
    (address) => facts(address),
  )
  expect([one!.network === same!.network, one!.network === near!.network]).toEqual([true, false])
  expect([one!.wider === near!.wider, one!.wider === far!.wider]).toEqual([true, false])
  expect(facts('192.0.2.1')).not.toHaveProperty('wider')
  const hosted = facts('192.0.2.1', 'a')
  expect([hosted.isHosted, hosted.network === facts('192.0.2.1').network]).toEqual([true, false])
  // A sign-in of another identity does not count for this one.
  expect(facts('192.0.2.1', 'b')).not.toHaveProperty('isHosted')
})

test('a request to the actor already has its slot, and a refusal frees it', () => {
  const { prepared, command, call } = desk()
  const asked = Array.from({ length: 8 }, () => prepared(command('a', '192.0.2.1')))
  expect(call(command('a', '192.0.2.1'))).toMatchObject({ code: 'rate_limited' })
  for (const found of asked) if (found !== undefined && 'settle' in found) found.settle?.(undefined)
  for (let n = 0; n < 99; n++)
    expect(call(command('a', '192.0.2.1', { method: 'TRACE' }))).toMatchObject({ code: 'invalid_field' })
  expect(prepared(command('a', '192.0.2.1'))).toHaveProperty('args')
})

test('a slot is freed once, and nobody is remembered without one', () => {
  const slots = new Slots({ board: 2, site: 2, network: 2, identity: 1 })
  const [a, b]: Holder[] = [
    { network: 'n', identity: 'a' },
    { network: 'n', identity: 'b' },
  ]
  const leave = slots.take(a!)
  expect([slots.full(a!), slots.full(b!)]).toEqual(['identity', undefined])
  const other = slots.take(b!)
  expect(slots.full({ network: 'm', identity: 'c' })).toBe('board')
  leave()
  leave()
  expect([slots.full(a!), slots.full(b!)]).toEqual([undefined, 'identity'])
  other()
  expect(slots.full(b!)).toBeUndefined()
})

test.each([
  ['0', true],
  ['0.000', true],
  ['0.0000001', undefined],
  ['', undefined],
])('whether a tool listed at "%s" is free is part of the call', async (price, isFree) => {
  const { call, command, made, ends } = desk(price)
  const answer = call(command('a', '192.0.2.1'))
  expect(made[0]!.facts.isFree).toBe(isFree)
  ends[0]!()
  await answer
})
