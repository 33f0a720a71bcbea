/**
 * Changes to events after they were posted: versions, hides, redactions, votes.
 *
 * A mark is set on the original. An edit is a version of the original, stored by its slot; queries for an edit's slot are
 * answered for its original. `gone` is the one place that says whether there is a text to show: a text is gone if it is hidden,
 * redacted, or expired.
 */

import { eventChange, type Page } from '../records/board.ts'
import type { Core, Projection, RecordPlace } from '../records/core.ts'
import { none } from '../records/event-index.ts'
import type { FactRecord, PostRecord } from '../records/record.ts'
import { type Cast, type Counted, type PackedVotes, type Sums, type Value, Votes } from './votes.ts'

/** Who removed the text: its author, the room (owner, moderators, the room's own rules), or the operator of the board. */
export type GoneBy = 'author' | 'room' | 'operator'
type Hide = { readonly reason: string; readonly by: 'room' | 'operator' }
export type Redaction = {
  readonly reason: string
  readonly by: GoneBy
  /** The redacting command: its id (32 hex), and where its record and its leaf are. */
  readonly id: string
  readonly shard: number
  readonly place: number
  readonly leaf: number
}
export type Gone = { readonly reason: string; readonly by: GoneBy | undefined }

const expired: Gone = { reason: 'expired', by: undefined }
const ofSuspended: Hide = { reason: 'its author is suspended', by: 'operator' }

/** Facts of the acts of this part; `id` is the original's. */
export type HideFacts = { readonly id: Uint8Array; readonly reason: string; readonly by: 'room' | 'operator' }
export type RestoreFacts = { readonly id: Uint8Array; readonly reason: string }
export type RedactFacts = { readonly id: Uint8Array; readonly reason: string; readonly by: GoneBy }
/** A suspension of the author hides a post, or its end shows it again. */
export type AuthorFacts = { readonly id: Uint8Array }
export type VoteFacts = { readonly id: Uint8Array; readonly value: Value; readonly up: number; readonly down: number }
/** The sums of an imported event, as claimed by its original board. */
export type ImportedVotesFacts = Pick<VoteFacts, 'id' | 'up' | 'down'>

type Packed = readonly [
  versions: readonly (readonly [original: number, edits: readonly number[]])[],
  hides: readonly (readonly [slot: number, hide: Hide])[],
  redactions: readonly (readonly [slot: number, redaction: Redaction])[],
  changed: readonly (readonly [slot: number, position: number])[],
  votes: PackedVotes,
  /** Absent in snapshots of older releases. */
  hiddenWithAuthor?: readonly number[],
]

/** Notified of changes in threads, after the change. `slot` is an original's. */
export type MarksWatcher = {
  posted(slot: number): void
  /** A mark was set or removed: its text may have become visible or invisible. */
  marked(slot: number): void
  voted(slot: number, before: Counted, after: Counted): void
}

export const hourSeconds = 3_600

export class PostMarks implements Projection {
  /** Undefined until it is first requested. */
  watcher: MarksWatcher | undefined
  readonly acts: Projection['acts'] = {
    'room.hide': (act, place) => this.#hide(act, place),
    'room.restore': (act, place) => this.#restore(act, place),
    'author.hide': (act, place) => this.#hideWithAuthor(act, place),
    'author.show': (act, place) => this.#showWithAuthor(act, place),
    'event.redact': (act, place) => this.#redact(act, place),
    vote: (act) => this.#vote(act),
    'votes.import': (act) => this.#importVotes(act),
  }
  readonly #core: Core
  /** Slot of an edit -> slot of its original. */
  readonly #originals = new Map<number, number>()
  /** Slot of an original -> slots of its edits, oldest first. */
  readonly #edits = new Map<number, number[]>()
  readonly #hides = new Map<number, Hide>()
  /** Separate from hides: each is set and removed on its own, and a post is visible only if it has neither. */
  readonly #hiddenWithAuthor = new Set<number>()
  /** Number of an author -> how many of their posts are among these. */
  readonly #hiddenAuthors = new Map<number, number>()
  readonly #redactions = new Map<number, Redaction>()
  /** Slot -> position of the newest change to the visibility of its text. */
  readonly #changed = new Map<number, number>()
  readonly #votes = new Votes()
  /** Id (32 hex) of a redacting command -> slot of what it redacted. */
  readonly #redacting = new Map<string, number>()
  readonly #pages = new Map<Page, PageMarks>()
  readonly #marked: MarkedEvents
  /** Slots whose text was permanently removed, in the order in which this thread learned it. */
  readonly #removedTextSlots: number[] = []

