/**
 * What is known of the keys seen last, so that each is examined once.
 *
 * A key costs a subgroup check (0.05 to 1 ms) and, for OpenSSL, an import that costs as
 * much as a verification. The cache is bounded: a flood of strange keys pushes old ones
 * out, which costs their owners one more examination and others nothing.
 */
import { BoundedMap } from '../../storage/bounded-map.ts'

/** About 300 bytes an entry, more with a KeyObject: a few MiB a thread when full. */
const cachedKeysMax = 8_192

export class KeyCache<Fact> {
  readonly #facts: BoundedMap<string, Fact>
  readonly #examine: (publicKey: Uint8Array) => Fact

  constructor(examine: (publicKey: Uint8Array) => Fact, keysMax: number = cachedKeysMax) {
    this.#examine = examine
    this.#facts = new BoundedMap(keysMax)
  }

  get size(): number {
    return this.#facts.size
  }

  /** The fact about this key: from memory, else examined now. The longest unused fact makes room. */
  get(publicKey: Uint8Array): Fact {
    const name = nameOf(publicKey)
    const known = this.#facts.touch(name)
    if (known !== undefined) return known
    const fact = this.#examine(publicKey)
    this.#facts.set(name, fact)
    return fact
  }
}

/** Latin-1 gives each byte a character of its own: one native call, and no two keys share a name. */
function nameOf(publicKey: Uint8Array): string {
  return Buffer.from(publicKey.buffer, publicKey.byteOffset, publicKey.byteLength).toString('latin1')
}
