/**
 * The inverted index: which documents have which words, and how they score. BM25+ over weighted fields, with the same scores as
 * MiniSearch 7 (a test compares the two), but in flat arrays of numbers instead of an object per match. A word that occurs in
 * half of a hundred thousand documents takes a millisecond, and match positions are looked up only for documents that are
 * shown.
 *
 * A document is a slot; slots are assigned in ascending order. Each word has one list of pairs of 32-bit numbers, ascending by
 * slot: the slot, then field (3 bits), length of that field in it (16) and how often the word occurs (13). A dropped document
 * stays in the lists until they are swept.
 */
import { Words } from './words.ts'

type Weights = {
  /** For each field, in the order in which texts are given. */
  readonly fields: readonly number[]
  /** For a word that only matches as a prefix, and for one that is only similar. */
  readonly prefix: number
  readonly fuzzy: number
}

type Query = {
  /** Words in the form that the index uses. */
  readonly words: readonly string[]
  /** The fraction of a word's letters that may differ, and the maximum; 0: none. */
  readonly fuzziness: number
  readonly fuzzyMax: number
}

/** A word of the index that a query matches. `source`: the index of the query word. */
type Clause = { readonly source: number; readonly word: string; readonly list: List; readonly weight: number }

const k = 1.2
const b = 0.7
const d = 0.5

const lengthMax = 0xffff
const timesMax = 0x1fff
/** Lists shorter than this are scanned instead of binary-searched. */
const walkMax = 32

/** A list of pairs that grows by half its size. */
class List {
  pairs = new Uint32Array(4)
  used = 0

  push(slot: number, packed: number): void {
    if (this.used === this.pairs.length) {
      const more = new Uint32Array(this.used + 2 * Math.ceil(this.used / 4))
      more.set(this.pairs)
      this.pairs = more
    }
    this.pairs[this.used++] = slot
    this.pairs[this.used++] = packed
  }
}

export class Postings {
  readonly #weights: Weights
  readonly #words = new Words<List>()
  /** Sum of the lengths of each field. */
  readonly #total: number[]
  /** Lengths by slot and field. */
  #lengths: Uint32Array
  #isDropped = new Uint8Array(64)
  #slots = 0
  #dropped = 0
  /** For the last query, by slot: the score, how many of its words occur, and the last of them. */
  #scores = new Float64Array(0)
  #matched = new Uint16Array(0)
  #last = new Uint16Array(0)

  constructor(weights: Weights) {
    this.#weights = weights
    this.#total = weights.fields.map(() => 0)
    this.#lengths = new Uint32Array(64 * weights.fields.length)
  }

  /** Number of documents that are not dropped. */
  get count(): number {
    return this.#slots - this.#dropped
  }

  /** Number of slots, including dropped ones. */
  get slots(): number {
    return this.#slots
  }

  get dropped(): number {
    return this.#dropped
  }

  isDropped(slot: number): boolean {
    return this.#isDropped[slot] === 1
  }

  /** Adds a document and returns its slot. For each field: its words, and its length. */
  add(fields: readonly { readonly words: readonly string[]; readonly length: number }[]): number {
    const slot = this.#slots++
    this.#grow()
    for (const [field, { words, length }] of fields.entries()) {
      this.#total[field]! += length
      this.#lengths[slot * fields.length + field] = length
      const times = new Map<string, number>()
      for (const word of words) times.set(word, (times.get(word) ?? 0) + 1)
      for (const [word, count] of times) {
        const packed = (field << 29) | (Math.min(length, lengthMax) << 13) | Math.min(count, timesMax)
        this.#words.fetch(word, () => new List()).push(slot, packed >>> 0)
      }
    }
    return slot
  }

  drop(slot: number): void {
    this.#isDropped[slot] = 1
    this.#dropped++
    const { length } = this.#total
    for (let field = 0; field < length; field++) this.#total[field]! -= this.#lengths[slot * length + field]!
  }

