/**
 * Records of the authorization server: clients, grants, codes and refresh tokens, all decided by one actor, `@oauth`. Private.
 *
 * Codes and tokens are secrets, so a record is stored under the SHA-256 of its name and its payload holds no secret: the
 * journal contains nothing that a reader could use. Payloads stay in the journal; memory holds the place of each, when it
 * expires, and whether it was used.
 */

import type { Core, Projection, RecordPlace } from '../records/core.ts'
import type { FactRecord } from '../records/record.ts'

/** Journal name of the actor. */
export const oauthName = '@oauth'

/** Self-registered clients that are remembered at a time. */
export const clientsMax = 10_000

export type OauthKeep = {
  /** Kind of record, and the SHA-256 of its name in base64url. */
  readonly key: string
  readonly payload: string
  /** Unix seconds. */
  readonly expires: number
  /** SHA-256 of the name of the grant that it belongs to, or ''. */
  readonly grant: string
  /** For tokens that are replaced at each use: which one this is. All tokens with the key share one record, and the newest counts. */
  readonly token?: string
}

/** `token`: the one being used, which must be the newest. */
export type OauthConsume = { readonly key: string; readonly token?: string }

type OauthRecord = {
  readonly place: number
  readonly expires: number
  readonly grant: string
  /** Unix seconds, 0 = never. */
  consumedAt: number
  /** '' if it does not replace another. */
  readonly token: string
}

type Packed = readonly (readonly [
  key: string,
  place: number,
  expires: number,
  grant: string,
  consumedAt: number,
  token: string,
])[]

/** Records stored between two sweeps for expired ones. */
const sweepEvery = 256

export class OauthRecords implements Projection {
  readonly acts: Projection['acts'] = {
    'oauth.keep': (act, place) => this.#keep(act, place),
    'oauth.consume': ({ facts, at }: FactRecord<{ key: string }>) => {
      const found = this.#records.get(facts.key)
      if (found !== undefined) found.consumedAt = at
    },
    'oauth.drop': ({ facts }: FactRecord<{ key?: string; grant?: string }>) => this.#drop(facts),
  }
  readonly #records = new Map<string, OauthRecord>()
  #kept = 0

  // biome-ignore lint/complexity/noUselessConstructor: the signature is that of all parts
  constructor(_core: Core) {}

  /** Undefined if there is none, or it has expired. */
  find(key: string, now: number): OauthRecord | undefined {
    const found = this.#records.get(key)
    return found !== undefined && now < found.expires ? found : undefined
  }

  /** Number of clients that have not expired. */
  clients(now: number): number {
    let count = 0
    for (const [key, { expires }] of this.#records) if (now < expires && key.startsWith('Client:')) count++
    return count
  }

  pack(): Packed {
    return [...this.#records].map(([key, { place, expires, grant, consumedAt, token }]) => [
      key,
      place,
      expires,
      grant,
      consumedAt,
      token,
    ])
  }

  restore(packed: Packed = []): void {
    for (const [key, place, expires, grant, consumedAt, token] of packed)
      this.#records.set(key, { place, expires, grant, consumedAt, token })
  }

  #keep({ facts, at }: FactRecord<OauthKeep>, { seq }: RecordPlace): void {
    const { key, expires, grant, token = '' } = facts
    const before = this.#records.get(key)
    const consumedAt = before?.token === token ? before.consumedAt : 0
    this.#records.set(key, { place: seq, expires, grant, consumedAt, token })
    this.#kept++
    if (this.#kept % sweepEvery !== 0) return
    for (const [each, { expires: end }] of this.#records) if (end <= at) this.#records.delete(each)
  }

  #drop({ key, grant }: { key?: string; grant?: string }): void {
    if (key !== undefined) this.#records.delete(key)
    if (grant === undefined) return
    for (const [each, record] of this.#records) if (record.grant === grant) this.#records.delete(each)
  }
}
