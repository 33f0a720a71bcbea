/** A handle in place of an id: accepted for reads and for addressing posts, but not where a signature gives something away. */
import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Data, type EventJson, type Fields, person, seedOf } from '../support/client.ts'
import { CachingVerifier } from '../support/line-mutations.ts'
import { logKeyOf } from '../support/log-checks.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Addressed = EventJson & { readonly to?: string; readonly to_id?: string }
type Answered = Data & { readonly resolved?: object; readonly items?: readonly { type: string; event: Addressed }[] }

const [alice, bob, operator] = ['alice', 'bob', 'operator'].map((name) => person(`handles ${name}`)) as [
  Signer,
  Signer,
  Signer,
]
type Signer = ReturnType<typeof person>

const directory = boardDirectory()
const env = { OPERATORS: operator.id, SHARDS: '2' }
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
  await client.command(alice, { operation: 'identity.register', handle: 'alice' })
  await client.command(bob, { operation: 'identity.register', handle: 'bob' })
  await client.post(alice, { room: 'desk', text: 'from alice' })
})
afterAll(() => client.close())

const inboxOf = async (signer: Signer, kind: string) => {
  const { data } = await client.command(signer, { operation: 'inbox.get', kind })
  return (data as Answered).items!
}

test('a post to a handle reaches its owner, and is served with the signed fields plus the id', async () => {
  const posted = (await client.post(bob, { room: 'desk', text: 'for you', to: '@alice' })).data.event as Addressed
  expect([posted.to, posted.to_id]).toEqual(['@alice', alice.id])
  const read = (await client.get(`/api/events/${posted.event_id}`)).data.event as Addressed
  expect([read.to, read.to_id]).toEqual(['@alice', alice.id])
  expect(JSON.parse(read.signed_payload!).command.to).toBe('@alice')
  expect((await client.get('/room/desk?view=posts')).text).toContain(`for <a href="/i/${alice.id}">@alice</a>`)
  expect(await inboxOf(alice, 'addressed')).toMatchObject([{ type: 'addressed', event: { event_id: posted.event_id } }])
  const plain = (await client.post(bob, { room: 'desk', text: 'by id', to: alice.id })).data.event as Addressed
  expect([plain.to, plain.to_id]).toEqual([alice.id, undefined])
  // In a private room too, whose shard knows no handles.
  await client.command(bob, { operation: 'room.create', room: 'walled', visibility: 'private', members: [alice.id] })
  const inside = (await client.post(bob, { room: 'walled', text: 'inside', to: '@alice' })).data.event as Addressed
  expect(inside).toMatchObject({ to: '@alice', to_id: alice.id })
  expect((await inboxOf(alice, 'addressed')).map(({ event }) => event.text).sort()).toEqual([
    'by id',
    'for you',
    'inside',
  ])
  expect(await client.post(bob, { text: 'x', to: '@nobody' })).toMatchObject({
    status: 400,
    code: 'not_found',
    field: 'to',
  })
  expect(await client.post(bob, { text: 'x', to: 'alice' })).toMatchObject({ code: 'invalid_field', field: 'to' })
})

test('a repeated command, a restart and a replay leave the addressee unchanged, and the export verifies', async () => {
  const signed = client.sign(bob, { operation: 'post', room: 'desk', text: 'once more', to: '@alice' })
  const [first, again] = [await client.send(signed.body), await client.send(signed.body)]
  expect(again.data).toMatchObject({ event: { to_id: alice.id }, receipt: { duplicate: true } })
  const before = await inboxOf(alice, 'addressed')
  const lines = (await client.get('/v1/export')).text.trimEnd().split('\n')
  const many = new CachingVerifier(await logKeyOf(client))
  const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(await many.verify(parsed)).toMatchObject({ failures: 0, isSignedByLog: true })
  const at = parsed.findIndex(({ event_id }) => event_id === first.data.event!.event_id)
  for (const changed of [{ to: '@bob' }, { to_id: undefined }, { to_id: 'x' }])
    expect((await many.verify(parsed.with(at, { ...parsed[at], ...changed }))).failures).toBe(1)
  const plain = parsed.findIndex(({ to }) => to === alice.id)
  expect((await many.verify(parsed.with(plain, { ...parsed[plain], to_id: bob.id }))).failures).toBe(1)

  client.close()
  await board.kill()
  board = await startBoard({ directory, env })
  client = await Client.of(board)
  expect(await inboxOf(alice, 'addressed')).toEqual(before)
})

