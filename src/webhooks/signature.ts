/**
 * Standard Webhooks, the sending side: secrets of the form `whsec_<base64 of 24 to 64 bytes>`, and the three headers.
 *
 *   webhook-signature = "v1," base64(HMAC-SHA256(key, webhook-id "." webhook-timestamp "." body)), one for each secret
 */

import { hash } from 'node:crypto'
import type { CursorSealer } from '../format/cursor.ts'
import { openSecret } from '../format/sealed-secrets.ts'
import type { PostTarget } from '../outgoing/poster.ts'
import type { Random } from '../platform.ts'
import type { HookView } from './reads.ts'

const prefix = 'whsec_'
export const secretRule = 'whsec_ and the base64 of 24 to 64 random bytes'

/** The key of a secret; undefined if it is not valid. Node's decoder accepts anything, so the result is encoded again and compared. */
export function secretKey(secret: string): Buffer | undefined {
  const text = secret.slice(prefix.length)
  if (!secret.startsWith(prefix) || !/^[A-Za-z0-9+/]{32,88}={0,2}$/.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  const isCanonical = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
  return isCanonical && key.length >= 24 && key.length <= 64 ? key : undefined
}

export function freshSecret(random: Random): string {
  return prefix + random(32).toString('base64')
}

type Signable = {
  readonly id: string
  /** Unix seconds. */
  readonly timestamp: number
  readonly body: string
}

const block = 64

/**
 * A key as HMAC (RFC 2104) uses it: each pad followed by space for the data to hash. Two one-shot hashes cost half as much as
 * an HMAC object, and there is one for every delivery.
 */
export class SigningKey {
  readonly #inner = Buffer.alloc(block, 0x36)
  readonly #outer = Buffer.alloc(block, 0x5c)

  constructor(key: Uint8Array) {
    // No key of a hook is longer than a block.
    key.forEach((byte, at) => {
      this.#inner[at]! ^= byte
      this.#outer[at]! ^= byte
    })
  }

  sign({ id, timestamp, body }: Signable): string {
    const text = `${id}.${timestamp}.${body}`
    const most = block + 3 * text.length
    if (most > room.length) room = Buffer.allocUnsafeSlow(most)
    this.#inner.copy(room)
    const length = block + room.write(text, block, 'utf8')
    const inner = hash('sha256', room.subarray(0, length), 'buffer')
    this.#outer.copy(outer)
    inner.copy(outer, block)
    return `v1,${hash('sha256', outer, 'base64')}`
  }
}

/** Scratch space for the data to hash: it is not needed afterwards. */
let room = Buffer.allocUnsafeSlow(16 * 1024)
const outer = Buffer.allocUnsafeSlow(block + 32)

/** `keys`: the current one first, then the previous one while it is still accepted. */
export function signatures(keys: readonly SigningKey[], signable: Signable): string {
  return keys.map((key) => key.sign(signable)).join(' ')
}

/** What all deliveries of one hook have in common: the target, the beginning of the request head, and the keys that sign them. */
export class DeliveryHead {
  /** Undefined if nothing is sent there any more. */
  readonly target: PostTarget | undefined
  readonly #keys: readonly SigningKey[]
  /** With the previous key, valid until then (Unix milliseconds). */
  readonly #both: { readonly keys: readonly SigningKey[]; readonly until: number } | undefined

  constructor(target: PostTarget | undefined, { sealed, former, owner }: HookView, cursors: CursorSealer) {
    const opened = (text: string): SigningKey[] => {
      const secret = openSecret(cursors, 'hook', owner, text)
      return secret === undefined ? [] : [new SigningKey(secretKey(secret)!)]
    }
    this.#keys = opened(sealed)
    // Without a key to sign with, nothing is sent.
    this.target = this.#keys.length === 0 ? undefined : target
    if (former !== undefined)
      this.#both = { keys: [...this.#keys, ...opened(former.sealed)], until: former.until * 1000 }
  }

  /** The current one first. */
  keys(now: number): readonly SigningKey[] {
    return this.#both !== undefined && this.#both.until > now ? this.#both.keys : this.#keys
  }
}
