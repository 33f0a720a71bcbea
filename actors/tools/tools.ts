/**
 * The state of the tools directory: current listings and where their texts are stored, owners of hosts, results of probes, and
 * reviews.
 *
 * All listings are decided by one actor, `@tools`; reviews by the room `reviews`. Texts stay in the journal: the state has only
 * the place and a digest of each listing. Everything here is public, so the feed and the index of the directory hold the same.
 */

import { createHash } from 'node:crypto'
import { dayOf, daySeconds } from '../kernel/day.ts'
import { hex } from '../kernel/hex.ts'
import type { AuthorFacts, HideFacts, RedactFacts, RestoreFacts } from '../posts/marks.ts'
import type { Projection, RecordPlace } from '../records/core.ts'
import { ActsOf, commandIn, type FactRecord, type PostRecord } from '../records/record.ts'
import { type ProbeVerdict, type ReviewKind, reviewKinds } from './kinds.ts'
import { digestOf, hostOf, type ListingFields, listingFieldsIn, subjectOf } from './listing.ts'

/** Name of the actor that decides all listings. */
export const toolsActor = '@tools'

/** Why a listing was withdrawn; '' = it is current. */
type Withdrawn = '' | 'owner' | 'operator'

/** Probes remembered per listing. */
const probesKept = 64

export type Probe = { readonly at: number; readonly isGood: boolean }

type LastProbe = {
  /** Id of the command that requested it, or of the probe in a daily round, 32 hex. */
  readonly id: string
  readonly at: number
  readonly verdict: ProbeVerdict
  /** What the tool itself reported, where it differs from its listing. */
  readonly mismatch: readonly string[]
  /** Where the result is recorded. */
  readonly shard: number
  readonly seq: number
}

export type Entry = {
  readonly id: string
  subject: string
  host: string
  /** Identity id of its publisher, or of whoever took it over; '' = imported, without an owner. */
  owner: string
  /** Where its content is stored: a journal record, and the row of an import. */
  shard: number
  seq: number
  row: number
  digest: string
  readonly createdAt: number
  updatedAt: number
  withdrawn: Withdrawn
  readonly probes: Probe[]
  lastProbe: LastProbe | undefined
  /** UTC day on which the daily round last probed it. */
  lookedDay: number
}

/** `verified`: the host names its author as an owner, as far as was known at the time. */
export type PublishFacts = { readonly id: string; readonly verified: boolean }
export type WithdrawFacts = { readonly id: string; readonly by: Exclude<Withdrawn, ''> }
/** Numbers of the rows that took effect, and why others did not. */
export type ImportFacts = {
  readonly applied: readonly number[]
  readonly unchanged: number
  readonly kept: readonly (readonly [row: number, why: string])[]
}
/** A probe was requested and has no result yet. */
export type ProbeFacts = { readonly tool: string; readonly host: string }
/** The daily round probes it, and has no result yet. */
export type RoundFacts = ProbeFacts & { readonly day: number }
export type ProbedFacts = {
  /** Id of the command that requested it, or of the probe in a daily round. */
  readonly probe: string
  readonly tool: string
  readonly host: string
  /**
   * `identity`: who requested it; in a daily round, the owner. `isOwner`: whether the host names this identity as an owner;
   * undefined if it could not be asked.
   */
  readonly identity: string
  readonly isOwner: boolean | undefined
  readonly optOut: boolean | undefined
  readonly verdict: ProbeVerdict
  readonly isGood: boolean
  readonly mismatch: readonly string[]
  /** What the probe sent and received, as shown to readers. */
  readonly saw: Readonly<Record<string, unknown>>
}

type PackedEntry = readonly [
  id: string,
  subject: string,
  host: string,
  owner: string,
  shard: number,
  seq: number,
  row: number,
  digest: string,
  createdAt: number,
  updatedAt: number,
  withdrawn: Withdrawn,
  probes: readonly (readonly [at: number, isGood: boolean])[],
  lastProbe: LastProbe | null,
  lookedDay: number,
]
type Packed = {
  readonly entries: readonly PackedEntry[]
  readonly owners: readonly (readonly [host: string, identities: readonly string[]])[]
  readonly optedOut: readonly string[]
  readonly asked: readonly (readonly [host: string, at: number])[]
  readonly looks: readonly [day: number, count: number]
  readonly reviews: ReturnType<Reviews['pack']>
}

