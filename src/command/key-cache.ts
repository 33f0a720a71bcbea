/**
 * Recent signers: the raw key and the identity id of a public key text, so that both are computed once. A key that an
 * identity moved to, or named its delegate, acts as that identity, and no longer as the one of its own hash.
 */

import { BoundedMap } from '../../storage/bounded-map.ts'
import { decodeBytes32, identityId } from '../format/encoding.ts'
import type { Delegate } from './delegates.ts'

/** `id`: the identity in whose name the key acts. */
export type Signer = {
  readonly key: Buffer
  readonly id: string
  readonly text: string
  /** Present where the key is a delegate's. */
  readonly delegate?: Delegate
  /** Something of the identity was accepted; false: not checked yet, or nothing was. */
  isKnown: boolean
}

export type KeysKnown = {
  /** The identity that a key names by a rotation. */
  identityOf(key: string): string | undefined
  readonly delegates: { of(key: string): Delegate | undefined }
}

const keptMax = 16_384

export class KeyCache {
  readonly #known = new BoundedMap<string, Signer>(keptMax)
  readonly #keys: KeysKnown

  constructor(keys: KeysKnown) {
    this.#keys = keys
  }

  /** Undefined: not the canonical text of 32 bytes. */
  of(text: string): Signer | undefined {
    const signer = this.#ofKey(text)
    if (signer === undefined) return undefined
    const delegate = this.#keys.delegates.of(signer.text)
    if (delegate !== undefined) return { ...signer, id: delegate.identity, delegate, isKnown: true }
    const moved = this.#keys.identityOf(signer.text)
    return moved === undefined ? signer : { ...signer, id: moved, isKnown: true }
  }

  #ofKey(text: string): Signer | undefined {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const decoded = decodeBytes32(text)
    if (decoded === undefined) return undefined
    // Copies: what was decoded is in a shared 8 KiB pool, and `text` in the body that it was cut from; both would stay.
    const key = Buffer.from(new Uint8Array(decoded).buffer)
    const own = key.toString('base64url')
    const signer = { key, id: identityId(key), text: own, isKnown: false }
    this.#known.set(own, signer)
    return signer
  }
}
