/**
 * Thread lists, by latest activity, by age and by the votes in a time window; and the counts of each thread.
 *
 * The index is built from the board and the marks when a reader first asks, and follows them from then on. None of it is in a
 * snapshot or a record, so the lists are the same after a start from either. A thread is identified by the slot of its root.
 *
 * The position of a thread is its newest visible post. That is usually its last post; memory records only the exceptions. An
 * order is a list of numbers for a room, a page, an author or the front page, built when it is first read. The orders by
 * activity and by age are built only as far down as they are read. A thread without any visible post is in no list. A thread
 * that moderators moved is listed in the room it was moved to, on the page of the same name.
 */

import { BoundedMap } from '../../storage/bounded-map.ts'
import { hourSeconds, type MarksWatcher, type PostMarks, SoonestFirst } from '../posts/marks.ts'
import type { Counted, Sums } from '../posts/votes.ts'
import { allSlots, type Room, slotsIn } from '../records/board.ts'
import type { Core } from '../records/core.ts'
import { type EventIndex, none } from '../records/event-index.ts'
import type { Slots } from '../records/slot-lists.ts'
import type { Rules } from '../rooms/rules.ts'
import type { MoveWatcher, ThreadFlags } from './flags.ts'
import { Looks, NewestFirst } from './newest-first.ts'
import { Ordered } from './ordered.ts'
import { ThreadScores, type VoteWindow } from './scores.ts'

export const threadOrders = ['active', 'new', 'top'] as const
export type ThreadOrder = (typeof threadOrders)[number]

export type ThreadsQuery = {
  /** Absent: the rooms of the front page. */
  readonly room?: Room
  readonly page?: string
  /** Number of the root's author. */
  readonly author?: number
  readonly order: ThreadOrder
  /** For the order `top`. */
  readonly window: VoteWindow
  readonly limit: number
  /** Numbers of authors whose threads are left out. */
  readonly without?: ReadonlySet<number>
  /** Continue after this position. */
  readonly from: number | undefined
}
/** Where threads are listed. */
type Place = {
  readonly room?: Room | undefined
  readonly page?: string | undefined
  readonly author?: number | undefined
}
/** Slots of roots. `next`: position of the last thread examined, if more may follow. */
export type ThreadsFound = { readonly roots: readonly number[]; readonly next: number | undefined }

export type ThreadSums = {
  /** Visible posts, not counting the root. */
  readonly replies: number
  /** Authors of visible posts. */
  readonly participants: number
  /** Slot of the newest visible post, or `none`. */
  readonly last: number
  /** Unix seconds when the next visible post expires; 0: none will. */
  readonly until: number
}

/** A thread with more posts than this is counted incrementally, a shorter one on request. */
const shortMax = 32
/** Threads examined for one page of a list, as in other lists. */
const looksMax = 20_000
/** Slots examined to find these, which is fast: a page that ends early because of this limit says where to continue. */
const slotsLookedMax = 100_000
/** The same if old events are on disk. */
const oldLookedMax = 5_000
/** Lists held in memory; those read least recently are dropped, and rebuilt when needed. */
const scopesMax = 4_096

/** The lists for one place where threads are listed. */
type Scope = { active?: NewestFirst; fresh?: NewestFirst; readonly top: Map<VoteWindow, Ordered> }

export class Threads {
  readonly #core: Core
  readonly #marks: PostMarks
  readonly #rules: Rules
  readonly #flags: ThreadFlags
  #index: ThreadIndex | undefined

  constructor(core: Core, marks: PostMarks, rules: Rules, flags: ThreadFlags) {
    this.#core = core
    this.#marks = marks
    this.#rules = rules
    this.#flags = flags
  }

  /** The index as of `now` (Unix seconds), which never goes back. */
  at(now: number): ThreadIndex {
    if (this.#index === undefined) {
      this.#index = new ThreadIndex(this.#core, this.#marks, this.#rules, this.#flags, now)
      this.#marks.watcher = this.#index
      this.#flags.watcher = this.#index
    }
    this.#index.pass(now)
    return this.#index
  }
}