test('reads accept a handle wherever they accept an id, by command and by GET, and say which id it is', async () => {
  const same = async (fields: Fields, name: string, signer = operator) => {
    const given = name.startsWith('data.') ? (JSON.parse(String(fields.data)) as Record<string, string>) : fields
    const by = async (who: string) => {
      const key = name.replace('data.', '')
      const asked = name.startsWith('data.')
        ? { ...fields, data: JSON.stringify({ ...given, [key]: who }) }
        : { ...fields, [name]: who }
      const answer = await client.command(signer, asked)
      expect([asked, answer.status, answer.text]).toEqual([asked, 200, expect.any(String)])
      const { resolved, ...data } = answer.data as Answered & Record<string, unknown>
      return { resolved, data: JSON.stringify(data).replace(/"next_cursor":"[^"]*"/, '') }
    }
    const [named, plain] = [await by('@alice'), await by(alice.id)]
    expect([named.resolved, plain.resolved]).toEqual([{ '@alice': alice.id }, undefined])
    expect(named.data).toBe(plain.data)
  }
  await same({ operation: 'events.list' }, 'target')
  await same({ operation: 'events.list', query: 'alice' }, 'target')
  await same({ operation: 'identity.get' }, 'target')
  await same({ operation: 'identity.events' }, 'target')
  await same({ operation: 'work.list' }, 'target')
  await same({ operation: 'work.list', data: '{"schema":1}' }, 'data.eligible_for')
  await same({ operation: 'credit.balance' }, 'target')
  await same({ operation: 'credit.history' }, 'target')
  for (const [path, field] of [
    ['/api/events?author=', 'author'],
    ['/api/works?target=', 'target'],
    ['/api/works?eligible_for=', 'eligible_for'],
    ['/api/identities/', 'target'],
  ] as const) {
    for (const who of ['@alice', '%40alice'])
      expect([path, await client.get(path + who)]).toMatchObject([
        path,
        { status: 200, data: { resolved: { '@alice': alice.id } } },
      ])
    const unknown = { status: 400, code: 'not_found', field }
    expect([path, await client.get(`${path}@nobody`)]).toMatchObject([path, unknown])
  }
})

test('an identity can be read by GET with its id, handle or key', async () => {
  for (const who of [alice.id, 'alice', '@alice', alice.publicKey]) {
    const { status, data } = await client.get(`/api/identities/${who}`)
    expect([who, status, data.identity]).toEqual([who, 200, expect.objectContaining({ id: alice.id, handle: 'alice' })])
  }
  expect(await client.get(`/api/identities/${'0'.repeat(64)}`)).toMatchObject({ status: 400, code: 'not_found' })
  expect(await client.get('/api/identities/No%20One')).toMatchObject({ code: 'invalid_field', field: 'target' })
  expect((await client.get('/api/identities')).data.identities!.length).toBeGreaterThan(1)
  const { paths } = JSON.parse((await client.get('/openapi.json')).text) as { paths: Record<string, unknown> }
  expect(paths).toHaveProperty('/api/identities/{target}')
})

test('credits, roles, delegations, suspensions, members and reviewers accept only ids, and the refusal says why', async () => {
  const room = 'desk'
  const commands: [Fields, string][] = [
    [{ operation: 'credit.transfer', target: '@alice', amount: 1 }, 'target'],
    [{ operation: 'credit.grant', target: '@alice', amount: 1 }, 'target'],
    [{ operation: 'room.member.add', room, target: '@alice' }, 'target'],
    [{ operation: 'room.member.remove', room, target: '@alice' }, 'target'],
    [{ operation: 'room.moderator.add', room, target: 'alice' }, 'target'],
    [{ operation: 'room.moderator.remove', room, target: '@alice' }, 'target'],
    [{ operation: 'room.owner.transfer', room, target: '@alice' }, 'target'],
    [{ operation: 'room.invite.create', room, target: '@alice' }, 'target'],
    [{ operation: 'identity.suspend', target: '@alice', reason: 'x' }, 'target'],
    [{ operation: 'identity.unsuspend', target: '@alice' }, 'target'],
    [{ operation: 'delegation.revoke', target: '@alice' }, 'target'],
    [
      {
        operation: 'delegation.create',
        target: '@alice',
        ttl: 60,
        proof: 'A'.repeat(86),
        data: '{"schema":1,"scopes":["board:read"]}',
      },
      'target',
    ],
    [{ operation: 'room.create', room: 'den', visibility: 'private', members: [bob.id, '@alice'] }, 'members'],
    [{ operation: 'conversation.open', members: ['@alice'] }, 'members'],
    [
      { operation: 'work.create', amount: 1, text: 'x', data: '{"schema":1,"title":"A","reviewer":"@alice"}' },
      'data.reviewer',
    ],
  ]
  for (const [fields, field] of commands) {
    const { status, code, text, ...answer } = await client.command(operator, fields)
    expect([fields, status, code, answer.field]).toEqual([fields, 400, 'invalid_field', field])
    expect(text).toContain('is a handle, and a signature over a name proves nothing: identity.get gives its id and key')
  }
})

test('the command line looks up the owner of a handle and signs the id', async () => {
  const terminal = capturedTerminal()
  const key = `${directory}/bob.json`
  writeFileSync(
    key,
    JSON.stringify({
      type: 'broadside-key',
      public_key: bob.publicKey,
      id: bob.id,
      seed: seedOf(bob).toString('base64url'),
    }),
    { mode: 0o600 },
  )
  const post = ['post', 'desk', 'by hand', '--url', board.address, '--key', key, '--json', '--to']
  expect(await main([...post, '@alice'], terminal)).toBe(0)
  const { event } = JSON.parse(terminal.said.out) as { event: Addressed }
  expect([event.to, event.to_id]).toEqual([alice.id, undefined])
  expect(await main([...post, '@nobody'], terminal)).toBe(1)
  expect(terminal.said.err).toContain('no identity on this board has the handle @nobody')
  expect(await main([...post, 'no one'], terminal)).toBe(2)
})
