/**
 * State of a room besides its roles, which are in the room itself: policy, open invites, removed members, moderation log, and
 * reports.
 *
 * For the moderation log and reports, memory holds only the place of the signed record; who, what and why is read from there.
 */

import type { Room } from '../records/board.ts'
import type { Core, Projection, RecordPlace } from '../records/core.ts'
import { ActsOf, delegationOf, type FactRecord } from '../records/record.ts'
import { isOver, openPolicy, type Policy, privatePolicy, unseen } from './policy.ts'

type Invite = {
  /** 32 hex: id of the command that made it. */
  readonly id: string
  /** Hex SHA-256 of the secret. */
  readonly hash: string
  /** Unix seconds. */
  readonly expires: number
  /** The only identity that may use it, or ''. */
  readonly target: string
  /** 32 hex: the delegation it was created by, and with which it ends; '' or absent: none. */
  readonly delegation?: string
}

/** Where a record is stored. */
export type Kept = { readonly shard: number; readonly seq: number }

export type Report = Kept & {
  /** 32 hex: id of the command that made it. */
  readonly id: string
  /** 32 hex of the event. */
  readonly event: string
  readonly room: string
  /** Identity id. */
  readonly by: string
  /** Unix seconds. */
  readonly at: number
  /** The record that settled it. */
  readonly settled: Kept | undefined
}

/** Facts of a ban. `until`: Unix seconds, 0 until it is lifted; `by`: in which role it was imposed. */
export type BanFacts = { readonly target: string; readonly until: number; readonly by: 'room' | 'operator' }

/**
 * Facts of a move: the id of the first event of the thread, and rooms by name: the one that listed the thread, and the one that
 * lists it now.
 */
export type MoveFacts = {
  readonly id: Uint8Array
  readonly from: string
  readonly to: string
  readonly reason: string
}
export const threadMoves = new ActsOf<MoveFacts>('thread.move')

/** Acts shown in a moderation log, whichever part owns them. */
const logged: ReadonlySet<string> = new Set([
  'room.member.add',
  'room.member.remove',
  'room.moderator.add',
  'room.moderator.remove',
  'room.owner.transfer',
  'room.ban',
  'room.unban',
  'room.policy.set',
  'room.hide',
  'room.restore',
  'event.redact',
  'thread.pin',
  'thread.lock',
  'thread.move',
])
/** Shown only if someone other than the author did it: an author's own deletion is not moderation. */
const loggedOfOthers: ReadonlySet<string> = new Set(['blob.delete', 'docs.delete'])

/** Whether the moderation log of its room shows it. */
export function isRoomModeration({ op, facts }: Pick<FactRecord, 'op' | 'facts'>): boolean {
  return logged.has(op) || (loggedOfOthers.has(op) && facts.moderated === true)
}

type PackedReport = readonly [
  id: string,
  event: string,
  room: string,
  by: string,
  at: number,
  kept: readonly number[],
  settled: readonly number[] | null,
]
type Packed = readonly [
  policies: readonly (readonly [room: string, policy: Policy])[],
  invites: readonly (readonly [room: string, invites: readonly Invite[]])[],
  barred: readonly (readonly [room: string, identities: readonly string[]])[],
  logs: readonly (readonly [room: string, places: readonly number[]])[],
  reports: readonly PackedReport[],
]

