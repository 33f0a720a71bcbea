/**
 * A sign-in is one signature over the bytes of a `delegation.create`. Its `target` is a key created for this sign-in, its `nonce` is the
 * sign-in's id, and its `data` names the client, the host to which the user is redirected, and the permissions. The signer has both
 * authenticated and consented, and the delegation can be shown to anyone afterwards.
 *
 * The new key is on disk before the delegation exists. If the delegation is refused, the key is erased again.
 */

import { sign } from 'node:crypto'
import { signInScopes as allScopes, type Scope } from '../../actors/kernel/operation.ts'
import { commandIn } from '../../actors/records/record.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { privateKeyOf, rawPublicKeyOf } from '../../storage/ed25519.ts'
import type { Delegate, Delegates } from '../command/delegates.ts'
import type { CommandPath } from '../command/ports.ts'
import { envelopeOf, type Reply } from '../format/reply.ts'
import { commandId, signingBytes } from '../format/signing.ts'
import type { Random } from '../platform.ts'
import type { SignInKey, SignInKeys } from './sign-in-keys.ts'

export type SignInOptions = {
  readonly random: Random
  readonly front: Pick<CommandPath, 'execute'>
  readonly serviceId: string
  readonly delegates: Pick<Delegates, 'find' | 'isOver'>
  readonly keys: SignInKeys
  /** Unix seconds. */
  readonly wallSeconds: () => number
}

/** The requester and the request, as shown and as signed. */
export type Asked = {
  /** Id of the sign-in in progress. */
  readonly uid: string
  readonly clientId: string
  readonly clientName: string
  readonly redirectHost: string
  readonly scopes: readonly Scope[]
}

/** A valid sign-in. */
export type SignedIn = { readonly delegation: string; readonly delegate: Delegate; readonly key: SignInKey }

type Finished =
  | { readonly ok: true; readonly delegation: string; readonly identity: string }
  | { readonly ok: false; readonly code: string; readonly message: string }

type Pending = {
  readonly seed: Buffer
  timestamp: number
  /** Its answers are processed one at a time: refusing one must not erase the key of another. */
  turn: Promise<unknown>
  finished?: Extract<Finished, { ok: true }>
}

/** What the browser sends back. */
type Signed = { readonly publicKey: string; readonly signature: string; readonly address: string }

export const signInSeconds = 2_592_000
const pendingMax = 10_000

export class SignIns {
  readonly #options: SignInOptions
  readonly #pending = new BoundedMap<string, Pending>(pendingMax)

  constructor(options: SignInOptions) {
    this.#options = options
  }

  /** The text that this key has to sign, as UTF-8; valid for as long as any signed command. */
  challenge(asked: Asked, publicKey: string): string {
    const pending = this.#pendingOf(asked.uid)
    pending.timestamp = this.#options.wallSeconds()
    return this.#bytes(asked, pending, publicKey).toString('utf8')
  }

  /** Takes the signature over the newest challenge. */
  finish(asked: Asked, signed: Signed): Promise<Finished> {
    const pending = this.#pendingOf(asked.uid)
    const finished = pending.turn.then(() => this.#finish(asked, signed, pending))
    pending.turn = finished.catch(() => {})
    return finished
  }

  async #finish(asked: Asked, { publicKey, signature, address }: Signed, pending: Pending): Promise<Finished> {
    if (pending.finished !== undefined) return pending.finished
    if (pending.timestamp === 0) return { ok: false, code: 'wrong_state', message: 'ask for the challenge first' }
    const bytes = this.#bytes(asked, pending, publicKey)
    const delegation = commandId(bytes).eventId
    const command = commandIn(bytes)
    const key = privateKeyOf(pending.seed)
    const proof = sign(null, bytes, key).toString('base64url')
    const { keys, delegates } = this.#options
    if (keys.get(delegation) === undefined) keys.keep(delegation, pending.seed)
    const reply = await this.#execute({ ...command, signature, proof }, address)
    if (reply?.status !== 200) {
      // If the outcome is unknown, the delegation may exist. Its key is then useless, and is erased too.
      keys.erase(delegation)
      return refusedBy(reply)
    }
    keys.settle(delegation)
    const identity = delegates.find(delegation)?.identity
    if (identity === undefined) return refusedBy(undefined)
    pending.finished = { ok: true, delegation, identity }
    return pending.finished
  }

  /** The sign-in of a delegation, while it is valid and its key exists. */
  of(delegation: string): SignedIn | undefined {
    const { delegates, keys } = this.#options
    const delegate = delegates.find(delegation)
    const key = keys.get(delegation)
    if (delegate === undefined || key === undefined || delegates.isOver(delegate)) return undefined
    return { delegation, delegate, key }
  }

  #pendingOf(uid: string): Pending {
    const known = this.#pending.get(uid)
    if (known !== undefined) return known
    const made = { seed: this.#options.random(32), timestamp: 0, turn: Promise.resolve() }
    this.#pending.set(uid, made)
    return made
  }

  #bytes(asked: Asked, { seed, timestamp }: Pending, publicKey: string): Buffer {
    const { uid, clientId, clientName, redirectHost, scopes } = asked
    const data = {
      schema: 1,
      scopes,
      ...(clientName === '' ? {} : { label: clientName }),
      client_id: clientId,
      ...(redirectHost === '' ? {} : { redirect_host: redirectHost }),
    }
    return signingBytes(this.#options.serviceId, {
      operation: 'delegation.create',
      public_key: publicKey,
      timestamp,
      nonce: uid,
      target: rawPublicKeyOf(privateKeyOf(seed)).toString('base64url'),
      ttl: signInSeconds,
      data: JSON.stringify(data),
    })
  }

  #execute(command: object, address: string): Promise<Reply | undefined> {
    const body = Buffer.from(JSON.stringify(command))
    return new Promise((resolve) => this.#options.front.execute(body, { via: 'oauth', address }, resolve))
  }
}

/** The requested scopes that exist. */
export function knownScopes(text: string): readonly Scope[] {
  const asked = new Set(text.split(' '))
  return allScopes.filter((scope) => asked.has(scope))
}

/** Sanitizes a name chosen by a client before it is signed and shown: one line of bounded length. */
export function nameShown(text: string | undefined): string {
  const line = (text ?? '').toWellFormed().replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
  return [...line.trim()].slice(0, 64).join('').trim()
}

function refusedBy(reply: Reply | undefined): Finished {
  if (reply === undefined)
    return { ok: false, code: 'overloaded', message: 'the board gave no answer: start the sign-in again' }
  const { code = 'internal', message = '' } = envelopeOf(reply).error ?? {}
  return { ok: false, code, message }
}
