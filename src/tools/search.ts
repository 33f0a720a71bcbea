/**
 * A search of the directory, from the text of a query to one page of results.
 *
 *   text -> parse -> index -> filters -> rank -> one page
 *
 * A list is ranked once. Its order and scores are cached for a while under a number that is in the cursor. So successive pages
 * are parts of one list, whatever is added meanwhile; what is withdrawn meanwhile is left out. After a thousand results, or if
 * the list is no longer cached (evicted by other searches, or after a restart), paging continues after the position of the last
 * result shown, with relevance relative to the best score of the first page.
 */

import { createHash } from 'node:crypto'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { CursorSealer } from '../format/cursor.ts'
import type { Doc } from './doc.ts'
import type { Matches, ToolIndex, Where } from './index.ts'
import { type Filters, type Parsed, parseQuery } from './parse.ts'
import { billionthsOf, networkName } from './prices.ts'
import { type Quality, qualityIn, type Sources } from './quality.ts'
import { comparePlaces, doorMax, doorTerm, keyOf, type Place, qualityWeight, scoreOf, spamPenalty } from './rank.ts'

export type ToolAsk = {
  readonly text: string
  readonly said: Partial<Filters>
  readonly cursor: string
  readonly limit: number
}

export type Found = {
  readonly doc: Doc
  readonly where: Where
  readonly place: Place
  readonly quality: Quality
  readonly shownScore: number
}

export type Page = {
  readonly parsed: Parsed
  readonly matched: number
  readonly results: readonly Found[]
  readonly nextCursor: string
}

/** Sealed in a cursor. `s`: the last score shown, which later ones never exceed; `g`: the last score of group 0. */
type Mark = {
  readonly h: string
  readonly l: number
  readonly o: number
  readonly b: number
  readonly s: number
  readonly g: number
  readonly p: readonly [group: number, key: number, r: number, price: number | null, id: string]
}

type Kept = {
  readonly hash: string
  readonly numbers: Float64Array
  readonly scores: Float64Array
  /** Nothing comes after the last of them. */
  readonly isAll: boolean
}

/** A document with its position; where it matches is looked up only for those that are shown. */
type Standing = Place & { readonly slot: number; readonly doc: Doc; readonly quality: Quality }
type Scored = { readonly at: Standing; readonly shownScore: number }
type Sorted = { readonly standings: Standing[]; readonly isAll: boolean }
type Part = {
  readonly found: readonly Scored[]
  readonly more: boolean
  readonly list: number
  readonly offset: number
}

const cursorName = 'tools.search'
/** Results of a list that are ranked at a time; if a client pages further, the next ones are ranked then. */
const listMax = 1_000
/** Total results in cached lists: 16 bytes each. */
const keptMax = 400_000

const staleCursor = refusal(
  'invalid_field',
  'this cursor does not belong to this search: start again without one, or send the same text and filters with it',
  'cursor',
)

export class ToolSearch {
  readonly #index: ToolIndex
  readonly #sources: Sources
  readonly #cursors: CursorSealer
  /** Oldest first. */
  readonly #kept = new Map<number, Kept>()
  #keptCount = 0
  #lists: number

  /** `first`: number of the first list; no two runs of a board may use the same. */
  constructor(index: ToolIndex, sources: Sources, cursors: CursorSealer, first: number) {
    this.#index = index
    this.#sources = sources
    this.#cursors = cursors
    this.#lists = first
  }

  page(ask: ToolAsk, now: number): Page | Refusal {
    const parsed = parseQuery(ask.text, ask.said)
    const hash = hashOf(parsed)
    const mark = ask.cursor === '' ? undefined : this.#open(ask.cursor)
    if (ask.cursor !== '' && mark?.h !== hash) return staleCursor
    const matches = this.#matches(parsed)
    const best = mark?.b ?? bestOf(matches)
    const { found, more, list, offset } =
      mark === undefined
        ? this.#first(parsed, matches, best, hash, ask.limit, now)
        : this.#next(parsed, matches, mark, ask.limit, now)
    const last = found.at(-1)
    const nextCursor = more && last !== undefined ? this.#seal({ hash, list, offset, best, last, before: mark }) : ''
    const where = matches.where(found.map(({ at }) => at.slot))
    const results = found.map(({ at, shownScore }) => {
      const { slot, doc, quality, ...place } = at
      return { doc, where: where.get(slot) ?? nowhere, place, quality, shownScore }
    })
    return { parsed, matched: matches.slots.length, results, nextCursor }
  }

