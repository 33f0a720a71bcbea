/** Limits of a network beside those of an identity: keys are free, addresses are not. By HTTP, behind a proxy's header. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { accessToken } from '../support/access-token.ts'
import { boardDirectory } from '../support/board-process.ts'
import {
  detailsOf,
  NetworkLimitedBoard,
  operator,
  type Signer,
  sequentially,
  someone,
  statuses,
} from '../support/network-limited-board.ts'

describe.each([
  ['uws', '1'],
  ['node', '1'],
  ['uws', '2'],
])('on the %s engine, with HTTP_THREADS=%s', (engine, httpThreads) => {
  let limitedBoard: NetworkLimitedBoard
  beforeAll(async () => {
    limitedBoard = await NetworkLimitedBoard.start(boardDirectory(), { HTTP_ENGINE: engine, HTTP_THREADS: httpThreads })
  })
  afterAll(() => limitedBoard.client.close())

  test('an address runs out of fresh keys, while known identities and other addresses continue', async () => {
    const address = '192.0.2.1'
    const first = someone()
    expect((await limitedBoard.post(address, first)).status).toBe(200)
    const answers = await sequentially(5, () => limitedBoard.post(address, someone()))
    expect(statuses(answers)).toEqual([200, 200, 200, 'rate_limited', 'rate_limited'])
    expect(answers[4]!.text).toContain('new identities')
    expect(Number(answers[4]!.headers['retry-after'])).toBeGreaterThan(60)
    expect(detailsOf(answers[4]!)).toEqual({
      limit: 'new_identities_per_network_per_hour',
      of: 'network',
      network: address,
      at_once: 4,
      regained: 1,
      per_seconds: 3_600,
    })
    expect((await limitedBoard.post(address, first)).status).toBe(200)
    expect((await limitedBoard.post('192.0.2.2', someone())).status).toBe(200)
  })

  test('an address runs out of writes whoever signs them, and accepted commands are still answered again', async () => {
    const address = '192.0.2.3'
    const pair = [someone(), someone()]
    const first = limitedBoard.client.sign(pair[0]!, { operation: 'post', text: 'first' })
    expect((await limitedBoard.send(address, first.body)).status).toBe(200)
    const answers = await sequentially(8, (n) => limitedBoard.post(address, pair[n % 2]!))
    expect(statuses(answers)).toEqual([...Array<number>(7).fill(200), 'rate_limited'])
    expect(detailsOf(answers[7]!)).toMatchObject({
      limit: 'writes_per_network_per_minute',
      network: address,
      at_once: 8,
    })
    expect((await limitedBoard.send(address, first.body)).data.receipt).toMatchObject({ duplicate: true })
    expect((await limitedBoard.post('192.0.2.4', pair[0]!)).status).toBe(200)
    const { networks } = await limitedBoard.quota(address)
    expect(networks).toMatchObject([{ network: address, allowances: { writes: { limit: 8, used: 8, remaining: 0 } } }])
  })

  test('an IPv6 network is a /64, the /48 above it has four times as much, and IPv4 inside IPv6 is IPv4', async () => {
    const inNetwork = (network: number) => `2001:db8:7:${network.toString(16)}:${randomBytes(2).toString('hex')}::1`
    expect(statuses(await sequentially(5, () => limitedBoard.post(inNetwork(0), someone())))).toEqual([
      200,
      200,
      200,
      200,
      'rate_limited',
    ])
    const rest = await sequentially(13, (n) => limitedBoard.post(inNetwork(1 + Math.floor(n / 4)), someone()))
    expect(statuses(rest)).toEqual([...Array<number>(12).fill(200), 'rate_limited'])
    expect(detailsOf(rest[12]!)).toMatchObject({ network: '2001:db8:7::/48', at_once: 16 })
    expect((await limitedBoard.post('2001:db8:8::1', someone())).status).toBe(200)
    const { networks } = await limitedBoard.quota(inNetwork(3))
    expect(networks).toMatchObject([
      { network: '2001:db8:7:3::/64', allowances: { new_identities: { limit: 4, used: 4 } } },
      { network: '2001:db8:7::/48', allowances: { new_identities: { limit: 16, used: 16 } } },
    ])
    await sequentially(4, () => limitedBoard.post('192.0.2.5', someone()))
    expect(statuses([await limitedBoard.post('::ffff:192.0.2.5', someone())])).toEqual(['rate_limited'])
  })

  test('a client that sends a header where no proxy is trusted counts by its peer address', async () => {
    // Two lines, as with a proxy that appends its own: the last one counts.
    const before = await limitedBoard.quota('203.0.113.9, 192.0.2.6')
    expect(before.networks[0]!.network).toBe('192.0.2.6')
    expect((await limitedBoard.quota('not an address')).networks[0]!.network).toBe('127.0.0.1')
  })
})

/** Calls a tool at /mcp with the token of a sign-in, from an address that a proxy reports. */
async function callTool(
  { client }: NetworkLimitedBoard,
  name: string,
  given: object,
  { token, from }: { readonly token?: string | undefined; readonly from?: string },
): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await fetch(`${client.address}/mcp`, {
    method: 'POST',
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(from === undefined ? {} : { 'x-forwarded-for': from }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } }),
  })
  return { status: answer.status, text: await answer.text() }
}

