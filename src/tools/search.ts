/**
 * A search of the directory, from the text somebody sent to one page of results.
 *
 *   text -> parse -> index -> filters -> rank -> one page
 *
 * A list is ranked once. Its order and scores are kept for a while under a number that the cursor bears, so the pages of a walk
 * are parts of one list, whatever is added meanwhile; what is withdrawn meanwhile is left out. Behind a thousand results, or when
 * the list is no longer kept (other walks took its room, or the board was started again), the walk goes on by the place of the
 * last result shown, measured against the best score of the first page.
 */
import { createHash } from 'node:crypto'
import type { CursorSealer } from '../format/cursor.ts'
import { type Refusal, refusal } from '../refusals.ts'
import type { Doc } from './doc.ts'
import type { Hit, ToolIndex } from './index.ts'
import { type Quality, qualityIn, type Sources } from './known.ts'
import { networkName } from './networks.ts'
import { type Filters, type Parsed, parseQuery } from './parse.ts'
import { billionthsOf } from './prices.ts'
import { comparePlaces, doorTerm, keyOf, type Place, scoreOf } from './rank.ts'

export type ToolAsk = {
  readonly text: string
  readonly said: Partial<Filters>
  readonly cursor: string
  readonly limit: number
}

export type Found = Hit & { readonly place: Place; readonly quality: Quality; readonly shownScore: number }

export type Page = {
  readonly parsed: Parsed
  readonly matched: number
  readonly results: readonly Found[]
  readonly nextCursor: string
}

/** Sealed in a cursor. `s`: the last score shown, which no later one is above; `g`: the last score of group 0. */
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
  readonly numbers: Uint32Array
  readonly scores: Float64Array
  /** Nothing stands behind the last of them. */
  readonly isAll: boolean
}

type Sorted = { readonly found: Found[]; readonly isAll: boolean }
type Part = { readonly found: readonly Found[]; readonly more: boolean; readonly list: number; readonly offset: number }

const cursorName = 'tools.search'
/** Results of one list that are put in order at once; who walks on has the next ones ordered then. */
const listMax = 1_000
/** Results that kept lists may have in all: 12 bytes each. */
const keptMax = 400_000