export class ThreadIndex implements MarksWatcher, MoveWatcher {
  readonly #core: Core
  readonly #marks: PostMarks
  readonly #rules: Rules
  readonly #flags: ThreadFlags
  /** Root -> newest visible post, or `none`; only for threads whose last post is not visible. */
  readonly #last = new Map<number, number>()
  readonly #long = new Map<number, LongThread>()
  readonly #scopes = new BoundedMap<string, Scope>(scopesMax)
  readonly #expiring: SoonestFirst
  /** Unix seconds: posts that expire up to then are not shown. */
  #passed: number
  #hour: number
  /** Built when a reader first asks for an order by votes. */
  #scores: ThreadScores | undefined
  #frontChanges: number

  constructor(core: Core, marks: PostMarks, rules: Rules, flags: ThreadFlags, now: number) {
    this.#core = core
    this.#marks = marks
    this.#rules = rules
    this.#flags = flags
    this.#passed = now
    this.#hour = Math.floor(now / hourSeconds)
    this.#frontChanges = rules.frontChanges
    const { events } = core.board
    this.#expiring = new SoonestFirst((slot) => events.expires(slot))
    const { roomList } = core.board
    const isListed = (slot: number) => !marks.isEdit(slot) && core.board.lists(roomList[events.room(slot)]!)
    for (const slot of events.expiring()) {
      if (!isListed(slot)) continue
      if (events.expires(slot) > now) this.#expiring.add(slot)
      else this.marked(slot)
    }
    for (const slot of marks.marked()) if (isListed(slot)) this.marked(slot)
  }

  /** Unix seconds when the next post on the board expires; 0: none will. */
  get expiry(): number {
    const { first } = this.#expiring
    return first === undefined ? 0 : this.#core.board.events.expires(first)
  }

