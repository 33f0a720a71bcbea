/** What all deliveries of one hook have in common: where they go, how their head begins, and the keys that sign them. */
import type { CursorSealer } from '../format/cursor.ts'
import { openSecret } from '../format/sealed-secrets.ts'
import type { PostTarget } from '../outgoing/poster.ts'
import type { HookView } from './reads.ts'
import { SigningKey, secretKey } from './signature.ts'

export class Letterhead {
  /** undefined: nothing is sent there any more. */
  readonly target: PostTarget | undefined
  readonly #keys: readonly SigningKey[]
  /** With the one before, good until then (Unix milliseconds). */
  readonly #both: { readonly keys: readonly SigningKey[]; readonly until: number } | undefined

  constructor(target: PostTarget | undefined, { sealed, former, owner }: HookView, cursors: CursorSealer) {
    const opened = (text: string) => new SigningKey(secretKey(openSecret(cursors, 'hook', owner, text))!)
    this.target = target
    const key = opened(sealed)
    this.#keys = [key]
    if (former !== undefined) this.#both = { keys: [key, opened(former.sealed)], until: former.until * 1000 }
  }

  /** The one that is good now first. */
  keys(now: number): readonly SigningKey[] {
    return this.#both !== undefined && this.#both.until > now ? this.#both.keys : this.#keys
  }
}