/** Acts that record the result of a probe. */
export const probedActs = new ActsOf<ProbedFacts>('tools.probed')

export class Tools implements Projection, Grounds<Entry> {
  readonly acts: Projection['acts'] = {
    'tools.publish': (act: FactRecord<PublishFacts>, place: RecordPlace) => this.#said(act, place, act.facts.id),
    'tools.update': (act: FactRecord<PublishFacts>, place: RecordPlace) => this.#said(act, place, act.facts.id),
    'tools.import': (act, place) => this.#imported(act, place),
    'tools.withdraw': ({ facts, at }: FactRecord<WithdrawFacts>) => {
      const { id, by } = facts
      const entry = this.#byId.get(id)!
      entry.withdrawn = by
      entry.updatedAt = at
      this.version++
    },
    'tools.probe': ({ facts, at }: FactRecord<ProbeFacts>) => {
      this.#asked.set(facts.host, at)
    },
    'tools.round': (act) => this.#rounded(act),
    'tools.probed': (act, place) => this.#probed(act, place),
  }
  version = 0
  readonly reviews = new Reviews()
  readonly #byId = new Map<string, Entry>()
  readonly #byOwner = new Map<string, Set<string>>()
  readonly #owners = new Map<string, Set<string>>()
  readonly #optedOut = new Set<string>()
  /** Host -> when a probe of it was last requested. */
  readonly #asked = new Map<string, number>()
  readonly #rounds = new Rounds<Entry>()
  /** Number of probes by the daily round, on the newest day that had any. */
  #looks: readonly [day: number, count: number] = [0, 0]

  onEvent(event: PostRecord, _slot: number, place: RecordPlace): void {
    this.reviews.take(event, place.id)
  }

  onAct(act: FactRecord): void {
    if (showing.is(act)) this.reviews.mark(act.facts.id, act.op === 'room.hide')
    if (redactions.is(act)) this.reviews.remove(act.facts.id)
    if (ofAuthors.is(act)) this.reviews.markWithAuthor(act.facts.id, act.op === 'author.hide')
  }