  /** Unix seconds when votes next leave this window; 0: never. */
  turn(window: VoteWindow): number {
    return window === 'all' ? 0 : (this.#hour + 1) * hourSeconds
  }

  find(query: ThreadsQuery): ThreadsFound {
    const { limit, from = Number.POSITIVE_INFINITY } = query
    const roots: number[] = []
    const looks = new Looks(this.#looksMax)
    let examined = 0
    let last = from
    for (const place of this.#places(query, from, looks)) {
      if (examined++ === looksMax) return { roots, next: last }
      const root = this.#rootAt(query.order, place)
      if (this.#fits(query, place, root)) {
        if (roots.length === limit) return { roots, next: last }
        roots.push(root)
      }
      last = place
    }
    return { roots, next: looks.reached }
  }

  /** Position of a root in the list of this query, as `from` takes it. */
  placeOf({ order, window }: Pick<ThreadsQuery, 'order' | 'window'>, root: number): number {
    if (order === 'active') return this.#lastOf(root)
    return order === 'new' ? root : rankOf(this.#scored.of(window, root), root)
  }

  get #looksMax(): number {
    return this.#core.board.events.hasOld ? oldLookedMax : slotsLookedMax
  }

  /** Whether any post of its thread is visible. */
  isShown(root: number): boolean {
    return this.#lastOf(root) !== none
  }

  /**
   * Prefetches threads that will be listed next. Each is a chain of events: step by step, the next link of all of them is
   * prefetched and read.
   */
  prefetch(roots: readonly number[]): void {
    const { events } = this.#core.board
    if (!events.readsAreSlow) return
    let slots = roots
    for (let posts = 0; posts < shortMax && slots.length > 0; posts++) {
      events.prefetch(slots)
      slots = slots.map((slot) => events.next(slot)).filter((slot) => slot !== none)
    }
    events.prefetch(roots.map((root) => this.#lastOf(root)))
  }

  sums(root: number): ThreadSums {
    const last = this.#lastOf(root)
    const { events } = this.#core.board
    const authors = new Set<number>()
    let [shown, posts, until] = [0, 0, 0]
    for (let slot = root; slot !== none; slot = events.next(slot)) {
      if (++posts > shortMax) return this.#longSums(root, last)
      if (this.#isGone(slot)) continue
      shown++
      authors.add(events.author(slot))
      const end = events.expires(slot)
      if (end !== 0 && (until === 0 || end < until)) until = end
    }
    return { replies: shown - Number(!this.#isGone(root)), participants: authors.size, last, until }
  }

  /** Votes on the root and all replies. */
  votes(root: number): Sums {
    const { events } = this.#core.board
    let [up, down, posts] = [0, 0, 0]
    for (let slot = root; slot !== none; slot = events.next(slot)) {
      if (++posts > shortMax) return this.#longOf(root).votes
      const sums = this.#marks.votes(slot)
      up += sums.up
      down += sums.down
    }
    return { up, down, score: up - down }
  }

  /** Hides what has expired by `now`, and drops votes that have become too old from their windows. */
  pass(now: number): void {
    const { events } = this.#core.board
    this.#passed = Math.max(this.#passed, now)
    for (let slot = this.#expiring.first; slot !== undefined; slot = this.#expiring.first) {
      if (events.expires(slot) > this.#passed) break
      this.#expiring.removeFirst()
      this.marked(slot)
    }
    this.#hour = Math.max(this.#hour, Math.floor(now / hourSeconds))
    this.#scores?.turn(this.#hour)
    if (this.#frontChanges === this.#rules.frontChanges) return
    this.#frontChanges = this.#rules.frontChanges
    this.#scopes.delete(frontScope)
  }

  posted(slot: number): void {
    const { events } = this.#core.board
    if (events.expires(slot) !== 0 && events.expires(slot) > this.#passed) this.#expiring.add(slot)
    const root = this.#core.board.events.rootOf(slot)
    const isGone = this.#isGone(slot)
    this.#long.get(root)?.add(slot, isGone)
    const before = slot === root ? none : (this.#last.get(root) ?? events.tail(slot))
    this.#stand(root, before, isGone ? before : slot)
  }

  marked(slot: number): void {
    const { events } = this.#core.board
    const root = this.#core.board.events.rootOf(slot)
    const isGone = this.#isGone(slot)
    this.#long.get(root)?.show(slot, isGone)
    const before = this.#lastOf(root)
    if (!isGone) {
      if (before === none || slot > before) this.#stand(root, before, slot)
      return
    }
    if (slot !== before) return
    let last = slot
    while (last !== none && this.#isGone(last)) last = last === root ? none : events.tail(last)
    // A root's own `tail` is the newest event of its thread.
    this.#stand(root, before, last)
  }

  moving(root: number): void {
    this.#list(root, this.#lastOf(root), none)
  }

  moved(root: number): void {
    this.#list(root, none, this.#lastOf(root))
  }

  voted(slot: number, before: Counted, after: Counted): void {
    const root = this.#core.board.events.rootOf(slot)
    this.#long.get(root)?.vote(slot, this.#marks.votes(slot))
    this.#scores?.voted(root, before, after)
  }

  #isGone(slot: number): boolean {
    return this.#marks.gone(slot, this.#passed) !== undefined
  }

  #lastOf(root: number): number {
    return this.#last.get(root) ?? this.#core.board.events.tail(root)
  }

  /** Sets the thread's position to `to`. */
  #stand(root: number, from: number, to: number): void {
    if (to === this.#core.board.events.tail(root)) this.#last.delete(root)
    else this.#last.set(root, to)
    this.#list(root, from, to)
  }

  /** Moves a thread from position `from` to `to` in its lists. */
  #list(root: number, from: number, to: number): void {
    if (from === to) return
    for (const { active, fresh, top } of this.#scopesOf(root)) {
      if (from !== none) active?.remove(from)
      if (to !== none) active?.add(to)
      if (from !== none && to !== none) continue
      if (to === none) fresh?.remove(root)
      else fresh?.add(root)
      for (const [window, list] of top) {
        const score = this.#scored.of(window, root)
        if (score === 0) continue
        if (to === none) list.remove(rankOf(score, root))
        else list.add(rankOf(score, root))
      }
    }
  }

  get #scored(): ThreadScores {
    const { events } = this.#core.board
    this.#scores ??= new ThreadScores(
      this.#marks.casts(),
      (event) => events.rootOf(event),
      this.#hour,
      (window, root, before, after) => this.#rank(window, root, before, after),
    )
    return this.#scores
  }

  #rank(window: VoteWindow, root: number, before: number, after: number): void {
    if (!this.isShown(root)) return
    for (const { top } of this.#scopesOf(root)) {
      const list = top.get(window)
      if (before !== 0) list?.remove(rankOf(before, root))
      if (after !== 0) list?.add(rankOf(after, root))
    }
  }

  #longSums(root: number, last: number): ThreadSums {
    const { shown, participants, until } = this.#longOf(root)
    return { replies: shown - Number(!this.#isGone(root)), participants, last, until }
  }

  #longOf(root: number): LongThread {
    const known = this.#long.get(root)
    if (known !== undefined) return known
    const { events } = this.#core.board
    const long = new LongThread(events)
    for (let slot = root; slot !== none; slot = events.next(slot)) {
      long.add(slot, this.#isGone(slot))
      long.vote(slot, this.#marks.votes(slot))
    }
    this.#long.set(root, long)
    return long
  }

  *#places(query: ThreadsQuery, from: number, looks: Looks): Generator<number> {
    const scope = this.#scopeOf(query)
    if (query.order === 'active') yield* this.#active(query, scope, from).below(from, looks)
    else if (query.order === 'new') yield* this.#fresh(query, scope, from).below(from, looks)
    else yield* this.#ranked(query, scope, from, looks)
  }

  /** Threads with a positive score first, then those with none, then those with a negative one. */
  *#ranked(query: ThreadsQuery, scope: Scope, from: number, looks: Looks): Generator<number> {
    const top = this.#top(query, scope)
    for (const place of top.below(from)) {
      if (place < 0) break
      yield place
    }
    // Threads in it that have votes are examined too, and `#fits` drops them.
    if (from > 0) yield* this.#fresh(query, scope, from).below(from, looks)
    if (looks.reached === undefined) yield* top.below(Math.min(from, 0))
  }

  #fits({ order, window, author, room, page, without }: ThreadsQuery, place: number, root: number): boolean {
    if (order === 'top' && place === root && this.#scored.of(window, root) !== 0) return false
    if (without?.has(this.#core.board.events.author(root)) === true) return false
    // An author's lists are not split by room.
    return author === undefined || this.#isListedIn({ room, page }, root)
  }

  #isIn({ room, page, author }: Place, root: number): boolean {
    if (author !== undefined) return this.#core.board.events.author(root) === author
    return this.#isListedIn({ room, page }, root)
  }

  #isListedIn({ room, page }: Place, root: number): boolean {
    if (room === undefined) return this.#isOnFront(root)
    const { events, pages } = this.#core.board
    return this.#flags.roomOf(root) === room && (page === undefined || events.page(root) === pages.find(page))
  }

  /** Both the thread's own room and the room that lists it must be on the front page, so that no room can put another's threads there. */
  #isOnFront(root: number): boolean {
    const own = this.#core.board.roomList[this.#core.board.events.room(root)]!
    return (
      this.#isFrontRoom(own) && (this.#flags.moveOf(root) === undefined || this.#isFrontRoom(this.#flags.roomOf(root)))
    )
  }

  #isFrontRoom({ name, visibility }: Room): boolean {
    return visibility === 'public' && this.#rules.policyOf(name).front_page
  }

  #rootAt(order: ThreadOrder, place: number): number {
    if (order === 'active') return this.#core.board.events.rootOf(place)
    return order === 'new' ? place : rootIn(place)
  }

  #active(query: ThreadsQuery, scope: Scope, from: number): NewestFirst {
    scope.active ??= this.#activeBelow(query, this.#core.board.events.count)
    return scope.active.hasFound(from) ? scope.active : this.#activeBelow(query, from)
  }

  #fresh(query: ThreadsQuery, scope: Scope, from: number): NewestFirst {
    scope.fresh ??= this.#freshBelow(query, this.#core.board.events.count)
    return scope.fresh.hasFound(from) ? scope.fresh : this.#freshBelow(query, from)
  }

  /** The list outlives the query, so it uses only the query's place. */
  #activeBelow({ room, page, author }: Place, limit: number): NewestFirst {
    const place = { room, page, author }
    const { events } = this.#core.board
    const isPart = author !== undefined || page !== undefined
    // The newest post may be by any author, and on another page than the thread.
    if (isPart && this.#slotsOf(place).length <= this.#looksMax) {
      const roots = this.#freshBelow(place, events.count).below(events.count, new Looks(this.#looksMax))
      return NewestFirst.of(Array.from(roots, (root) => this.#lastOf(root)))
    }
    const isPlace = (slot: number) => {
      const root = events.rootOf(slot)
      return this.#lastOf(root) === slot && this.#isOwn(place, root)
    }
    const guests = this.#guestsOf(place).map((root) => this.#lastOf(root))
    return new NewestFirst(this.#slotsOf(author === undefined ? { room } : {}), limit, isPlace, guests)
  }

  #freshBelow({ room, page, author }: Place, limit: number): NewestFirst {
    const place = { room, page, author }
    const { events } = this.#core.board
    const isPlace = (slot: number) =>
      events.root(slot) === none && this.#lastOf(slot) !== none && this.#isOwn(place, slot)
    return new NewestFirst(this.#slotsOf(place), limit, isPlace, this.#guestsOf(place))
  }

  #top(query: ThreadsQuery, scope: Scope): Ordered {
    const known = scope.top.get(query.window)
    if (known !== undefined) return known
    const ranks: number[] = []
    for (const root of this.#votedOn(query)) {
      const score = this.#scored.of(query.window, root)
      if (score !== 0 && this.#lastOf(root) !== none && this.#isIn(query, root)) ranks.push(rankOf(score, root))
    }
    const made = Ordered.numbers(Float64Array.from(ranks).sort())
    scope.top.set(query.window, made)
    return made
  }

  /** A superset of the roots with a score: either all threads with votes or all threads in the place, whichever are fewer. */
  *#votedOn(query: ThreadsQuery): Generator<number> {
    const slots = this.#slotsOf(query)
    const voted = this.#scored.all(query.window)
    if (voted.size <= slots.length) return yield* voted.keys()
    const { events } = this.#core.board
    for (let position = 0; position < slots.length; position++)
      if (events.root(slots.at(position)) === none) yield slots.at(position)
    yield* this.#guestsOf(query)
  }

  /** Slots of the events that include those of the scope's own threads. */
  #slotsOf({ room, page, author }: Place): Slots {
    const { board } = this.#core
    if (author !== undefined) return board.authors.at(author).events
    return room === undefined ? allSlots(board) : slotsIn(room, page)
  }

  /** Whether a thread is listed there, given that its events are among those slots (for an author, among any). */
  #isOwn({ room, page, author }: Place, root: number): boolean {
    if (author !== undefined) return this.#core.board.events.author(root) === author
    if (room === undefined) return this.#isOnFront(root)
    const { events, pages } = this.#core.board
    return this.#flags.moveOf(root) === undefined && (page === undefined || events.page(root) === pages.find(page))
  }

