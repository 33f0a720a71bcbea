/**
 * Roles, invites and policy against a model that fits on a page: in any order of operations, the room decides as the model does, and a
 * snapshot or a replay of the records gives the same state.
 */

import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { deciders } from '../../actors/deciders.ts'
import type { AnyWriteName } from '../../actors/operations.ts'
import type { BoardRecord } from '../../actors/records/record.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import { openPolicy, type Policy, roleOf } from '../../actors/rooms/policy.ts'
import { State } from '../../actors/state.ts'
import { identityId } from '../../src/format/signing.ts'
import { imageBytes } from '../support/image-bytes.ts'

const people = Array.from({ length: 5 }, (_, n) => {
  const key = createHash('sha256').update(`person ${n}`).digest()
  return { key, id: identityId(key) }
})
const operator = 4
const room = 'hall'

type Step =
  | { readonly op: 'room.join'; readonly by: number }
  | { readonly op: 'room.leave'; readonly by: number }
  | {
      readonly op:
        | 'room.member.add'
        | 'room.member.remove'
        | 'room.moderator.add'
        | 'room.moderator.remove'
        | 'room.owner.transfer'
      readonly by: number
      readonly target: number
    }
  | { readonly op: 'room.ban'; readonly by: number; readonly target: number; readonly ttl: number }
  | { readonly op: 'room.unban'; readonly by: number; readonly target: number }
  | {
      readonly op: 'room.invite.create'
      readonly by: number
      readonly ttl: number
      readonly target: number | undefined
    }
  | { readonly op: 'room.invite.accept'; readonly by: number; readonly invite: number }
  | { readonly op: 'room.policy.set'; readonly by: number; readonly set: Partial<Policy> }
  | {
      readonly op: 'post'
      readonly by: number
      readonly reply: boolean
      readonly ttl: number
      readonly proofBits: number
    }
  | { readonly op: 'wait'; readonly seconds: number }

const who = fc.nat({ max: people.length - 1 })
const policySet: fc.Arbitrary<Partial<Policy>> = fc.oneof(
  fc.constant({ front_page: false }),
  fc.record(
    {
      write: fc.constantFrom('open' as const, 'members' as const, 'owner' as const),
      reply: fc.constantFrom('anyone' as const, 'members' as const, 'none' as const),
      closed: fc.boolean(),
      closes_at: fc.constantFrom(0, 1_790_000_100),
      max_events: fc.constantFrom(0, 0, 5),
      top_level_per_day: fc.nat({ max: 3 }),
      posts_per_minute: fc.nat({ max: 3 }),
      ttl_max: fc.constantFrom(0, 0, 60),
      proof_bits: fc.constantFrom(0, 0, 8),
      front_page: fc.boolean(),
    },
    { requiredKeys: [] },
  ),
)
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ op: fc.constant('room.join' as const), by: who }),
  fc.record({ op: fc.constant('room.leave' as const), by: who }),
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constantFrom(
        'room.member.add' as const,
        'room.member.remove' as const,
        'room.moderator.add' as const,
        'room.moderator.remove' as const,
        'room.owner.transfer' as const,
      ),
      by: who,
      target: who,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('room.ban' as const),
      by: who,
      target: who,
      ttl: fc.constantFrom(0, 60, 3600),
    }),
  },
  fc.record({ op: fc.constant('room.unban' as const), by: who, target: who }),
  fc.record({
    op: fc.constant('room.invite.create' as const),
    by: who,
    ttl: fc.constantFrom(60, 3600),
    target: fc.option(who, { nil: undefined }),
  }),
  fc.record({ op: fc.constant('room.invite.accept' as const), by: who, invite: fc.nat({ max: 9 }) }),
  { weight: 2, arbitrary: fc.record({ op: fc.constant('room.policy.set' as const), by: who, set: policySet }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('post' as const),
      by: who,
      reply: fc.boolean(),
      ttl: fc.constantFrom(0, 30, 90),
      proofBits: fc.constantFrom(0, 8),
    }),
  },
  fc.record({ op: fc.constant('wait' as const), seconds: fc.constantFrom(1, 30, 61, 43_200) }),
)

/** The board under test: decides, applies, and keeps the records so that they can be replayed. */
class Subject {
  readonly records: { record: BoardRecord; key: Uint8Array }[] = []
  state = new State()
  now = 1_790_000_000
  first = ''
  #count = 0