describe('a board', () => {
  const directory = boardDirectory()
  let all: NetworkLimitedBoard
  beforeAll(async () => {
    all = await NetworkLimitedBoard.start(directory)
  })
  afterAll(() => all.client.close())

  test('a refused write creates no identity, and a stranger’s key uses none of their allowance', async () => {
    const address = '192.0.2.11'
    // Nothing of these is stored: the room does not exist for them.
    const owner = someone()
    const made = { operation: 'room.create', room: 'not-theirs', visibility: 'private' }
    expect((await all.command('192.0.2.12', owner, made)).status).toBe(200)
    const refused = await sequentially(6, () => all.post(address, someone(), { room: 'not-theirs' }))
    expect(statuses(refused)).toEqual(Array<string>(6).fill('private_room'))
    expect((await all.quota(address)).networks[0]!.allowances.new_identities).toMatchObject({ used: 0 })

    const before = await all.quota(address, owner)
    const forged = await sequentially(20, () => {
      const command = JSON.parse(all.client.sign(owner, { operation: 'post', text: 'x' }).body) as { signature: string }
      return all.send('192.0.2.13', JSON.stringify({ ...command, signature: `${'A'.repeat(85)}A` }))
    })
    expect(new Set(statuses(forged))).toEqual(new Set(['bad_signature']))
    const after = await all.quota(address, owner)
    for (const kind of ['writes', 'bytes'])
      expect(after.allowances[kind]!.used).toBeLessThanOrEqual(before.allowances[kind]!.used)
  })

  test('a known identity stays known after a restart, and so does one that wrote only in private', async () => {
    const address = '192.0.2.14'
    const known = [someone(), someone(), someone(), someone()]
    const answers = await sequentially(4, (n) =>
      n === 0
        ? all.command(address, known[0]!, { operation: 'room.create', room: 'only-in-private', visibility: 'private' })
        : all.post(address, known[n]!),
    )
    expect(statuses(answers)).toEqual([200, 200, 200, 200])
    await all.board.stop()
    all.client.close()
    all = await NetworkLimitedBoard.start(directory)
    expect(statuses(await sequentially(4, () => all.post(address, someone())))).toEqual([200, 200, 200, 200])
    expect(statuses(await sequentially(4, (n) => all.post(address, known[n]!)))).toEqual([200, 200, 200, 200])
    expect(statuses([await all.post('192.0.2.15', known[0]!, { room: 'only-in-private' })])).toEqual([200])
  })

  test('new rooms run out by network, whatever creates them and whoever signs', async () => {
    const address = '192.0.2.16'
    const [first, second] = [someone(), someone()]
    expect((await all.post(address, first, { room: 'net-one' })).status).toBe(200)
    expect((await all.command(address, first, { operation: 'room.create', room: 'net-two' })).status).toBe(200)
    expect((await all.post(address, second, { room: 'net-three' })).status).toBe(200)
    const data = JSON.stringify({ schema: 1, title: 'A work', simulated: true })
    const refused = [
      await all.post(address, second, { room: 'net-four' }),
      await all.command(address, first, { operation: 'room.create', room: 'net-four' }),
      await all.command(address, second, { operation: 'work.create', room: 'net-four', text: 'x', amount: 1, data }),
    ]
    expect(statuses(refused)).toEqual(Array<string>(3).fill('quota_exhausted'))
    for (const each of refused)
      expect(detailsOf(each)).toMatchObject({ limit: 'new_rooms_per_network_per_day', network: address, at_once: 3 })
    expect((await all.post('192.0.2.17', second, { room: 'net-four' })).status).toBe(200)
  })

  test('new conversations run out by network, and existing ones can be opened again', async () => {
    const address = '192.0.2.18'
    const [first, second, other] = [someone(), someone(), someone()]
    const open = (signer: Signer, member: Signer) =>
      all.command(address, signer, { operation: 'conversation.open', members: [member.id] })
    expect(statuses([await open(first, other), await open(second, other)])).toEqual([200, 200])
    const refused = await open(first, second)
    expect(refused.code).toBe('quota_exhausted')
    expect(detailsOf(refused)).toMatchObject({ limit: 'new_conversations_per_network_per_day', network: address })
    expect((await open(first, other)).status).toBe(200)
  })

  test('bytes run out by network, both signed and delivered ones', async () => {
    const address = '192.0.2.19'
    const [first, second] = [someone(), someone()]
    const text = 'x'.repeat(16_000)
    expect(statuses([await all.post(address, first, { text }), await all.post(address, second, { text })])).toEqual([
      200, 200,
    ])
    const refused = await all.post(address, second, { text })
    expect(refused.code).toBe('quota_exhausted')
    expect(detailsOf(refused)).toMatchObject({ limit: 'bytes_per_network_per_day', of: 'network' })
    const made = await all.command('192.0.2.20', second, { operation: 'receiver.create', data: '{"schema":1}' })
    const { url } = (made.data as unknown as { receiver: { url: string } }).receiver
    const deliver = async (bytes: number, from: string) =>
      (
        await fetch(`${all.client.address}${url}`, {
          method: 'POST',
          body: 'y'.repeat(bytes),
          headers: { 'x-forwarded-for': from },
        })
      ).status
    expect([await deliver(9_000, address), await deliver(9_000, '192.0.2.21')]).toEqual([429, 200])
    expect((await all.quota('192.0.2.21')).networks[0]!.allowances.bytes!.used).toBe(9_000)
  })

  test('a sign-in at /mcp counts by identity, and not by the address of its host', async () => {
    const [reader, other] = [someone(), someone()]
    for (const each of [reader, other]) await all.post('192.0.2.22', each)
    const token = await accessToken(all.client.address, reader, 'board:read board:post')
    const networkBefore = await all.quota('127.0.0.1')
    const post = async (n: number) => {
      const { text } = await callTool(all, 'post', { text: `from a host ${n}` }, { token })
      return text.includes('event_id')
    }
    // More than the network of the host has, and as many as the identity still has.
    expect(await sequentially(10, post)).toEqual(Array<boolean>(10).fill(true))
    expect(await post(11)).toBe(false)
    const { writes } = (await all.quota('127.0.0.1')).networks[0]!.allowances
    expect(writes!.used).toBeLessThanOrEqual(networkBefore.networks[0]!.allowances.writes!.used)
    expect((await all.quota('192.0.2.23', reader)).allowances.writes).toMatchObject({ remaining: 0 })
  })

  test('refusals by limits are counted by reason', async () => {
    const metrics = (await all.client.get('/metrics')).text
    for (const reason of [
      'new_rooms_per_network_per_day',
      'new_conversations_per_network_per_day',
      'bytes_per_network_per_day',
      'writes_per_identity_per_minute',
    ])
      expect(metrics).toMatch(new RegExp(`^broadside_limited_total\\{reason="${reason}"\\} [1-9][0-9]*$`, 'm'))
  })
})

