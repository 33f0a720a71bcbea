/**
 * The full-text index of the directory: every listing, agent and tool of the board. This file decides which words a text has;
 * postings.ts scores them.
 *
 * A document has a permanent number, and a slot until dropped documents are swept out. About 2 KB per document, in the memory
 * of the thread that holds it; the index is rebuilt at its start.
 */

import { stem } from '../search/stem.ts'
import type { Doc, Indexed, Texts } from './doc.ts'
import { Postings, rarity } from './postings.ts'
import { floodMax } from './rank.ts'

export const match =
  'BM25 over name, category, tags, description and url; word stems; prefix on the last word; categories widened; OR'

const fields = ['name', 'category', 'tags', 'description', 'url'] as const satisfies readonly (keyof Texts)[]
export type FieldName = (typeof fields)[number]
const weights = { fields: [4, 3, 2, 1, 1], prefix: 0.375, fuzzy: 0.45 } as const
const categoryField = fields.indexOf('category')
/** Weight of an implied category, relative to one named in the query. */
const widenedWeight = 0.4
/** d + tf (k + 1) / (tf + k) with d = 0.5, tf = 1: the length of such a field is its mean. */
const bm25OfOne = 1.5
/** With fewer matches than this, similar words are tried too. */
const fewMatches = 3
const fuzzy = { fuzziness: 0.2, fuzzyMax: 2 } as const
const exact = { fuzziness: 0, fuzzyMax: 0 } as const
/** Dropped documents are swept out once there are this many, and at least a fifth of the live ones. */
const sweepMin = 1_000

/** Words of the index, and the fields in which each was found. */
export type Where = ReadonlyMap<string, readonly FieldName[]>

/** The matches of a search: slots, ascending, and the score of each by slot. Valid until the index is searched or changed again. */
export type Matches = {
  readonly slots: Uint32Array
  readonly scores: Float64Array
  /** Where these slots match. */
  readonly where: (slots: readonly number[]) => ReadonlyMap<number, Where>
}

/** Listings of one host with one description. */
type Flood = { size: number }
type Category = { readonly name: string; size: number; worth: number }

export class ToolIndex {
  readonly #postings = new Postings(weights)
  /** By slot; a ranking reads thousands. */
  #docs: (Doc | undefined)[] = []
  #floodOf: (Flood | undefined)[] = []
  #categoryOf: Category[] = []
  readonly #slots = new Map<string, number>()
  readonly #subjects = new Map<string, Set<string>>()
  readonly #categories = new Map<string, Category>()
  readonly #floods = new Map<string, Flood>()
  readonly #twins = new Map<string, number>()
  readonly counts: Record<'agent' | 'offering' | 'service' | 'site', number> = {
    agent: 0,
    offering: 0,
    service: 0,
    site: 0,
  }
  #next = 1
  #matched = new Uint32Array(0)

  get count(): number {
    return this.#postings.count
  }