  do(op: AnyWriteName, by: number, args: Record<string, unknown>): string {
    const sha = createHash('sha256')
      .update(`command ${this.#count++}`)
      .digest()
    const { key, id } = people[by]!
    const letter: WriteLetter = {
      op,
      to: room,
      id: sha.subarray(0, 16),
      sha,
      author: id,
      by: { key, sig: Buffer.alloc(64), signed: Buffer.from('{}') },
      timestamp: this.now,
      nonce: 'n',
      requestId: '',
      via: 'command',
      limited: 0,
      rotated: false,
      suspended: false,
      operator: by === operator,
      args,
    }
    const decision = deciders[op]!(
      {
        state: this.state,
        board: this.state.board,
        now: this.now,
        record: (seq) => this.records[seq - 1]!.record,
      },
      letter,
    )
    if (!decision.ok) return decision.refusal.code
    for (const { record, key: id } of decision.records) {
      this.records.push({ record, key: Buffer.from(id) })
      this.state.apply(record, id, placeOf(this.records.length))
    }
    if (op === 'post' && this.first === '') this.first = sha.toString('hex', 0, 16)
    return 'ok'
  }

  replayed(): State {
    const state = new State()
    for (const [n, { record, key }] of this.records.entries()) state.apply(record, key, placeOf(n + 1))
    return state
  }
}

function placeOf(seq: number) {
  return { shard: 0, seq, change: seq, leaf: 0 }
}

type Posted = { readonly by: number; readonly at: number; readonly reply: boolean }

/** A naive model of a room. */
class Model {
  readonly isPrivate: boolean
  owner: number | undefined
  readonly roles = new Map<number, 'member' | 'moderator'>()
  readonly barred = new Set<number>()
  readonly bans = new Map<number, { readonly until: number; readonly isOperators: boolean }>()
  invites: { readonly n: number; readonly ends: number; readonly target: number | undefined }[] = []
  made = 0
  policy: Policy = openPolicy
  readonly posts: Posted[] = []

  constructor(isPrivate: boolean, owner: number | undefined) {
    this.isPrivate = isPrivate
    this.owner = owner
  }

  do(step: Exclude<Step, { op: 'wait' }>, now: number): string {
    const { by } = step
    const role = this.role(by)
    if (this.isPrivate && role === 'none' && step.op !== 'room.invite.accept') return 'private_room'
    if (step.op === 'post') return this.#post(step, now)
    if (step.op === 'room.join') {
      if (role !== 'none') return 'conflict'
      if (this.isBanned(by, now) || this.barred.has(by)) return 'forbidden'
      this.roles.set(by, 'member')
      return 'ok'
    }
    if (step.op === 'room.leave') {
      if (role === 'owner' || role === 'none') return 'wrong_state'
      this.roles.delete(by)
      return 'ok'
    }
    if (step.op === 'room.invite.accept') return this.#accept(by, step.invite, now)
    if (step.op === 'room.ban') return this.#ban(step, now)
    if (step.op === 'room.unban') return this.#unban(step, now)
    const isOwner = this.isOwner(by)
    if (step.op === 'room.policy.set') {
      const isSmall = JSON.stringify(step.set) === '{"front_page":false}'
      const moderates = role === 'moderator' || (by === operator && !this.isPrivate)
      if (!isOwner && !(isSmall && moderates)) return 'forbidden'
      if (this.isPrivate && (step.set.front_page === true || step.set.archive === true)) return 'invalid_field'
      this.policy = { ...this.policy, ...step.set }
      return 'ok'
    }
    if (!isOwner) return 'forbidden'
    if (step.op === 'room.invite.create') {
      this.invites = this.invites.filter(({ ends }) => ends > now)
      if (this.invites.length >= 8) return 'wrong_state'
      this.invites.push({ n: this.made++, ends: now + step.ttl, target: step.target })
      return 'ok'
    }
    return this.#change(step.op, step.target, now)
  }

  isBanned(person: number, now: number): boolean {
    const ban = this.bans.get(person)
    return ban !== undefined && (ban.until === 0 || ban.until > now)
  }