  /** Removes the slots of dropped documents; the others move together in order. Returns old slot -> new slot, -1 if dropped. */
  sweep(): Int32Array {
    const to = new Int32Array(this.#slots)
    const width = this.#total.length
    let next = 0
    for (let slot = 0; slot < this.#slots; slot++) {
      to[slot] = this.#isDropped[slot] === 1 ? -1 : next++
      if (to[slot] !== -1) this.#lengths.copyWithin(to[slot]! * width, slot * width, (slot + 1) * width)
    }
    for (const list of this.#words.values()) {
      let used = 0
      for (let at = 0; at < list.used; at += 2) {
        const slot = to[list.pairs[at]!]!
        if (slot === -1) continue
        list.pairs[used++] = slot
        list.pairs[used++] = list.pairs[at + 1]!
      }
      list.used = used
    }
    this.#words.sweep(({ used }) => used === 0)
    this.#isDropped.fill(0)
    this.#slots = next
    this.#dropped = 0
    return to
  }

  /** The score of each slot for the query, 0 if nothing matches; valid until the next query. The last word may be a prefix. */
  scores(query: Query): { readonly scores: Float64Array; readonly clauses: readonly Clause[] } {
    const slots = this.#slots
    if (this.#scores.length < slots) {
      this.#scores = new Float64Array(this.#isDropped.length)
      this.#matched = new Uint16Array(this.#isDropped.length)
      this.#last = new Uint16Array(this.#isDropped.length)
    }
    for (const each of [this.#scores, this.#matched, this.#last]) each.fill(0, 0, slots)
    const clauses = this.#clauses(query)
    for (const clause of clauses) this.#count(clause)
    // A document with more of the words scores proportionally higher.
    for (let slot = 0; slot < slots; slot++) this.#scores[slot]! *= this.#matched[slot]!
    return { scores: this.#scores, clauses }
  }

  /** Where these slots have the words of the query: slot -> word of the index -> fields, in the order of the query. */
  found(clauses: readonly Clause[], slots: readonly number[]): Map<number, Map<string, number[]>> {
    const found = new Map(slots.map((slot) => [slot, new Map<string, number[]>()] as const))
    const looked = new Set<List>()
    for (const { word, list } of clauses) {
      if (looked.has(list)) continue
      looked.add(list)
      const note = (at: number) => {
        const words = found.get(list.pairs[at]!)
        const fields = words?.get(word)
        const field = list.pairs[at + 1]! >>> 29
        if (fields !== undefined) fields.push(field)
        else words?.set(word, [field])
      }
      if (list.used <= 2 * walkMax) {
        for (let at = 0; at < list.used; at += 2) note(at)
        continue
      }
      for (const slot of found.keys())
        for (let at = firstOf(list, slot); at < list.used && list.pairs[at] === slot; at += 2) note(at)
    }
    return found
  }

  #clauses({ words, fuzziness, fuzzyMax }: Query): Clause[] {
    const clauses: Clause[] = []
    const { prefix, fuzzy } = this.#weights
    const times = new Map<string, number>()
    for (const word of words) times.set(word, (times.get(word) ?? 0) + 1)
    let source = 0
    for (const [said, count] of times) {
      source++
      const push = (word: string, weight: number) => {
        const list = this.#words.get(word)
        if (list !== undefined) clauses.push({ source, word, list, weight })
      }
      push(said, count)
      const longer = said === words.at(-1) ? this.#words.beginning(said) : []
      for (const word of longer) push(word, (prefix * word.length) / (word.length + 0.3 * (word.length - said.length)))
      const most = Math.min(fuzzyMax, Math.round(said.length * fuzziness))
      if (most === 0) continue
      const isLonger = new Set(longer)
      for (const [word, distance] of this.#words.near(said, most))
        if (!isLonger.has(word)) push(word, (count * fuzzy * word.length) / (word.length + distance))
    }
    return clauses
  }

  /** Adds the score of one word, field by field. */
  #count({ source, list, weight }: Clause): void {
    const { pairs, used } = list
    const isDropped = this.#isDropped
    const scores = this.#scores
    const { fields } = this.#weights
    const having = fields.map(() => 0)
    for (let at = 0; at < used; at += 2)
      if (this.#dropped === 0 || isDropped[pairs[at]!] === 0) having[pairs[at + 1]! >>> 29]!++
    const { count } = this
    const worth = fields.map((field, at) => weight * field * rarity(count, having[at]!))
    const perLetter = this.#total.map((total) => (total === 0 ? 0 : (k * b * count) / total))
    for (let at = 0; at < used; at += 2) {
      const slot = pairs[at]!
      if (isDropped[slot] === 1) continue
      const packed = pairs[at + 1]!
      const field = packed >>> 29
      const times = packed & timesMax
      const spread = k * (1 - b) + perLetter[field]! * ((packed >>> 13) & lengthMax)
      scores[slot]! += worth[field]! * (d + (times * (k + 1)) / (times + spread))
      if (this.#last[slot] === source) continue
      this.#last[slot] = source
      this.#matched[slot]!++
    }
  }

  #grow(): void {
    if (this.#slots <= this.#isDropped.length) return
    const isDropped = new Uint8Array(2 * this.#isDropped.length)
    isDropped.set(this.#isDropped)
    this.#isDropped = isDropped
    const lengths = new Uint32Array(2 * this.#lengths.length)
    lengths.set(this.#lengths)
    this.#lengths = lengths
  }
}

/** The weight (inverse document frequency) of a word that `having` of `count` documents have. */
export function rarity(count: number, having: number): number {
  return Math.log(1 + (count - having + 0.5) / (having + 0.5))
}

/** Position of the first pair whose slot is not below this one. */
function firstOf({ pairs, used }: List, slot: number): number {
  let low = 0
  let high = used / 2
  while (low < high) {
    const middle = (low + high) >>> 1
    if (pairs[2 * middle]! < slot) low = middle + 1
    else high = middle
  }
  return 2 * low
}
