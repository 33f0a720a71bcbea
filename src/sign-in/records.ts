/**
 * Storage for the authorization server's library. Records that must survive a restart are held by an actor, under the hash of their name
 * and without the name itself (which is the secret). Sessions and sign-ins in progress are in memory.
 *
 * Every use of a refresh token replaces it, as often as its client likes. All tokens of one grant share one record: their names end in the
 * name of their family, which is just as secret and does not change. A token of the family that is not the newest has been used before.
 */

import { createHash, createHmac } from 'node:crypto'
import { type InternalWriteName, internalLetter } from '../../actors/records/internal-operations.ts'
import { type OauthConsume, type OauthKeep, oauthName } from '../../actors/sign-in/records.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import type { ReadPlans } from '../command/plan.ts'
import type { Actors, NoAnswer } from '../command/ports.ts'
import { type AnswerOf, dataOf, type ReadAnswer, type ReadCall } from '../reads/read.ts'

export type RecordsOptions = {
  readonly actors: Pick<Actors, 'write'>
  readonly read: ReadCall
  /** Identity id of the board, which owns these records. */
  readonly boardIdentity: string
  /** Unix seconds. */
  readonly wallSeconds: () => number
}

type Payload = Readonly<Record<string, unknown>>
/** A stored record is one JSON object, as `keep` wrote it. */
function payloadIn(text: string): Payload {
  return JSON.parse(text)
}

type Kept = { readonly payload: Payload; readonly expires: number }

/** Kinds that are durable. */
const durable: ReadonlySet<string> = new Set(['Client', 'Grant', 'RefreshToken', 'AuthorizationCode', 'SignIn'])
/** A client without any sign-in is deleted after a day. */
const unusedClientSeconds = 86_400
const usedClientSeconds = 90 * 86_400
/** Records in memory: sign-ins that have begun and not ended. */
const passingMax = 10_000

export class Records {
  readonly #options: RecordsOptions
  readonly #passing = new BoundedMap<string, Kept>(passingMax)

  constructor(options: RecordsOptions) {
    this.#options = options
  }