export class Rules implements Projection {
  readonly acts: Projection['acts'] = {
    'room.join': (act) => this.#admit(act),
    'room.leave': (act) => this.#dismiss(act),
    'room.member.add': (act) => this.#admit(act),
    'room.member.remove': (act) => this.#bar(act),
    'room.moderator.add': (act) => {
      this.#admit(act)
      this.#room(act).moderators.add(targetOf(act))
    },
    'room.moderator.remove': (act) => void this.#room(act).moderators.delete(targetOf(act)),
    'room.owner.transfer': (act) => this.#transfer(act),
    'room.ban': (act, place) => this.#ban(act, place),
    'room.unban': (act) => void this.#room(act).bans.delete(targetOf(act)),
    'room.invite.create': (act) => this.#invite(act),
    'room.invite.accept': (act) => this.#accept(act),
    'room.policy.set': (act: FactRecord<{ policy: Policy }>) => {
      const { policy } = act.facts
      // An older release wrote fewer keys.
      const wasShown = this.policyOf(act.room).front_page
      const whole = { ...openPolicy, ...policy }
      this.#policies.set(act.room, this.#isPrivate(act.room) ? { ...whole, ...unseen } : whole)
      if (this.policyOf(act.room).front_page !== wasShown) this.frontChanges++
    },
    report: (act, place) => this.#report(act, place),
    'report.resolve': (act, place) => this.#settle(act, place),
  }
  /** How often a room was added to or removed from the board's front page. */
  frontChanges = 0
  readonly #core: Core
  readonly #policies = new Map<string, Policy>()
  readonly #invites = new Map<string, readonly Invite[]>()
  /** Users whom the owner removed: they can return only if the owner adds them or by an invite. */
  readonly #barred = new Map<string, Set<string>>()
  /** By room: shard and number of each record, alternating. */
  readonly #logs = new Map<string, number[]>()
  readonly #reports = new Map<string, Report>()
  /** How many reports are not settled. */
  openReports = 0
  /** Event and identity of every report. */
  readonly #reported = new Set<string>()

  constructor(core: Core) {
    this.#core = core
  }

  policyOf(room: string): Policy {
    return this.#policies.get(room) ?? (this.#isPrivate(room) ? privatePolicy : openPolicy)
  }

  /** Whether its policy was set. */
  isRuled(room: string): boolean {
    return this.#policies.has(room)
  }

  /** Invites that are valid at this time. */
  openInvites(room: string, now: number): readonly Invite[] {
    return (this.#invites.get(room) ?? []).filter(({ expires }) => expires > now)
  }

  isBarred(room: string, identity: string): boolean {
    return this.#barred.get(room)?.has(identity) ?? false
  }

  /** The number of entries in the moderation log of a room. */
  logLength(room: string): number {
    return (this.#logs.get(room)?.length ?? 0) / 2
  }

  /** Entry n of the moderation log of a room, from 1. */
  logEntry(room: string, n: number): Kept {
    const places = this.#logs.get(room)!
    return { shard: places[2 * n - 2]!, seq: places[2 * n - 1]! }
  }

  report(id: string): Report | undefined {
    return this.#reports.get(id)
  }

  hasReported(event: string, identity: string): boolean {
    return this.#reported.has(event + identity)
  }

  /** Oldest first. */
  reports(): IterableIterator<Report> {
    return this.#reports.values()
  }

  onAct(act: FactRecord, { shard, seq }: RecordPlace): void {
    if (!isRoomModeration(act)) return
    for (const room of new Set([act.room, ...listsOf(act)])) {
      if (!this.#core.board.rooms.has(room)) continue
      const places = this.#logs.get(room)
      if (places === undefined) this.#logs.set(room, [shard, seq])
      else places.push(shard, seq)
    }
  }

  pack(): Packed {
    return [
      [...this.#policies],
      [...this.#invites],
      [...this.#barred].map(([room, identities]) => [room, [...identities]]),
      [...this.#logs],
      [...this.#reports.values()].map(({ id, event, room, by, at, shard, seq, settled }) => [
        id,
        event,
        room,
        by,
        at,
        [shard, seq],
        settled === undefined ? null : [settled.shard, settled.seq],
      ]),
    ]
  }

  restore([policies, invites, barred, logs, reports]: Packed): void {
    // An older release wrote fewer keys.
    for (const [room, policy] of policies) this.#policies.set(room, { ...openPolicy, ...policy })
    for (const [room, open] of invites) this.#invites.set(room, open)
    for (const [room, identities] of barred) this.#barred.set(room, new Set(identities))
    for (const [room, places] of logs) this.#logs.set(room, [...places])
    for (const [id, event, room, by, at, [shard = 0, seq = 0], settled] of reports) {
      const end = settled === null ? undefined : { shard: settled[0]!, seq: settled[1]! }
      this.#keepReport({ id, event, room, by, at, shard, seq, settled: end })
    }
  }

  #isPrivate(room: string): boolean {
    return this.#core.board.rooms.get(room)?.visibility === 'private'
  }

  #room({ room }: { readonly room: string }): Room {
    const found = this.#core.board.rooms.get(room)
    if (found === undefined) throw new Error(`act in a room that no record created: ${room}`)
    return found
  }

  #admit(act: FactRecord<{ target: string }>): void {
    this.#core.board.admit(this.#room(act), targetOf(act))
    this.#barred.get(act.room)?.delete(targetOf(act))
  }

  #dismiss(act: FactRecord<{ target: string }>): void {
    this.#core.board.dismiss(this.#room(act), targetOf(act))
  }

  #bar(act: FactRecord<{ target: string }>): void {
    this.#dismiss(act)
    const barred = this.#barred.get(act.room)
    if (barred === undefined) this.#barred.set(act.room, new Set([targetOf(act)]))
    else barred.add(targetOf(act))
  }

  #ban(act: FactRecord<BanFacts>, { shard, seq }: RecordPlace): void {
    const { bans } = this.#room(act)
    const { target, until, by } = act.facts
    this.#dismiss(act)
    for (const [identity, each] of bans) if (isOver(each, act.at) || identity === target) bans.delete(identity)
    bans.set(target, { shard, seq, until, isOperators: by === 'operator' })
  }

