/**
 * A bounded cache of recently read file blocks. The least recently used block's memory is reused for the next one.
 *
 * If each block had its own memory, blocks would live long and die old. V8 frees such memory only in full collections,
 * and starts one for every 64 MB of it.
 */
import { BoundedMap } from './bounded-map.ts'

type Block = {
  readonly number: number
  readonly memory: ArrayBuffer
  readonly words: Uint32Array
}

export class BlockCache {
  readonly #bytesMax: number
  readonly #blocks: BoundedMap<number, Block>
  /** Memory of evicted blocks. */
  readonly #spare: ArrayBuffer[] = []
  /** Most reads request the same block again. */
  #newest: Block | undefined

  /** `blocksMax`: at least 1; `bytesMax` of each: a multiple of 4. */
  constructor(blocksMax: number, bytesMax: number) {
    this.#blocks = new BoundedMap(blocksMax)
    this.#bytesMax = bytesMax
  }

  has(number: number): boolean {
    return this.#blocks.has(number)
  }

  /** The words of a block, valid until the next block is read. */
  get(number: number): Uint32Array | undefined {
    if (this.#newest?.number === number) return this.#newest.words
    const block = this.#blocks.touch(number)
    if (block !== undefined) this.#newest = block
    return block?.words
  }

  /**
   * Reads a block that is not cached: `length` bytes, a multiple of 4, which `read` fills in. Returns its words as
   * `get` does. Nothing is cached if `read` throws.
   */
  read(number: number, length: number, read: (into: Buffer) => void): Uint32Array {
    this.#newest = undefined
    const memory = this.#blocks.evictIfFull()?.memory ?? this.#spare.pop() ?? new ArrayBuffer(this.#bytesMax)
    // Kept as spare until it has been read, in case `read` throws.
    this.#spare.push(memory)
    read(Buffer.from(memory, 0, length))
    this.#spare.pop()
    const block = { number, memory, words: new Uint32Array(memory, 0, length / 4) }
    this.#blocks.set(number, block)
    this.#newest = block
    return block.words
  }

  clear(): void {
    this.#newest = undefined
    for (const { memory } of this.#blocks.values()) this.#spare.push(memory)
    this.#blocks.clear()
  }
}
