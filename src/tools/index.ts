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
/** Below so many matches words that are almost alike are tried too. */
const fewMatches = 3
const fuzziness = 0.2

/** `found`: a word of the index, and the fields that it was found in. */
export type Hit = {
  readonly doc: Doc
  readonly score: number
  readonly found: Readonly<Record<string, readonly string[]>>
}

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
  readonly #floods = new Map<string, number>()
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
    count(this.#floods, doc.flood, 1)
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
    count(this.#floods, doc.flood, -1)
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

  isFlood({ flood }: Doc): boolean {
    return flood !== '' && this.#floods.get(flood)! > floodMax
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
    const hits = new Map<number, Hit>()
    for (const { id, score, match } of this.#mini.search(said))
      hits.set(id as number, { doc: this.#docs.get(id as number)!, score, found: match })
    if (categories.length === 0) return [...hits.values()]
    const meant = {
      queries: [categories.join(' ')],
      fields: ['category'],
      boost: { category: boost.category * widenedWeight },
    }
    for (const { id, score, match } of this.#mini.search({ combineWith: 'OR', ...meant })) {
      const hit = hits.get(id as number)
      const doc = this.#docs.get(id as number)!
      // What was said counts beside what was meant, and both are told.
      if (hit === undefined) hits.set(id as number, { doc, score, found: match })
      else hits.set(id as number, { doc, score: hit.score + score, found: joined(hit.found, match) })
    }
    return [...hits.values()]
  }
}

function joined(said: Hit['found'], meant: Hit['found']): Hit['found'] {
  const all = { ...said }
  for (const [term, fields] of Object.entries(meant)) all[term] = [...new Set([...(all[term] ?? []), ...fields])]
  return all
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