  constructor(core: Core) {
    this.#core = core
    const { events } = core.board
    this.#marked = {
      endOf: (slot) => events.expires(slot),
      isMarked: (slot) => this.#markOf(slot) !== undefined,
      beginsThread: (slot) => events.root(slot) === none,
    }
  }

  onEvent(event: PostRecord, slot: number, place: RecordPlace): void {
    const { board, changes } = this.#core
    if (event.original === undefined) {
      if (event.expires !== undefined) this.#willExpire(slot)
      this.watcher?.posted(slot)
      return
    }
    const original = board.events.find(event.original)
    this.#originals.set(slot, original)
    // Possible if the clock was set back.
    if (this.#isTextRemoved(original)) this.#removedTextSlots.push(slot)
    const edits = this.#edits.get(original)
    if (edits === undefined) this.#edits.set(original, [slot])
    else edits.push(slot)
    changes.add('event.superseded', eventChange(board, slot, place.change, event.at))
  }

  isEdit(slot: number): boolean {
    return this.#originals.has(slot)
  }

  /** The slot that has the marks: for an edit its original's, else the slot itself. */
  original(slot: number): number {
    return this.#originals.get(slot) ?? slot
  }

  /** Slots of the edits of an original, oldest first. */
  edits(original: number): readonly number[] {
    return this.#edits.get(original) ?? []
  }

  /** Slot of the newest version of an original. */
  newest(original: number): number {
    return this.#edits.get(original)?.at(-1) ?? original
  }

  /** The version that replaced this one, if there is one. */
  successor(slot: number): number | undefined {
    const edits = this.edits(this.original(slot))
    return this.isEdit(slot) ? edits[edits.indexOf(slot) + 1] : edits[0]
  }

  hideOf(slot: number): Hide | undefined {
    return this.roomHideOf(slot) ?? (this.isHiddenWithAuthor(slot) ? ofSuspended : undefined)
  }

  /** The hide that `room.restore` removes. */
  roomHideOf(slot: number): Hide | undefined {
    return this.#hides.get(this.original(slot))
  }

  /** Whether a suspension of its author hides it, regardless of other marks. */
  isHiddenWithAuthor(slot: number): boolean {
    return this.#hiddenWithAuthor.has(this.original(slot))
  }

  /** Numbers of the authors with any post hidden by a suspension. */
  get hiddenAuthors(): IterableIterator<number> {
    return this.#hiddenAuthors.keys()
  }

  redactionOf(slot: number): Redaction | undefined {
    return this.#redactions.get(this.original(slot))
  }

  /** The redaction made by the command with this id (32 hex). */
  redactionBy(id: string): Redaction | undefined {
    const slot = this.#redacting.get(id)
    return slot === undefined ? undefined : this.#redactions.get(slot)
  }

  /** Why there is no text to show at `now` (Unix seconds), or undefined if there is one. */
  gone(slot: number, now: number): Gone | undefined {
    const gone = this.goneWithoutSuspension(slot, now)
    if (gone !== undefined || this.#hiddenWithAuthor.size === 0) return gone
    return this.isHiddenWithAuthor(slot) ? ofSuspended : undefined
  }

  /** The same, ignoring a suspension of its author. */
  goneWithoutSuspension(slot: number, now: number): Gone | undefined {
    const mark = this.#redactions.size + this.#hides.size === 0 ? undefined : this.#ownMarkOf(this.original(slot))
    if (mark !== undefined) return mark
    const ends = this.#core.board.events.expires(slot)
    return ends !== 0 && ends <= now ? expired : undefined
  }

  /** Slots that do not count as separate posts: edits, and what was hidden or redacted. Some slots appear twice. */
  *marked(): IterableIterator<number> {
    yield* this.#originals.keys()
    yield* this.#hides.keys()
    yield* this.#hiddenWithAuthor
    yield* this.#redactions.keys()
  }

  /** Every vote that was ever cast, by the slot of the original. */
  casts(): Iterable<Counted & { readonly event: number }> {
    return this.#votes.all()
  }

  votes(slot: number): Sums {
    return this.#votes.sums(this.original(slot))
  }

  /** The sums if this identity (64 hex) votes this way. */
  votesAfter(slot: number, identity: string, value: Value): Sums {
    return this.#votes.after(slot, this.#core.board.authors.get(identity)?.number, value)
  }

  voteOf(slot: number, identity: string): Value {
    const voter = this.#core.board.authors.get(identity)
    return voter === undefined ? 0 : this.#votes.of(this.original(slot), voter.number)
  }

  /** Position of the newest hide, restore or redaction of this event, or 0. */
  changedAt(slot: number): number {
    return this.#changed.get(this.original(slot)) ?? 0
  }

  /** Visible events and threads of a page at `now`, and when the next of them expires (0: none will). */
  visible(page: Page, now: number): { readonly count: number; readonly threads: number; readonly until: number } {
    const marks = this.#pages.get(page)
    if (marks === undefined) return { count: page.count, threads: page.threads, until: 0 }
    this.#pass(marks, now)
    const { count, threads } = marks.hidden
    return { count: page.count - count, threads: page.threads - threads, until: marks.until }
  }

  /** Slot of the newest event that a page shows at `now`; call it only if the page shows any. */
  newestShown(page: Page, now: number): number {
    const marks = this.#pages.get(page)
    if (marks === undefined) return page.events.at(page.events.length - 1)
    return marks.newest((slot) => this.gone(slot, now) !== undefined)
  }

  /** Slots whose text is permanently removed at `now`, redacted or expired, with every version. The list only grows, at its end. */
  removedTextSlots(now: number): readonly number[] {
    for (const marks of this.#pages.values()) this.#pass(marks, now)
    return this.#removedTextSlots
  }

  pack(): Packed {
    return [
      [...this.#edits],
      [...this.#hides],
      [...this.#redactions],
      [...this.#changed],
      this.#votes.pack(),
      [...this.#hiddenWithAuthor],
    ]
  }

  restore([versions, hides, redactions, changed, votes, hiddenWithAuthor = []]: Packed): void {
    const { events } = this.#core.board
    for (const [original, edits] of versions) {
      this.#edits.set(original, [...edits])
      for (const edit of edits) this.#originals.set(edit, original)
    }
    for (const slot of events.expiring()) if (!this.isEdit(slot)) this.#willExpire(slot)
    for (const [slot, hide] of hides) this.#mark(slot, () => this.#hides.set(slot, hide))
    for (const slot of hiddenWithAuthor) this.#setWithAuthor(slot, true)
    for (const [slot, redaction] of redactions) this.#setRedaction(slot, redaction)
    for (const [slot, position] of changed) this.#changed.set(slot, position)
    this.#votes.restore(votes)
  }

  #hide(act: FactRecord<HideFacts>, place: RecordPlace): void {
    const { id, reason, by } = act.facts
    const slot = this.#core.board.events.find(id)
    this.#mark(slot, () => this.#hides.set(slot, { reason, by }))
    this.#change('event.hidden', slot, act, place)
  }

  #restore(act: FactRecord<RestoreFacts>, place: RecordPlace): void {
    const slot = this.#core.board.events.find(act.facts.id)
    this.#mark(slot, () => this.#hides.delete(slot))
    // If its author is suspended, it is still hidden, for that reason.
    this.#change(this.#markOf(slot) === undefined ? 'event.restored' : 'event.hidden', slot, act, place)
  }

  #hideWithAuthor(act: FactRecord<AuthorFacts>, place: RecordPlace): void {
    const slot = this.#core.board.events.find(act.facts.id)
    const isShown = this.#markOf(slot) === undefined
    this.#setWithAuthor(slot, true)
    if (isShown) this.#change('event.hidden', slot, act, place)
  }

  #showWithAuthor(act: FactRecord<AuthorFacts>, place: RecordPlace): void {
    const slot = this.#core.board.events.find(act.facts.id)
    this.#setWithAuthor(slot, false)
    if (this.#markOf(slot) === undefined) this.#change('event.restored', slot, act, place)
  }

  #setWithAuthor(slot: number, isHidden: boolean): void {
    if (this.#hiddenWithAuthor.has(slot) === isHidden) return
    const author = this.#core.board.events.author(slot)
    const posts = (this.#hiddenAuthors.get(author) ?? 0) + (isHidden ? 1 : -1)
    if (posts === 0) this.#hiddenAuthors.delete(author)
    else this.#hiddenAuthors.set(author, posts)
    this.#mark(slot, () => {
      if (isHidden) this.#hiddenWithAuthor.add(slot)
      else this.#hiddenWithAuthor.delete(slot)
    })
  }

  #redact(act: FactRecord<RedactFacts>, place: RecordPlace): void {
    const { id, reason, by } = act.facts
    const slot = this.#core.board.events.find(id)
    const { shard, seq, leaf } = place
    this.#setRedaction(slot, { reason, by, id: Buffer.from(place.id).toString('hex'), shard, place: seq, leaf })
    this.#change('event.redacted', slot, act, place)
  }

  #vote(act: FactRecord<VoteFacts>): void {
    const { board } = this.#core
    const { id, value } = act.facts
    const voter = board.authors.get(Buffer.from(act.author).toString('hex'))!
    const slot = board.events.find(id)
    const before = this.#votes.cast(slot, voter.number)
    // Repeating the same vote does not change when it was cast.
    const after: Cast = value === before.value ? before : { value, hour: Math.floor(act.at / hourSeconds) }
    this.#votes.set(slot, voter.number, after)
    this.watcher?.voted(slot, before, after)
  }

  #importVotes({ facts: { id, ...sums } }: FactRecord<ImportedVotesFacts>): void {
    const slot = this.#core.board.events.find(id)
    this.#votes.begin(slot, sums)
    this.watcher?.voted(slot, { value: 0, hour: 0 }, { value: sums.up - sums.down, hour: 0 })
  }

  #setRedaction(slot: number, redaction: Redaction): void {
    if (!this.#isTextRemoved(slot)) this.#noteRemovedText(slot)
    this.#mark(slot, () => this.#redactions.set(slot, redaction))
    this.#redacting.set(redaction.id, slot)
  }

  #change(
    kind: 'event.hidden' | 'event.restored' | 'event.redacted',
    slot: number,
    act: FactRecord,
    place: RecordPlace,
  ): void {
    const { board, changes } = this.#core
    this.#changed.set(slot, place.change)
    changes.add(kind, eventChange(board, slot, place.change, act.at))
  }

  #markOf(original: number): Gone | undefined {
    return this.#ownMarkOf(original) ?? (this.#hiddenWithAuthor.has(original) ? ofSuspended : undefined)
  }

  #ownMarkOf(original: number): Gone | undefined {
    return this.#redactions.get(original) ?? this.#hides.get(original)
  }

  /** Changes the marks of an original, and the counts of its page with them. */
  #mark(slot: number, change: () => void): void {
    const before = Number(this.#markOf(slot) !== undefined)
    change()
    const more = Number(this.#markOf(slot) !== undefined) - before
    if (more === 0) return
    this.#marksOf(slot).marked(slot, more === 1 ? 1 : -1)
    this.watcher?.marked(slot)
  }

  #willExpire(slot: number): void {
    if (this.#marksOf(slot).add(slot)) this.#noteRemovedText(slot)
  }

  #pass(marks: PageMarks, now: number): void {
    marks.pass(now, (slot) => {
      if (!this.#redactions.has(slot)) this.#noteRemovedText(slot)
    })
  }

  #noteRemovedText(original: number): void {
    this.#removedTextSlots.push(original, ...this.edits(original))
  }

  #isTextRemoved(original: number): boolean {
    return this.#redactions.has(original) || this.#pages.get(this.#pageOf(original))?.hasExpired(original) === true
  }

  #marksOf(slot: number): PageMarks {
    const page = this.#pageOf(slot)
    let marks = this.#pages.get(page)
    if (marks === undefined) {
      marks = new PageMarks(page, this.#marked)
      this.#pages.set(page, marks)
    }
    return marks
  }

  #pageOf(slot: number): Page {
    const { board } = this.#core
    return board.roomList[board.events.room(slot)]!.pages.get(board.page(slot))!
  }
}

