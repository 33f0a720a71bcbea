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
 * Places are sealed with a read key, which the board's followers have too, so a cursor works on each of them. What the board itself stores
 * (the secrets of webhooks) is sealed with the key from which the read key is derived. No follower has that one.
 */
import { createCipheriv, createDecipheriv, createHmac, randomFillSync } from 'node:crypto'
import { decodeBase64url } from './signing.ts'

/** Cursors with places in shards are valid for one shard layout; places in the feed outlive it. `layout`: '' before any reshard. */
export type PlacesEpoch = { readonly generation: string; readonly layout: string }

/** What a cursor names besides its places. `sources`: how many it has a place for; one of them is the feed. */
export function epochText({ generation, layout }: PlacesEpoch, sources: number): string {
  return sources === 1 || layout === '' ? generation : `${generation}.${layout}`
}

const nonceBytes = 12
const tagBytes = 16

/** Cursors hold a few numbers and ids. A longer text is not ours, and is not even decoded. */
export const cursorTextMax = 1_024

const keyBytes = 32

/** 32 bytes, plus 32 for each replaced key, newest first; on a follower, only the read key. */
export type SealingKeys = Uint8Array | { readonly readKey: Uint8Array }

/** The 32-byte key that seals places in lists. `keys`: 32 bytes or more, if this board is not a follower. */
export function readKeyOf(keys: SealingKeys): Uint8Array {
  if ('readKey' in keys) return keys.readKey
  return createHmac('sha256', keys.subarray(0, keyBytes)).update('broadside-read-key-v1').digest()
}

/** The keys for what the board stores; empty on a follower. */
export function keptKeysOf(keys: SealingKeys): Uint8Array {
  return 'readKey' in keys ? new Uint8Array() : keys
}

export class CursorSealer {
  readonly #readKey: Uint8Array
  /** The first seals what the board stores; then replaced keys, newest first. Empty on a follower. */
  readonly #kept: readonly Uint8Array[]
  readonly #random: (bytes: number) => Uint8Array

  /** `random` returns that many fresh random bytes. */
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

  /** Seals a JSON value. Throws RangeError if the text would be longer than a client may send back. */
  seal(listName: string, place: unknown): string {
    return this.#seal(this.#readKey, listName, place)
  }

  /** The same for what the board itself stores. */
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

  /** The sealed value, or undefined if the text is forged, truncated, from another list or key, or not canonical. */
  open(listName: string, text: string): unknown {
    const opened = this.#open(this.#readKey, listName, text)
    // Before the read key existed, cursors were sealed with the other key.
    const [before] = this.#kept
    return opened === undefined && before !== undefined ? this.#open(before, listName, text) : opened
  }

  /** The same for what the board itself has stored, also under a key that was replaced since. */
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
      return undefined // The tag does not match: not sealed here, or not for this list.
    }
    return JSON.parse(place.toString())
  }
}

/** Random bytes, never handed out twice, drawn a few hundred nonces at a time: one draw costs as much as a seal. */
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