  /** Number of current listings. */
  get count(): number {
    let count = 0
    for (const entry of this.#byId.values()) if (this.isListed(entry)) count++
    return count
  }

  find(id: string): Entry | undefined {
    return this.#byId.get(id)
  }

  entries(): IterableIterator<Entry> {
    return this.#byId.values()
  }

  isListed({ withdrawn, host }: Entry): boolean {
    return withdrawn === '' && !this.#optedOut.has(host)
  }

  hasOptedOut(host: string): boolean {
    return this.#optedOut.has(host)
  }

  /** Whether the host itself names this identity as an owner. */
  isOwnerOf(host: string, identity: string): boolean {
    return this.#owners.get(host)?.has(identity) ?? false
  }

  /** Whether one host names both as its owners. */
  shareHost(one: string, other: string): boolean {
    for (const identities of this.#owners.values()) if (identities.has(one) && identities.has(other)) return true
    return false
  }

  /** Number of listings that an identity has in the directory. */
  countOf(identity: string): number {
    let count = 0
    for (const id of this.#byOwner.get(identity) ?? []) if (this.#byId.get(id)!.withdrawn === '') count++
    return count
  }

  /** Unix seconds, 0 = never. */
  lastAsked(host: string): number {
    return this.#asked.get(host) ?? 0
  }

  /** Listings whose hosts name their owners and agree to be in the directory. */
  *invited(): IterableIterator<Entry> {
    for (const [host, identities] of this.#owners)
      for (const identity of identities)
        for (const id of this.#byOwner.get(identity) ?? []) {
          const entry = this.#byId.get(id)!
          if (entry.host === host && this.isListed(entry)) yield entry
        }
  }

  /** Listings that the daily round may probe now. */
  due(walk: Walk, most: number): Entry[] {
    return this.#rounds.due(this, walk, most)
  }

  /** Number of probes by the daily round on this day. */
  looksOn(day: number): number {
    const [newest, count] = this.#looks
    return day === newest ? count : 0
  }

  pack(): Packed {
    return {
      entries: [...this.#byId.values()].map((entry) => [
        entry.id,
        entry.subject,
        entry.host,
        entry.owner,
        entry.shard,
        entry.seq,
        entry.row,
        entry.digest,
        entry.createdAt,
        entry.updatedAt,
        entry.withdrawn,
        entry.probes.map(({ at, isGood }) => [at, isGood] as const),
        entry.lastProbe ?? null,
        entry.lookedDay,
      ]),
      owners: [...this.#owners].map(([host, identities]) => [host, [...identities]] as const),
      optedOut: [...this.#optedOut],
      asked: [...this.#asked],
      looks: this.#looks,
      reviews: this.reviews.pack(),
    }
  }

  restore({ entries, owners, optedOut, asked, looks = [0, 0], reviews }: Packed): void {
    for (const [id, subject, host, owner, shard, seq, row, digest, createdAt, updatedAt, ...rest] of entries) {
      const [withdrawn, probes, lastProbe, lookedDay = 0] = rest
      this.#byId.set(id, {
        ...{ id, subject, host, owner, shard, seq, row, digest, createdAt, updatedAt, withdrawn },
        probes: probes.map(([at, isGood]) => ({ at, isGood })),
        lastProbe: lastProbe ?? undefined,
        lookedDay,
      })
      if (owner !== '') this.#ofOwner(owner).add(id)
    }
    for (const [host, identities] of owners) this.#owners.set(host, new Set(identities))
    for (const host of optedOut) this.#optedOut.add(host)
    for (const [host, at] of asked) this.#asked.set(host, at)
    this.#looks = looks
    this.reviews.restore(reviews)
  }

  #said(act: FactRecord<PublishFacts>, place: RecordPlace, id: string): void {
    this.#enter(
      id,
      listingFieldsIn(act)[0]!,
      { at: act.at, owner: Buffer.from(act.author).toString('hex'), row: 0 },
      place,
    )
  }

  #imported(act: FactRecord<ImportFacts>, place: RecordPlace): void {
    const rows = listingFieldsIn(act)
    for (const row of act.facts.applied) {
      const fields = rows[row]!
      this.#enter(fields.id!, fields, { at: act.at, owner: '', row }, place)
    }
  }

  #enter(
    id: string,
    fields: ListingFields,
    { at, owner, row }: { at: number; owner: string; row: number },
    { shard, seq }: RecordPlace,
  ): void {
    const { type = 'service', service = '', url = '', mcp_url = '' } = fields
    const named = { id, type, service, url, mcp_url }
    const said = { subject: subjectOf(named), host: hostOf(named), owner, shard, seq, row, digest: digestOf(fields) }
    const known = this.#byId.get(id)
    if (known === undefined) {
      const entry: Entry = {
        id,
        ...said,
        createdAt: at,
        updatedAt: at,
        withdrawn: '',
        probes: [],
        lastProbe: undefined,
        lookedDay: 0,
      }
      this.#byId.set(id, entry)
    } else {
      if (known.owner !== owner) this.#byOwner.get(known.owner)?.delete(id)
      Object.assign(known, said, { updatedAt: at, withdrawn: '' })
    }
    if (owner !== '') this.#ofOwner(owner).add(id)
    this.version++
  }

  #rounded({ facts, at }: FactRecord<RoundFacts>): void {
    const { tool, host, day } = facts
    this.#asked.set(host, at)
    this.#looks = [day, this.looksOn(day) + 1]
    const entry = this.#byId.get(tool)
    if (entry !== undefined) entry.lookedDay = day
  }

  #probed({ facts, at }: FactRecord<ProbedFacts>, { shard, seq }: RecordPlace): void {
    const { probe: id, tool, host, identity, isOwner, optOut, verdict, isGood, mismatch } = facts
    if (isOwner !== undefined && isOwner !== this.isOwnerOf(host, identity)) {
      this.version++
      const owners = this.#owners.get(host) ?? new Set<string>()
      if (isOwner) owners.add(identity)
      else owners.delete(identity)
      if (owners.size === 0) this.#owners.delete(host)
      else this.#owners.set(host, owners)
    }
    if (optOut !== undefined && optOut !== this.hasOptedOut(host)) {
      this.version++
      if (optOut) this.#optedOut.add(host)
      else this.#optedOut.delete(host)
    }
    const entry = this.#byId.get(tool)
    if (entry === undefined || verdict === 'not_probed') return
    // Owners can request probes at will: successful ones count once a day, failed ones each time.
    const last = entry.probes.at(-1)
    if (isGood && last?.isGood === true && dayOf(last.at) === dayOf(at)) entry.probes.pop()
    entry.probes.push({ at, isGood })
    if (entry.probes.length > probesKept) entry.probes.shift()
    entry.lastProbe = { id, at, verdict, mismatch, shard, seq }
  }

  #ofOwner(identity: string): Set<string> {
    const known = this.#byOwner.get(identity)
    if (known !== undefined) return known
    const made = new Set<string>()
    this.#byOwner.set(identity, made)
    return made
  }
}

