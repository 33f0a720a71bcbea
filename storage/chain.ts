/**
 * The chain hash: one value that covers all frames of a segment and of all segments before it.
 *
 *   chain(segment) = SHA-256( chain(previous segment) ‖ for each frame: seq u64 ‖ type u8 ‖ digest 32 )
 *   digest         = SHA-256 of the payload as first written; a stub carries it
 *
 * It covers the payloads as first written, not the bytes of the file, so a payload can later be replaced by a stub
 * without breaking any chain hash. Numbers are little-endian, as on disk; the chain before the first segment is 32 zero
 * bytes.
 */
import { createHash, type Hash, hash } from 'node:crypto'
import { DIGEST_BYTES, STUB, writeSeq } from './frame.ts'

export const CHAIN_BYTES = 32

/** The chain hash before the first segment. */
export const CHAIN_START: Buffer = Buffer.alloc(CHAIN_BYTES)

const linkBytes = 8 + 1 + DIGEST_BYTES

/** Links are hashed in groups: one native call for 64 frames instead of 64 calls. */
const linksHeldMax = 64

export class Chain {
  #hash: Hash
  readonly #previous: Buffer
  readonly #links = Buffer.allocUnsafe(linkBytes * linksHeldMax)
  #held = 0
  #empty = true

  /** `previous`: the chain hash of the previous segment. */
  constructor(previous: Uint8Array) {
    this.#previous = Buffer.from(previous)
    this.#hash = createHash('sha256').update(previous)
  }

  add(seq: number, type: number, flags: number, payload: Uint8Array): void {
    this.#empty = false
    const at = this.#held * linkBytes
    writeSeq(this.#links, seq, at)
    this.#links[at + 8] = type
    this.#links.set(payloadDigest(flags, payload), at + 9)
    this.#held++
    if (this.#held === linksHeldMax) this.#flush()
  }

  #flush(): void {
    this.#hash.update(this.#links.subarray(0, this.#held * linkBytes))
    this.#held = 0
  }

  /** A copy with the same frames, to which others can be added. */
  copy(): Chain {
    this.#flush()
    const copy = new Chain(this.#previous)
    copy.#hash = this.#hash.copy()
    copy.#empty = this.#empty
    return copy
  }

  /** The chain hash up to the last frame added; before the first one, that of the previous segment. */
  digest(): Buffer {
    // An empty segment adds nothing, so a journal reopened between two segments has the same hash.
    if (this.#empty) return Buffer.from(this.#previous)
    this.#flush()
    return this.#hash.copy().digest()
  }
}

/** SHA-256 of the payload as first written. */
export function payloadDigest(flags: number, payload: Uint8Array): Uint8Array {
  if ((flags & STUB) !== 0) return payload.subarray(0, DIGEST_BYTES)
  return hash('sha256', payload, 'buffer')
}