test('a sign-in reads at /mcp though its host’s address is used up, by others and by invalid tokens', async () => {
  const more = { reads_per_address_per_minute: 30, bad_signatures_per_address_per_minute: 3 }
  const all = await NetworkLimitedBoard.start(boardDirectory(), { LIMITS: JSON.stringify(more) })
  const reader = someone()
  await all.post('192.0.2.30', reader)
  const token = await accessToken(all.client.address, reader, 'board:read')
  const list = async (authorization?: string) => {
    const { status, text } = await callTool(all, 'rooms_list', {}, { token: authorization })
    return status === 200 && text.includes('too many reads') ? 429 : status
  }
  expect(await list(token)).toBe(200)
  const byAddress = await sequentially(40, () => list())
  expect(byAddress.at(-1)).toBe(429)
  const forged = await sequentially(8, (n) => list(`${token.slice(0, -4)}${n}AAA`))
  expect([forged[0], forged.at(-1)]).toEqual([401, 429])
  expect(await sequentially(30, () => list(token))).toEqual(Array<number>(30).fill(200))
  all.client.close()
})

test('all sign-ins at one address may do at most what sixteen networks may, and nobody else pays for it', async () => {
  const LIMITS = JSON.stringify({
    writes_per_network_per_minute: 1,
    writes_per_network_burst: 1,
    writes_per_identity_per_minute: 1,
    writes_per_identity_burst: 12,
    // Sign-ins come from here.
    networks: { '127.0.0.1': 10 },
  })
  const all = await NetworkLimitedBoard.start(boardDirectory(), { LIMITS })
  const post = async (token: string) =>
    (await callTool(all, 'post', { text: 'from a host' }, { token, from: '192.0.2.51' })).text
  const people = Array.from({ length: 2 }, someone)
  const tokens: string[] = []
  for (const [n, each] of people.entries()) {
    expect((await all.post(`192.0.2.${60 + n}`, each)).status).toBe(200)
    tokens.push(await accessToken(all.client.address, each, 'board:read board:post'))
  }
  const answers = await sequentially(22, (n) => post(tokens[n % 2]!))
  expect(answers.filter((text) => text.includes('event_id')).length).toBe(16)
  expect(answers.at(-1)).toContain('writes_per_network_per_minute')
  expect((await all.post('192.0.2.51', someone())).status).toBe(200)
  all.client.close()
})