/** Acts that remove or restore a text. */
const showing = new ActsOf<HideFacts | RestoreFacts>('room.hide', 'room.restore')
const redactions = new ActsOf<RedactFacts>('event.redact')
/** The same because of a suspension of the author, independent of other marks. */
const ofAuthors = new ActsOf<AuthorFacts>('author.hide', 'author.show')

export const reviewsRoom = 'reviews'

export type Review = {
  /** Id of the event, 32 hex. */
  readonly id: string
  /** Identity id. */
  readonly author: string
  readonly subject: string
  readonly kind: ReviewKind
  /** Unix seconds. */
  readonly at: number
}

type PackedReviews = {
  readonly reviews: readonly (readonly [id: string, author: string, subject: string, kind: ReviewKind, at: number])[]
  readonly gone: readonly string[]
  /** Absent in snapshots of older releases. */
  readonly goneWithAuthor?: readonly string[]
}

const none: readonly Review[] = []

/** Ordered by time: all reviews of a subject, and the newest of each author. */
type OfSubject = { readonly all: Review[]; readonly newest: Map<string, Review> }

/**
 * Reviews of tools: posts in the room `reviews` whose signed command is `tools.review`. Only an author's newest review of a
 * subject counts; while it is hidden, none of theirs does. A redacted review counts as never written: its subject is destroyed
 * with its text.
 */
export class Reviews {
  /** Every review there was, so that a mark on an older one is recognized. */
  readonly #byId = new Map<string, Review>()
  readonly #bySubject = new Map<string, OfSubject>()
  readonly #gone = new Set<string>()
  readonly #goneWithAuthor = new Set<string>()

  /** Takes an event; returns undefined if it is not a review. */
  take(event: PostRecord, key: Uint8Array): Review | undefined {
    if (event.room !== reviewsRoom || event.original !== undefined || event.by.signed.length === 0) return undefined
    const command = commandIn(event.by.signed)
    if (command.operation !== 'tools.review') return undefined
    const kind = reviewKinds.find((each) => each === command.kind)
    if (kind === undefined) return undefined
    const review: Review = {
      id: hex(key),
      author: hex(event.author),
      subject: command.target!,
      kind,
      at: event.at,
    }
    this.#add(review)
    return review
  }

