/**
 * The authorization server (OAuth 2.1 as required by MCP 2026-07-28): oidc-provider, configured for this board. Only public clients, PKCE
 * S256, resource indicators, single-use codes of 60 s, and rotating refresh tokens. Users sign in each time by one signature (sign-in.ts),
 * and no browser session replaces that.
 */

import type { KeyObject } from 'node:crypto'
import Provider, { type Context, errors, interactionPolicy } from 'oidc-provider'
import { isLoopbackHost } from '../../actors/kernel/networks.ts'
import { signInScopes as scopes } from '../../actors/kernel/operation.ts'
import type { Refusal } from '../../actors/kernel/refusals.ts'
import type { Outgoing } from '../outgoing/request.ts'
import { everydayScopes } from './caller.ts'
import { adapterFor, type Records, refreshTokenName } from './records.ts'
import { knownScopes, type SignedIn } from './sign-in.ts'

type ProviderOptions = {
  /** Public address of the board: the issuer. */
  readonly address: string
  readonly signingKey: KeyObject
  readonly cookieSecret: string
  readonly records: Records
  readonly outgoing: Pick<Outgoing, 'request'>
  /**
   * Requests permission to fetch one more client's metadata: 0, or the seconds to wait. `address`: of the requester, unless it follows a
   * page of ours.
   */
  readonly fetchWait: (address: string | undefined) => number
  /** Charges one more refresh token rotation to this identity and its host. Undefined if it was charged. */
  readonly chargeRotation: (identity: string, address: string) => Refusal | undefined
  /** The sign-in of a grant; undefined if it has ended. */
  readonly signedIn: (grantId: string) => Promise<SignedIn | undefined>
  /** Called when a grant is revoked: by logout, or because a token was used twice. */
  readonly ending: (grantId: string) => Promise<void>
  /** Ends the sign-in of an access token, if it is valid and belongs to this client. */
  readonly revoke: (token: string, clientId: string) => Promise<void>
  readonly fault: (error: unknown) => void
}

type OauthError = { readonly error: string; readonly error_description?: string }

const grantTypes = ['authorization_code', 'refresh_token'] as const
const responseTypes = ['code'] as const
const accessSeconds = 3_600
const refreshSeconds = 2_592_000
const codeSeconds = 60
const responseModes = ['query', 'fragment']
const interactionSeconds = 600
const metadataBytesMax = 64 * 1024
/** Maximum length of a client id in characters: the signed bytes name it (`client_id` of delegation.create). */
const clientIdMax = 512
const jsonType = /^application\/(?:[\w.-]+\+)?json *(?:;|$)/i
export const resourceOf = (address: string) => `${address}/mcp`
const scopeText = scopes.join(' ')
const authorizePath = '/oauth/authorize'

/** A request in the library's form. */
type Asking = { readonly ip: string; set(name: string, value: string): void }

export function createProvider(options: ProviderOptions): Provider {
  const { address, signingKey, records } = options
  const provider = new Provider(address, {
    adapter: adapterFor(records, {
      used: () => new errors.InvalidGrant('grant request is invalid'),
      ending: options.ending,
    }),
    jwks: { keys: [{ ...signingKey.export({ format: 'jwk' }), alg: 'EdDSA', use: 'sig', kid: 'board-oauth-1' }] },
    enabledJWA: { idTokenSigningAlgValues: ['EdDSA'] },
    ...publicClients,
    rotateRefreshToken: (ctx: Rotating) => mayRotate(options, ctx),
    ...grantsOf(options),
    interactions: {
      policy: signInPolicy(),
      url: (_ctx: unknown, { uid }: { uid: string }) => `/oauth/interaction/${uid}`,
    },
    cookies: {
      keys: [options.cookieSecret],
      names: { session: '_oauth_session', interaction: '_oauth', resume: '_oauth_resume' },
    },
    clientBasedCORS: () => true,
    routes,
    ttl,
    // One form for all refusals; the route turns it into a page for browsers.
    renderError: (ctx: { body: unknown }, { error, error_description: said }: OauthError) => {
      ctx.body = { error, error_description: refusalsInWords[said ?? ''] ?? said }
    },
    fetch: (url: string | URL, { headers }: { headers: Headers }) => fetched(options, String(url), headers),
    fetchResponseBodyLimits: { 'client_id metadata document': metadataBytesMax },
    features: featuresOf(options),
  })
  // No client gets a secret, since none is accepted: a client that names no authentication method is public too (RFC 7591, 3.2.1).
  provider.Client.needsSecret = () => false
  nameByFamily(provider, options.cookieSecret)
  provider.use(adjusting(records, options.revoke))
  // Addresses in answers are the public ones, regardless of proxies.
  provider.proxy = true
  provider.on('server_error', (_ctx, error) => options.fault(error))
  return provider
}