  #ban({ by, target, ttl }: Extract<Step, { op: 'room.ban' }>, now: number): string {
    const ofRoom = this.owner === by || this.roles.get(by) === 'moderator'
    const operates = by === operator && !this.isPrivate
    if (!ofRoom && !operates) return 'forbidden'
    if (target === by) return 'invalid_field'
    if (target === this.owner) return 'wrong_state'
    if (target === operator && !this.isPrivate) return 'forbidden'
    if (this.roles.get(target) === 'moderator' && this.owner !== by && !operates) return 'forbidden'
    if (this.isBanned(target, now)) return 'wrong_state'
    this.roles.delete(target)
    this.bans.set(target, { until: ttl === 0 ? 0 : now + ttl, isOperators: !ofRoom })
    return 'ok'
  }

  #unban({ by, target }: Extract<Step, { op: 'room.unban' }>, now: number): string {
    const operates = by === operator && !this.isPrivate
    if (this.owner !== by && this.roles.get(by) !== 'moderator' && !operates) return 'forbidden'
    if (!this.isBanned(target, now)) return 'wrong_state'
    if (this.bans.get(target)!.isOperators && by !== operator) return 'forbidden'
    this.bans.delete(target)
    return 'ok'
  }

  role(person: number): string {
    return this.owner === person ? 'owner' : (this.roles.get(person) ?? 'none')
  }

  isOwner(person: number): boolean {
    return this.owner === undefined ? person === operator : this.owner === person
  }

  #change(op: AnyWriteName, target: number, now: number): string {
    const role = this.role(target)
    switch (op) {
      case 'room.member.add':
        if (role !== 'none') return 'conflict'
        if (this.isBanned(target, now)) return 'wrong_state'
        this.#admit(target, 'member')
        return 'ok'
      case 'room.member.remove':
        if (role === 'none') return 'not_found'
        if (role === 'owner') return 'wrong_state'
        this.roles.delete(target)
        this.barred.add(target)
        return 'ok'
      case 'room.moderator.add':
        if (role === 'owner' || role === 'moderator') return 'conflict'
        if (this.isBanned(target, now)) return 'wrong_state'
        this.#admit(target, 'moderator')
        return 'ok'
      case 'room.moderator.remove':
        if (role !== 'moderator') return 'not_found'
        this.roles.set(target, 'member')
        return 'ok'
      default:
        if (role === 'owner') return 'conflict'
        if (this.owner !== undefined) this.roles.set(this.owner, 'member')
        this.roles.delete(target)
        this.barred.delete(target)
        this.bans.delete(target)
        this.owner = target
        this.invites = []
        return 'ok'
    }
  }

  #admit(person: number, role: 'member' | 'moderator'): void {
    this.roles.set(person, role)
    this.barred.delete(person)
  }

  #accept(by: number, n: number, now: number): string {
    const invite = this.invites.find((each) => each.n === n && each.ends > now)
    if (invite === undefined || (invite.target !== undefined && invite.target !== by)) return 'forbidden'
    if (this.isBanned(by, now)) return 'forbidden'
    if (this.role(by) !== 'none') return 'conflict'
    this.invites = this.invites.filter((each) => each !== invite)
    this.#admit(by, 'member')
    return 'ok'
  }

  #post({ by, reply, ttl, proofBits }: Extract<Step, { op: 'post' }>, now: number): string {
    const { policy } = this
    const isReply = reply && this.posts.length > 0
    if (this.isBanned(by, now)) return 'room_write_restricted'
    if (policy.closed || (policy.closes_at > 0 && policy.closes_at <= now)) return 'wrong_state'
    if (policy.ttl_max > 0 && (ttl === 0 || ttl > policy.ttl_max)) return 'invalid_field'
    const isMember = this.isOwner(by) || this.role(by) !== 'none'
    if (!isReply && policy.write === 'owner' && !this.isOwner(by)) return 'room_write_restricted'
    if (!isReply && policy.write === 'members' && !isMember) return 'room_write_restricted'
    if (isReply && policy.reply === 'none') return 'room_reply_restricted'
    if (isReply && policy.reply === 'members' && !isMember) return 'room_reply_restricted'
    if (proofBits < policy.proof_bits) return 'proof_required'
    if (policy.max_events > 0 && this.posts.length >= policy.max_events) return 'wrong_state'
    const own = this.posts.filter((post) => post.by === by)
    const isExempt = this.owner === by || this.roles.get(by) === 'moderator' || (by === operator && !this.isPrivate)
    if (!isExempt) {
      const lately = own.filter(({ at }) => at > now - 60).length
      if (policy.posts_per_minute > 0 && lately >= policy.posts_per_minute) return 'rate_limited'
      const today = own.filter(
        (post) => !post.reply && Math.floor(post.at / 86_400) === Math.floor(now / 86_400),
      ).length
      if (policy.top_level_per_day > 0 && !isReply && today >= policy.top_level_per_day) return 'quota_exhausted'
    }
    this.posts.push({ by, at: now, reply: isReply })
    return 'ok'
  }
}