test('requests that make the board call others, and started sign-ins, are counted in the network too', async () => {
  const LIMITS = JSON.stringify({
    verifications_per_network_per_hour: 2,
    probes_per_network_per_day: 2,
    sign_ins_per_network_per_hour: 2,
  })
  const all = await NetworkLimitedBoard.start(boardDirectory(), { LIMITS, BROADSIDE_LOOPBACK: '1' })
  const address = '192.0.2.40'
  // Nothing listens there.
  const url = 'http://127.0.0.1:1025/hook'
  const hook = (from: string, signer: Signer) =>
    all.command(from, signer, {
      operation: 'webhook.create',
      data: JSON.stringify({ schema: 1, url, kinds: ['reply'] }),
    })
  const hooked = await sequentially(4, () => hook(address, someone()))
  expect(statuses(hooked)).toEqual(['wrong_state', 'wrong_state', 'rate_limited', 'rate_limited'])
  expect(hooked[2]!.text).toContain('too many addresses were verified for this network')
  expect(statuses([await hook(address, operator), await hook('192.0.2.41', someone())])).toEqual([
    'wrong_state',
    'wrong_state',
  ])

  // One host is not probed twice in a row.
  const probe = async (from: string, n: number) => {
    const signer = someone()
    const said = { schema: 1, name: 'Of a network', description: 'A tool that is not there.', category: 'data' }
    const data = JSON.stringify({ ...said, url: `http://127.0.0.${n + 2}:1025/tool` })
    const published = await all.command('192.0.2.42', signer, { operation: 'tools.publish', data })
    const { tool } = published.data as unknown as { tool: { id: string } }
    return all.command(from, signer, { operation: 'tools.probe', target: tool.id })
  }
  const probed = await sequentially(3, (n) => probe(address, n))
  expect(statuses(probed)).toEqual([200, 200, 'quota_exhausted'])
  expect(detailsOf(probed[2]!)).toMatchObject({ limit: 'probes_per_network_per_day', network: address })
  expect((await probe('192.0.2.41', 3)).status).toBe(200)

  const begun = async (from: string, path: string) => {
    const headers = { 'x-forwarded-for': from }
    const answer = await fetch(`${all.client.address}${path}`, { headers, redirect: 'manual' })
    return answer.status
  }
  expect(await sequentially(3, () => begun(address, '/oauth/authorize?client_id=none'))).toEqual([400, 400, 429])
  expect(await begun('192.0.2.41', '/oauth/authorize?client_id=none')).toBe(400)
  expect(await begun(address, '/.well-known/oauth-authorization-server')).toBe(200)
  const { networks } = await all.quota(address)
  expect(networks[0]!.allowances).toMatchObject({
    probes: { limit: 2, used: 2 },
    verifications: { limit: 2, used: 2 },
    sign_ins: { limit: 2, used: 2 },
  })
  all.client.close()
})
