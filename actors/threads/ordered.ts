/**
 * A sorted set of numbers: chunks of typed arrays, found by binary search. Adding and removing cost the same at any size,
 * except for one walk over the list of chunks.
 */

type Numbers = Uint32Array | Float64Array
type Chunk = { values: Numbers; count: number }

const chunkMax = 512

export class Ordered {
  readonly #make: (length: number) => Numbers
  /** No chunk is empty, except possibly the first. */
  #chunks: Chunk[]
  #count: number

  private constructor(make: (length: number) => Numbers, rising: Numbers) {
    this.#make = make
    this.#count = rising.length
    this.#chunks = []
    for (let from = 0; from < rising.length; from += chunkMax) {
      const part = rising.subarray(from, from + chunkMax)
      this.#chunks.push({ values: part.slice(), count: part.length })
    }
    if (this.#chunks.length === 0) this.#chunks.push({ values: make(8), count: 0 })
  }

  /** A set of slots, 4 bytes each; `rising`: distinct ones, in ascending order. */
  static slots(rising: Uint32Array): Ordered {
    return new Ordered((length) => new Uint32Array(length), rising)
  }

  /** A set of any numbers, 8 bytes each. */
  static numbers(rising: Float64Array): Ordered {
    return new Ordered((length) => new Float64Array(length), rising)
  }

  get length(): number {
    return this.#count
  }

  add(value: number): void {
    const at = this.#chunkOf(value)
    const chunk = this.#chunks[at]!
    const position = below(chunk, value)
    if (position < chunk.count && chunk.values[position] === value) return
    this.#count++
    if (chunk.count === chunkMax) {
      // At the very end, where most numbers are added, the full chunk is not split.
      const isEnd = at === this.#chunks.length - 1 && position === chunk.count
      const kept = isEnd ? chunk.count : chunk.count >>> 1
      const rest = chunk.values.subarray(kept, chunk.count)
      const values = this.#make(isEnd ? 8 : chunkMax)
      values.set(rest)
      const right = { values, count: rest.length }
      this.#chunks.splice(at + 1, 0, right)
      chunk.count = kept
      this.#insert(position > kept || isEnd ? right : chunk, value)
      return
    }
    this.#insert(chunk, value)
  }

  remove(value: number): void {
    const at = this.#chunkOf(value)
    const chunk = this.#chunks[at]!
    const position = below(chunk, value)
    if (position === chunk.count || chunk.values[position] !== value) return
    this.#count--
    chunk.values.copyWithin(position, position + 1, chunk.count)
    chunk.count--
    if (chunk.count === 0 && this.#chunks.length > 1) this.#chunks.splice(at, 1)
    else if (chunk.count < chunkMax >>> 2) this.#join(at)
  }

  /** Numbers below a limit, highest first. Nothing may be added or removed meanwhile. */
  *below(limit: number): Generator<number> {
    let at = this.#chunkOf(limit)
    for (let position = below(this.#chunks[at]!, limit) - 1; at >= 0; at--) {
      const { values } = this.#chunks[at]!
      for (; position >= 0; position--) yield values[position]!
      position = (this.#chunks[at - 1]?.count ?? 0) - 1
    }
  }

  #insert(chunk: Chunk, value: number): void {
    if (chunk.count === chunk.values.length) {
      const values = this.#make(Math.min(chunkMax, chunk.count * 2))
      values.set(chunk.values)
      chunk.values = values
    }
    const position = below(chunk, value)
    chunk.values.copyWithin(position + 1, position, chunk.count)
    chunk.values[position] = value
    chunk.count++
  }

  /** Merges a small chunk into the previous one if there is room. */
  #join(at: number): void {
    const chunk = this.#chunks[at]!
    const before = this.#chunks[at - 1]
    if (before === undefined || before.count + chunk.count > chunkMax >>> 1) return
    const values = this.#make(chunkMax)
    values.set(before.values.subarray(0, before.count))
    values.set(chunk.values.subarray(0, chunk.count), before.count)
    before.values = values
    before.count += chunk.count
    this.#chunks.splice(at, 1)
  }

  /** The last chunk whose first number is not above this one, or the first chunk. */
  #chunkOf(value: number): number {
    let [low, high] = [0, this.#chunks.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#chunks[middle]!.values[0]! <= value) low = middle
      else high = middle - 1
    }
    return low
  }
}

/** How many numbers of a chunk are below this one. */
function below({ values, count }: Chunk, value: number): number {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (values[middle]! < value) low = middle + 1
    else high = middle
  }
  return low
}
