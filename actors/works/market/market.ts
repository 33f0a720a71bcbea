/**
 * The market: credits and works. One actor, `@market`, decides all of them, so that credits and state move in one record.
 *
 * The contract: a command about a work arrives as a letter named after its operation. Its args include what the room reports
 * about the signer (`standing`) and the result (`bound`); letters.ts has all types. The board itself sends:
 *
 *   market.begin    at every start: the recovery epoch; the very first funds the pool of rewards
 *   work.open       the room has accepted the request of a reservation: the work exists
 *   work.void       the room has refused it: only the release of the hold remains
 *   work.edited     the room has accepted, or refused, a new version of the request
 *   work.observe    what happened to a marked event, numbered by the room
 *   work.tick       due timeouts take effect
 *   credit.welcome  a first public post;  credit.reward  a review of a tool: both answer with the amount given, and never refuse
 *
 * Each may be repeated. Every act about a work has `steps`, one for each row of the table, with what it set and moved; applying
 * an act does nothing else. Timeouts that a command finds due are separate acts before it (op `work.timeout`). Acts about
 * public works are public. The leaves of an act are its postings of ledger 1 if the work is public, in order, numbered without
 * gaps. Which postings a transition makes is in table.ts and ledger.ts.
 *
 * Followers are notified of steps through the mail (actors/works/mail.ts). This part holds what replay rebuilds: everything in
 * a shard; in the feed only what is public, and no reservations.
 */

import { type WorkState, workStates } from '../../records/change-kinds.ts'
import type { Projection, RecordPlace } from '../../records/core.ts'
import type { FactRecord } from '../../records/record.ts'
import { after, type Epoch, isUnconfirmed, nextDue, settled, stateOf } from './clock.ts'
import { Ledger } from './ledger.ts'
import type {
  CreditFacts,
  EditFacts,
  ObserveFacts,
  OpenFacts,
  Posting,
  ReserveFacts,
  RewardFacts,
  StepFacts,
  VoidFacts,
  WelcomeFacts,
} from './letters.ts'
import { Listing, Sorted, type WorksPage, type WorksQuery } from './listing.ts'
import { Given, type PackedGiven, Records } from './records.ts'
import { finalStates, type Work, workKeys } from './work.ts'

/** Operations whose acts consist only of steps. */
const stepping = [
  'work.raise',
  'work.cancel',
  'work.claim',
  'work.renew',
  'work.release',
  'work.submit',
  'work.accept',
  'work.revise',
  'work.reject',
  'work.dispute',
  'work.concede',
  'work.reopen',
  'work.rule',
  'work.timeout',
]

type Reservation = ReserveFacts & { readonly place: number }

type Due = { readonly at: number; readonly work: Work }

type Packed = readonly [
  works: readonly (readonly unknown[])[],
  reserved: readonly Reservation[],
  ledger: Parameters<Ledger['restore']>[0],
  records: Parameters<Records['restore']>[0],
  given: PackedGiven,
  epoch: Epoch,
  postings: number,
]