  /** Roots of the threads moved into a room that have a visible post. */
  #guestsOf({ room, page, author }: Place): number[] {
    if (author !== undefined || room === undefined) return []
    const isShown = (root: number) => this.isShown(root) && this.#isListedIn({ room, page }, root)
    return [...this.#flags.movedInto(room)].filter(isShown)
  }

  #scopeOf(query: ThreadsQuery): Scope {
    const name = scopeName(query, this.#core)
    const known = this.#scopes.touch(name)
    if (known !== undefined) return known
    const scope: Scope = { top: new Map() }
    this.#scopes.set(name, scope)
    return scope
  }

  *#scopesOf(root: number): Generator<Scope> {
    if (this.#scopes.size === 0) return
    for (const name of this.#namesOf(root)) {
      const scope = this.#scopes.get(name)
      if (scope !== undefined) yield scope
    }
  }

  /** Names of the scopes that list a thread. */
  #namesOf(root: number): string[] {
    const { events } = this.#core.board
    const { number } = this.#flags.roomOf(root)
    const names = [`room ${number}`, `page ${number} ${events.page(root)}`, `author ${events.author(root)}`]
    if (this.#isOnFront(root)) names.push(frontScope)
    return names
  }
}

/** A thread with many posts: which of them are visible, and who wrote those. */
class LongThread {
  shown = 0
  readonly #events: EventIndex
  /** Author -> number of their visible posts. */
  readonly #authors = new Map<number, number>()
  readonly #gone = new Set<number>()
  /** Posts that were voted on -> their sums. */
  readonly #voted = new Map<number, Sums>()
  #votes: Sums = { up: 0, down: 0, score: 0 }
  /** Posts that will expire, and some that have expired or are hidden. */
  readonly #expiring: SoonestFirst