  /** An event is hidden, or shown again. */
  mark(event: Uint8Array, isHidden: boolean): void {
    const id = hex(event)
    if (!this.#byId.has(id)) return
    if (isHidden) this.#gone.add(id)
    else this.#gone.delete(id)
  }

  /** An event is redacted: its author's previous review counts again. */
  remove(event: Uint8Array): void {
    const id = hex(event)
    const review = this.#byId.get(id)
    if (review === undefined) return
    this.#byId.delete(id)
    this.#gone.delete(id)
    this.#goneWithAuthor.delete(id)
    const { all } = this.#bySubject.get(review.subject)!
    this.#bySubject.delete(review.subject)
    for (const each of all) if (each !== review) this.#list(each)
  }

  /** A suspension of its author hides an event, or its end shows it again. */
  markWithAuthor(event: Uint8Array, isGone: boolean): void {
    const id = hex(event)
    if (!this.#byId.has(id)) return
    if (isGone) this.#goneWithAuthor.add(id)
    else this.#goneWithAuthor.delete(id)
  }

  /** The reviews that count for a subject, oldest first. */
  of(subject: string): readonly Review[] {
    const reviews = this.#bySubject.get(subject)
    // Most subjects have none, and a search queries thousands.
    return reviews === undefined ? none : [...reviews.newest.values()].filter(({ id }) => !this.#isGone(id))
  }

  find(id: string): Review | undefined {
    return this.#byId.get(id)
  }

  /** All reviews that count now. */
  *all(): Generator<Review> {
    for (const subject of this.#bySubject.keys()) yield* this.of(subject)
  }

  pack(): PackedReviews {
    const reviews = [...this.#byId.values()].map(
      ({ id, author, subject, kind, at }) => [id, author, subject, kind, at] as const,
    )
    return { reviews, gone: [...this.#gone], goneWithAuthor: [...this.#goneWithAuthor] }
  }

  restore({ reviews, gone, goneWithAuthor = [] }: PackedReviews): void {
    for (const [id, author, subject, kind, at] of reviews) this.#add({ id, author, subject, kind, at })
    for (const id of gone) this.#gone.add(id)
    for (const id of goneWithAuthor) this.#goneWithAuthor.add(id)
  }

  #isGone(id: string): boolean {
    return this.#gone.has(id) || this.#goneWithAuthor.has(id)
  }

  #add(review: Review): void {
    this.#byId.set(review.id, review)
    this.#list(review)
  }

  #list(review: Review): void {
    const { all, newest } = this.#ofSubject(review.subject)
    all.push(review)
    // Delete and set again, to move it to the end: the map is ordered by time.
    newest.delete(review.author)
    newest.set(review.author, review)
  }

  #ofSubject(subject: string): OfSubject {
    const known = this.#bySubject.get(subject)
    if (known !== undefined) return known
    const begun: OfSubject = { all: [], newest: new Map() }
    this.#bySubject.set(subject, begun)
    return begun
  }
}

/** A listing, and the UTC day on which it was last probed. */
type Listed = { readonly id: string; readonly host: string; readonly lookedDay: number }

/** The inputs of a round. */
type Walk = {
  /** A secret of the board. */
  readonly seed: string
  /** Between two probes of one host. */
  readonly gapSeconds: number
  readonly now: number
}

/** The listings that may be probed, as the directory knows them. */
type Grounds<Entry extends Listed> = {
  /** Changes when a listing is added or removed. */
  readonly version: number
  invited(): Iterable<Entry>
  lastAsked(host: string): number
}

type Planned<Entry> = { readonly entry: Entry; readonly moment: number }

/** Unix seconds at which a listing is due on a day. */
export function momentOf(id: string, day: number, seed: string): number {
  const hash = createHash('sha256').update(`${seed} ${day} ${id}`).digest()
  return day * daySeconds + (hash.readUIntBE(0, 6) % daySeconds)
}

/**
 * The daily round of probes: which listings are probed without a request, and when.
 *
 * Only listings whose host names their owner are probed, each once per UTC day. The time is derived from the day, the listing
 * and a seed of the board: spread over the day and unpredictable, so that no host can prepare for just that moment. Probes
 * missed while the board was down are due immediately; the prober decides how fast to catch up.
 *
 * The plan of a day is built when first needed, and rebuilt when a listing is added or removed.
 */
export class Rounds<Entry extends Listed> {
  #made = ''
  #plan: Planned<Entry>[] = []

  /** Listings that have been due the longest, one per host, at most `most`. */
  due(grounds: Grounds<Entry>, { seed, gapSeconds, now }: Walk, most: number): Entry[] {
    const day = dayOf(now)
    const made = `${day} ${grounds.version} ${seed}`
    if (made !== this.#made) {
      this.#made = made
      this.#plan = [...grounds.invited()]
        .filter(({ lookedDay }) => lookedDay < day)
        .map((entry) => ({ entry, moment: momentOf(entry.id, day, seed) }))
        .sort((a, b) => a.moment - b.moment)
    }
    const due = this.#plan.findIndex(({ moment }) => moment > now)
    const over = this.#plan.slice(0, due < 0 ? undefined : due).filter(({ entry }) => entry.lookedDay < day)
    this.#plan.splice(0, due < 0 ? this.#plan.length : due, ...over)
    const hosts = new Set<string>()
    const found: Entry[] = []
    for (const { entry } of over) {
      if (found.length === most) break
      if (hosts.has(entry.host) || grounds.lastAsked(entry.host) + gapSeconds > now) continue
      hosts.add(entry.host)
      found.push(entry)
    }
    return found
  }
}
