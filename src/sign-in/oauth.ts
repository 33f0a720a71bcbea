/**
 * Assembles sign-in: the authorization server, sign-ins in progress, the keys of completed ones, and the check of tokens. Loaded by the
 * first request that needs it. Requests reach the library without a socket of their own.
 */

import { createPublicKey, type KeyObject } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { jwtVerify } from 'jose'
import inject from 'light-my-request'
import type { Refusal } from '../../actors/kernel/refusals.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import type { Disk } from '../../storage/disk.ts'
import { privateKeyOf } from '../../storage/ed25519.ts'
import { readSecret } from '../board-directory.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import type { Outgoing } from '../outgoing/request.ts'
import type { Caller } from './caller.ts'
import { createProvider, resourceOf } from './provider.ts'
import { Records, type RecordsOptions } from './records.ts'
import { RepeatedRefreshes } from './repeated-refreshes.ts'
import {
  type Asked,
  knownScopes,
  nameShown,
  type SignedIn,
  type SignInOptions,
  SignIns,
  signInSeconds,
} from './sign-in.ts'
import type { SignInKeys } from './sign-in-keys.ts'
import { signInPage } from './sign-in-page.ts'

export type OauthOptions = RecordsOptions & { readonly disk: Disk } & Pick<
    SignInOptions,
    'front' | 'serviceId' | 'random'
  > & {
    readonly news: LiveFacts
    /** Public address of the board. */
    readonly address: string
    /** The board's name on pages. */
    readonly name: string
    /** File of the key that signs tokens. */
    readonly tokenKeyFile: string
    /** Whoever ends delegations must call `retain`. */
    readonly keys: SignInKeys
    readonly cookieSecret: string
    readonly outgoing: Pick<Outgoing, 'request'>
    /** Ends the subscriptions made by a sign-in. */
    readonly signedOut: (identity: string, delegation: string) => Promise<void>
    readonly fetchWait: (address: string | undefined) => number
    /** Monotonic milliseconds. */
    readonly now: () => number
    readonly chargeRotation: (identity: string, address: string) => Refusal | undefined
    readonly fault: (error: unknown) => void
  }

