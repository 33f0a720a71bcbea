/**
 * Checks who signed each record: the signatures, those of delegations and of keys to which identities moved, and that the key that signed
 * was one of its author's.
 */
import { type BoardRecord, ownKey, type Signed } from '../../actors/records/record.ts'
import { authorOf } from '../../actors/records/write.ts'
import { isProven, moves, signatureFault, type Verify } from '../export-check/signed-record.ts'
import { identityId } from '../format/signing.ts'

export class SignerCheck {
  readonly #verify: Verify
  readonly #damage: (where: string, what: string) => void
  /** Key (base64url) -> the identity that moved to it. */
  readonly #moved = new Map<string, string>()
  /** Keys that are not the first one of the author, which moves must explain: key and author -> where it signed first. */
  readonly #unexplained = new Map<string, { readonly key: string; readonly author: string; readonly where: string }>()

  constructor(verify: Verify, damage: (where: string, what: string) => void) {
    this.#verify = verify
    this.#damage = damage
  }

  /** Takes a record with its signed bytes, complete; undefined if they are gone. */
  take(record: BoardRecord, by: Signed, message: Uint8Array | undefined, where: string): void {
    const own = Buffer.from(ownKey(by))
    const author = authorOf(record, own)
    if (identityId(own) !== author) {
      const key = own.toString('base64url')
      const signer = `${key} ${author}`
      if (!this.#unexplained.has(signer)) this.#unexplained.set(signer, { key, author, where })
    }
    if (message === undefined) return
    const fault = signatureFault(by, message, this.#verify)
    if (fault !== undefined) this.#damage(where, fault)
    if (!moves.is(record)) return
    this.#moved.set(record.facts.to, author)
    if (!isProven(record.facts, message, this.#verify))
      this.#damage(where, 'the signature of the key to which it moves the identity does not verify')
  }

  /** Call after the last record: a shard may be read before the one with the moves. */
  end(): void {
    for (const { key, author, where } of this.#unexplained.values())
      if (this.#moved.get(key) !== author) this.#damage(where, 'the key that signed it is not one of its author')
  }
}
