/** Whom the lab asks for permission before it probes a tool: the machine that it is about to contact, whatever another says. */
import { expect, test } from 'vitest'
import { listingOf } from '../../../actors/tools/listing.ts'
import type { OutgoingRequest } from '../../../src/outgoing/request.ts'
import { isAt, type Permission, probeTool } from '../../../src/tools/probe.ts'

const me = 'a'.repeat(64)
const fields = {
  name: 'x',
  description: 'x',
  price: '0',
  url: 'https://mine.example/',
  mcp_url: 'https://other.example/mcp',
}
const listing = listingOf('1', fields, 0)

async function asked(
  says: Record<string, object>,
  permission: Permission,
  looked = listing,
): Promise<[urls: string[], verdict: string]> {
  const urls: string[] = []
  const request = async ({ url }: OutgoingRequest) => {
    urls.push(url)
    const said = url.endsWith('broadside.json') ? says[new URL(url).hostname] : {}
    const body = Buffer.from(JSON.stringify(said ?? {}))
    return { ok: true, status: said === undefined ? 404 : 200, headers: {}, body } as const
  }
  const subject = { listing: looked, identity: me, permission, payeeBefore: '' }
  const { verdict } = await probeTool({ request, pause: async () => {} }, subject)
  return [urls, verdict]
}

const mine = 'https://mine.example/.well-known/broadside.json'
const other = 'https://other.example/.well-known/broadside.json'
const invites = { owners: [me] }

test.each<[Permission, object | undefined, string]>([
  ['standing', undefined, 'not_probed'],
  ['asked', undefined, 'not_probed'],
  ['standing', { owners: ['b'] }, 'not_probed'],
  ['given', { opt_out: true }, 'not_probed'],
  ['asked', { ...invites, opt_out: true }, 'not_probed'],
  ['given', undefined, 'ok'],
  ['standing', invites, 'ok'],
  ['asked', invites, 'ok'],
])('with permission %s, an MCP server on another machine that says %j is %s', async (permission, said, verdict) => {
  const says = { 'mine.example': invites, ...(said === undefined ? {} : { 'other.example': said }) }
  const sent = verdict === 'ok' ? ['https://other.example/mcp'] : []
  expect(await asked(says, permission)).toEqual([[mine, other, ...sent], verdict])
})

test('a tool on a machine that was asked is not asked about a second time', async () => {
  const same = listingOf('1', { ...fields, mcp_url: 'https://mine.example/mcp' }, 0)
  expect(await asked({ 'mine.example': invites }, 'asked', same)).toEqual([[mine, 'https://mine.example/mcp'], 'ok'])
  expect([isAt(same, 'mine.example'), isAt(listing, 'mine.example'), isAt(listing, 'other.example')]).toEqual([
    true,
    false,
    true,
  ])
})
