/** Random numbers determined by a text: sfc32, seeded by a hash. */
import { hash } from 'node:crypto'

export class SeededRandom {
  readonly #state = new Uint32Array(4)

  constructor(seed: string) {
    this.reseed(seed)
  }

  reseed(seed: string): void {
    const digest = hash('sha256', seed, 'buffer')
    for (let at = 0; at < 4; at++) this.#state[at] = digest.readUInt32LE(4 * at)
  }

  next(): number {
    const state = this.#state
    const sum = (state[0]! + state[1]! + state[3]!) >>> 0
    state[3] = state[3]! + 1
    state[0] = state[1]! ^ (state[1]! >>> 9)
    state[1] = state[2]! + (state[2]! << 3)
    state[2] = ((state[2]! << 21) | (state[2]! >>> 11)) + sum
    return sum
  }

  /** From 0 up to, and not including, `limit`. */
  below(limit: number): number {
    return this.next() % limit
  }

  bytes(count: number): Buffer {
    const made = Buffer.alloc(Math.ceil(count / 4) * 4)
    for (let at = 0; at < count; at += 4) made.writeUInt32LE(this.next(), at)
    return made.subarray(0, count)
  }

  pick<Item>(items: readonly Item[]): Item | undefined {
    return items.length === 0 ? undefined : items[this.below(items.length)]
  }
}