  #first(parsed: Parsed, matches: Matches, best: number, hash: string, limit: number, now: number): Part {
    const ranked = this.#ranked(parsed, matches, best, now)
    return this.#part(parsed, ranked, hash, limit, { s: Number.POSITIVE_INFINITY, g: Number.POSITIVE_INFINITY })
  }

  #next(parsed: Parsed, matches: Matches, mark: Mark, limit: number, now: number): Part {
    const kept = this.#kept.get(mark.l)
    if (kept?.hash === mark.h && mark.o < kept.numbers.length)
      return this.#ofKept(parsed, matches, kept, mark, limit, now)
    const [group, key, r, price, id] = mark.p
    const from: Place = { group, key, r, price: price ?? Number.POSITIVE_INFINITY, id }
    return this.#part(parsed, this.#ranked(parsed, matches, mark.b, now, from), mark.h, limit, mark)
  }

  /** The first of the ranked results; the list is cached for the following pages. */
  #part(
    parsed: Parsed,
    { standings, isAll }: Sorted,
    hash: string,
    limit: number,
    before: Pick<Mark, 's' | 'g'>,
  ): Part {
    const all = scored(standings, parsed.filters.door !== '', before.s, before.g)
    const more = all.length > limit || !isAll
    const list = more ? this.#keep(hash, all, isAll) : 0
    return { found: all.slice(0, limit), more, list, offset: limit }
  }

  #ofKept(parsed: Parsed, matches: Matches, kept: Kept, mark: Mark, limit: number, now: number): Part {
    const found: Scored[] = []
    let offset = mark.o
    for (; offset < kept.numbers.length && found.length < limit; offset++) {
      const slot = this.#index.slotOf(kept.numbers[offset]!)
      if (slot === undefined || !has(matches.slots, slot)) continue
      const at = this.#standing(parsed, slot, matches.scores[slot]!, mark.b, now)
      found.push({ at, shownScore: kept.scores[offset]! })
    }
    return { found, more: offset < kept.numbers.length || !kept.isAll, list: mark.l, offset }
  }

  /** What matches text and filters. Without either: the tools of this board. */
  #matches(parsed: Parsed): Matches {
    const { words, filters, expanded } = parsed
    const accepts = filterOf(filters) ?? (words.length === 0 ? ({ isOwn }: Doc) => isOwn : undefined)
    const categories = [...new Set(Object.values(expanded).flat())]
    const matches = words.length === 0 ? this.#index.all() : this.#index.search(words, categories)
    if (accepts === undefined) return matches
    return { ...matches, slots: matches.slots.filter((slot) => accepts(this.#index.at(slot))) }
  }

  /** The best `listMax` of them in order; `from`: only those after this position. */
  #ranked(parsed: Parsed, { slots, scores }: Matches, best: number, now: number, from?: Place): Sorted {
    const chosen = new TopItems<Standing>(listMax, comparePlaces)
    // Other facts about a document are looked up only if they could bring it among the best.
    const mostAdded = qualityWeight + (parsed.filters.door === '' ? 0 : doorMax)
    for (const slot of slots) {
      const score = scores[slot]!
      const { worst } = chosen
      const least = worst === undefined || worst.group > 0 ? Number.NEGATIVE_INFINITY : worst.key
      const most = relevance(score, best) + mostAdded - (this.#index.isFloodAt(slot) ? spamPenalty : 0)
      const standing = most < least ? undefined : this.#standing(parsed, slot, score, best, now)
      if (standing === undefined) chosen.pass()
      else if (from === undefined || comparePlaces(standing, from) > 0) chosen.add(standing)
    }
    return { standings: chosen.inOrder(), isAll: !chosen.isOver }
  }

  #standing(parsed: Parsed, slot: number, score: number, best: number, now: number): Standing {
    const doc = this.#index.at(slot)
    const quality = qualityIn(this.#sources, doc, now)
    const { verdict, state, q } = quality
    const r = relevance(score, best)
    const d = doorOf(doc, parsed.filters.door, now)
    const key = keyOf({ r, q, verdict, state, isSpam: this.#index.isFloodAt(slot), d })
    const group = parsed.isSignUp && doc.isOwn ? 1 : 0
    return { group, key, r, price: doc.billionths, id: doc.id, slot, doc, quality }
  }

  #keep(hash: string, all: readonly Scored[], isAll: boolean): number {
    const number = ++this.#lists
    const kept: Kept = {
      hash,
      isAll,
      numbers: Float64Array.from(all, ({ at }) => at.doc.number),
      scores: Float64Array.from(all, ({ shownScore }) => shownScore),
    }
    this.#kept.set(number, kept)
    this.#keptCount += all.length
    for (const [oldest, { numbers }] of this.#kept) {
      if (this.#keptCount <= keptMax || oldest === number) break
      this.#kept.delete(oldest)
      this.#keptCount -= numbers.length
    }
    return number
  }

  #seal(at: {
    hash: string
    list: number
    offset: number
    best: number
    last: Scored
    before: Mark | undefined
  }): string {
    const { hash, list, offset, best, last, before } = at
    const { group, key, r, price, id } = last.at
    const mark: Mark = {
      h: hash,
      l: list,
      o: offset,
      b: best,
      s: last.shownScore,
      g: group === 0 ? last.shownScore : (before?.g ?? last.shownScore),
      p: [group, key, r, Number.isFinite(price) ? price : null, id],
    }
    return this.#cursors.seal(cursorName, mark)
  }

  #open(cursor: string): Mark | undefined {
    return this.#cursors.open(cursorName, cursor) as Mark | undefined
  }
}

