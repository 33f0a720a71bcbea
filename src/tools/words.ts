/**
 * The words of an index with a value for each: found by exact match, by prefix, or by edit distance. New words are stored
 * separately until a search needs prefixes, or until they are a quarter of all; then they are sorted in.
 */

const freshMin = 1_024

export class Words<Value> {
  readonly #values = new Map<string, Value>()
  /** By UTF-16 code units. */
  #sorted: string[] = []
  #fresh: string[] = []
  /** How many letters each of `#sorted` shares with the one before it, at most 255; computed when needed. */
  #shared: Uint8Array | undefined

  get size(): number {
    return this.#values.size
  }

  get(word: string): Value | undefined {
    return this.#values.get(word)
  }

  fetch(word: string, make: () => Value): Value {
    const known = this.#values.get(word)
    if (known !== undefined) return known
    const made = make()
    this.#values.set(word, made)
    this.#fresh.push(word)
    if (this.#fresh.length > freshMin + this.#sorted.length / 4) this.#sort()
    return made
  }

  /** Longer words with this prefix, in order. */
  beginning(start: string): string[] {
    this.#sort()
    const found: string[] = []
    for (let at = this.#firstNotBefore(start); at < this.#sorted.length; at++) {
      const word = this.#sorted[at]!
      if (!word.startsWith(start)) break
      if (word.length > start.length) found.push(word)
    }
    return found
  }

  /** Other words within an edit distance of `most` (insertions, deletions, changes), in order. */
  near(word: string, most: number): [word: string, distance: number][] {
    this.#sort()
    this.#shared ??= sharedIn(this.#sorted)
    const found: [string, number][] = []
    const width = word.length + 1
    const depthMax = word.length + most
    // Row d: distances of the first d letters of a word of the index to the prefixes of `word`.
    const rows = new Uint16Array((depthMax + 1) * width)
    for (let column = 0; column < width; column++) rows[column] = column
    // This many rows are still valid from the previous word; deeper than `cut`, no word can be close enough.
    let valid = 0
    let cut = Number.POSITIVE_INFINITY
    for (const [at, other] of this.#sorted.entries()) {
      const same = this.#shared[at]!
      if (same >= cut) continue
      cut = Number.POSITIVE_INFINITY
      if (other.length > depthMax) {
        valid = Math.min(valid, same)
        continue
      }
      let depth = Math.min(valid, same)
      while (depth < other.length && cut === Number.POSITIVE_INFINITY) {
        depth++
        if (nextRow(rows, depth, word, other.charCodeAt(depth - 1)) > most) cut = depth
      }
      valid = depth
      const distance = rows[depth * width + word.length]!
      if (depth === other.length && distance > 0 && distance <= most) found.push([other, distance])
    }
    return found
  }

  /** Removes the words for which `isEmpty`. */
  sweep(isEmpty: (value: Value) => boolean): void {
    const gone = new Set<string>()
    for (const [word, value] of this.#values) if (isEmpty(value)) gone.add(word)
    for (const word of gone) this.#values.delete(word)
    const stays = (word: string) => !gone.has(word)
    this.#sorted = this.#sorted.filter(stays)
    this.#fresh = this.#fresh.filter(stays)
    this.#shared = undefined
  }

  values(): IterableIterator<Value> {
    return this.#values.values()
  }

  #firstNotBefore(word: string): number {
    let low = 0
    let high = this.#sorted.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#sorted[middle]! < word) low = middle + 1
      else high = middle
    }
    return low
  }

  #sort(): void {
    if (this.#fresh.length === 0) return
    const fresh = this.#fresh.sort()
    const merged: string[] = new Array(this.#sorted.length + fresh.length)
    let from = 0
    let to = 0
    for (const word of this.#sorted) {
      while (from < fresh.length && fresh[from]! < word) merged[to++] = fresh[from++]!
      merged[to++] = word
    }
    while (from < fresh.length) merged[to++] = fresh[from++]!
    this.#sorted = merged
    this.#fresh = []
    this.#shared = undefined
  }
}

/** Fills row `depth` for one more letter, and returns the minimum distance in it. */
function nextRow(rows: Uint16Array, depth: number, word: string, letter: number): number {
  const width = word.length + 1
  const row = depth * width
  const before = row - width
  rows[row] = depth
  let least = depth
  for (let column = 1; column < width; column++) {
    const change = rows[before + column - 1]! + (word.charCodeAt(column - 1) === letter ? 0 : 1)
    const distance = Math.min(change, rows[before + column]! + 1, rows[row + column - 1]! + 1)
    rows[row + column] = distance
    if (distance < least) least = distance
  }
  return least
}

function sharedIn(sorted: readonly string[]): Uint8Array {
  const shared = new Uint8Array(sorted.length)
  for (let at = 1; at < sorted.length; at++) {
    const word = sorted[at]!
    const before = sorted[at - 1]!
    const most = Math.min(word.length, before.length, 255)
    let same = 0
    while (same < most && word.charCodeAt(same) === before.charCodeAt(same)) same++
    shared[at] = same
  }
  return shared
}