/** Slots ordered by expiry, soonest first: a binary heap. */
export class SoonestFirst {
  readonly #slots: number[] = []
  readonly #endOf: (slot: number) => number

  /** `endOf`: Unix seconds; must not change while a slot is in the heap. */
  constructor(endOf: (slot: number) => number) {
    this.#endOf = endOf
  }

  /** The slot that expires next, if any. */
  get first(): number | undefined {
    return this.#slots[0]
  }

  add(slot: number): void {
    const slots = this.#slots
    const end = this.#endOf(slot)
    let place = slots.length
    slots.push(slot)
    while (place > 0) {
      const above = (place - 1) >>> 1
      if (this.#endOf(slots[above]!) <= end) break
      slots[place] = slots[above]!
      place = above
    }
    slots[place] = slot
  }

  removeFirst(): void {
    const slots = this.#slots
    const slot = slots.pop()
    if (slot === undefined || slots.length === 0) return
    const end = this.#endOf(slot)
    let place = 0
    for (;;) {
      let below = 2 * place + 1
      if (below >= slots.length) break
      if (below + 1 < slots.length && this.#endOf(slots[below + 1]!) < this.#endOf(slots[below]!)) below++
      if (this.#endOf(slots[below]!) >= end) break
      slots[place] = slots[below]!
      place = below
    }
    slots[place] = slot
  }
}

/** What a page must know about its events. */
type MarkedEvents = {
  /** Unix seconds; 0: never. */
  endOf(slot: number): number
  isMarked(slot: number): boolean
  beginsThread(slot: number): boolean
}

type Sum = { count: number; threads: number }

/**
 * Counts what a page does not show, incrementally: nothing that was counted is walked again.
 *
 * There are three kinds: events with a mark (hidden, redacted), expired events without a mark, and events that will expire. A
 * reader's time never goes back (src/clock.ts), so what has expired stays expired. It is counted when a reader first asks after
 * that time and not before, because the state must depend only on the records.
 */
class PageMarks {
  readonly #page: Page
  readonly #events: MarkedEvents
  readonly #marked: Sum = { count: 0, threads: 0 }
  readonly #expired: Sum = { count: 0, threads: 0 }
  /** Unix seconds: everything that expires up to then has expired. */
  #passed = 0
  /** All events that will expire. */
  readonly #waiting: SoonestFirst
  /** Those of them without a mark, and some with one. */
  readonly #shown: SoonestFirst
  /** Positions where nothing is shown, up to the newest when a reader last asked for it. */
  #gone = { from: 0, to: 0 }

  constructor(page: Page, events: MarkedEvents) {
    this.#page = page
    this.#events = events
    this.#waiting = new SoonestFirst((slot) => events.endOf(slot))
    this.#shown = new SoonestFirst((slot) => events.endOf(slot))
  }

  /** Not shown: marked or expired. */
  get hidden(): Readonly<Sum> {
    return {
      count: this.#marked.count + this.#expired.count,
      threads: this.#marked.threads + this.#expired.threads,
    }
  }

  hasExpired(slot: number): boolean {
    const end = this.#events.endOf(slot)
    return end !== 0 && end <= this.#passed
  }

  /** Adds an event that will expire, the newest of the page. Returns true if it has expired already. */
  add(slot: number): boolean {
    if (this.hasExpired(slot)) {
      if (!this.#events.isMarked(slot)) this.#count(this.#expired, slot, 1)
      return true
    }
    this.#waiting.add(slot)
    this.#shown.add(slot)
    return false
  }

  /** An event gets its first mark (`more` is 1), or loses its last one (-1). */
  marked(slot: number, more: 1 | -1): void {
    this.#count(this.#marked, slot, more)
    if (this.hasExpired(slot)) return this.#count(this.#expired, slot, -more)
    if (more === 1) return
    if (this.#events.endOf(slot) !== 0) this.#shown.add(slot)
    const position = this.#page.events.lowerBound(slot)
    this.#gone.from = Math.max(this.#gone.from, position + 1)
  }

  /** Counts what has expired by `now`, and calls `expired` for each. */
  pass(now: number, expired: (slot: number) => void): void {
    for (let slot = this.#waiting.first; slot !== undefined; slot = this.#waiting.first) {
      if (this.#events.endOf(slot) > now) break
      this.#waiting.removeFirst()
      if (!this.#events.isMarked(slot)) this.#count(this.#expired, slot, 1)
      expired(slot)
    }
    this.#passed = Math.max(this.#passed, now)
  }

  /** When the next visible event expires, as of the last `pass`; 0: none will. */
  get until(): number {
    const { endOf, isMarked } = this.#events
    for (let slot = this.#shown.first; slot !== undefined; slot = this.#shown.first) {
      if (endOf(slot) > this.#passed && !isMarked(slot)) return endOf(slot)
      this.#shown.removeFirst()
    }
    return 0
  }

  /** The newest visible event of a page that has one. Events found gone are not examined again. */
  newest(isGone: (slot: number) => boolean): number {
    const { events } = this.#page
    const { from, to } = this.#gone
    let position = events.length - 1
    while (position >= 0) {
      if (position >= from && position < to) position = from - 1
      else if (isGone(events.at(position))) position--
      else break
    }
    this.#gone = { from: position + 1, to: events.length }
    return events.at(position)
  }

  #count(sum: Sum, slot: number, more: number): void {
    sum.count += more
    if (this.#events.beginsThread(slot)) sum.threads += more
  }
}
