/**
 * Blocks of files that were read lately, at most so many. The memory of the block that was used longest ago is used again.
 *
 * Blocks of their own would live long and die old: V8 frees such memory in full collections only, and begins one for each 64 MB of it.
 */
import { BoundedMap } from './bounded-map.ts'

type Block = { readonly number: number; readonly bytes: Buffer; readonly words: Uint32Array }

export class BlockCache {
  readonly #bytesMax: number
  readonly #blocks: BoundedMap<number, Block>
  /** Is asked for again and again. */
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
    const memory = this.#blocks.makeRoom()?.bytes.buffer ?? new ArrayBuffer(this.#bytesMax)
    const block = { number, bytes: Buffer.from(memory, 0, length), words: new Uint32Array(memory, 0, length / 4) }
    read(block.bytes)
    this.#blocks.set(number, block)
    this.#newest = block
    return block.words
  }

  clear(): void {
    this.#newest = undefined
    this.#blocks.clear()
  }
}
