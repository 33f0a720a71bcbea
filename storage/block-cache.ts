/**
 * Blocks of files that were read lately, at most so many. The least recently used block gives its memory to the next one.
 *
 * Blocks with memory of their own would live long and die old: V8 frees such memory in full collections only, and begins one for each
 * 64 MB of it.
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
  /** Of blocks that were dropped. */
  readonly #spare: ArrayBuffer[] = []
  /** Most reads ask for the same block again. */
  #newest: Block | undefined

  /** `blocksMax`: at least 1; `bytesMax` of each: a multiple of 4. */
  constructor(blocksMax: number, bytesMax: number) {
    this.#blocks = new BoundedMap(blocksMax)
    this.#bytesMax = bytesMax
  }

  has(number: number): boolean {
    return this.#blocks.has(number)
  }

  /** The words of a block, which are valid until the next one is read. */
  get(number: number): Uint32Array | undefined {
    if (this.#newest?.number === number) return this.#newest.words
    const block = this.#blocks.touch(number)
    if (block !== undefined) this.#newest = block
    return block?.words
  }

  /** The same of one that is not there: `length` bytes, a multiple of 4, with what `read` puts there. Not kept when `read` throws. */
  read(number: number, length: number, read: (into: Buffer) => void): Uint32Array {
    this.#newest = undefined
    const memory = this.#blocks.makeRoom()?.memory ?? this.#spare.pop() ?? new ArrayBuffer(this.#bytesMax)
    // Until it is read: a read that throws leaves it there.
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
