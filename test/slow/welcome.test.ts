/** The welcome grant at the edges of its limits: of a network, of a board, at midnight, over a restart and over kills. Only by HTTP. */
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { fakeClock, missingFakeClock } from '../support/fake-clock.ts'
import { patience } from '../support/patience.ts'
import { WorkClient } from '../support/work-client.ts'

vi.setConfig({ testTimeout: 900_000 })

type Signer = ReturnType<typeof person>
const proxy = 'x-client'
const limitsOf = (more: object): string =>
  JSON.stringify({
    ...{ writes_per_identity_per_minute: null, unsigned_commands_per_address_per_minute: null },
    // So that checking for a grant is unlimited.
    reads_per_address_per_minute: null,
    ...more,
  })
const env = (more: object = {}) => ({ SHARDS: '2', BROADSIDE_LIMITS: 'on', TRUST_PROXY: proxy, LIMITS: limitsOf(more) })

/** Posts publicly as an identity from this address. */
function postFrom(client: Client, who: Signer, address: string): Promise<number> {
  const { body } = client.sign(who, { operation: 'post', room: 'lobby', text: `hello ${Math.random()}` })
  return new Promise((resolve, reject) => {
    const sent = request(
      `${client.address}/v1/command`,
      { method: 'POST', headers: { [proxy]: address } },
      (answer) => {
        answer.resume()
        answer.on('end', () => resolve(answer.statusCode!))
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

async function postAll(client: Client, people: readonly Signer[], addressOf: (n: number) => string): Promise<void> {
  for (const [n, who] of people.entries()) expect(await postFrom(client, who, addressOf(n))).toBe(200)
}

/** How many of them have been given something; nobody ever more than once. */
async function given(client: Client, people: readonly Signer[]): Promise<number> {
  const balances = await Promise.all(people.map(async (each) => (await new WorkClient(client).balance(each)).available))
  expect(balances.filter((each) => each !== 0 && each !== 100)).toEqual([])
  return balances.filter((each) => each === 100).length
}

/** Waits until an identity has been given something: everything requested before that is decided. */
async function welcomed(client: Client, who: Signer): Promise<void> {
  await vi.waitUntil(async () => (await given(client, [who])) === 1, patience)
}

const group = (name: string, count: number): Signer[] => Array.from({ length: count }, (_, n) => person(`${name} ${n}`))

/** Daily counts reset at midnight: none of this may cross one. */
beforeEach(async () => {
  const left = 86_400_000 - (Date.now() % 86_400_000)
  if (left < 300_000) await sleep(left + 1_000)
})

test('ten of one network are welcomed in a day, a /64 is one network, and a restart changes nothing', async () => {
  const directory = boardDirectory()
  let board = await startBoard({ directory, env: env() })
  let client = await Client.of(board)
  const [four, six, ...others] = [group('four', 16), group('six', 16), ...group('other', 4)] as const
  await postAll(client, four, () => '192.0.2.7')
  await postAll(client, six, (n) => `2001:db8:0:1::${n + 1}`)
  // From another network, and requested last: everything before it is decided.
  await postAll(client, [others[0]!], () => '2001:db8:0:2::1')
  await welcomed(client, others[0]!)
  expect([await given(client, four), await given(client, six)]).toEqual([10, 10])
  for (const [n, end] of (['stop', 'kill'] as const).entries()) {
    await board[end]()
    client.close()
    board = await startBoard({ directory, env: env() })
    client = await Client.of(board)
    await postAll(client, four, () => '192.0.2.7')
    await postAll(client, six, (m) => `2001:db8:0:1:ffff::${m + 1}`)
    await postAll(client, [others[n + 1]!], () => `198.51.100.${n}`)
    await welcomed(client, others[n + 1]!)
    // Those left out are considered again without a known address: together they count as one network.
    const all = (await given(client, four)) + (await given(client, six))
    expect(all).toBeGreaterThanOrEqual(20)
    expect(all).toBeLessThanOrEqual(30)
  }
  client.close()
})

test.skipIf(skipWithout(missingFakeClock))(
  `a board’s grants end at its daily number, and begin again with the day${skipNote(missingFakeClock)}`,
  async () => {
    const clockFile = join(boardDirectory(), 'offset')
    writeFileSync(clockFile, '+0\n')
    const clock = fakeClock(clockFile)
    const board = await startBoard({
      directory: boardDirectory(),
      env: { ...env({ welcome_grants_per_board_per_day: 7 }), ...clock },
    })
    const client = await Client.of(board)
    const people = group('day', 9)
    await Promise.all(people.map((each, n) => postFrom(client, each, `203.0.113.${n}`)))
    await vi.waitUntil(async () => (await given(client, people)) === 7, patience)
    // Again, on the same day: nobody else is given anything.
    await Promise.all(people.map((each, n) => postFrom(client, each, `203.0.113.${n}`)))
    expect(await given(client, people)).toBe(7)
    writeFileSync(clockFile, '+86400\n')
    const later = (who: Signer) =>
      client.command(
        who,
        { operation: 'post', room: 'lobby', text: `later ${Math.random()}` },
        { timestamp: Math.floor(Date.now() / 1_000) + 86_400 },
      )
    for (const each of people) await vi.waitUntil(async () => (await later(each)).status === 200, patience)
    const balance = async (who: Signer): Promise<number> => {
      const signing = { timestamp: Math.floor(Date.now() / 1_000) + 86_400 }
      const { data } = await client.command(who, { operation: 'credit.balance' }, signing)
      return (data as unknown as { available: number }).available
    }
    await vi.waitUntil(async () => (await Promise.all(people.map(balance))).every((each) => each === 100), patience)
    client.close()
  },
)

test('a kill between a first post and its grant costs nobody the grant, and gives none twice', async () => {
  const directory = boardDirectory()
  const people = group('killed', 4)
  let board: Board = await startBoard({ directory, env: env() })
  for (let round = 0; round < 2; round++) {
    const client = await Client.of(board)
    const some = people.slice(round * 2, round * 2 + 2)
    await Promise.all(some.map((each, n) => postFrom(client, each, `198.51.100.${n}`)))
    await board.kill()
    client.close()
    board = await startBoard({ directory, env: env() })
    const again = await Client.of(board)
    await vi.waitUntil(async () => (await given(again, some)) === some.length, patience)
    again.close()
  }
  const client = await Client.of(board)
  await postAll(client, people, (n) => `198.51.100.${n}`)
  expect(await given(client, people)).toBe(people.length)
  const ledger = (await client.get('/v1/export?stream=ledger')).text.trimEnd().split('\n')
  const grants = ledger
    .map((line) => JSON.parse(line) as { code?: number; credit?: string })
    .filter(({ code }) => code === 2)
  expect(grants.map(({ credit }) => credit).sort()).toEqual(people.map(({ id }) => `user:${id}`).sort())
  client.close()
})
