/**
 * One person with 1,000 keys on 10 networks takes the credits that the board gives away, with the real limits and in the best case: keys
 * that are old enough, machines of several sites that name their publishers, and nobody else who applies that day. The result is the number
 * in /docs/credits.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, expect, test, vi } from 'vitest'
import { dailyMaximum } from '../../src/works/credits-page.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { respondJson, ToolServer } from '../support/tool-server.ts'

vi.setConfig({ testTimeout: 900_000 })

type Signer = ReturnType<typeof person>
type Attacker = { readonly key: Signer; readonly at: Client }
type Posting = { readonly type: string; readonly code: number; readonly credit: string; readonly amount: number }

const attack = { keys: 1_000, networks: 10 }
const sites = 6
const welcomeCode = 2
const reviewCode = 40

/** Daily counts reset at midnight: none of this may cross one. */
beforeEach(async () => {
  const left = 86_400_000 - (Date.now() % 86_400_000)
  if (left < 300_000) await sleep(left + 1_000)
})

/** Credits given to identities with this code, and how often. */
async function given(client: Client, code: number): Promise<{ times: number; credits: number }> {
  const { text } = await client.get('/v1/export?stream=ledger')
  const lines = text.trimEnd().split('\n')
  const all = lines.map((line) => JSON.parse(line) as Posting).filter((each) => each.code === code)
  return { times: all.length, credits: all.reduce((sum, { amount }) => sum + amount, 0) }
}

/** A machine of one site that names its owner, and their tools on it. */
async function publish(
  { key, at }: Attacker,
  host: string,
): Promise<{ server: ToolServer; tools: { id: string; subject_id: string }[] }> {
  const server = await ToolServer.open(
    {
      '/tool': (_, response) => respondJson(response, { answer: 42 }),
      '/.well-known/broadside.json': (_, response) => respondJson(response, { owners: [key.id] }),
    },
    host,
  )
  const tools = []
  for (let n = 0; n < 4; n++) {
    const url = `${server.url('/tool')}`
    const said = { schema: 1, name: `Answers ${n}`, description: 'It answers.', category: 'data', url, price: '0' }
    const made = await at.command(key, { operation: 'tools.publish', data: JSON.stringify(said) })
    expect(made.status).toBe(200)
    tools.push((made.data as unknown as { tool: { id: string; subject_id: string } }).tool)
  }
  expect((await at.command(key, { operation: 'tools.probe', target: tools[0]!.id })).status).toBe(200)
  return { server, tools }
}

test('1,000 keys on 10 networks get as many credits as /docs/credits says, and no more', async () => {
  const env = {
    ...{ SHARDS: '2', BROADSIDE_LIMITS: 'on', BROADSIDE_LOOPBACK: '1', TRUST_PROXY: 'x-client' },
    LIMITS: JSON.stringify({ credit_review_author_age_seconds: 1 }),
  }
  const board = await startBoard({ directory: boardDirectory(), env })
  const client = await Client.of(board)
  const clients = Array.from({ length: attack.networks }, (_, n) => client.from(`198.51.100.${n + 1}`))
  const attackers = Array.from({ length: attack.keys }, (_, n): Attacker => {
    return { key: person(`attacker ${n}`), at: clients[n % attack.networks]! }
  })
  // Each network at its own pace, its keys one after the other; keys over a rate of their network get nothing.
  const here = new Set<Attacker>()
  const arrive = async (at: Client) => {
    for (const each of attackers.filter((one) => one.at === at)) {
      const { status } = await at.post(each.key, { room: 'lobby', text: 'hello' })
      expect([200, 429]).toContain(status)
      if (status === 200) here.add(each)
    }
  }
  await Promise.all(clients.map(arrive))
  const { data } = await client.get('/capabilities')
  const most = dailyMaximum((data as unknown as { limits: Record<string, number | null> }).limits, attack)
  expect(most).toEqual({ welcomes: 10_000, reviews: 2_000 })
  await vi.waitFor(async () => expect((await given(client, welcomeCode)).times).toBeGreaterThanOrEqual(100), patience)

  const places = await Promise.all(Array.from({ length: sites }, (_, n) => publish(attackers[n]!, `127.0.0.${n + 11}`)))
  const tools = places.flatMap((each) => each.tools)
  // More reviewers in every network than the network may have rewarded, each of three tools.
  const review = async (at: Client) => {
    const mine = [...here].filter((each) => each.at === at && !attackers.slice(0, sites).includes(each)).slice(0, 14)
    for (const [n, { key }] of mine.entries())
      for (const each of [0, 1, 2]) {
        const { id, subject_id } = tools[(n * 3 + each + clients.indexOf(at)) % tools.length]!
        await at.command(key, { operation: 'tools.call', target: id, data: '{"schema":1}' })
        const said = await at.command(key, {
          operation: 'tools.review',
          target: subject_id,
          kind: 'works',
          text: 'Fine.',
        })
        expect(said.status).toBe(200)
      }
  }
  await Promise.all(clients.map(review))
  await vi.waitFor(async () => expect((await given(client, reviewCode)).times).toBeGreaterThanOrEqual(20), patience)
  // Another review requests the reward again, after everything that was decided before it.
  for (let round = 0; round < 2; round++) await Promise.all(clients.map(review))
  const found = {
    welcomes: (await given(client, welcomeCode)).credits,
    reviews: (await given(client, reviewCode)).credits,
  }
  expect(found).toEqual(most)
  const page = (await client.get('/docs/credits', { accept: 'text/html' })).text
  expect(page).toContain('12,000')
  for (const { server } of places) server.close()
  for (const each of [client, ...clients]) each.close()
})