  async keep(kind: string, name: string, payload: Payload, seconds?: number): Promise<void> {
    const now = this.#options.wallSeconds()
    if (!durable.has(kind)) {
      if (this.#passing.size >= passingMax) this.#forget(now)
      this.#passing.set(`${kind}:${name}`, { payload, expires: now + (seconds ?? unusedClientSeconds) })
      return
    }
    const { jti: _, ...rest } = payload
    await this.#say('oauth.keep', {
      key: keyOf(kind, name),
      payload: JSON.stringify(rest),
      expires: now + (seconds ?? unusedClientSeconds),
      grant: typeof payload.grantId === 'string' ? hashOf(payload.grantId) : '',
      ...tokenOf(kind, name),
    } satisfies OauthKeep)
  }

  /** A client that was used for a sign-in is kept longer. */
  async keepClient(name: string): Promise<void> {
    const found = await this.find('Client', name)
    if (found !== undefined) await this.keep('Client', name, found, usedClientSeconds)
  }

  async find(kind: string, name: string): Promise<Payload | undefined> {
    if (!durable.has(kind)) {
      const found = this.#passing.get(`${kind}:${name}`)
      return found !== undefined && this.#options.wallSeconds() < found.expires ? found.payload : undefined
    }
    const answer = await new Promise<ReadAnswer<AnswerOf<'oauth.find'>> | NoAnswer>((resolve) =>
      this.#options.read({ op: 'oauth.find', args: { key: keyOf(kind, name) }, reader: '' }, resolve),
    )
    if (answer === undefined || !answer.ok) throw new Error('the sign-in records could not be read')
    const { payload, token, ...used } = dataOf(answer)
    if (payload === undefined) return undefined
    const own = kind === 'Client' || kind === 'SignIn' ? {} : { jti: name }
    const isNewest = token === tokenOf(kind, name).token
    const consumed = used.consumed ?? (isNewest ? undefined : this.#options.wallSeconds())
    return { ...payloadIn(payload), ...own, ...(consumed === undefined ? {} : { consumed }) }
  }

  /** Finds a record in memory by another of its fields. */
  findBy(kind: string, field: string, value: string): Payload | undefined {
    for (const [key, { payload, expires }] of this.#passing)
      if (key.startsWith(`${kind}:`) && payload[field] === value && this.#options.wallSeconds() < expires)
        return payload
    return undefined
  }

  /** Returns false if another caller was first. */
  async consume(kind: string, name: string): Promise<boolean> {
    const args: OauthConsume = { key: keyOf(kind, name), ...tokenOf(kind, name) }
    return (await this.#write('oauth.consume', args)) === 'done'
  }

  async drop(kind: string, name: string): Promise<void> {
    if (!durable.has(kind)) this.#passing.delete(`${kind}:${name}`)
    else await this.#say('oauth.drop', { key: keyOf(kind, name) })
  }

  async dropGrant(grant: string): Promise<void> {
    await this.#say('oauth.drop', { grant: hashOf(grant) })
  }

  async #say(op: InternalWriteName, args: object): Promise<void> {
    const said = await this.#write(op, args)
    if (said !== 'done') throw new Error(`a sign-in could not be recorded: ${said}`)
  }

  #write(op: InternalWriteName, args: object): Promise<string> {
    const letter = internalLetter(op, oauthName, this.#options.boardIdentity, args)
    return new Promise((resolve) =>
      this.#options.actors.write(letter, (answer) =>
        resolve(answer === undefined ? 'no answer' : answer.ok ? 'done' : answer.refusal.message),
      ),
    )
  }

  #forget(now: number): void {
    for (const [key, { expires }] of this.#passing) if (expires <= now) this.#passing.delete(key)
  }
}

/** What the adapter does besides storing records. */
type Hooks = {
  /** Creates the error to throw on a second use. */
  readonly used: () => Error
  /** Ends the delegation of a grant. Until it has, no record of that grant is deleted. May be called again. */
  readonly ending: (grant: string) => Promise<void>
}

/**
 * The library's adapter for one kind of record. A grant ends before its records are deleted, not after: otherwise, after a kill in between,
 * it would be unknown, and a repeated request would be told that it is done.
 */
export function adapterFor(records: Records, { used, ending }: Hooks) {
  return class RecordAdapter {
    readonly kind: string

    constructor(kind: string) {
      this.kind = kind
    }

    upsert(name: string, payload: Payload, seconds?: number): Promise<void> {
      return records.keep(this.kind, name, payload, seconds)
    }

    find(name: string): Promise<Payload | undefined> {
      return records.find(this.kind, name)
    }

    findByUid(uid: string): Promise<Payload | undefined> {
      return Promise.resolve(records.findBy(this.kind, 'uid', uid))
    }

    findByUserCode(): Promise<undefined> {
      return Promise.resolve(undefined)
    }

    async consume(name: string): Promise<void> {
      if (!(await records.consume(this.kind, name))) throw used()
    }

    async destroy(name: string): Promise<void> {
      const grant = await grantEndedWith(records, this.kind, name)
      if (grant !== undefined) await ending(grant)
      await records.drop(this.kind, name)
    }

    async revokeByGrantId(grant: string): Promise<void> {
      await ending(grant)
      await records.dropGrant(grant)
    }
  }
}

/** The grant that ends when the library destroys this record. */
async function grantEndedWith(records: Records, kind: string, name: string): Promise<string | undefined> {
  if (kind === 'Grant') return name
  const found = kind === 'RefreshToken' ? await records.find(kind, name) : undefined
  return typeof found?.grantId === 'string' ? found.grantId : undefined
}

const hashOf = (text: string) => createHash('sha256').update(text).digest('base64url')
const keyOf = (kind: string, name: string) => `${kind}:${hashOf(familyOf(kind, name) ?? name)}`

/** Separates a token's own part from the name of its family. */
const familyMark = '.'

/** The name of a new refresh token. `random`: its own part. `secret`: a secret of this board. */
export function refreshTokenName(random: string, grantId: string, secret: string): string {
  const family = createHmac('sha256', secret).update(`refresh tokens of ${grantId}`).digest()
  return `${random}${familyMark}${family.toString('base64url', 0, 16)}`
}

/** Undefined if it has no family, like the tokens of older releases. */
function familyOf(kind: string, name: string): string | undefined {
  return kind === 'RefreshToken' ? name.split(familyMark)[1] : undefined
}

function tokenOf(kind: string, name: string): { readonly token?: string } {
  return familyOf(kind, name) === undefined ? {} : { token: hashOf(name) }
}

/** One actor holds these records. */
export const oauthReadPlans = {
  'oauth.find': { actor: () => oauthName },
} satisfies ReadPlans
