/** A decision is in the journal whole or not at all, wherever a crash cuts it, so that a retry has the same outcome. */

import { createHash } from 'node:crypto'
import { cpSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { deciders } from '../../actors/deciders.ts'
import type { AnyWriteName } from '../../actors/operations.ts'
import type { ShardAnswer } from '../../actors/records/answer.ts'
import { type BoardRecord, RecordType, registryName, toFrame } from '../../actors/records/record.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import { type FirstRoom, Shard } from '../../actors/shard.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import { systemClock } from '../../src/clock.ts'
import { retryReply } from '../../src/workers/retry-reply.ts'
import { FRAME_HEADER_BYTES, MORE } from '../../storage/frame.ts'
import { Journal } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { SEGMENT_HEADER_BYTES, segmentPath } from '../../storage/segment.ts'
import { openWhole } from '../../storage/whole-decisions.ts'
import { day, someone, terms } from '../support/market/market-harness.ts'
import { scratchDirectory } from '../support/scratch.ts'

const began = 1_790_000_000
const later = began + 8 * day
const [ada, ben, eve] = ['ada', 'ben', 'eve'].map(someone) as [Person, Person, Person]
type Person = ReturnType<typeof someone>
const keeper = someone('keeper').id
const firstRooms: readonly FirstRoom[] = [{ name: 'lobby' }, { name: 'reviews', keeper }]

type Said = { readonly args?: object; readonly text?: string; readonly nonce?: string; readonly operator?: boolean }

/** A signed command; a `nonce` of '' is the board's own. */
function letter(by: Person, op: AnyWriteName, to: string, said: Said & { at: number }): WriteLetter & { id: Buffer } {
  const { args = {}, text = '', nonce = `${op} ${to} ${by.id}`, operator = false, at } = said
  const command = { operation: op, room: to, text, timestamp: at, nonce, request_id: nonce }
  const signed = Buffer.from(JSON.stringify({ command }))
  const sha = createHash('sha256').update(signed).digest()
  return {
    op,
    to,
    id: sha.subarray(0, 16),
    sha,
    author: by.id,
    by: { key: by.key, sig: Buffer.alloc(64), signed },
    timestamp: at,
    nonce,
    requestId: nonce,
    via: 'command',
    limited: 0,
    rotated: false,
    suspended: false,
    operator,
    args: args as WriteLetter['args'],
  }
}

const posting = { page: 'main', kind: 'note', replyTo: '', supersedes: '', attachments: [], ttl: 0, proofBits: 0 }
const opening = { kind: 'dm', proofBits: 0, exhausted: 0 }
const textKey = (name: string) => someone(name).key.toString('base64url')

function delegation(by: Person, name: string): WriteLetter[] {
  const asked = {
    key: textKey(name),
    scopes: ['post'],
    expires: later + day,
    label: name,
    clientId: '',
    redirectHost: '',
  }
  const args = { ...asked, identity: someone(name).id, used: false, proof: '' }
  const made = letter(by, 'delegation.create', registryName, { at: began, args, nonce: name })
  const id = made.id.toString('hex')
  return [made, letter(by, 'delegation.publish', registryName, { at: began, args: { id }, nonce: '' })]
}

const work = 'ab'.repeat(16)
const generation = '1'.repeat(32)
const asked = {
  ...{ work, generation, amount: 100, fee: 1, lifetime: 7 * day, title: 'a work', capabilities: ['qa'], terms },
  ...{
    eligibility: 'open',
    simulated: false,
    room: 'lobby',
    reviewer: '',
    reviewer_key: '',
    seen: true,
    proof_bits: 0,
  },
  limits: { claims: 3, holds: 32, reward: 1_000_000 },
}

/** The state before: delegations that the log has, and a work whose deadline passes. */
const setting: readonly WriteLetter[] = [
  ...delegation(ada, 'a first program'),
  ...delegation(ada, 'a second program'),
  ...delegation(eve, 'a program of eve'),
  letter(ben, 'market.begin', marketName, { at: began, args: { generation, rewards: 0 }, nonce: '' }),
  letter(ben, 'credit.grant', marketName, { at: began, args: { target: ben.id, amount: 500 }, operator: true }),
  letter(ben, 'work.create', marketName, { at: began, args: asked }),
  letter(ben, 'work.open', marketName, {
    at: began,
    args: { work, generation, room: 'lobby', is_public: true, version: work, versions: 1 },
    nonce: '',
  }),
]

/** The request of a work bears the id of its command. */
function request(): WriteLetter {
  const made = letter(ben, 'work.post', 'made-by-a-work', { at: later, nonce: '' })
  return { ...made, args: { work: made.id.toString('hex'), reviewer: '', page: 'main', proofBits: 0 } }
}

/** Every decision with several records, and one with a single record. */
const batch: readonly WriteLetter[] = [
  letter(ada, 'post', 'fresh', { at: later, args: posting, text: 'a first post makes the room' }),
  letter(ada, 'conversation.open', 'dm-silent', {
    at: later,
    args: { ...opening, others: [ben.id], textBytes: 0 },
  }),
  letter(ben, 'conversation.open', 'dm-said', {
    at: later,
    args: { ...opening, others: [eve.id], textBytes: 5 },
    text: 'hello',
  }),
  letter(ada, 'identity.rotate', registryName, {
    at: later,
    args: { to: textKey('ada anew'), identity: someone('ada anew').id, used: false, proof: 'signed' },
  }),
  letter(ben, 'identity.suspend', registryName, {
    at: later,
    args: { target: eve.id, reason: 'spam', isBoard: false },
    operator: true,
  }),
  letter(ben, 'credit.transfer', marketName, { at: later, args: { target: eve.id, amount: 5, cost: 1 } }),
  request(),
  letter(ben, 'post', 'lobby', { at: later, args: posting, text: 'one record' }),
]

function startShard(directory: string, at: number, first: readonly FirstRoom[] = firstRooms) {
  const journal = openWhole({ disk: machineDisk, directory })
  const shard: Shard = new Shard({
    number: 0,
    journal,
    deciders,
    replyToRetry: retryReply,
    wallSeconds: () => at,
    soon: systemClock.soon,
    diskHasRoom: () => true,
    fault: (damage) => damage.message,
    toLog: (through) =>
      void setImmediate(() =>
        shard.confirm({ through, firstChange: 1, firstLeaf: 0, head: { size: 1, checkpoint: '' } }),
      ),
    snapshot: () => undefined,
    afterTurn: () => {},
    firstRooms: first,
    mailboxMax: 100,
    lettersPerTurnMax: 100,
    unconfirmedMax: 1000,
  })
  shard.resume(journal.nextSeq - 1)
  const say = (letters: readonly WriteLetter[]) =>
    Promise.all(letters.map((each) => new Promise<ShardAnswer>((done) => shard.post(each, done))))
  return { journal, shard, say }
}

type Held = { readonly type: number; readonly flags: number; readonly sha: string; readonly hasMore: boolean }

/** A summary of what a journal holds; closes it. */
function heldBy(journal: Journal): Held[] {
  const held = [...journal.scan(1)].map(({ type, flags, payload }) => {
    const sha = createHash('sha256').update(payload).digest('hex')
    return { type, flags, sha, hasMore: (flags & MORE) !== 0 }
  })
  journal.close()
  return held
}

/** Where the frames of the only segment begin, and its end. */
function frameOffsets(directory: string): number[] {
  const journal = Journal.open({ disk: machineDisk, directory })
  const offsets = [SEGMENT_HEADER_BYTES]
  for (const { payload } of journal.scan(1)) offsets.push(offsets.at(-1)! + FRAME_HEADER_BYTES + payload.length)
  journal.close()
  return offsets
}

async function settingIn(directory: string): Promise<void> {
  const { journal, say } = startShard(directory, began)
  for (const each of setting) expect(await say([each])).toMatchObject([{ ok: true }])
  journal.close()
}

function copied(directory: string): string {
  const copy = join(scratchDirectory(), 'journal')
  cpSync(directory, copy, { recursive: true })
  return copy
}

async function afterAll(directory: string, letters: readonly WriteLetter[]): Promise<Held[]> {
  const { journal, say } = startShard(directory, later)
  for (const answer of await say(letters)) expect(answer).toMatchObject({ ok: true })
  return heldBy(journal)
}

test('wherever a batch of decisions is cut, each is there whole or not at all, and retries lead to the same journal', async () => {
  const before = scratchDirectory()
  await settingIn(before)
  await fc.assert(
    fc.asyncProperty(
      fc.shuffledSubarray([...batch.keys()], { minLength: batch.length }),
      fc.nat(),
      async (order, more) => {
        const letters = order.map((n) => batch[n]!)
        const uncut = copied(before)
        const first = frameOffsets(uncut).length - 1
        const whole = await afterAll(uncut, letters)
        const offsets = frameOffsets(uncut)
        expect(offsets.length - 1 - first).toBe(17)
        for (let n = first; n < offsets.length - 1; n++) {
          const cut = copied(uncut)
          truncateSync(segmentPath(cut, 1), offsets[n]! + (more % 2) * (1 + ((more + n) % FRAME_HEADER_BYTES)))
          const held = heldBy(openWhole({ disk: machineDisk, directory: copied(cut) }))
          expect(held).toEqual(whole.slice(0, whole.findLastIndex(({ hasMore }, index) => index < n && !hasMore) + 1))
          expect(await afterAll(cut, letters), `cut in frame ${n - first + 1} of the batch`).toEqual(whole)
        }
      },
    ),
    { numRuns: 2 },
  )
})

test('the first half of an opened conversation left by an older release is no conversation: a retry opens it', async () => {
  const directory = scratchDirectory()
  const retry = batch[1]!
  const owned = { room: retry.to, at: later, visibility: 'private', owner: Buffer.from(ada.id, 'hex') } as const
  const made: BoardRecord = {
    type: RecordType.roomCreated,
    ...owned,
    members: [Buffer.from(ben.id, 'hex')],
    by: retry.by,
  }
  const journal = Journal.open({ disk: machineDisk, directory })
  journal.append([toFrame(made, retry.id, false, [])])
  journal.close()
  const { shard, say } = startShard(directory, later, [])
  const [answer] = await say([retry])
  expect(answer).toMatchObject({ ok: true, reply: { facts: { created: true } } })
  expect(answer).not.toHaveProperty('duplicate')
  expect(shard.state.direct.conversationsOf(ben.id)).toMatchObject([{ room: retry.to, opener: ada.id }])
  expect(shard.board.roomList).toHaveLength(1)
  expect(await say([retry])).toMatchObject([{ ok: true, duplicate: true }])
})

test('a first start killed between a room and its policy is finished by the next, and an owner’s settings stay', () => {
  const directory = scratchDirectory()
  startShard(directory, began).journal.close()
  const offsets = frameOffsets(directory)
  expect(offsets).toHaveLength(4)
  const whole = heldBy(Journal.open({ disk: machineDisk, directory }))
  for (const offset of offsets) {
    const cut = copied(directory)
    truncateSync(segmentPath(cut, 1), offset)
    const { journal, shard } = startShard(cut, began)
    expect(shard.state.rules.policyOf('reviews').write).toBe('owner')
    expect(heldBy(journal)).toEqual(whole)
  }
  expect(heldBy(startShard(directory, later).journal)).toEqual(whole)
})

test('an owner of a room named like a first room keeps it as it is', () => {
  const directory = scratchDirectory()
  const owned = { room: 'reviews', at: began, visibility: 'public', owner: Buffer.from(ada.id, 'hex') } as const
  const journal = Journal.open({ disk: machineDisk, directory })
  journal.append([toFrame({ type: RecordType.roomCreated, ...owned }, Buffer.alloc(16, 1), true, [])])
  journal.close()
  expect(startShard(directory, later).shard.state.rules.isRuled('reviews')).toBe(false)
})