const nowhere: Where = new Map()

function bestOf({ slots, scores }: Matches): number {
  let best = 0
  for (const slot of slots) best = Math.max(best, scores[slot]!)
  return best
}

function relevance(score: number, best: number): number {
  return Math.min(1, best === 0 ? 1 : score / best)
}

/** Whether the ascending slots contain this one. */
function has(slots: Uint32Array, slot: number): boolean {
  let low = 0
  let high = slots.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (slots[middle]! < slot) low = middle + 1
    else high = middle
  }
  return slots[low] === slot
}

/** Gives each result its score: derived from its key, but never above that of the result before it. */
function scored(standings: readonly Standing[], hasDoor: boolean, before: number, lastOfFirstGroup: number): Scored[] {
  let ceiling = before
  return standings.map((at) => {
    const limit = at.group === 0 ? ceiling : Math.min(ceiling, lastOfFirstGroup)
    ceiling = Math.min(limit, scoreOf(at.key, hasDoor))
    return { at, shownScore: ceiling }
  })
}

function doorOf({ doors }: Doc, wanted: string, now: number): number {
  if (wanted === '') return 0
  const names = wanted.split(',')
  const terms = doors
    .filter(({ door }) => names.includes(door))
    .map(({ source, checked_at }) => doorTerm(source, checked_at, now))
  return terms.length === 0 ? 0 : Math.max(...terms)
}

/** Undefined if every document passes. */
function filterOf(filters: Filters): ((doc: Doc) => boolean) | undefined {
  const { type, category, max_price, output, network, protocol, door } = filters
  const rules: ((doc: Doc) => boolean)[] = []
  if (type.length > 0) rules.push((doc) => type.includes(doc.type))
  if (category !== '') rules.push((doc) => doc.category === category || doc.tags.includes(category))
  if (max_price !== '') {
    const most = Number(billionthsOf(max_price) ?? 0n)
    rules.push(({ billionths }) => billionths <= most)
  }
  if (output !== '') rules.push((doc) => doc.output === output)
  if (network !== '') {
    const name = networkName(network)
    rules.push((doc) => networkName(doc.network) === name || (doc.network !== '' && doc.tags.includes(name)))
  }
  if (protocol !== '')
    rules.push(({ protocols }) => protocols.some((each) => each === protocol || each.startsWith(`${protocol}/`)))
  if (door !== '') {
    const names = door.split(',')
    rules.push(({ doors }) => doors.some((each) => names.includes(each.door)))
  }
  return rules.length === 0 ? undefined : (doc) => rules.every((rule) => rule(doc))
}

/** Identifies a search: text and filters as they were understood. */
function hashOf({ words, filters, isSignUp }: Parsed): string {
  return createHash('sha256')
    .update(JSON.stringify([words, filters, isSignUp]))
    .digest('base64url')
    .slice(0, 12)
}

/** Selects the first `most` items in an order without sorting the rest: a heap whose root is the last of those selected. */
export class TopItems<Item> {
  readonly #most: number
  readonly #compare: (a: Item, b: Item) => number
  readonly #heap: Item[] = []
  #isOver = false

  /** `compare`: negative if `a` comes before `b`. */
  constructor(most: number, compare: (a: Item, b: Item) => number) {
    this.#most = most
    this.#compare = compare
  }

  /** The item that a new one must come before to be selected; undefined while there is room. */
  get worst(): Item | undefined {
    return this.#heap.length < this.#most ? undefined : this.#heap[0]
  }

  /** Whether there were more than are selected. */
  get isOver(): boolean {
    return this.#isOver
  }

  add(item: Item): void {
    if (this.#heap.length < this.#most) {
      this.#heap.push(item)
      this.#siftUp(this.#heap.length - 1)
      return
    }
    this.#isOver = true
    if (this.#compare(item, this.#heap[0]!) >= 0) return
    this.#heap[0] = item
    this.#siftDown(0)
  }

  /** Notes that there was another item, which ranks after all selected ones. */
  pass(): void {
    this.#isOver = true
  }

  inOrder(): Item[] {
    return [...this.#heap].sort(this.#compare)
  }

  #siftUp(from: number): void {
    let at = from
    while (at > 0) {
      const above = (at - 1) >>> 1
      if (this.#compare(this.#heap[at]!, this.#heap[above]!) <= 0) return
      this.#swap(at, above)
      at = above
    }
  }

  #siftDown(from: number): void {
    let at = from
    for (;;) {
      let last = at
      for (const below of [2 * at + 1, 2 * at + 2])
        if (below < this.#heap.length && this.#compare(this.#heap[below]!, this.#heap[last]!) > 0) last = below
      if (last === at) return
      this.#swap(at, last)
      at = last
    }
  }

  #swap(a: number, b: number): void {
    const item = this.#heap[a]!
    this.#heap[a] = this.#heap[b]!
    this.#heap[b] = item
  }
}
