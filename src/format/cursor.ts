/**
 * A place in a list, sealed: a reader can hand it back and do nothing else with it.
 *
 * Text = base64url of
 *
 *   offset   size   field
 *   0        12     nonce, random
 *   12       n      AES-256-GCM ciphertext of the JSON of the place
 *   12 + n   16     tag, over the ciphertext and the list's name
 *
 * The list's name is associated data, so a cursor of one list opens no other. Random 96-bit
 * nonces are safe for 2^32 seals under one key (NIST SP 800-38D, 8.3).
 *
 * Places are sealed with a read key, which followers of the board have too: a cursor works on each of them. What the board keeps, the
 * secrets of webhooks, is sealed with the key that the read key is made from, which no follower has.
 */
import { createCipheriv, createDecipheriv, createHmac, randomFillSync } from 'node:crypto'
import { decodeBase64url } from './signing.ts'

/** Cursors with places in shards are good for one layout of them; places in the feed outlive it. `layout`: '' before any reshard. */
export type PlacesEpoch = { readonly generation: string; readonly layout: string }

/** What a cursor names beside its places. `sources`: how many it has a place of; one is the feed's. */
export function epochText({ generation, layout }: PlacesEpoch, sources: number): string {
  return sources === 1 || layout === '' ? generation : `${generation}.${layout}`
}

const nonceBytes = 12
const tagBytes = 16

/** Cursors hold a few numbers and ids. A longer text is none of ours, and is not even decoded. */
export const cursorTextMax = 1_024

const keyBytes = 32

/** 32 bytes, and as many for each key that was replaced, the newest first; of a follower, the read key alone. */
export type SealingKeys = Uint8Array | { readonly readKey: Uint8Array }

/** What the places of lists are sealed with, 32 bytes. `keys`: 32 bytes and more, as of a board that is no follower. */
export function readKeyOf(keys: SealingKeys): Uint8Array {
  if ('readKey' in keys) return keys.readKey
  return createHmac('sha256', keys.subarray(0, keyBytes)).update('broadside-read-key-v1').digest()
}

/** The keys of what the board keeps; none: of a follower. */
export function keptKeysOf(keys: SealingKeys): Uint8Array {
  return 'readKey' in keys ? new Uint8Array() : keys
}

export class CursorSealer {
  readonly #readKey: Uint8Array
  /** What the board keeps is sealed with the first; then keys that were replaced, the newest first. None: of a follower. */
  readonly #kept: readonly Uint8Array[]
  readonly #random: (bytes: number) => Uint8Array

  /** `random` gives that many fresh random bytes. */
  constructor(keys: SealingKeys, random: (bytes: number) => Uint8Array = fresh) {
    const kept = keptKeysOf(keys)
    if (kept.length % keyBytes !== 0 || (kept === keys && kept.length === 0))
      throw new RangeError(`a cursor key has ${keyBytes} bytes`)
    this.#readKey = readKeyOf(keys)
    this.#kept = Array.from({ length: kept.length / keyBytes }, (_, n) =>
      kept.subarray(n * keyBytes, (n + 1) * keyBytes),
    )
    this.#random = random
  }

  /** Seals a JSON value. Throws RangeError when the text would be longer than a client may hand back. */
  seal(listName: string, place: unknown): string {
    return this.#seal(this.#readKey, listName, place)
  }

  /** The same of what the board itself keeps. */
  sealKept(listName: string, value: unknown): string {
    const [key] = this.#kept
    if (key === undefined) throw new Error('a follower keeps no secrets')
    return this.#seal(key, listName, value)
  }

  #seal(key: Uint8Array, listName: string, place: unknown): string {
    const nonce = this.#random(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
    cipher.setAAD(associated(listName))
    const sealed = cipher.update(JSON.stringify(place), 'utf8')
    cipher.final()
    const text = Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64url')
    if (text.length > cursorTextMax) throw new RangeError(`a cursor of ${text.length} characters`)
    return text
  }

  /** What was sealed, or undefined: forged, cut, of another list, another key, or not canonical text. */
  open(listName: string, text: string): unknown {
    const opened = this.#open(this.#readKey, listName, text)
    // Before there was a read key, cursors were sealed with the other one.
    const [before] = this.#kept
    return opened === undefined && before !== undefined ? this.#open(before, listName, text) : opened
  }

  /** The same of what the board itself has kept, also under a key that was replaced since. */
  openKept(listName: string, text: string): unknown {
    for (const key of this.#kept) {
      const opened = this.#open(key, listName, text)
      if (opened !== undefined) return opened
    }
    return undefined
  }

  #open(key: Uint8Array, listName: string, text: string): unknown {
    if (text.length > cursorTextMax) return undefined
    const bytes = decodeBase64url(text)
    if (bytes === undefined || bytes.length <= nonceBytes + tagBytes) return undefined
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    })
    decipher.setAAD(associated(listName))
    decipher.setAuthTag(bytes.subarray(-tagBytes))
    const place = decipher.update(bytes.subarray(nonceBytes, -tagBytes))
    try {
      decipher.final()
    } catch {
      return undefined // The tag does not fit: not sealed here, or not for this list.
    }
    return JSON.parse(place.toString())
  }
}

/** Random bytes of which none is given twice, drawn a few hundred nonces at a time: one draw costs as much as the seal. */
const drawn = Buffer.allocUnsafeSlow(256 * nonceBytes)
let given = drawn.length

function fresh(bytes: number): Uint8Array {
  if (given + bytes > drawn.length) {
    randomFillSync(drawn)
    given = 0
  }
  given += bytes
  return drawn.subarray(given - bytes, given)
}

function associated(listName: string): Buffer {
  return Buffer.from(`broadside-cursor-v1\n${listName}`)
}