export const staleCursor = refusal(
  'invalid_field',
  'this cursor was not given by this search: start again without one, or send the same text and filters with it',
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

  /** `first`: number of the first list; no two runs of a board may begin with the same. */
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
    const hits = this.#hits(parsed)
    const best = mark?.b ?? hits.reduce((most, { score }) => Math.max(most, score), 0)
    const { found, more, list, offset } =
      mark === undefined
        ? this.#first(parsed, hits, best, hash, ask.limit, now)
        : this.#next(parsed, hits, mark, ask.limit, now)
    const last = found.at(-1)
    const nextCursor = more && last !== undefined ? this.#seal({ hash, list, offset, best, last, before: mark }) : ''
    return { parsed, matched: hits.length, results: found, nextCursor }
  }

  #first(parsed: Parsed, hits: readonly Hit[], best: number, hash: string, limit: number, now: number): Part {
    const ranked = this.#ranked(parsed, hits, best, now)
    return this.#part(parsed, ranked, hash, limit, { s: Number.POSITIVE_INFINITY, g: Number.POSITIVE_INFINITY })
  }

  #next(parsed: Parsed, hits: readonly Hit[], mark: Mark, limit: number, now: number): Part {
    const kept = this.#kept.get(mark.l)
    if (kept?.hash === mark.h && mark.o < kept.numbers.length) return this.#ofKept(parsed, hits, kept, mark, limit, now)
    const [group, key, r, price, id] = mark.p
    const from: Place = { group, key, r, price: price ?? Number.POSITIVE_INFINITY, id }
    return this.#part(parsed, this.#ranked(parsed, hits, mark.b, now, from), mark.h, limit, mark)
  }

  /** The first results of what is ranked; the list is kept for those that follow. */
  #part(parsed: Parsed, { found, isAll }: Sorted, hash: string, limit: number, before: Pick<Mark, 's' | 'g'>): Part {
    scored(found, parsed.filters.door !== '', before.s, before.g)
    const more = found.length > limit || !isAll
    const list = more ? this.#keep(hash, found, isAll) : 0
    return { found: found.slice(0, limit), more, list, offset: limit }
  }

  #ofKept(parsed: Parsed, hits: readonly Hit[], kept: Kept, mark: Mark, limit: number, now: number): Part {
    const byNumber = new Map(hits.map((hit) => [hit.doc.number, hit]))
    const found: Found[] = []
    let offset = mark.o
    for (; offset < kept.numbers.length && found.length < limit; offset++) {
      const hit = byNumber.get(kept.numbers[offset]!)
      if (hit === undefined) continue
      found.push({ ...this.#rank(parsed, hit, mark.b, now), shownScore: kept.scores[offset]! })
    }
    return { found, more: offset < kept.numbers.length || !kept.isAll, list: mark.l, offset }
  }

  /** What matches text and filters. Without any of them: the tools of this board. */
  #hits(parsed: Parsed): Hit[] {
    const { words, filters, expanded } = parsed
    const accepts = filterOf(filters)
    const isEmpty = words.length === 0 && accepts === undefined
    const everything = (): Hit[] => [...this.#index.all()].map((doc) => ({ doc, score: 1, found: {} }))
    const categories = [...new Set(Object.values(expanded).flat())]
    const hits = words.length === 0 ? everything() : this.#index.search(words, categories)
    if (isEmpty) return hits.filter(({ doc }) => doc.isOwn)
    return accepts === undefined ? hits : hits.filter(({ doc }) => accepts(doc))
  }

  /** The best `listMax` of them in their order; `from`: of those that stand behind this place. */
  #ranked(parsed: Parsed, hits: readonly Hit[], best: number, now: number, from?: Place): Sorted {
    const places: Place[] = []
    const qualities: Quality[] = []
    const behind: Hit[] = []
    for (const hit of hits) {
      const quality = qualityIn(this.#sources, hit.doc, now)
      const place = this.#place(parsed, hit, quality, best, now)
      if (from !== undefined && comparePlaces(place, from) <= 0) continue
      places.push(place)
      qualities.push(quality)
      behind.push(hit)
    }
    const order = bestOf(places)
    const found = order.map((at) => ({ ...behind[at]!, place: places[at]!, quality: qualities[at]!, shownScore: 0 }))
    return { found, isAll: order.length === places.length }
  }

  #rank(parsed: Parsed, hit: Hit, best: number, now: number): Found {
    const quality = qualityIn(this.#sources, hit.doc, now)
    return { ...hit, place: this.#place(parsed, hit, quality, best, now), quality, shownScore: 0 }
  }

  #place(parsed: Parsed, { doc, score }: Hit, { verdict, state, q }: Quality, best: number, now: number): Place {
    const r = Math.min(1, best === 0 ? 1 : score / best)
    const d = doorOf(doc, parsed.filters.door, now)
    const key = keyOf({ r, q, verdict, state, isSpam: this.#index.isFlood(doc), d })
    return { group: parsed.isSignUp && doc.isOwn ? 1 : 0, key, r, price: doc.billionths, id: doc.id }
  }

  #keep(hash: string, all: readonly Found[], isAll: boolean): number {
    const number = ++this.#lists
    const kept: Kept = {
      hash,
      isAll,
      numbers: Uint32Array.from(all, ({ doc }) => doc.number),
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
    last: Found
    before: Mark | undefined
  }): string {
    const { hash, list, offset, best, last, before } = at
    const { group, key, r, price, id } = last.place
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

/** Positions of the best `listMax` places in their order: of a hundred thousand only these are sorted. */
function bestOf(places: readonly Place[]): number[] {
  const order = (at: readonly number[]) => [...at].sort((a, b) => comparePlaces(places[a]!, places[b]!))
  if (places.length <= listMax) return order(places.map((_, at) => at))
  // Group 1 stands behind all of group 0, whose keys are at most 1.2.
  const keys = Float64Array.from(places, ({ group, key }) => key - 4 * group)
  const least = Float64Array.from(keys).sort()[keys.length - listMax]!
  const chosen: number[] = []
  for (const [at, key] of keys.entries()) if (key >= least) chosen.push(at)
  return order(chosen).slice(0, listMax)
}

/** Gives each result its score: what its key comes to, and never more than the one before it shows. */
function scored(all: Found[], hasDoor: boolean, before: number, lastOfFirstGroup: number): void {
  let ceiling = before
  for (const [at, each] of all.entries()) {
    const limit = each.place.group === 0 ? ceiling : Math.min(ceiling, lastOfFirstGroup)
    const shownScore = Math.min(limit, scoreOf(each.place.key, hasDoor))
    all[at] = { ...each, shownScore }
    ceiling = shownScore
  }
}

function doorOf({ doors }: Doc, wanted: string, now: number): number {
  if (wanted === '') return 0
  const names = wanted.split(',')
  const terms = doors
    .filter(({ door }) => names.includes(door))
    .map(({ source, checked_at }) => doorTerm(source, checked_at, now))
  return terms.length === 0 ? 0 : Math.max(...terms)
}

/** Undefined: every document passes. */
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

/** Tells one search from another: text and filters as they were understood. */
function hashOf({ words, filters, isSignUp }: Parsed): string {
  return createHash('sha256')
    .update(JSON.stringify([words, filters, isSignUp]))
    .digest('base64url')
    .slice(0, 12)
}