/** Refusals of the library that do not say what to do about them. */
const refusalsInWords: Readonly<Record<string, string>> = {
  'client is invalid':
    'this board does not know this client_id: remove the board from the program that sent you, and add it again',
  'client_id metadata document fetch failed':
    'the document that the client_id names could not be read: it must be JSON at a public https address',
}

type Rotating = Asking & {
  readonly oidc: { readonly entities: { readonly RefreshToken: { readonly accountId: string } } }
}

/** Every rotation is recorded, so it counts as a write of the signed-in identity, and is refused before the token is used. */
function mayRotate({ chargeRotation }: ProviderOptions, ctx: Rotating): true {
  const refused = chargeRotation(ctx.oidc.entities.RefreshToken.accountId, ctx.ip)
  if (refused === undefined) return true
  const { message, retryAfter = 1, details } = refused
  const said = message.replace('retry_after', String(retryAfter))
  throw tooMany(ctx, `a refresh is a write, and ${said} (${details?.limit})`, retryAfter)
}

function nameByFamily({ RefreshToken: { prototype } }: Provider, secret: string): void {
  const random = prototype.generateTokenId
  prototype.generateTokenId = function () {
    return refreshTokenName(random.call(this), this.grantId, secret)
  }
}

function tooMany(ctx: Pick<Asking, 'set'> | undefined, description: string, wait: number): Error {
  ctx?.set('retry-after', String(wait))
  const error = new errors.TemporarilyUnavailable(description)
  return Object.assign(error, { status: 429, statusCode: 429, allow_redirect: false })
}

/** Users sign in anew each time, and the signature itself says what is permitted. */
function signInPolicy() {
  const policy = interactionPolicy.base()
  const { Check } = interactionPolicy
  const login = policy.get('login')!
  login.checks.clear()
  login.checks.add(
    new Check('scope', 'A scope is needed', ({ oidc }) => {
      if (knownScopes(oidc.params.scope ?? '').length > 0) return Check.NO_NEED_TO_PROMPT
      throw new errors.InvalidScope(`this board offers nothing in this scope: request some of ${scopeText}`)
    }),
  )
  login.checks.add(
    new Check('sign', 'A signature is needed', ({ oidc }) =>
      oidc.result?.login === undefined ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT,
    ),
  )
  policy.get('consent')!.checks.clear()
  return policy
}

/** Every client is public and uses PKCE. */
const publicClients = {
  clientDefaults: {
    id_token_signed_response_alg: 'EdDSA',
    grant_types: [...grantTypes],
    response_types: [...responseTypes],
    token_endpoint_auth_method: 'none',
  },
  clientAuthMethods: ['none'],
  responseTypes: [...responseTypes],
  pkce: { required: () => true },
  extraClientMetadata: {
    properties: ['broadside_redirects'],
    validator: (_ctx: unknown, _name: string, _value: unknown, given: Metadata) => settleMetadata(given),
  },
}

function grantsOf({ signedIn }: ProviderOptions) {
  return {
    scopes: [...scopes],
    claims: { sub: null },
    subjectTypes: ['public'],
    // A sign-in does not depend on a browser session, which is gone after minutes.
    expiresWithSession: () => Promise.resolve(false),
    issueRefreshToken: () => Promise.resolve(true),
    findAccount: (_ctx: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    loadExistingGrant: (ctx: { oidc: { result?: { consent?: { grantId?: string } }; provider: Provider } }) => {
      const grantId = ctx.oidc.result?.consent?.grantId
      const { Grant } = ctx.oidc.provider as unknown as { Grant: { find(id: string): Promise<unknown> } }
      return grantId === undefined ? undefined : Grant.find(grantId)
    },
    extraTokenClaims: async (_ctx: unknown, { grantId }: { grantId: string }) => {
      const found = await signedIn(grantId)
      if (found === undefined) throw new errors.InvalidGrant('the sign-in has ended')
      return { delegation: found.delegation }
    },
  }
}

const routes = {
  authorization: authorizePath,
  token: '/oauth/token',
  registration: '/oauth/register',
  revocation: '/oauth/revoke',
  jwks: '/oauth/jwks',
  userinfo: '/oauth/userinfo',
  end_session: '/oauth/end-session',
}

const ttl = {
  AccessToken: accessSeconds,
  AuthorizationCode: codeSeconds,
  RefreshToken: refreshSeconds,
  Grant: refreshSeconds,
  Interaction: interactionSeconds,
  Session: interactionSeconds,
  IdToken: accessSeconds,
}

function featuresOf({ address, fetchWait }: ProviderOptions) {
  const resource = resourceOf(address)
  const lookups = new Lookups(fetchWait)
  return {
    devInteractions: { enabled: false },
    userinfo: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    dPoP: { enabled: false },
    rpInitiatedLogout: { enabled: false },
    registration: { enabled: true, issueRegistrationAccessToken: false },
    revocation: { enabled: true },
    clientIdMetadataDocument: {
      enabled: true,
      ack: 'draft-02',
      allowFetch: async (ctx: Asking | undefined, id: string) => lookups.mayFetch(ctx, id),
    },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx: unknown, asked: string) => {
        if (asked !== resource) throw new errors.InvalidTarget()
        return {
          scope: scopeText,
          audience: resource,
          accessTokenTTL: accessSeconds,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'EdDSA' } },
        }
      },
    },
  }
}