type OauthRequest = {
  readonly method: string
  /** Path with query. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly address: string
}

export type OauthResponse = {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
}

const grantsMax = 10_000
const uidPattern = /^[\w-]{10,64}$/
const keyPattern = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/

export class Oauth {
  readonly #options: OauthOptions
  readonly #keys: SignInKeys
  readonly #signIns: SignIns
  readonly #records: Records
  readonly #provider: ReturnType<typeof createProvider>
  readonly #publicKey: KeyObject
  /** Grants of sign-ins in progress, by delegation. */
  readonly #grants = new BoundedMap<string, { readonly id: Promise<string> }>(grantsMax)
  /** Grants that are being ended. */
  readonly #endings = new Map<string, Promise<void>>()
  readonly #refreshes: RepeatedRefreshes<OauthResponse>
  readonly #callback: (req: IncomingMessage, res: ServerResponse) => void

  constructor(options: OauthOptions) {
    this.#options = options
    const { news } = options
    this.#keys = options.keys
    this.#signIns = new SignIns({ ...options, delegates: news.delegates, keys: this.#keys })
    this.#records = new Records(options)
    const signingKey = tokenKey(options)
    this.#publicKey = createPublicKey(signingKey)
    this.#provider = createProvider({
      ...options,
      signingKey,
      records: this.#records,
      signedIn: (grantId) => this.#signedIn(grantId),
      ending: (grantId) => this.#ending(grantId),
      revoke: (token, clientId) => this.#revoke(token, clientId),
    })
    this.#callback = this.#provider.callback()
    this.#refreshes = new RepeatedRefreshes(options.now)
  }

  /** The claims of a token of this board; undefined if it is none, or has expired. */
  async #claims(token: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    const { address } = this.#options
    const rules = { issuer: address, audience: resourceOf(address), typ: 'at+jwt', algorithms: ['EdDSA'] }
    const verified = await jwtVerify(token, this.#publicKey, rules).catch(() => undefined)
    return verified?.payload
  }

  /** The caller that a token acts for; undefined if there is none, or not anymore. */
  async authenticate(token: string): Promise<Caller | undefined> {
    const claims = await this.#claims(token)
    if (claims === undefined) return undefined
    const { sub, exp, scope, client_id, delegation } = claims
    const found = this.#signIns.of(String(delegation))
    if (found === undefined || found.delegate.identity !== sub) return undefined
    const granted = String(scope ?? '').split(' ')
    return {
      identity: found.delegate.identity,
      delegation: found.delegation,
      scopes: granted.filter((each) => found.delegate.scopes.has(each)),
      clientId: String(client_id ?? ''),
      token,
      expires: Number(exp),
      publicKey: found.key.publicKey,
      sign: found.key.sign,
    }
  }

  handle(request: OauthRequest): Promise<OauthResponse> {
    const { method, url, body } = request
    const isRefresh =
      method === 'POST' && url.startsWith('/oauth/token') && bodyOf(request).grant_type === 'refresh_token'
    return isRefresh ? this.#refreshes.answer(body, () => this.#handle(request)) : this.#handle(request)
  }

  async #handle(request: OauthRequest): Promise<OauthResponse> {
    const { address } = this.#options
    const { protocol, host } = new URL(address)
    const isInteraction = request.url.startsWith('/oauth/interaction/')
    const answer = await inject(
      (req: IncomingMessage, res: ServerResponse) =>
        isInteraction ? this.#interaction(req, res, request) : this.#callback(req, res),
      {
        method: request.method as 'GET',
        url: request.url,
        headers: { ...request.headers, host, 'x-forwarded-proto': protocol.slice(0, -1), 'x-forwarded-host': host },
        payload: request.body,
        remoteAddress: request.address,
        authority: host,
      },
    )
    const headers = Object.entries(answer.headers).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [String(value)]).map((each): readonly [string, string] => [name, each]),
    )
    return { status: answer.statusCode, headers, body: answer.rawPayload }
  }

  async #signedIn(grantId: string): Promise<SignedIn | undefined> {
    const found = await this.#records.find('SignIn', grantId)
    return found === undefined ? undefined : this.#signIns.of(String(found.delegation))
  }

  /** Shared by all concurrent callers. */
  #ending(grantId: string): Promise<void> {
    const known = this.#endings.get(grantId)
    if (known !== undefined) return known
    const begun = this.#forget(grantId).finally(() => this.#endings.delete(grantId))
    this.#endings.set(grantId, begun)
    return begun
  }

  /** The grant has ended: erases its key, so that nothing is ever signed with it again. */
  async #forget(grantId: string): Promise<void> {
    const found = await this.#records.find('SignIn', grantId)
    if (found === undefined) return
    await this.#signOut(String(found.delegation))
    await this.#records.drop('SignIn', grantId)
  }

  /** Erases the key of the sign-in: none of its tokens is valid anymore, and no new ones are issued. */
  async #signOut(delegation: string): Promise<void> {
    this.#keys.erase(delegation)
    const { news, signedOut } = this.#options
    const identity = news.delegates.find(delegation)?.identity
    if (identity !== undefined) await signedOut(identity, delegation)
  }

  async #revoke(token: string, clientId: string): Promise<void> {
    const claims = await this.#claims(token)
    if (claims !== undefined && claims.client_id === clientId) await this.#signOut(String(claims.delegation))
  }

  #interaction(req: IncomingMessage, res: ServerResponse, request: OauthRequest): void {
    this.#signIn(req, res, request).catch((error: unknown) => {
      this.#options.fault(error)
      if (!res.writableEnded)
        json(res, 500, { error: 'server_error', error_description: 'an internal error of this board' })
    })
  }

  async #signIn(req: IncomingMessage, res: ServerResponse, request: OauthRequest): Promise<void> {
    const url = new URL(request.url, this.#options.address)
    const uid = url.pathname.slice('/oauth/interaction/'.length)
    const found = uidPattern.test(uid) ? await this.#asked(req, res, uid) : undefined
    if (found === undefined)
      return json(res, 400, {
        error: 'invalid_request',
        error_description:
          'this sign-in is not in progress in this browser, or has expired: start again in the program that sent you',
      })
    const { asked, isWeb } = found
    const wantsJson = (request.headers.accept ?? '').includes('application/json')
    if (request.method === 'POST') return this.#answer(req, res, { asked, request, wantsJson })
    if (request.method !== 'GET') return json(res, 405, { error: 'invalid_request', error_description: 'GET or POST' })
    if (!wantsJson) {
      const body = signInPage(asked, { address: this.#options.address, name: this.#options.name, isWeb })
      res.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
      res.end(body)
      return
    }
    const publicKey = url.searchParams.get('public_key')
    const about = {
      client_id: asked.clientId,
      client_name: asked.clientName,
      client_is_untrusted: true,
      redirect_host: asked.redirectHost,
      scopes: asked.scopes,
      seconds: signInSeconds,
    }
    if (publicKey === null) {
      const next =
        'ask again with ?public_key= your Ed25519 public key (43 characters of base64url) for the bytes to sign'
      return json(res, 200, { ...about, next })
    }
    if (!keyPattern.test(publicKey))
      return json(res, 400, {
        error: 'invalid_request',
        error_description: 'public_key must be 43 characters of base64url, the 32 raw bytes of an Ed25519 key',
      })
    const next =
      'sign the UTF-8 bytes of challenge with Ed25519 and POST {"public_key","signature"} as JSON to this address, with this Accept header'
    json(res, 200, { ...about, challenge: this.#signIns.challenge(asked, publicKey), next })
  }

  async #answer(
    req: IncomingMessage,
    res: ServerResponse,
    { asked, request, wantsJson }: { asked: Asked; request: OauthRequest; wantsJson: boolean },
  ): Promise<void> {
    const given = bodyOf(request)
    const go = (location: string): void => {
      if (wantsJson) return json(res, 200, { location })
      res.writeHead(303, { location })
      res.end()
    }
    const once = { mergeWithLastSubmission: false }
    if (given.deny === true || given.deny === 'true')
      return go(
        await this.#provider.interactionResult(
          req,
          res,
          { error: 'access_denied', error_description: 'the sign-in was declined' },
          once,
        ),
      )
    const publicKey = String(given.public_key ?? '')
    if (!keyPattern.test(publicKey))
      return json(res, 400, {
        error: 'invalid_request',
        error_description: 'public_key must be 43 characters of base64url',
      })
    const { address } = request
    const finished = await this.#signIns.finish(asked, { publicKey, signature: String(given.signature ?? ''), address })
    if (!finished.ok) return json(res, 400, { error: finished.code, error_description: finished.message })
    const { identity } = finished
    const grantId = await this.#grantOf(asked, finished)
    const result = { login: { accountId: identity, remember: false }, consent: { grantId } }
    go(await this.#provider.interactionResult(req, res, result, once))
  }

  /** Created once per sign-in, even if its answer arrives repeatedly: each grant is stored for as long as the sign-in. */
  #grantOf(asked: Asked, made: { identity: string; delegation: string }): Promise<string> {
    const known = this.#grants.get(made.delegation)
    if (known !== undefined) return known.id
    const id = this.#grant(asked, made).catch((error: unknown) => {
      this.#grants.delete(made.delegation)
      throw error
    })
    this.#grants.set(made.delegation, { id })
    return id
  }

  async #grant(asked: Asked, { identity, delegation }: { identity: string; delegation: string }): Promise<string> {
    const grant = new this.#provider.Grant({ accountId: identity, clientId: asked.clientId })
    grant.addResourceScope(resourceOf(this.#options.address), asked.scopes.join(' '))
    const grantId = await grant.save()
    await this.#records.keep('SignIn', grantId, { delegation }, signInSeconds)
    await this.#records.keepClient(asked.clientId)
    return grantId
  }

  /** Undefined if no such sign-in is in progress in this browser. */
  async #asked(
    req: IncomingMessage,
    res: ServerResponse,
    uid: string,
  ): Promise<{ asked: Asked; isWeb: boolean } | undefined> {
    const interaction = await this.#provider.interactionDetails(req, res).catch(() => undefined)
    if (interaction?.uid !== uid) return undefined
    const { client_id: clientId = '', redirect_uri = '', scope = '' } = interaction.params
    const client = await this.#provider.Client.find(clientId)
    if (client === undefined) return undefined
    const asked = {
      uid,
      clientId,
      clientName: nameShown(client.clientName),
      redirectHost: hostOf(redirect_uri),
      scopes: knownScopes(scope),
    }
    return { asked, isWeb: clientId.startsWith('https://') }
  }
}

/** Host and port; for an app's private scheme, the scheme. */
function hostOf(uri: string): string {
  if (!URL.canParse(uri)) return ''
  const { host, protocol } = new URL(uri)
  return (/^https?:$/.test(protocol) ? host : protocol).slice(0, 256)
}

function bodyOf({ headers, body }: OauthRequest): Readonly<Record<string, unknown>> {
  const text = body.toString('utf8')
  if ((headers['content-type'] ?? '').includes('application/x-www-form-urlencoded'))
    return Object.fromEntries(new URLSearchParams(text))
  try {
    return Object(JSON.parse(text)) as Record<string, unknown>
  } catch {
    return {}
  }
}

function json(res: ServerResponse, status: number, value: object): void {
  res.writeHead(status, { 'content-type': 'application/json' })
  res.end(JSON.stringify(value))
}

/** The key that signs tokens, created on first use. */
function tokenKey({ disk, tokenKeyFile: file, random }: OauthOptions): KeyObject {
  if (!disk.fileExists(file)) disk.writeAtomic(file, Buffer.from(`${random(32).toString('hex')}\n`), 0o600)
  return privateKeyOf(readSecret(disk, file, { fix: 'Remove it and start the board again: users then sign in again.' }))
}