export class Market implements Projection {
  /** Unix seconds after which no timeout takes effect, because the clock has jumped. Not part of the state. */
  timeoutsHeldAt: number | undefined
  readonly acts: Projection['acts'] = {
    'market.begin': (act, place) => this.#begin(act, place),
    'work.create': (act, place) => this.#reserve(act, place),
    'work.void': (act, place) => this.#void(act, place),
    'work.open': (act, place) => this.#open(act, place),
    'work.edit': ({ facts }: FactRecord<EditFacts>) => this.#edit(facts, true),
    'work.edited': (act: FactRecord<EditFacts & StepFacts>, place: RecordPlace) => {
      this.#edit(act.facts, false)
      this.#steps(act, place)
    },
    'work.observe': (act: FactRecord<ObserveFacts>, place: RecordPlace) => {
      const { work, set } = act.facts
      Object.assign(this.#works.get(work)!, set)
      this.#schedule(this.#works.get(work)!)
      this.#steps(act, place)
    },
    'credit.transfer': (act, place) => this.#post(act, place),
    'credit.grant': (act, place) => this.#post(act, place),
    'credit.welcome': (act, place) => this.#welcome(act, place),
    'credit.reward': (act, place) => this.#reward(act, place),
    ...Object.fromEntries(
      stepping.map((op) => [op, (act: FactRecord<StepFacts>, place: RecordPlace) => this.#steps(act, place)]),
    ),
  }
  readonly ledger = new Ledger()
  readonly records = new Records()
  readonly listing = new Listing()
  readonly #works = new Map<string, Work>()
  readonly #reserved = new Map<string, Reservation>()
  /** Reservations and works that hold credits of an identity; works it has claimed or submitted. */
  readonly #holding = new Map<string, Set<string>>()
  readonly #working = new Map<string, Set<Work>>()
  readonly #editing = new Set<Work>()
  readonly #due = new Sorted<Due>((a, b) => a.at - b.at || (a.work.id < b.work.id ? -1 : a.work.id > b.work.id ? 1 : 0))
  readonly #dueOf = new Map<Work, Due>()
  /** Works that were in progress when a backup was restored, and are not confirmed since. */
  readonly #unconfirmed = new Set<Work>()
  readonly given = new Given()
  epoch: Epoch = { generation: '', at: 0 }
  /** Postings in the public log so far. */
  postings = 0

  find(id: string): Work | undefined {
    return this.#works.get(id)
  }

  get all(): IterableIterator<Work> {
    return this.#works.values()
  }

  reservation(id: string): Reservation | undefined {
    return this.#reserved.get(id)
  }

  get reservations(): IterableIterator<Reservation> {
    return this.#reserved.values()
  }

  /** Works with an edit that the room has not answered yet. */
  get editing(): ReadonlySet<Work> {
    return this.#editing
  }

  /** Number of works and reservations that hold credits of this identity. */
  holding(identity: string): number {
    return this.#holding.get(identity)?.size ?? 0
  }

  /** Works that this identity has claimed and that are not settled. */
  working(identity: string): ReadonlySet<Work> {
    return this.#working.get(identity) ?? noWorks
  }

  /** A work as of `now`, and the timeouts that have passed since it was written. */
  settled(work: Work, now: number): ReturnType<typeof settled> {
    const due = this.#dueOf.get(work)
    const until = this.#until(now)
    return due === undefined || due.at > until ? { work, steps: [] } : settled(work, until, this.epoch)
  }

  /** Works that timeouts have changed by `now` and that are not recorded yet, earliest first. */
  *due(now: number): Generator<Work, void, void> {
    for (const { at, work } of this.#due.walk()) {
      if (at > this.#until(now)) return
      yield work
    }
  }

  /** Timeouts stop at the time when the clocks last agreed. */
  #until(now: number): number {
    return Math.min(now, this.timeoutsHeldAt ?? now)
  }

  /** When the next timeout of a work is due; Infinity: never. */
  dueAt(work: Work): number {
    return this.#dueOf.get(work)?.at ?? Number.POSITIVE_INFINITY
  }

  /** When the next timeout of any work is due; 0 if none is. */
  get nextDue(): number {
    return this.#due.first?.at ?? 0
  }

  /** Whether they have had no public result accepted, and hold no other work that is only for newcomers. */
  isNewcomer(identity: string, but = ''): boolean {
    if (!this.records.isNewcomer(identity)) return false
    for (const work of this.working(identity))
      if (work.id !== but && work.worker === identity && isForNewcomers(work)) return false
    return true
  }

  /** Whether the identity could claim this work, in its state at `now`, if its room lets it reply. */
  isEligible(work: Work, identity: string, now: number): boolean {
    const { requester, reviewer, deadline, terms, left, eligibility } = work
    const { at = 0, lapses = 0 } = left[identity] ?? {}
    return (
      work.state === 'open' &&
      identity !== requester &&
      identity !== reviewer &&
      now < deadline - terms.claim_margin &&
      lapses < terms.lapses &&
      (at === 0 || now >= at + terms.reclaim_cooldown) &&
      (eligibility === 'open' || this.isNewcomer(identity, work.id))
    )
  }

  /** Number of works by state as of `now`; states without works are left out. */
  counts(now: number): Readonly<Record<string, number>> {
    const counts = new Map(workStates.map((state) => [state, this.listing.countOf(state)]))
    const move = (from: WorkState, to: WorkState): void => {
      counts.set(from, counts.get(from)! - 1)
      counts.set(to, counts.get(to)! + 1)
    }
    for (const work of this.#unconfirmed) move(work.state, 'recovery_required')
    for (const stored of this.due(now))
      move(stateOf(stored, this.epoch), stateOf(this.settled(stored, now).work, this.epoch))
    return Object.fromEntries([...counts].filter(([, count]) => count > 0))
  }

  list(query: WorksQuery, now: number): WorksPage {
    return this.listing.find(query, {
      due: () => [...this.due(now)],
      settle: (work) => this.settled(work, now).work,
      stateOf: (work) => stateOf(work, this.epoch),
    })
  }

  pack(): unknown {
    return [
      [...this.#works.values()].map((work) => workKeys.map((key) => work[key])),
      [...this.#reserved.values()],
      this.ledger.pack(),
      this.records.pack(),
      this.given.pack(),
      this.epoch,
      this.postings,
    ]
  }

  restore(packed: never): void {
    const [works, reserved, ledger, records, given, epoch, postings] = packed as Packed
    this.epoch = epoch
    this.postings = postings
    this.ledger.restore(ledger)
    this.records.restore(records)
    for (const values of works)
      this.#add(Object.fromEntries(workKeys.map((key, n) => [key, values[n]])) as unknown as Work)
    for (const each of reserved) this.#noteReservation(each)
    this.given.restore(given)
  }

  #begin(act: FactRecord<{ generation: string } & CreditFacts>, place: RecordPlace): void {
    const { generation } = act.facts
    this.epoch = { generation, at: act.at }
    this.#post(act, place)
    for (const work of this.#works.values()) this.#schedule(work)
  }

  #reserve({ facts }: FactRecord<ReserveFacts>, { seq }: RecordPlace): void {
    const reserved = facts
    this.#noteReservation({ ...reserved, place: seq })
    this.#move(reserved.postings, seq)
  }

  #noteReservation(reservation: Reservation): void {
    this.#reserved.set(reservation.work, reservation)
    add(this.#holding, reservation.fixed.requester, reservation.work)
  }

  #void({ facts }: FactRecord<VoidFacts>, { seq }: RecordPlace): void {
    const { work, postings } = facts
    const { requester } = this.#reserved.get(work)!.fixed
    this.#reserved.delete(work)
    drop(this.#holding, requester, work)
    this.#move(postings, seq)
  }

  #open(act: FactRecord<OpenFacts>, place: RecordPlace): void {
    const { fixed, begun, reserved, steps } = act.facts
    const wasReserved = this.#reserved.delete(fixed.id)
    const [first] = steps
    const { shard } = place
    // The first place is that of the signed command; nothing was visible until the room had answered.
    const work: Work = { ...fixed, ...begun, updated_at: first!.at, steps: 1, shard, places: [reserved] }
    this.#add(work)
    // Where the reservation was seen, its credits were moved with it; their place in the log is assigned only now.
    if (!wasReserved) this.#move(first!.postings, place.seq)
    else for (const { seq } of first!.postings) if (seq !== undefined) this.postings = seq
  }

  #add(work: Work): void {
    this.#works.set(work.id, work)
    this.listing.add(work)
    this.#index(work)
    if (work.editing !== '') this.#editing.add(work)
  }

  #edit({ work: id, edit }: EditFacts, isBegun: boolean): void {
    const work = this.#works.get(id)!
    work.editing = isBegun ? edit : ''
    if (isBegun) this.#editing.add(work)
    else this.#editing.delete(work)
  }

  #steps(act: FactRecord<StepFacts>, place: RecordPlace): void {
    const { work: id, steps } = act.facts
    const work = this.#works.get(id)!
    for (const step of steps) {
      this.records.note(work, step)
      this.#unindex(work)
      this.listing.change(work, after(work, step))
      this.#index(work)
      work.places.push(place.seq)
      this.#move(step.postings, place.seq)
    }
  }

  #move(postings: readonly Posting[], seq: number): void {
    for (const posting of postings) {
      this.ledger.apply(posting, seq)
      if (posting.seq !== undefined) this.postings = posting.seq
    }
  }