/** Limits lookups of client metadata. */
class Lookups {
  readonly #wait: ProviderOptions['fetchWait']
  /** If a document was rejected, the library looks it up once more to report that; it is not fetched again. */
  readonly #looked = new WeakSet<object>()

  constructor(wait: ProviderOptions['fetchWait']) {
    this.#wait = wait
  }

  mayFetch(ctx: Asking | undefined, id: string): boolean {
    if ([...id].length > clientIdMax)
      throw new errors.InvalidClientMetadata(`client_id has over ${clientIdMax} characters`)
    if (ctx !== undefined && this.#looked.has(ctx)) return false
    if (ctx !== undefined) this.#looked.add(ctx)
    const wait = this.#wait(ctx?.ip)
    if (wait === 0) return true
    throw tooMany(ctx, `too many clients are being looked up: wait ${wait} s`, wait)
  }
}

/** Adjusts the library's answers where this board differs. */
function adjusting(records: Records, revoke: ProviderOptions['revoke']): Parameters<Provider['use']>[0] {
  return async (ctx, next) => {
    // The library's page for this mode runs its own script, which our pages must not. Replace it with an unknown mode.
    if (ctx.query.response_mode === 'form_post') ctx.query = { ...ctx.query, response_mode: 'none' }
    if (ctx.path === authorizePath) ctx.query = await askedFor(ctx.query, records)
    await next()
    if (ctx.oidc !== undefined && isUnseen(ctx.oidc)) showErrorHere(ctx)
    if (ctx.oidc?.route === 'discovery') ctx.body = describedBy(ctx.body as Described)
    // The library has authenticated the client, but cannot revoke a token that is not stored (RFC 7009).
    const { route, client, params } = ctx.oidc ?? {}
    if (route === 'revocation' && (ctx.body as OauthError | undefined)?.error === 'unsupported_token_type') {
      await revoke(params?.token ?? '', client?.clientId ?? '')
      ctx.status = 200
      ctx.body = ''
    }
  }
}

/**
 * Whether the user has not seen the sign-in page yet. What follows that page continues the request stored for it. If none was stored for
 * this browser, the library takes the address from the link itself, as for a new request.
 */
function isUnseen({ route, redirectUriCheckPerformed }: Context['oidc']): boolean {
  return route === 'authorization' || (route === 'resume' && redirectUriCheckPerformed !== true)
}

type Redirecting = {
  status: number
  body: unknown
  readonly response: { get(name: string): string; remove(name: string): void }
}

/**
 * Anyone may register a client, with any address. A browser that follows a link to this board must not be redirected to such an address
 * before its user has seen the sign-in page, neither by a failing request nor by prompt=none, which always fails here (RFC 9700, 4.11.2).
 * The refusal shows the client's address, and the user decides. Only a program on the user's own device is redirected to immediately: it is
 * waiting, and nobody else can be there.
 */
function showErrorHere(ctx: Redirecting): void {
  const location = ctx.response.get('location')
  if (!URL.canParse(location)) return
  const { protocol, hostname, search, hash } = new URL(location)
  if (protocol === 'http:' && isLoopbackHost(hostname)) return
  const said = new URLSearchParams(search)
  for (const [name, value] of new URLSearchParams(hash.slice(1))) said.set(name, value)
  ctx.response.remove('location')
  ctx.status = 400
  ctx.body = { error: said.get('error'), error_description: said.get('error_description') ?? undefined, location }
}

type Query = { readonly scope?: unknown; readonly client_id?: unknown }

/** Parameters of OpenID Connect, which is not supported here. Unknown ones are ignored (RFC 6749, 3.1). */
const unsupportedParameters: ReadonlySet<string> = new Set([
  'acr_values',
  'claims',
  'claims_locales',
  'id_token_hint',
  'max_age',
  'nonce',
])

async function askedFor(query: Query, records: Records): Promise<Query> {
  const supported = Object.fromEntries(Object.entries(query).filter(([name]) => !unsupportedParameters.has(name)))
  const { scope = '', client_id } = query
  if (typeof scope !== 'string') return supported
  const known = knownText(scope)
  // A client that requests only the user's identity gets nothing else.
  if (known === undefined && scope.split(' ').includes('openid')) return supported
  // A client that requests no known scope gets the everyday ones, and the token response names them (RFC 6749, 3.3).
  return { ...supported, scope: known ?? (await usualScope(records, client_id)) }
}

type Described = Readonly<Record<string, unknown>>

/** Metadata of OpenID Connect servers, which this is not. */
const unsupportedMetadata: ReadonlySet<string> = new Set([
  'claims_supported',
  'claims_parameter_supported',
  'claim_types_supported',
  'subject_types_supported',
  'id_token_signing_alg_values_supported',
])

/** The metadata of RFC 8414. */
function describedBy(body: Described): Described {
  const own = Object.fromEntries(Object.entries(body).filter(([name]) => !unsupportedMetadata.has(name)))
  return { ...own, scopes_supported: scopes, response_modes_supported: responseModes }
}

/** The everyday scopes; for a client that registered its scopes, no more than those. */
async function usualScope(records: Records, clientId: unknown): Promise<string> {
  const registered = typeof clientId === 'string' ? (await records.find('Client', clientId))?.scope : undefined
  const own = knownScopes(typeof registered === 'string' ? registered : '')
  return (own.length === 0 ? everydayScopes : own).join(' ')
}

/** Fetches a client's metadata from its own address, through the restricted path for outgoing requests. */
async function fetched({ outgoing }: ProviderOptions, url: string, headers: Headers): Promise<Response> {
  const answer = await outgoing.request({
    url,
    headers: { accept: headers.get('accept') ?? 'application/json' },
    totalMs: 2_500,
    answerBytesMax: metadataBytesMax,
  })
  if (!answer.ok) throw new Error(answer.reason)
  // A site where strangers may upload pages or images does not speak for its host.
  if (!jsonType.test(answer.headers['content-type']?.[0] ?? '')) throw new Error('it is not served as JSON')
  const given = new Headers()
  for (const [name, values] of Object.entries(answer.headers))
    for (const value of values ?? []) given.append(name, value)
  return new Response(new Uint8Array(answer.body), { status: answer.status, headers: given })
}

/** As received, so its types are unknown. */
type Metadata = {
  redirect_uris?: unknown
  application_type?: unknown
  token_endpoint_auth_method?: unknown
  grant_types?: unknown
  response_types?: unknown
  scope?: unknown
}

/** Client authentication methods that use a secret issued by the server; this board issues none. */
const secretMethods: readonly unknown[] = ['client_secret_basic', 'client_secret_post', 'client_secret_jwt']

/**
 * Adapts a client's metadata, from its registration or its own document, to this server. Requested values that are not offered are
 * substituted, and the answer to a registration states the result (RFC 7591, 2 and 3.2.1). Modifies the metadata in place. Values of the
 * wrong type are left for the library to refuse.
 */
function settleMetadata(given: Metadata): void {
  const redirects = Array.isArray(given.redirect_uris) ? given.redirect_uris.flatMap(parsed) : []
  if (redirects.some(isPlainRedirect)) {
    const error_description = 'redirect_uris over plain http must be of this device: localhost, 127.0.0.1 or [::1]'
    throw Object.assign(new errors.InvalidRedirectUri(), { error_description })
  }
  if (redirects.some(isPrivateUse)) given.application_type = 'native'
  if (secretMethods.includes(given.token_endpoint_auth_method)) given.token_endpoint_auth_method = 'none'
  given.grant_types = offered(given.grant_types, grantTypes)
  given.response_types = offered(given.response_types, responseTypes)
  if (typeof given.scope === 'string') given.scope = knownText(given.scope)
}

/**
 * A private-use scheme belongs to an app on a user's device, which is what native means (RFC 8252, 7.1). Such apps also list a web page,
 * and declare themselves as web or not at all.
 */
function isPrivateUse({ protocol }: URL): boolean {
  return protocol !== 'https:' && protocol !== 'http:'
}

/** The items of the list that are offered here; if none is, the entire list, for the library to refuse. */
function offered(list: unknown, here: readonly string[]): unknown {
  if (!Array.isArray(list)) return list
  const left = list.filter((each) => here.includes(each))
  return left.length === 0 ? list : left
}

function parsed(uri: unknown): readonly URL[] {
  return typeof uri === 'string' && URL.canParse(uri) ? [new URL(uri)] : []
}

/** A code sent unencrypted to another machine can be intercepted. */
function isPlainRedirect({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && !isLoopbackHost(hostname)
}

/** The scopes in a text that exist here; undefined if none do. */
function knownText(text: string): string | undefined {
  const known = text.split(' ').filter((each) => scopes.some((scope) => scope === each))
  return known.length === 0 ? undefined : known.join(' ')
}