function argsOf(step: Step, subject: Subject): Record<string, unknown> {
  switch (step.op) {
    case 'room.invite.create':
      return {
        hash: `hash ${step.ttl}`,
        ttl: step.ttl,
        target: step.target === undefined ? '' : people[step.target]!.id,
      }
    case 'room.policy.set':
      return { set: step.set }
    case 'post': {
      const { ttl, proofBits } = step
      const replyTo = step.reply ? subject.first : ''
      return { page: '', kind: 'note', replyTo, supersedes: '', attachments: [], ttl, proofBits }
    }
    case 'room.ban':
      return { target: people[step.target]!.id, ttl: step.ttl, isOperators: step.target === operator }
    default: {
      const { target } = step as { readonly target?: number }
      return target === undefined ? {} : { target: people[target]!.id }
    }
  }
}

const setting = fc.record({ isPrivate: fc.boolean(), isOwned: fc.boolean() })

test('a room decides as its model does, and snapshots and replays to the same state', () => {
  fc.assert(
    fc.property(setting, fc.array(step, { maxLength: 80, size: 'max' }), ({ isPrivate, isOwned }, steps) => {
      const subject = new Subject()
      const model = new Model(isPrivate, isPrivate || isOwned ? 0 : undefined)
      if (isPrivate || isOwned) {
        const visibility = isPrivate ? 'private' : 'public'
        expect(subject.do('room.create', 0, { visibility, members: [], text: '' })).toBe('ok')
      } else {
        expect(subject.do('post', 1, argsOf({ op: 'post', by: 1, reply: false, ttl: 0, proofBits: 0 }, subject))).toBe(
          'ok',
        )
        model.posts.push({ by: 1, at: subject.now, reply: false })
      }
      for (const [n, each] of steps.entries()) {
        if (each.op === 'wait') {
          subject.now += each.seconds
          continue
        }
        const invited = each.op === 'room.invite.create' ? { hash: `hash ${model.made}` } : {}
        const accepted = each.op === 'room.invite.accept' ? { hash: `hash ${each.invite}` } : {}
        const found = subject.do(each.op, each.by, { ...argsOf(each, subject), ...invited, ...accepted })
        expect({ n, each, found }).toEqual({ n, each, found: model.do(each, subject.now) })
        if (n % 16 === 0) subject.state = State.unpack(subject.state.pack(null))!.state
      }
      const { board, rules } = subject.state
      const made = board.rooms.get(room)!
      expect(people.map(({ id }) => roleOf(made, id))).toEqual(people.map((_, n) => model.role(n)))
      // Each identity finds exactly the rooms in which it has a role.
      expect(people.map(({ id }) => board.roomsOf(id))).toEqual(
        people.map((_, n) => (model.role(n) === 'none' ? [] : [made])),
      )
      const seen = model.isPrivate ? { ...model.policy, front_page: false, archive: false } : model.policy
      expect(rules.policyOf(room)).toEqual(seen)
      expect(rules.openInvites(room, subject.now).length).toBe(
        model.invites.filter(({ ends }) => ends > subject.now).length,
      )
      expect([...made.moderators].every((id) => made.members.has(id)) && !made.members.has(made.owner ?? '')).toBe(true)
      expect(imageBytes(subject.state.pack(null)).equals(imageBytes(subject.replayed().pack(null)))).toBe(true)
    }),
    { numRuns: 500 },
  )
})

test('the seventeenth moderator, the ninth invite and the hundred and first member of a private room are refused', () => {
  const subject = new Subject()
  const ids = Array.from({ length: 120 }, (_, n) => createHash('sha256').update(`${n}`).digest('hex'))
  subject.do('room.create', 0, { visibility: 'private', members: [], text: '' })
  const moderators = ids.slice(0, 17).map((target) => subject.do('room.moderator.add', 0, { target }))
  expect(moderators).toEqual([...Array(16).fill('ok'), 'wrong_state'])
  const members = ids.slice(16).map((target) => subject.do('room.member.add', 0, { target }))
  expect(members).toEqual([...Array(84).fill('ok'), ...Array(20).fill('wrong_state')])
  const invites = ids.slice(0, 9).map((hash) => subject.do('room.invite.create', 0, { hash, ttl: 60, target: '' }))
  expect(invites).toEqual([...Array(8).fill('ok'), 'wrong_state'])
  expect(subject.do('room.invite.accept', 1, { hash: ids[0]! })).toBe('wrong_state')
  expect(subject.do('room.owner.transfer', 0, { target: people[1]!.id })).toBe('wrong_state')
  expect(subject.do('room.owner.transfer', 0, { target: ids[0]! })).toBe('ok')
})
