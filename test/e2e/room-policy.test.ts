/** What a room's policy means for those who write there; every key, every refusal. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Signer } from '../../src/cli/sign.ts'
import { provenBits, solveProof } from '../../src/format/signing.ts'
import { dataOf, type Json, run as runOn, summaryOf } from '../support/answers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, now, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [owner, mod, member, guest, stranger, operator] = [
  'room owner',
  'room moderator',
  'room member',
  'room guest',
  'room stranger',
  'board operator',
].map(person) as [Signer, Signer, Signer, Signer, Signer, Signer]

let client: Client

/** A proof for another command. One in 2^bits of them happens to be valid for this one too, and is skipped. */
function proofOfAnother(sha256: string, bits: number): string {
  for (let number = 0; ; number++) {
    const other = createHash('sha256').update(`another command ${number}`).digest('hex')
    const proof = solveProof(other, bits)!
    if (provenBits(proof, sha256) < bits) return proof
  }
}

beforeAll(async () => {
  client = await Client.of(await startBoard({ directory: boardDirectory(), env: { OPERATORS: operator.id } }))
})
afterAll(() => client.close())

const run = (who: Signer, fields: Fields) => runOn(client, who, fields)
const make = (room: string, fields: object = {}) => run(owner, { operation: 'room.create', room, ...fields })
const setPolicy = (room: string, policy: object, who = owner) =>
  client.command(who, { operation: 'room.policy.set', room, data: JSON.stringify(policy) })
const change = (operation: string, room: string, target: Signer) =>
  client.command(owner, { operation, room, target: target.id })
const roomOf = async (who: Signer, room: string) => (await run(who, { operation: 'room.get', room })).room as Json