  #transfer(act: FactRecord<{ target: string }>): void {
    const room = this.#room(act)
    this.#core.board.transfer(room, targetOf(act))
    room.bans.delete(targetOf(act))
    this.#barred.get(act.room)?.delete(targetOf(act))
    // The new owner decides whether to issue invites again.
    this.#invites.delete(act.room)
  }

  #invite(act: FactRecord<Invite>): void {
    const { id, hash, expires, target } = act.facts
    const open = this.openInvites(act.room, act.at)
    this.#invites.set(act.room, [...open, { id, hash, expires, target, delegation: delegationOf(act) }])
  }

  #accept(act: FactRecord<{ target: string; invite?: string }>): void {
    this.#admit(act)
    const others = (this.#invites.get(act.room) ?? []).filter(({ id }) => id !== act.facts.invite)
    if (others.length === 0) this.#invites.delete(act.room)
    else this.#invites.set(act.room, others)
  }

  #report(act: FactRecord<{ id: string; event: string }>, { shard, seq }: RecordPlace): void {
    this.#keepReport({
      id: act.facts.id,
      event: act.facts.event,
      room: act.room,
      by: Buffer.from(act.author).toString('hex'),
      at: act.at,
      shard,
      seq,
      settled: undefined,
    })
  }

  #keepReport(report: Report): void {
    this.#reports.set(report.id, report)
    if (report.settled === undefined) this.openReports++
    this.#reported.add(report.event + report.by)
  }

  #settle({ facts }: FactRecord<{ report: string }>, { shard, seq }: RecordPlace): void {
    const report = this.#reports.get(facts.report)
    if (report === undefined) throw new Error(`report resolved, but no record created it: ${facts.report}`)
    if (report.settled === undefined) this.openReports--
    this.#reports.set(report.id, { ...report, settled: { shard, seq } })
  }
}

/** Other rooms whose thread lists an act changes, besides its own room. */
function listsOf(act: FactRecord): readonly string[] {
  return threadMoves.is(act) ? [act.facts.from, act.facts.to] : []
}

/** The identity whose role changes. */
function targetOf({ facts }: FactRecord<{ target: string }>): string {
  return facts.target
}
