/**
 * Works among hostile people, on a real board whose timeouts are in seconds.
 *
 * A requester who runs the room of their work, alone or with a moderator and the operator on their side, tries every way to get a result
 * and keep their credits: before it is posted, before it is submitted, and after; then they stay silent. A worker whose claim has expired
 * tries every operation.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { resultSha256 } from '../../actors/works/letters.ts'
import { sha256 } from '../support/blobs.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person } from '../support/client.ts'
import { World } from '../support/operation-setups.ts'
import { patience } from '../support/patience.ts'
import { reason } from '../support/work-stages.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const operator = person('the operator')
const limits = { work_review_window: 2, work_claim_default: 1 }
const advert = 'Buy now! https://a.example https://b.example https://c.example'
let client: Client
let world: World

beforeAll(async () => {
  const env = { OPERATORS: operator.id, SHARDS: '2', LIMITS: JSON.stringify(limits) }
  client = await Client.of(await startBoard({ directory: boardDirectory(), env }))
  world = new World(client, operator)
})
afterAll(() => client.close())

type Signer = ReturnType<typeof person>
/** What there is to attack: `result` and `file` are '' before they are posted. */
type Place = {
  readonly room: string
  readonly requester: Signer
  readonly friend: Signer
  readonly worker: Signer
  readonly work: string
  readonly result: string
  readonly file: string
}
type Attack = (place: Place) => readonly (readonly [Signer, Fields])[]

const policy =
  (set: object): Attack =>
  ({ room, requester }) => [[requester, { operation: 'room.policy.set', room, data: JSON.stringify(set) }]]
const on =
  (operation: string, what: 'work' | 'result' | 'file', by: (place: Place) => Signer, more: object = {}): Attack =>
  (place) =>
    place[what] === ''
      ? []
      : [[by(place), { operation, [what === 'file' ? 'target' : 'event_id']: place[what], reason, ...more } as Fields]]
const requester = (place: Place): Signer => place.requester
const friend = (place: Place): Signer => place.friend
const theOperator = (): Signer => operator

const attacks: Readonly<Record<string, Attack>> = {
  'closes the room': policy({ closed: true }),
  'locks the thread': ({ work, requester: by }) => [
    [by, { operation: 'thread.lock', event_id: work, data: '{"schema":1,"locked":true}' }],
  ],
  'lets nobody write or reply': policy({ write: 'owner', reply: 'none' }),
  'asks for work, time and count': policy({ proof_bits: 28, ttl_max: 60, max_events: 1, posts_per_minute: 1 }),
  'has the room end': policy({ closes_at: 1 }),
  'has adverts hidden': policy({ promotion: 'moderate' }),
  'puts the worker out': ({ room, requester: owner, worker }) => [
    [owner, { operation: 'room.member.remove', room, target: worker.id }],
  ],
  'hides the request': on('room.hide', 'work', requester),
  'redacts the request': on('event.redact', 'work', requester),
  'has a friend redact the request': on('event.redact', 'work', friend),
  'has the operator redact the request': on('event.redact', 'work', theOperator),
  'posts another text over the request': ({ room, work, requester: by }) => [
    [by, { operation: 'post', room, text: 'other', data: JSON.stringify({ schema: 1, supersedes: work }) }],
  ],
  'edits, raises and cancels it': ({ work, requester: by }) => [
    [by, { operation: 'work.edit', event_id: work, text: 'something else entirely' }],
    [by, { operation: 'work.raise', event_id: work, amount: 1 }],
    [by, { operation: 'work.cancel', event_id: work, reason }],
  ],
  'has it cancelled by all who moderate': ({ work, friend: by }) =>
    [by, operator].map((each) => [each, { operation: 'work.cancel', event_id: work, reason }]),
  'hides the result': on('room.hide', 'result', requester),
  'redacts the result': on('event.redact', 'result', requester),
  'has a friend hide the result': on('room.hide', 'result', friend),
  'has a friend redact the result': on('event.redact', 'result', friend),
  'has the operator redact the result': on('event.redact', 'result', theOperator),
  'deletes the file of the result': on('blob.delete', 'file', requester),
  'has a friend delete the file of the result': on('blob.delete', 'file', friend),
  'gives the room away': ({ room, requester: by, friend: to }) => [
    [by, { operation: 'room.owner.transfer', room, target: to.id }],
  ],
  'reopens, rules and concedes it': ({ work, requester: by, friend: other }) => [
    [by, { operation: 'work.reopen', event_id: work }],
    [by, { operation: 'work.rule', event_id: work, reason, data: '{"schema":1,"percent":0}' }],
    [other, { operation: 'work.rule', event_id: work, reason, data: '{"schema":1,"percent":0}' }],
    [by, { operation: 'work.concede', event_id: work, amount: 1 }],
    [by, { operation: 'work.release', event_id: work, amount: 1 }],
  ],
}