describe('policy', () => {
  const defaults = {
    write: 'open',
    reply: 'anyone',
    rules: '',
    promotion: 'allow',
    front_page: true,
    top_level_per_day: 0,
    posts_per_minute: 0,
    closed: false,
    closes_at: 0,
    max_events: 0,
    proof_bits: 0,
    ttl_max: 0,
    archive: true,
    imports: true,
  }

  test('a private room is on no front page and in no archive', async () => {
    await make('inner', { visibility: 'private' })
    const unseen = { ...defaults, front_page: false, archive: false }
    expect((await roomOf(owner, 'inner')).policy).toEqual(unseen)
    for (const key of ['front_page', 'archive'])
      expect(summaryOf(await setPolicy('inner', { [key]: true }))).toBe(`400 invalid_field data.${key}`)
    expect(dataOf(await setPolicy('inner', { rules: 'r', archive: false })).policy).toEqual({ ...unseen, rules: 'r' })
  })

  test('an omitted key keeps its value; unknown keys, no keys and wrong values are refused', async () => {
    await make('law')
    expect(await run(stranger, { operation: 'room.policy.get', room: 'law' })).toEqual({
      room: 'law',
      policy: defaults,
    })
    const set = dataOf(await setPolicy('law', { write: 'members', rules: 'Be kind.' }))
    expect(set.policy).toEqual({ ...defaults, write: 'members', rules: 'Be kind.' })
    const next = dataOf(await setPolicy('law', { top_level_per_day: 7 }))
    expect(next.policy).toEqual({ ...defaults, write: 'members', rules: 'Be kind.', top_level_per_day: 7 })
    expect((await roomOf(stranger, 'law')).policy).toEqual(next.policy)
    expect(summaryOf(await setPolicy('law', {}))).toBe('400 missing_field data')
    for (const wrong of [
      { schema: 1, write: 'open' },
      { write: 'nobody' },
      { reply: 'open' },
      { promotion: 'ban' },
      { top_level_per_day: 1001 },
      { proof_bits: 29 },
      { closed: 'yes' },
      { front_page: null },
      { rules: 'a\0b' },
    ])
      expect(summaryOf(await setPolicy('law', wrong)), JSON.stringify(wrong)).toBe(
        `400 invalid_field data.${Object.keys(wrong)[0]}`,
      )
    expect(summaryOf(await setPolicy('law', { rules: 'ä'.repeat(1025) }))).toBe('400 too_large data.rules')
    expect(summaryOf(await setPolicy('law', { rules: 'ä'.repeat(1024) }))).toBe('200 ok')
    expect(summaryOf(await client.command(owner, { operation: 'room.policy.set', room: 'law' }))).toBe(
      '400 missing_field data',
    )
  })

  test('a moderator may take the room off the front page and change nothing else', async () => {
    await make('mild')
    await change('room.moderator.add', 'mild', mod)
    expect(summaryOf(await setPolicy('mild', { front_page: false }, mod))).toBe('200 ok')
    for (const more of [{ front_page: true }, { front_page: false, closed: true }, { write: 'owner' }])
      expect(summaryOf(await setPolicy('mild', more, mod))).toMatch(/^403 forbidden data\./)
    expect(summaryOf(await setPolicy('mild', { front_page: false }, stranger))).toBe('403 forbidden room')
    expect(summaryOf(await setPolicy('mild', { front_page: false }, operator))).toBe('200 ok')
    expect(summaryOf(await setPolicy('mild', { closed: true }, operator))).toBe('403 forbidden data.closed')
  })

  test('write controls who begins threads, reply who replies', async () => {
    await make('stage', { members: [member.id] })
    await change('room.moderator.add', 'stage', mod)
    const post = (who: Signer, fields: object = {}) => client.post(who, { room: 'stage', text: 'x', ...fields })
    const root = (await post(stranger)).data.event_id!
    const outcome = async (fields: object) => {
      const found: string[] = []
      for (const who of [owner, mod, member, stranger]) found.push(summaryOf(await post(who, fields)))
      return found
    }
    const noThread = '403 room_write_restricted room'
    const noReply = '403 room_reply_restricted reply_to'
    await setPolicy('stage', { write: 'members' })
    expect(await outcome({})).toEqual(['200 ok', '200 ok', '200 ok', noThread])
    expect(await outcome({ reply_to: root })).toEqual(Array(4).fill('200 ok'))
    await setPolicy('stage', { write: 'owner', reply: 'members' })
    expect(await outcome({})).toEqual(['200 ok', noThread, noThread, noThread])
    expect(await outcome({ reply_to: root })).toEqual(['200 ok', '200 ok', '200 ok', noReply])
    await setPolicy('stage', { write: 'open', reply: 'none' })
    expect(await outcome({})).toEqual(Array(4).fill('200 ok'))
    expect(await outcome({ reply_to: root })).toEqual(Array(4).fill(noReply))
    await run(stranger, { operation: 'room.join', room: 'stage' })
    await setPolicy('stage', { write: 'members' })
    expect(summaryOf(await post(stranger))).toBe('200 ok')
  })

  test('a closed room can be read but not written, until it is reopened', async () => {
    await make('shop')
    const post = (who: Signer) => client.post(who, { room: 'shop', text: 'x' })
    await post(stranger)
    await setPolicy('shop', { closed: true })
    for (const who of [owner, stranger]) expect(summaryOf(await post(who))).toBe('400 wrong_state room')
    expect(await roomOf(stranger, 'shop')).toMatchObject({ closed: true, count: 1 })
    expect(dataOf(await client.get('/api/events?room=shop')).events).toHaveLength(1)
    await setPolicy('shop', { closed: false, closes_at: now() - 1 })
    expect(summaryOf(await post(owner))).toBe('400 wrong_state room')
    expect(((dataOf(await client.get('/api/rooms?query=shop')).rooms as Json[])[0] as Json).closed).toBe(true)
    await setPolicy('shop', { closes_at: now() + 3600 })
    expect(summaryOf(await post(owner))).toBe('200 ok')
    await setPolicy('shop', { closes_at: now() + 2 })
    await vi.waitFor(async () => expect(summaryOf(await post(stranger))).toBe('400 wrong_state room'), patience)
    const { room } = dataOf(await client.get('/api/room?room=shop'))
    expect((room as Json).closed).toBe(true)
    await setPolicy('shop', { closes_at: 0 })
    expect(summaryOf(await post(stranger))).toBe('200 ok')
  })

  test('a full room accepts no more posts', async () => {
    await make('box')
    await setPolicy('box', { max_events: 2 })
    const post = (who: Signer) => client.post(who, { room: 'box', text: 'x' })
    expect([summaryOf(await post(stranger)), summaryOf(await post(owner)), summaryOf(await post(owner))]).toEqual([
      '200 ok',
      '200 ok',
      '400 wrong_state room',
    ])
  })

  test('limits per identity say how long to wait, and do not apply to those who run the room', async () => {
    await make('calm')
    await change('room.moderator.add', 'calm', mod)
    const post = (who: Signer, fields: object = {}) => client.post(who, { room: 'calm', text: 'x', ...fields })
    await setPolicy('calm', { top_level_per_day: 2 })
    const root = (await post(stranger)).data.event_id!
    await post(stranger)
    const before = now()
    const third = await post(stranger)
    expect(summaryOf(third)).toBe('429 quota_exhausted')
    const wait = (JSON.parse(third.text) as { error: { retry_after: number } }).error.retry_after
    expect(third.headers['retry-after']).toBe(String(wait))
    // Until midnight, counted from a second between the two that are known here.
    const midnight = Math.ceil((before + 1) / 86_400) * 86_400
    expect(before + wait).toBeLessThanOrEqual(midnight + 1)
    expect(now() + wait).toBeGreaterThanOrEqual(midnight - 1)
    expect(summaryOf(await post(stranger, { reply_to: root }))).toBe('200 ok')
    for (const who of [owner, owner, owner, mod, mod, mod]) expect(summaryOf(await post(who))).toBe('200 ok')

    await setPolicy('calm', { top_level_per_day: 0, posts_per_minute: 1 })
    expect(summaryOf(await post(guest, { reply_to: root }))).toBe('200 ok')
    const soon = await post(guest)
    expect(summaryOf(soon)).toBe('429 rate_limited')
    expect(Number(soon.headers['retry-after'])).toBeGreaterThan(0)
    expect(Number(soon.headers['retry-after'])).toBeLessThanOrEqual(60)
    expect(summaryOf(await post(mod))).toBe('200 ok')
    expect(summaryOf(await client.post(guest, { room: 'lobby', text: 'elsewhere' }))).toBe('200 ok')
  })

  test('a room may require a short lifetime, or a proof of work', async () => {
    await make('brief')
    await setPolicy('brief', { ttl_max: 60 })
    for (const fields of [{}, { ttl: 61 }])
      expect(summaryOf(await client.post(owner, { room: 'brief', text: 'x', ...fields }))).toBe('400 invalid_field ttl')
    expect(summaryOf(await client.post(owner, { room: 'brief', text: 'x', ttl: 60 }))).toBe('200 ok')
    await setPolicy('brief', { ttl_max: 0, proof_bits: 8 })
    const signed = client.sign(stranger, { operation: 'post', room: 'brief', text: 'worked for' })
    const withProof = (proof: string) => client.send(JSON.stringify({ ...JSON.parse(signed.body), proof }))
    const bare = await client.send(signed.body)
    expect(summaryOf(bare)).toBe('400 proof_required proof')
    expect(bare.text).toContain('8 bits')
    for (const short of [solveProof(signed.sha256, 4)!, proofOfAnother(signed.sha256, 8), 'nonsense'])
      expect(summaryOf(await withProof(short)), short).toBe('400 proof_required proof')
    expect(summaryOf(await withProof(solveProof(signed.sha256, 8)!))).toBe('200 ok')
    await setPolicy('brief', { write: 'members' })
    expect(summaryOf(await client.post(stranger, { room: 'brief', text: 'x' }))).toBe('403 room_write_restricted room')
  })
})

describe('in a room that is not archived', () => {
  test('posts stay out of the export', async () => {
    await make('vapour')
    await setPolicy('vapour', { archive: false })
    await client.post(stranger, { room: 'vapour', text: 'not for keeps' })
    const lines = (await client.get('/v1/export')).text
    expect(lines).not.toContain('not for keeps')
    expect(dataOf(await client.get('/api/events?room=vapour')).events).toHaveLength(1)
  })
})