  constructor(events: EventIndex) {
    this.#events = events
    this.#expiring = new SoonestFirst((slot) => events.expires(slot))
  }

  get until(): number {
    for (let slot = this.#expiring.first; slot !== undefined; slot = this.#expiring.first) {
      if (!this.#gone.has(slot)) return this.#events.expires(slot)
      this.#expiring.removeFirst()
    }
    return 0
  }

  /** Votes on all its posts. */
  get votes(): Sums {
    return this.#votes
  }

  get participants(): number {
    return this.#authors.size
  }

  add(slot: number, isGone: boolean): void {
    if (isGone) this.#gone.add(slot)
    else this.#showNow(slot)
  }

  /** Sets the sums of a post. */
  vote(slot: number, sums: Sums): void {
    const before = this.#voted.get(slot)
    if (before === undefined && sums.up + sums.down === 0) return
    this.#voted.set(slot, sums)
    const up = this.#votes.up + sums.up - (before?.up ?? 0)
    const down = this.#votes.down + sums.down - (before?.down ?? 0)
    this.#votes = { up, down, score: up - down }
  }

  /** Sets whether an added post is visible. */
  show(slot: number, isGone: boolean): void {
    if (this.#gone.has(slot) === isGone) return
    if (isGone) this.#gone.add(slot)
    else this.#gone.delete(slot)
    if (isGone) this.#count(slot, -1)
    else this.#showNow(slot)
  }

  #showNow(slot: number): void {
    this.#count(slot, 1)
    if (this.#events.expires(slot) !== 0) this.#expiring.add(slot)
  }

  #count(slot: number, more: 1 | -1): void {
    const author = this.#events.author(slot)
    const posts = (this.#authors.get(author) ?? 0) + more
    this.shown += more
    if (posts === 0) this.#authors.delete(author)
    else this.#authors.set(author, posts)
  }
}

const frontScope = 'front'

function scopeName({ room, page, author }: ThreadsQuery, { board }: Core): string {
  if (author !== undefined) return `author ${author}`
  if (room === undefined) return frontScope
  return page === undefined ? `room ${room.number}` : `page ${room.number} ${board.pages.find(page)}`
}

const slotsMax = 2 ** 32

/** One number that orders by score, and by age among equal scores. */
function rankOf(score: number, root: number): number {
  return score * slotsMax + root
}

function rootIn(rank: number): number {
  return rank - Math.floor(rank / slotsMax) * slotsMax
}
