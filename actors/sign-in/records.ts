/**
 * What the authorization server keeps: clients, grants, codes and refresh tokens, all with one actor, `@oauth`. Private.
 *
 * Codes and tokens are secrets, so a record is kept under the SHA-256 of its name and its payload holds no secret: a reader of
 * the journal can use none of it. Payloads stay in the journal; here is where each lies, until when, and whether it was used.
 */

import type { Core, Projection, RecordPlace } from '../records/core.ts'
import type { FactRecord } from '../records/record.ts'

/** Journal name of the actor. */
export const oauthName = '@oauth'

/** Clients that registered by themselves and are known at a time. */
export const clientsMax = 10_000

export type OauthKeep = {
  /** Kind of record, and the SHA-256 of its name in base64url. */
  readonly key: string
  readonly payload: string
  /** Unix seconds. */
  readonly expires: number
  /** SHA-256 of the name of the grant that it belongs to, or ''. */
  readonly grant: string
  /** Of what one use replaces by the next: which of them this is. All that have the key are one record, and the newest counts. */
  readonly token?: string
}

/** `token`: the one that is used, and has to be the newest. */
export type OauthConsume = { readonly key: string; readonly token?: string }

type OauthRecord = {
  readonly place: number
  readonly expires: number
  readonly grant: string
  /** Unix seconds, 0 = never. */
  consumedAt: number
  /** '' where none replaces another. */
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

/** Records kept between two looks for those that have expired. */
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

  /** Undefined: there is none, or its time is over. */
  find(key: string, now: number): OauthRecord | undefined {
    const found = this.#records.get(key)
    return found !== undefined && now < found.expires ? found : undefined
  }

  /** Clients that are known now. */
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