  /** Adds a document, replacing the one with its id. `make` is given its number. */
  put(make: (number: number) => Indexed): void {
    const { doc, texts } = make(this.#next++)
    this.drop(doc.id)
    const slot = this.#postings.add(
      fields.map((field) => {
        const said = tokens(texts[field])
        return { words: said.map(stem), length: new Set(said).size }
      }),
    )
    this.#docs[slot] = doc
    this.#slots.set(doc.id, slot)
    const ofSubject = this.#subjects.get(doc.subject) ?? new Set<string>()
    this.#subjects.set(doc.subject, ofSubject.add(doc.id))
    const category = this.#categories.get(doc.category) ?? { name: doc.category, size: 0, worth: 0 }
    this.#categories.set(doc.category, category)
    category.size++
    this.#categoryOf[slot] = category
    if (doc.flood !== '') {
      const flood = this.#floods.get(doc.flood) ?? { size: 0 }
      flood.size++
      this.#floods.set(doc.flood, flood)
      this.#floodOf[slot] = flood
    } else this.#floodOf[slot] = undefined
    count(this.#twins, doc.twin, 1)
    this.counts[doc.type]++
  }

  drop(id: string): void {
    const slot = this.#slots.get(id)
    if (slot === undefined) return
    const doc = this.#docs[slot]!
    this.#docs[slot] = undefined
    this.#slots.delete(id)
    const ofSubject = this.#subjects.get(doc.subject)!
    ofSubject.delete(id)
    if (ofSubject.size === 0) this.#subjects.delete(doc.subject)
    const category = this.#categoryOf[slot]!
    if (--category.size === 0) this.#categories.delete(category.name)
    const flood = this.#floodOf[slot]
    if (flood !== undefined && --flood.size === 0) this.#floods.delete(doc.flood)
    count(this.#twins, doc.twin, -1)
    this.counts[doc.type]--
    this.#postings.drop(slot)
    this.#sweep()
  }

  find(id: string): Doc | undefined {
    const slot = this.#slots.get(id)
    return slot === undefined ? undefined : this.#docs[slot]
  }

  /** The document in a matched slot. */
  at(slot: number): Doc {
    return this.#docs[slot]!
  }

  /** Slot of the document with this number; numbers ascend with slots. */
  slotOf(number: number): number | undefined {
    // Slots of dropped documents have no number, so they are skipped.
    let low = 0
    let high = this.#docs.length
    while (low < high) {
      const middle = (low + high) >>> 1
      let at = middle
      while (at < high && this.#docs[at] === undefined) at++
      if (at < high && this.#docs[at]!.number < number) low = at + 1
      else high = middle
    }
    while (low < this.#docs.length && this.#docs[low] === undefined) low++
    return this.#docs[low]?.number === number ? low : undefined
  }

  /** Ids of the documents of a subject. */
  ofSubject(subject: string): readonly string[] {
    return [...(this.#subjects.get(subject) ?? [])]
  }

  isFlood({ flood }: Doc): boolean {
    return flood !== '' && (this.#floods.get(flood)?.size ?? 0) > floodMax
  }

  isFloodAt(slot: number): boolean {
    return (this.#floodOf[slot]?.size ?? 0) > floodMax
  }

  /** Number of other documents with the same address. */
  twinsOf({ twin }: Doc): number {
    return twin === '' ? 0 : this.#twins.get(twin)! - 1
  }

  /** Every document, all with the same score. */
  all(): Matches {
    const scores = new Float64Array(this.#postings.slots)
    for (let slot = 0; slot < scores.length; slot++) if (!this.#postings.isDropped(slot)) scores[slot] = 1
    return { slots: this.#collect(scores), scores, where: () => new Map() }
  }

  /** Matches of the words. `categories`: implied ones, searched for in addition, only in categories. */
  search(words: readonly string[], categories: readonly string[]): Matches {
    const stems = tokens(words.join(' ')).map(stem)
    const found = this.#query(stems, categories, exact)
    return found.slots.length < fewMatches ? this.#query(stems, categories, fuzzy) : found
  }

  #query(words: readonly string[], categories: readonly string[], alike: typeof exact | typeof fuzzy): Matches {
    const { scores, clauses } = this.#postings.scores({ words, ...alike })
    const meant = categories.flatMap((name) => this.#categories.get(name) ?? [])
    if (meant.length > 0) this.#widen(scores, meant)
    const where = (slots: readonly number[]) => this.#where(this.#postings.found(clauses, slots), meant)
    return { slots: this.#collect(scores), scores, where }
  }

  /** Adds the scores of documents in an implied category: BM25 of one word in a field of one word. */
  #widen(scores: Float64Array, meant: readonly Category[]): void {
    for (const category of meant)
      category.worth = weights.fields[categoryField]! * widenedWeight * rarity(this.count, category.size) * bm25OfOne
    for (let slot = 0; slot < this.#postings.slots; slot++)
      if (!this.#postings.isDropped(slot)) scores[slot]! += this.#categoryOf[slot]!.worth
    for (const category of meant) category.worth = 0
  }

  #where(found: Map<number, Map<string, number[]>>, meant: readonly Category[]): Map<number, Where> {
    const named = new Map<number, Where>()
    for (const [slot, words] of found) {
      const names = new Map([...words].map(([word, at]) => [word, at.map((field) => fields[field]!)] as const))
      const { name } = this.#categoryOf[slot]!
      if (meant.some((category) => category.name === name)) names.set(name, [...(names.get(name) ?? []), 'category'])
      named.set(slot, names)
    }
    return named
  }

  /** Slots with a score. */
  #collect(scores: Float64Array): Uint32Array {
    const { slots } = this.#postings
    if (this.#matched.length < slots) this.#matched = new Uint32Array(2 * slots)
    let used = 0
    for (let slot = 0; slot < slots; slot++) if (scores[slot]! > 0) this.#matched[used++] = slot
    return this.#matched.subarray(0, used)
  }

  #sweep(): void {
    const { dropped } = this.#postings
    if (dropped < sweepMin || dropped * 5 < this.count) return
    const to = this.#postings.sweep()
    const stays = (_each: unknown, slot: number) => to[slot] !== -1
    this.#docs = this.#docs.filter(stays)
    this.#floodOf = this.#floodOf.filter(stays)
    this.#categoryOf = this.#categoryOf.filter(stays)
    for (const [id, slot] of this.#slots) this.#slots.set(id, to[slot]!)
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