/** A work that is attacked during its life, up to the state that silence leads to. */
async function attacked(visibility: 'public' | 'private', name: string, attack: Attack): Promise<void> {
  const [owner, other, worker] = [await world.personWithCredits(), world.someone(), world.someone()]
  const members = visibility === 'private' ? { visibility, members: [other.id, worker.id] } : {}
  const { room } = await world.room(members, owner)
  await world.run(owner, { operation: 'room.moderator.add', room, target: other.id })
  const ask = { operation: 'work.create', room, text: 'Do it.', amount: 100, data: '{"schema":1,"title":"It"}' }
  const work = (await world.run(owner, ask)).work!.id as string
  await world.run(worker, { operation: 'work.claim', event_id: work, ttl: 7_200 })
  const file = await world.blob(worker, { room })
  let place: Place = { room, requester: owner, friend: other, worker, work, result: '', file: '' }
  const strike = async (): Promise<void> => {
    for (const [by, fields] of attack(place)) await client.command(by, fields)
  }
  await strike()
  const said = { room, text: advert, kind: 'result', reply_to: work, attachments: [file] }
  place = { ...place, file, result: await world.post(worker, said) }
  await strike()
  const submit = { operation: 'work.submit', event_id: work, amount: 1, target: place.result }
  const submitted = (await world.run(worker, submit)).work!
  expect(submitted.result_sha256).toBe(resultSha256(advert, [sha256(Buffer.from('SGVsbG8K', 'base64'))]))
  await strike()
  const read = async () => (await world.run(worker, { operation: 'work.get', event_id: work })).work!
  await vi.waitUntil(async () => (await read()).state !== 'submitted', { ...patience, interval: 200 })
  const end = await read()
  expect({ name, ...end }).toMatchObject({
    name,
    state: 'accepted',
    fence: 1,
    result_id: place.result,
    result_sha256: submitted.result_sha256,
    result_changed_since_submit: false,
    reward: { amount: 100, state: 'paid', reason: 'reviewer_silent' },
  })
}

test.each(['public', 'private'] as const)(
  'a requester in a %s room of their own pays, whatever they do',
  async (visibility) => {
    await Promise.all(Object.entries(attacks).map(([name, attack]) => attacked(visibility, name, attack)))
  },
)

test('neither a request nor a result may be an expiring post', async () => {
  const [owner, worker] = [await world.personWithCredits(), world.someone()]
  const request = await world.post(owner, { kind: 'request', ttl: 3_600 })
  const ask = { operation: 'work.create', amount: 10, data: '{"schema":1,"title":"It"}' }
  expect((await client.command(owner, { ...ask, event_id: request })).code).toBe('wrong_state')
  const work = (await world.run(owner, { ...ask, text: 'Do it.' })).work!.id as string
  await world.run(worker, { operation: 'work.claim', event_id: work, ttl: 7_200 })
  const target = await world.post(worker, { reply_to: work, kind: 'result', ttl: 3_600 })
  expect((await client.command(worker, { operation: 'work.submit', event_id: work, amount: 1, target })).code).toBe(
    'wrong_state',
  )
})

test.each([
  ['somebody else has claimed it since', true],
  ['nobody has claimed it since', false],
])('a worker with an expired claim changes nothing with any operation: %s', async (_, isTaken) => {
  const [owner, worker, next] = [await world.personWithCredits(), await world.personWithCredits(), world.someone()]
  const { room } = await world.room({}, owner)
  const ask = { operation: 'work.create', room, text: 'Do it.', amount: 10, data: '{"schema":1,"title":"It"}' }
  const work = (await world.run(owner, ask)).work!.id as string
  await world.run(worker, { operation: 'work.claim', event_id: work })
  const late = await world.post(worker, { room, reply_to: work, kind: 'result' })
  const read = async () => (await world.run(next, { operation: 'work.get', event_id: work })).work!
  await vi.waitUntil(async () => (await read()).stored_state === 'open', patience)
  if (isTaken) {
    await world.run(next, { operation: 'work.claim', event_id: work, ttl: 7_200 })
    const target = await world.post(next, { room, reply_to: work, kind: 'result', text: 'mine' })
    await world.run(next, { operation: 'work.submit', event_id: work, amount: 2, target })
  }
  // The review ends while all this is tried: the history separates timeouts from what the late worker does.
  const steps = async (): Promise<string[]> => {
    const { transitions } = await world.run(next, { operation: 'work.history', event_id: work })
    return (transitions as unknown as { transition: string }[]).map(({ transition }) => transition)
  }
  const before = (await steps()).filter((each) => each !== 'silence')
  const record = await read()
  const more: Readonly<Record<string, object>> = {
    'work.submit': { target: late },
    'work.edit': { text: 'other' },
    'work.rule': { data: '{"schema":1,"percent":100}' },
    'work.accept': { data: '{"schema":1,"accept_changed":true}' },
    ...(isTaken ? { 'work.claim': { target: late } } : {}),
  }
  const writes = operations.filter(({ name, kind }) => kind === 'write' && /^work\.(?!create$)/.test(name))
  expect(writes.length).toBeGreaterThan(13)
  for (const { name, required, optional } of writes) {
    // If nobody holds it, a worker whose claim expired may claim it again: that is a new grant, not a stale one.
    if (name === 'work.claim' && !isTaken) continue
    for (const fence of [1, 2, 3]) {
      const takes = (field: 'amount' | 'reason'): boolean => [...required, ...optional].includes(field)
      const fields = { operation: name, event_id: work, ...(takes('amount') ? { amount: fence } : {}) }
      const answer = await client.command(worker, {
        ...fields,
        ...(takes('reason') ? { reason } : {}),
        ...more[name],
      } as Fields)
      expect([name, fence, answer.status]).not.toEqual([name, fence, 200])
      if (fence === 1 && isTaken && takes('amount') && !['work.raise'].includes(name))
        expect([name, answer.code]).toEqual([name, 'stale_fence'])
    }
  }
  // What a worker may do with their own post says nothing about the work.
  await client.command(worker, {
    operation: 'post',
    room,
    text: 'v2',
    data: JSON.stringify({ schema: 1, supersedes: late }),
  })
  await client.command(worker, { operation: 'event.redact', event_id: late, reason })
  expect((await steps()).filter((each) => each !== 'silence')).toEqual(before)
  const { updated_at, stored_state, state, reward, review_due, requester_record, worker_record, ...same } = record
  expect(await read()).toMatchObject(same)
})