  #post({ facts }: FactRecord<CreditFacts>, { seq }: RecordPlace): void {
    this.#move(facts.postings, seq)
  }

  #welcome(act: FactRecord<WelcomeFacts>, place: RecordPlace): void {
    this.given.welcome(act.facts, act.at)
    this.#post(act, place)
  }

  #reward(act: FactRecord<RewardFacts>, place: RecordPlace): void {
    this.given.reward(act.facts, act.at)
    this.#post(act, place)
  }

  #index(work: Work): void {
    if (!finalStates.has(work.state)) {
      add(this.#holding, work.requester, work.id)
      if (work.worker !== '') add(this.#working, work.worker, work)
    }
    this.#schedule(work)
  }

  #unindex(work: Work): void {
    drop(this.#holding, work.requester, work.id)
    if (work.worker !== '') drop(this.#working, work.worker, work)
  }

  #schedule(work: Work): void {
    if (isUnconfirmed(work, this.epoch)) this.#unconfirmed.add(work)
    else this.#unconfirmed.delete(work)
    const before = this.#dueOf.get(work)
    if (before !== undefined) this.#due.remove(before)
    const at = nextDue(work, this.epoch)
    if (at === Number.POSITIVE_INFINITY) {
      this.#dueOf.delete(work)
      return
    }
    const due = { at, work }
    this.#dueOf.set(work, due)
    this.#due.add(due)
  }
}

function add<Value>(table: Map<string, Set<Value>>, key: string, value: Value): void {
  const found = table.get(key)
  if (found === undefined) table.set(key, new Set([value]))
  else found.add(value)
}

function drop<Value>(table: Map<string, Set<Value>>, key: string, value: Value): void {
  const found = table.get(key)
  if (found?.delete(value) === true && found.size === 0) table.delete(key)
}

function isForNewcomers({ eligibility, is_public, simulated }: Work): boolean {
  return eligibility === 'first_work' && is_public && !simulated
}

const noWorks: ReadonlySet<Work> = new Set()
