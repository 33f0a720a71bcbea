import { createHash, randomBytes } from 'node:crypto'
import { beforeAll, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { opensslSigner } from '../../src/cli/sign.ts'
import { verifyExport } from '../../src/cli/verify-export.ts'
import { refusalsOf } from '../../src/docs/capabilities.ts'
import { readOnThisThread } from '../../src/export-check/readers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { createDelegation, delegationBody, requestDelegation } from '../support/delegations.ts'
import { StreamReader } from '../support/stream-reader.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const directory = boardDirectory()
const operator = person('operator of delegations')
let board: Awaited<ReturnType<typeof startBoard>>
let client: Client

const start = async (): Promise<void> => {
  board = await startBoard({ directory, env: { OPERATORS: operator.id, SHARDS: '2' } })
  client = await Client.of(board)
}
beforeAll(start)

/** A person who is new to the board. */
const fresh = () => opensslSigner(randomBytes(32))
const list = async (owner: ReturnType<typeof fresh>) =>
  ((await client.command(owner, { operation: 'delegation.list' })).data as { delegations?: Delegation[] }).delegations!
type Delegation = { id: string; target: string; published: boolean; ended_by?: string; ended_at?: number }
type WithDelegation = { delegation?: { id: string; signed_payload: string; signature: string }; via: string }

async function leaves(): Promise<string[]> {
  const { data } = await client.get('/api/log/checkpoint')
  const size = data.tree_size!
  const entries: string[] = []
  for (let start = 0; start < size; start += 256) {
    const got = await client.get(`/api/log/leaves?start=${start}&end=${Math.min(size, start + 256)}`)
    entries.push(...(got.data as { entries?: string[] }).entries!)
  }
  return entries.map((entry) => Buffer.from(entry, 'base64').toString())
}

test('every operation refuses a key without its scope, and one whose delegation ended, and lists that refusal', async () => {
  const [owner, reader, poster, ended] = [fresh(), fresh(), fresh(), fresh()]
  await createDelegation(client, owner, reader, { scopes: ['board:read'] })
  await createDelegation(client, owner, poster, { scopes: ['board:post'] })
  const target = await createDelegation(client, owner, ended, { scopes: ['board:read'] })
  expect(await client.command(owner, { operation: 'delegation.revoke', target })).toMatchObject({ status: 200 })
  for (const operation of operations) {
    const withoutScope = operation.scope === 'board:read' ? poster : reader
    for (const key of [withoutScope, ended]) {
      const { status, code } = await client.command(key, operation.example)
      expect([operation.name, status, code]).toEqual([operation.name, 403, 'forbidden'])
    }
    expect(refusalsOf(operation)).toContain('forbidden')
  }
})

test('a delegate posts in the name of its identity, and every read shows the delegation', async () => {
  const [owner, key] = [fresh(), fresh()]
  const id = await createDelegation(client, owner, key, { more: { label: 'my agent' } })
  expect(await list(owner)).toMatchObject([{ id, target: key.publicKey, published: false }])
  expect((await leaves()).join('')).not.toContain(id)
  const posted = await client.post(key, { text: 'by a delegate' })
  expect(posted).toMatchObject({
    status: 200,
    data: { event: { author: { id: owner.id, public_key: key.publicKey } } },
  })
  const { event_id } = posted.data.event!
  const read = (await client.get(`/api/events/${event_id}`)).data.event as unknown as WithDelegation
  const { signed_payload, signature } = read.delegation!
  expect(read.delegation!.id).toBe(id)
  expect(createHash('sha256').update(signed_payload).digest('hex').slice(0, 32)).toBe(id)
  expect(JSON.parse(signed_payload)).toMatchObject({ command: { public_key: owner.publicKey, target: key.publicKey } })
  expect(signature).toMatch(/^[\w-]{86}$/)
  // The identity itself is known by its own key.
  const { data } = await client.get(`/api/identities`)
  expect(
    (data.identities as unknown as { id: string; public_key: string }[]).find((each) => each.id === owner.id),
  ).toMatchObject({
    public_key: owner.publicKey,
  })
  const exported = (await client.get('/v1/export')).text
  expect(exported).toContain(`"delegation":{"id":"${id}"`)
  expect(await list(owner)).toMatchObject([{ id, published: true }])
  const kinds = (await leaves()).filter((entry) => entry.includes(id))
  expect(kinds).toHaveLength(1)
  expect(kinds[0]).toContain('kind delegate\n')
})

test('a delegation that acts only in private rooms stays private: neither it nor its end has a leaf', async () => {
  const [owner, key] = [fresh(), fresh()]
  const room = `private-${randomBytes(4).toString('hex')}`
  await client.command(owner, { operation: 'room.create', room, visibility: 'private' })
  // Grants to people who posted publicly before may still be in flight.
  const leavesOfDeeds = async () => (await leaves()).filter((entry) => !entry.includes('\nkind ledger\n'))
  const before = (await leavesOfDeeds()).length
  const id = await createDelegation(client, owner, key)
  const posted = await client.post(key, { room, text: 'unseen' })
  expect(posted).toMatchObject({ status: 200, data: { event: { author: { id: owner.id }, delegation: { id } } } })
  expect(await client.command(owner, { operation: 'delegation.revoke', target: id })).toMatchObject({ status: 200 })
  expect(await leavesOfDeeds()).toHaveLength(before)
  expect((await leaves()).join('')).not.toContain(id)
  expect((await client.get('/v1/export')).text).not.toContain(id)
  const thread = await client.command(owner, { operation: 'thread.get', event_id: posted.data.event!.event_id })
  expect(thread.data.events![0]).toMatchObject({ author: { public_key: key.publicKey }, delegation: { id } })
})

test('a delegate may do what its scopes allow, and never what is reserved for the identity’s own key', async () => {
  const [owner, key] = [fresh(), fresh()]
  await createDelegation(client, owner, key, { scopes: ['board:read'] })
  expect(await client.command(key, { operation: 'inbox.get' })).toMatchObject({ status: 200 })
  expect(await client.post(key, { text: 'no' })).toMatchObject({ status: 403, code: 'forbidden', field: 'operation' })
  for (const { name, scope, example } of operations) {
    if (scope !== undefined) continue
    const { proof, ...fields } = example as Record<string, string> & { operation: string }
    const signed = JSON.parse(client.sign(key, fields).body) as object
    const answer = await client.send(JSON.stringify({ ...signed, ...(proof === undefined ? {} : { proof }) }))
    expect(answer, name).toMatchObject({ status: 403, code: 'forbidden', field: 'operation' })
  }
  const alone = operations.filter(({ scope }) => scope === undefined).map(({ name }) => name)
  const expected = [
    'identity.rotate',
    'identity.suspend',
    'identity.unsuspend',
    'delegation.create',
    'delegation.list',
    'delegation.revoke',
    'reports.list',
    'report.resolve',
    'credit.transfer',
    'credit.grant',
    'limits.grant',
    'limits.revoke',
    'limits.list',
    'tools.import',
    'tools.relay',
  ]
  for (const name of alone) expect(expected, `${name} names no scope`).toContain(name)
})

test('a delegate may moderate others’ content only with board:moderate, and is never an operator', async () => {
  const [owner, plain, moderating, author] = [fresh(), fresh(), fresh(), fresh()]
  const room = `room-${randomBytes(4).toString('hex')}`
  await client.command(owner, { operation: 'room.create', room })
  await createDelegation(client, owner, plain)
  await createDelegation(client, owner, moderating, { scopes: ['board:post', 'board:moderate'] })
  const post = async (signer = author) => (await client.post(signer, { room, text: 'mine' })).data.event!.event_id
  const redact = (signer: ReturnType<typeof fresh>, event_id: string) =>
    client.command(signer, { operation: 'event.redact', event_id, reason: 'because' })
  const [others, own] = [await post(), await post(plain)]
  expect(await redact(plain, others)).toMatchObject({ status: 403, code: 'forbidden' })
  expect(await redact(plain, own)).toMatchObject({ status: 200 })
  expect(await redact(moderating, others)).toMatchObject({ status: 200 })
  const ofOperator = fresh()
  await createDelegation(client, operator, ofOperator, { scopes: ['board:post', 'board:moderate'] })
  expect(await redact(ofOperator, await post())).toMatchObject({ status: 403, code: 'forbidden' })
  expect(await redact(operator, await post())).toMatchObject({ status: 200 })
  // The room’s log shows what a delegate did, with the delegation used.
  type Entry = { actor: { id: string; public_key: string }; target: string; delegation?: { id: string } }
  const { data } = await client.get(`/api/modlog?room=${room}`)
  const { entries } = data as unknown as { entries: Entry[] }
  const done = entries.find(({ target }) => target === others)
  expect(done).toMatchObject({ actor: { id: owner.id, public_key: moderating.publicKey } })
  const [byDelegate] = (await list(owner)).filter(({ target }) => target === moderating.publicKey)
  expect(done!.delegation).toMatchObject({ id: byDelegate!.id, signed_payload: expect.any(String) })
  expect(entries.filter(({ actor }) => actor.id === operator.id)).toMatchObject([{ target: expect.any(String) }])
  expect(entries.find(({ actor }) => actor.id === operator.id)).not.toHaveProperty('delegation')
})

test('a delegate’s key must be unused, must prove possession, and serves one identity', async () => {
  const [owner, other, key, used] = [fresh(), fresh(), fresh(), fresh()]
  await client.post(used, { text: 'I was here' })
  expect(await requestDelegation(client, owner, used)).toMatchObject({ status: 400, code: 'conflict', field: 'target' })
  expect(await requestDelegation(client, owner, key, { prover: other })).toMatchObject({
    code: 'bad_signature',
    field: 'proof',
  })
  expect(await requestDelegation(client, owner, owner)).toMatchObject({ code: 'conflict' })
  await createDelegation(client, owner, key)
  expect(await requestDelegation(client, other, key)).toMatchObject({ code: 'conflict' })
  expect(await requestDelegation(client, owner, key)).toMatchObject({ code: 'conflict' })
  expect(await requestDelegation(client, owner, fresh(), { ttl: 59 })).toMatchObject({
    code: 'invalid_field',
    field: 'ttl',
  })
  expect(await requestDelegation(client, owner, fresh(), { scopes: ['board:all'] })).toMatchObject({
    code: 'invalid_field',
  })
  expect(await requestDelegation(client, owner, fresh(), { scopes: [] })).toMatchObject({ code: 'invalid_field' })
})

test('repeating the same bytes returns the same delegation; nonces count as those of the identity', async () => {
  const [owner, key] = [fresh(), fresh()]
  const body = delegationBody(client, owner, key)
  const first = await client.send(body)
  expect(await client.send(body)).toMatchObject({
    status: 200,
    data: { receipt: { event_id: first.data.receipt!.event_id, duplicate: true } },
  })
  const nonce = randomBytes(16).toString('hex')
  await client.post(key, { text: 'one' }, { nonce })
  expect(await client.post(owner, { text: 'two' }, { nonce })).toMatchObject({ code: 'nonce_reused' })
  const once = await client.post(owner, { text: 'three', request_id: 'r1' })
  const again = await client.post(key, { text: 'three', request_id: 'r1' })
  expect(again.data.receipt).toMatchObject({ event_id: once.data.receipt!.event_id, duplicate: true })
})

test('a revoked delegation is refused permanently: writes, reads, waits and tails end immediately, retries are still answered', async () => {
  const [owner, key] = [fresh(), fresh()]
  const room = `private-${randomBytes(4).toString('hex')}`
  await client.command(owner, { operation: 'room.create', room, visibility: 'private' })
  const id = await createDelegation(client, owner, key)
  const kept = client.sign(key, { operation: 'post', text: 'kept' })
  await client.send(kept.body)
  const { data } = await client.command(key, { operation: 'room.read_token', room })
  const { tail } = data as { tail?: string }
  const reader = new StreamReader(board.address, tail!)
  await reader.until((text) => text.includes('live tail'))
  const wait = client.command(key, { operation: 'updates.get', data: '{"schema":1,"wait":55}' })
  // Once a read that was sent after it is answered, its wait has begun.
  await client.command(key, { operation: 'quota.get' })
  const revoked = await client.command(owner, { operation: 'delegation.revoke', target: id })
  expect(revoked).toMatchObject({ status: 200, data: { delegation: { id, ended_by: 'revoked' } } })
  const endedAt = Date.now()
  expect(await wait).toMatchObject({ status: 403, code: 'forbidden' })
  await reader.until(() => false)
  expect(reader.text).toContain('# your delegation has ended: closed')
  // Long before the wait would have timed out.
  expect(Date.now() - endedAt).toBeLessThan(45_000)
  expect(await client.post(key, { text: 'no more' })).toMatchObject({ status: 403, code: 'forbidden' })
  expect(await client.command(key, { operation: 'inbox.get' })).toMatchObject({ status: 403, code: 'forbidden' })
  expect(await client.get(tail!)).toMatchObject({ status: 403, code: 'private_room', field: 'token' })
  expect(await client.send(kept.body)).toMatchObject({ status: 200, data: { receipt: { duplicate: true } } })
  expect(await requestDelegation(client, owner, key)).toMatchObject({ code: 'conflict' })
  expect(await client.command(owner, { operation: 'delegation.revoke', target: id })).toMatchObject({
    code: 'wrong_state',
  })
  expect(await client.command(fresh(), { operation: 'delegation.revoke', target: id })).toMatchObject({
    code: 'not_found',
  })
  const [end] = (await leaves()).filter((entry) => entry.endsWith(`target ${id}\n`))
  expect(end).toContain('kind undelegate\n')
})

test('a key rotation and a suspension end all delegations; the log says so for those it knows', async () => {
  const [owner, seen, unseen, next] = [fresh(), fresh(), fresh(), fresh()]
  const [seenId, unseenId] = [
    await createDelegation(client, owner, seen),
    await createDelegation(client, owner, unseen),
  ]
  await client.post(seen, { text: 'seen' })
  const timestamp = Math.floor(Date.now() / 1000)
  const nonce = randomBytes(16).toString('hex')
  const { signingBytes } = await import('../../src/format/signing.ts')
  const fields = { operation: 'identity.rotate', target: next.publicKey }
  const proof = next
    .sign(signingBytes(client.serviceId, { ...fields, public_key: owner.publicKey, timestamp, nonce }))
    .toString('base64url')
  const signed = client.sign(owner, fields, { timestamp, nonce }).body
  const body = JSON.stringify({ ...(JSON.parse(signed) as object), proof })
  expect(await client.send(body)).toMatchObject({ status: 200 })
  expect(await client.send(body)).toMatchObject({ status: 200, data: { receipt: { duplicate: true } } })
  for (const key of [seen, unseen]) expect(await client.post(key, { text: 'x' })).toMatchObject({ code: 'forbidden' })
  expect(await list(next)).toMatchObject([
    { id: unseenId, ended_by: 'rotated' },
    { id: seenId, ended_by: 'rotated' },
  ])
  const ends = (await leaves()).filter((entry) => entry.includes('kind undelegate'))
  expect(ends.some((entry) => entry.endsWith(`target ${seenId}\n`))).toBe(true)
  expect(ends.some((entry) => entry.includes(unseenId))).toBe(false)
  const [third, bad] = [fresh(), fresh()]
  const badId = await createDelegation(client, bad, third)
  await client.post(third, { text: 'spam' })
  await client.command(operator, { operation: 'identity.suspend', target: bad.id, reason: 'spam' })
  expect(await client.command(third, { operation: 'inbox.get' })).toMatchObject({ code: 'forbidden' })
  expect((await leaves()).some((entry) => entry.endsWith(`target ${badId}\n`))).toBe(true)
})

/** What `broadside verify` says of an export, line by line. */
async function verified(lines: readonly string[]): Promise<string | undefined> {
  async function* read() {
    for (const [n, line] of lines.entries()) yield { number: n + 1, bytes: Buffer.from(line), isCut: false }
  }
  const report = await verifyExport({
    lines: read(),
    reader: readOnThisThread(),
    logKey: undefined,
    progress: () => {},
  })
  return report.first?.reason
}

test('work requested by a delegate verifies as its posts do, even if the delegation is ended at the same time', async () => {
  const [owner, key] = [fresh(), fresh()]
  await client.command(operator, { operation: 'credit.grant', target: owner.id, amount: 1_000 })
  const ask = { operation: 'work.create', room: 'lobby', amount: 10, data: '{"schema":1,"title":"A thing to do"}' }
  const id = await createDelegation(client, owner, key, { scopes: ['board:work'] })
  expect((await client.command(key, { ...ask, amount: 5_000, text: 'beyond means' })).code).toBe('insufficient_credits')
  expect((await leaves()).join('')).not.toContain(id)
  const made = await client.command(key, { ...ask, text: 'by a delegate' })
  const { work } = made.data as unknown as { work: { id: string; requester: { id: string; public_key: string } } }
  expect(work.requester).toMatchObject({ id: owner.id, public_key: owner.publicKey })
  expect((await client.command(key, { operation: 'work.edit', event_id: work.id, text: 'better said' })).status).toBe(
    200,
  )
  const read = (await client.get(`/api/events/${work.id}`)).data.event as unknown as WithDelegation
  expect(read.delegation!.id).toBe(id)
  for (let n = 0; n < 5; n++) {
    const one = fresh()
    const target = await createDelegation(client, owner, one, { scopes: ['board:work'] })
    const raced = client.command(one, { ...ask, text: `raced ${n}` })
    await Promise.all([raced, client.command(owner, { operation: 'delegation.revoke', target })])
  }
  expect(await verified((await client.get('/v1/export')).text.trimEnd().split('\n'))).toBeUndefined()
})

test('a person without the right to suspend or erase an identity cannot block its delegates, not even briefly', async () => {
  const [owner, key, stranger] = [fresh(), fresh(), fresh()]
  await createDelegation(client, owner, key)
  expect((await client.post(key, { text: 'before' })).status).toBe(200)
  const stops = Array.from({ length: 100 }, (_, n) =>
    client.command(stranger, {
      ...{ operation: n % 2 === 0 ? 'identity.suspend' : 'identity.erase', target: owner.id, reason: 'none' },
    }),
  )
  const posts = Array.from({ length: 100 }, (_, n) => client.post(key, { text: `meanwhile ${n}` }))
  expect(new Set((await Promise.all(stops)).map(({ code }) => code))).toEqual(new Set(['forbidden']))
  expect(new Set((await Promise.all(posts)).map(({ status }) => status))).toEqual(new Set([200]))
})

test('an export proves offline who delegated what and when, and that the delegation had not ended', async () => {
  const [owner, key, other] = [fresh(), fresh(), fresh()]
  const id = await createDelegation(client, owner, key)
  await client.post(key, { text: 'to be checked' })
  await createDelegation(client, owner, other)
  await client.post(other, { text: 'by another' })
  await client.command(owner, { operation: 'delegation.revoke', target: id })
  const lines = (await client.get('/v1/export')).text.trimEnd().split('\n')
  expect(await verified(lines)).toBeUndefined()
  const at = lines.findIndex((line) => line.includes('"to be checked"'))
  const changed = (change: (line: Record<string, unknown>) => unknown, index = at) => {
    const line = JSON.parse(lines[index]!) as Record<string, unknown>
    change(line)
    return verified(lines.with(index, JSON.stringify(line)))
  }
  type Line = Record<string, unknown> & { delegation: Record<string, string>; log: { index: number } }
  const others = JSON.parse(lines.find((line) => line.includes('"by another"'))!) as Line
  expect(await changed((line) => Reflect.deleteProperty(line, 'delegation'))).toContain(
    'author’s id is not the hash of the key',
  )
  expect(await changed((line) => Object.assign(line, { delegation: others.delegation }))).toContain('for another key')
  expect(await changed((line) => Object.assign((line as Line).delegation, { id: '0'.repeat(32) }))).toContain(
    'id is not the hash',
  )
  expect(
    await changed((line) => Object.assign((line as Line).delegation, { signature: others.delegation.signature })),
  ).toContain('signature over the delegation does not verify')
  expect(await changed((line) => Object.assign(line, { created_at: Number(line.created_at) + 7_200 }))).toContain(
    'had expired',
  )
  expect(await changed((line) => Object.assign(line, { created_at: Number(line.created_at) - 900 }))).toContain(
    'was made after',
  )
  const narrower = (line: Record<string, unknown>) => {
    const { delegation } = line as Line
    delegation.signed_payload = delegation.signed_payload!.replace('\\"board:post\\"', '\\"board:work\\"')
    delegation.id = createHash('sha256').update(delegation.signed_payload).digest('hex').slice(0, 32)
  }
  expect(await changed(narrower)).toContain('does not cover post')
  const end = lines.findIndex((line) => line.includes('"undelegation"') && line.includes(id))
  const early = (line: Record<string, unknown>) => {
    ;(line as Line).log.index = 0
  }
  expect(await changed(early, end)).toMatch(/had already ended|is not leaf 0/)
})

test('delegations are unchanged after a kill', async () => {
  const [owner, live, ended] = [fresh(), fresh(), fresh()]
  await createDelegation(client, owner, live)
  await client.command(owner, { operation: 'delegation.revoke', target: await createDelegation(client, owner, ended) })
  await client.post(live, { text: 'before' })
  await board.kill()
  await start()
  expect(await client.post(live, { text: 'after' })).toMatchObject({
    status: 200,
    data: { event: { author: { id: owner.id } } },
  })
  expect(await client.post(ended, { text: 'after' })).toMatchObject({ status: 403, code: 'forbidden' })
  expect(await requestDelegation(client, fresh(), ended)).toMatchObject({ code: 'conflict' })
})

test('a receive URL and an invite shown to a delegate end with the delegation; rotating the URL takes it over', async () => {
  const [owner, key, guest, late] = [fresh(), fresh(), fresh(), fresh()]
  const id = await createDelegation(client, owner, key, { scopes: ['board:read', 'board:post', 'board:moderate'] })
  const run = async (signer: typeof owner, fields: Parameters<Client['command']>[1]) => {
    const { status, text, data } = await client.command(signer, fields)
    expect(status, text).toBe(200)
    return data as { receiver?: { id: string; url: string }; invite?: { code: string }; receivers?: object[] }
  }
  const room = `private-${id.slice(0, 8)}`
  await run(owner, { operation: 'room.create', room, visibility: 'private' })
  const make = async (signer: typeof owner) =>
    (await run(signer, { operation: 'receiver.create', data: '{"schema":1}' })).receiver!
  const [made, own] = [await make(key), await make(owner)]
  const turned = (await run(key, { operation: 'receiver.rotate', target: own.id })).receiver!
  const shownTo = async () => (await run(owner, { operation: 'receiver.list' })).receivers
  expect(await shownTo()).toMatchObject([
    { id: made.id, delegation: id },
    { id: own.id, delegation: id },
  ])
  expect(JSON.stringify(await shownTo())).not.toContain('delegation_ended')
  const invite = async () => (await run(key, { operation: 'room.invite.create', room })).invite!.code
  const accept = (signer: typeof owner, code: string) =>
    client.command(signer, { operation: 'room.invite.accept', data: JSON.stringify({ schema: 1, code }) })
  const [used, unused] = [await invite(), await invite()]
  const deliver = async (path: string) => (await fetch(board.address + path, { method: 'POST', body: 'x' })).status
  expect([await deliver(made.url), await deliver(turned.url), (await accept(guest, used)).status]).toEqual([
    200, 200, 200,
  ])
  await run(owner, { operation: 'delegation.revoke', target: id })
  const closed = [await deliver(made.url), await deliver(turned.url)]
  expect(closed).toEqual([await deliver(own.url), await deliver(own.url)])
  expect(closed).toEqual([400, 400])
  expect(await accept(late, unused)).toMatchObject({ status: 403, code: 'forbidden' })
  // This holds after a restart too.
  await board.kill()
  await start()
  expect([await deliver(made.url), (await accept(late, unused)).status]).toEqual([400, 403])
  expect(await shownTo()).toMatchObject([
    { id: made.id, delegation: id, delegation_ended: true },
    { id: own.id, delegation: id, delegation_ended: true },
  ])
  const back = (await run(owner, { operation: 'receiver.rotate', target: made.id })).receiver!
  expect([await deliver(made.url), await deliver(back.url)]).toEqual([400, 200])
  expect((await shownTo())![0]).not.toHaveProperty('delegation')
  expect((await shownTo())![0]).not.toHaveProperty('delegation_ended')
})
