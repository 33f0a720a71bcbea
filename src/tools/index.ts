/**
 * The index of the directory: every listing, agent and tool of the board by its words. MiniSearch does the counting (BM25+ with
 * weights for fields); which words a text has is decided here.
 *
 * About 12 KB a document, in memory of the thread that holds it, made again at its start. Above some 150,000 documents SQLite
 * would hold it better.
 */
import MiniSearch from 'minisearch'
import type { Doc, Indexed, Texts } from './doc.ts'
import { floodMax } from './rank.ts'
import { stem } from './stem.ts'

export const match =
  'BM25 over name, category, tags, description and url; word stems; prefix on the last word; categories widened; OR'

const fields = ['name', 'category', 'tags', 'description', 'url'] as const
export type FieldName = (typeof fields)[number]
const boost = { name: 4, category: 3, tags: 2, description: 1, url: 1 }
/** What a category that was only meant counts, beside one that was said. */
const widenedWeight = 0.4
/** d + tf (k + 1) / (tf + k) with d = 0.5, tf = 1: the length of such a field is its mean. */
const bm25OfOne = 1.5
/** Below so many matches words that are almost alike are tried too. */
const fewMatches = 3
const fuzziness = 0.2

/** `found`: a word of the index, and the fields that it was found in. */
export type Hit = {
  readonly doc: Doc
  readonly score: number
  readonly found: Readonly<Record<string, readonly string[]>>
}

/** Listings of one machine with one description. */
type Flood = { size: number }

export class ToolIndex {
  readonly #mini = new MiniSearch<Texts & { number: number }>({
    fields: [...fields],
    idField: 'number',
    tokenize: tokens,
    processTerm: stem,
    searchOptions: { boost, combineWith: 'OR' },
    logger: () => undefined,
  })
  readonly #docs = new Map<number, Doc>()
  readonly #numbers = new Map<string, number>()
  readonly #subjects = new Map<string, Set<string>>()
  readonly #categories = new Map<string, Set<number>>()
  readonly #floods = new Map<string, Flood>()
  /** By the number of the document: a ranking asks for thousands. */
  readonly #floodOf: (Flood | undefined)[] = []
  readonly #twins = new Map<string, number>()
  readonly counts: Record<'agent' | 'offering' | 'service' | 'site', number> = {
    agent: 0,
    offering: 0,
    service: 0,
    site: 0,
  }
  #next = 1

  get count(): number {
    return this.#docs.size
  }

  /** Puts a document there, in the place of the one with its id. `make` is given its number. */
  put(make: (number: number) => Indexed): void {
    const { doc, texts } = make(this.#next++)
    this.drop(doc.id)
    this.#docs.set(doc.number, doc)
    this.#numbers.set(doc.id, doc.number)
    const ofSubject = this.#subjects.get(doc.subject) ?? new Set<string>()
    this.#subjects.set(doc.subject, ofSubject.add(doc.id))
    this.#categories.set(doc.category, (this.#categories.get(doc.category) ?? new Set()).add(doc.number))
    if (doc.flood !== '') {
      const flood = this.#floods.get(doc.flood) ?? { size: 0 }
      flood.size++
      this.#floods.set(doc.flood, flood)
      this.#floodOf[doc.number] = flood
    }
    count(this.#twins, doc.twin, 1)
    this.counts[doc.type]++
    this.#mini.add({ number: doc.number, ...texts })
  }

  drop(id: string): void {
    const number = this.#numbers.get(id)
    if (number === undefined) return
    const doc = this.#docs.get(number)!
    this.#docs.delete(number)
    this.#numbers.delete(id)
    const ofSubject = this.#subjects.get(doc.subject)!
    ofSubject.delete(id)
    if (ofSubject.size === 0) this.#subjects.delete(doc.subject)
    this.#categories.get(doc.category)!.delete(number)
    const flood = this.#floodOf[number]
    if (flood !== undefined && --flood.size === 0) this.#floods.delete(doc.flood)
    delete this.#floodOf[number]
    count(this.#twins, doc.twin, -1)
    this.counts[doc.type]--
    this.#mini.discard(number)
  }

  find(id: string): Doc | undefined {
    const number = this.#numbers.get(id)
    return number === undefined ? undefined : this.#docs.get(number)
  }

  at(number: number): Doc | undefined {
    return this.#docs.get(number)
  }

  all(): IterableIterator<Doc> {
    return this.#docs.values()
  }

  /** Ids of the documents of a subject. */
  ofSubject(subject: string): readonly string[] {
    return [...(this.#subjects.get(subject) ?? [])]
  }

  isFlood({ number }: Doc): boolean {
    return (this.#floodOf[number]?.size ?? 0) > floodMax
  }

  /** Other documents with the same address. */
  twinsOf({ twin }: Doc): number {
    return twin === '' ? 0 : this.#twins.get(twin)! - 1
  }

  /** What the words match, in no order. `categories`: looked for beside them, in categories alone. */
  search(words: readonly string[], categories: readonly string[]): Hit[] {
    const exact = this.#query(words, categories, false)
    return exact.length < fewMatches ? this.#query(words, categories, true) : exact
  }

  #query(words: readonly string[], categories: readonly string[], isFuzzy: boolean): Hit[] {
    const text = words.join(' ')
    const said = {
      combineWith: 'OR' as const,
      queries: [text],
      prefix: (_term: string, at: number, terms: string[]) => at === terms.length - 1,
      ...(isFuzzy ? { fuzzy: fuzziness, maxFuzzy: 2 } : {}),
    }
    const matched = this.#mini.search(said)
    const hits: Hit[] = new Array(matched.length)
    for (const [at, { id, score, match }] of matched.entries())
      hits[at] = { doc: this.#docs.get(id as number)!, score, found: match }
    return categories.length === 0 ? hits : this.#widened(hits, categories)
  }

  /** The same with what is of a category that was meant: its worth is added, and it is told. */
  #widened(said: readonly Hit[], categories: readonly string[]): Hit[] {
    const hits = new Map<number, Hit>()
    for (const hit of said) hits.set(hit.doc.number, hit)
    for (const category of categories) {
      const numbers = this.#categories.get(category)
      if (numbers === undefined) continue
      // BM25 of one word in a field of one word, as MiniSearch counts it.
      const rarity = Math.log(1 + (this.count - numbers.size + 0.5) / (numbers.size + 0.5))
      const worth = boost.category * widenedWeight * rarity * bm25OfOne
      for (const number of numbers) {
        const hit = hits.get(number)
        const found = { ...hit?.found, [category]: [...(hit?.found[category] ?? []), 'category'] }
        hits.set(number, { doc: this.#docs.get(number)!, score: (hit?.score ?? 0) + worth, found })
      }
    }
    return [...hits.values()]
  }
}

/** Words of a text: runs of letters and digits, in lower case. */
export function tokens(text: string): string[] {
  return (
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  )
}

function count(table: Map<string, number>, key: string, by: number): void {
  if (key === '') return
  const now = (table.get(key) ?? 0) + by
  if (now === 0) table.delete(key)
  else table.set(key, now)
}
