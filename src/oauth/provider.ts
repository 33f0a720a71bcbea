/**
 * The authorization server (OAuth 2.1 as MCP 2026-07-28 asks for it): oidc-provider with what this board wants of it.
 * Public clients alone, PKCE S256, resource indicators, codes of 60 s used once, refresh tokens that rotate; who signs in does
 * so anew each time, by one signature (sign-in.ts), and no session of a browser stands for him.
 */
import type { KeyObject } from 'node:crypto'
import Provider, { errors, interactionPolicy } from 'oidc-provider'
import { everydayScopes } from '../mcp/gate.ts'
import { scopes } from '../operations/operation.ts'
import type { Outgoing } from '../outgoing/request.ts'
import { adapterFor, type Records } from './records.ts'
import { knownScopes, type SignedIn } from './sign-in.ts'

export type ProviderOptions = {
  /** Public address of the board: the issuer. */
  readonly address: string
  readonly signingKey: KeyObject
  readonly cookieSecret: string
  readonly records: Records
  readonly outgoing: Pick<Outgoing, 'request'>
  /**
   * Takes leave to fetch one more client's metadata: 0, or the seconds to wait. `address`: of who asks, where it is not an
   * answer to a page of ours.
   */
  readonly fetchWait: (address: string | undefined) => number
  /** The sign-in behind a grant; undefined: it is over. */
  readonly signedIn: (grantId: string) => Promise<SignedIn | undefined>
  /** A grant is revoked: logged out, or a token used twice. */
  readonly ending: (grantId: string) => Promise<void>
  readonly fault: (error: unknown) => void
}

type OauthError = { readonly error: string; readonly error_description?: string }

export const accessSeconds = 3_600
export const refreshSeconds = 2_592_000
const codeSeconds = 60
const responseModes = ['query', 'fragment']
const interactionSeconds = 600
const metadataBytesMax = 64 * 1024
/** Characters of a client's id: what is signed names it (`client_id` of delegation.create). */
const clientIdMax = 512
const jsonType = /^application\/(?:[\w.-]+\+)?json *(?:;|$)/i
export const resourceOf = (address: string) => `${address}/mcp`
const scopeText = scopes.join(' ')
const authorizePath = '/oauth/authorize'

/** A request of the library's. */
type Asking = { readonly ip: string; set(name: string, value: string): void }
/** What a client says of itself, as it came. */
type Metadata = { readonly redirect_uris?: unknown; scope?: unknown }

export function createProvider(options: ProviderOptions): Provider {
  const { address, signingKey, records, signedIn } = options
  const resource = resourceOf(address)
  const policy = interactionPolicy.base()
  const { Check } = interactionPolicy
  const login = policy.get('login')!
  login.checks.clear()
  login.checks.add(
    new Check('sign', 'A signature is needed', ({ oidc }) =>
      oidc.result?.login === undefined ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT,
    ),
  )
  // What may be done is in the signature itself.
  policy.get('consent')!.checks.clear()
  // Where a document was not believed, the library looks for it once more to say so: it is not asked for again.
  const looked = new WeakSet<object>()
  const mayFetch = (ctx: Asking | undefined, id: string): boolean => {
    if ([...id].length > clientIdMax)
      throw new errors.InvalidClientMetadata(`client_id has over ${clientIdMax} characters`)
    if (ctx !== undefined && looked.has(ctx)) return false
    if (ctx !== undefined) looked.add(ctx)
    const wait = options.fetchWait(ctx?.ip)
    if (wait === 0) return true
    ctx?.set('retry-after', String(wait))
    const tooMany = new errors.TemporarilyUnavailable(`too many clients are looked up: wait ${wait} s`)
    throw Object.assign(tooMany, { status: 429, statusCode: 429, allow_redirect: false })
  }
  const provider = new Provider(address, {
    adapter: adapterFor(records, {
      used: () => new errors.InvalidGrant('grant request is invalid'),
      ending: options.ending,
    }),
    jwks: { keys: [{ ...signingKey.export({ format: 'jwk' }), alg: 'EdDSA', use: 'sig', kid: 'board-oauth-1' }] },
    enabledJWA: { idTokenSigningAlgValues: ['EdDSA'] },
    clientDefaults: {
      id_token_signed_response_alg: 'EdDSA',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    clientAuthMethods: ['none'],
    responseTypes: ['code'],
    scopes: [...scopes],
    claims: { sub: null },
    subjectTypes: ['public'],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    // A sign-in stands for itself: what a browser remembers is gone after minutes.
    expiresWithSession: () => Promise.resolve(false),
    extraClientMetadata: {
      properties: ['broadside_redirects'],
      validator: (_ctx: unknown, _name: string, _value: unknown, given: Metadata) => {
        const { redirect_uris, scope } = given
        // What is no list, or no text, is the library's to refuse.
        if (Array.isArray(redirect_uris) && redirect_uris.some(isPlainRedirect)) {
          const error_description =
            'redirect_uris over plain http must be of this device: localhost, 127.0.0.1 or [::1]'
          throw Object.assign(new errors.InvalidRedirectUri(), { error_description })
        }
        // What is not known here is left out, and the answer says what is left (RFC 7591, 2).
        if (typeof scope === 'string') given.scope = knownText(scope)
      },
    },
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
    interactions: { policy, url: (_ctx: unknown, { uid }: { uid: string }) => `/oauth/interaction/${uid}` },
    cookies: {
      keys: [options.cookieSecret],
      names: { session: '_oauth_session', interaction: '_oauth', resume: '_oauth_resume' },
    },
    clientBasedCORS: () => true,
    routes: {
      authorization: authorizePath,
      token: '/oauth/token',
      registration: '/oauth/register',
      revocation: '/oauth/revoke',
      jwks: '/oauth/jwks',
      userinfo: '/oauth/userinfo',
      end_session: '/oauth/end-session',
    },
    ttl: {
      AccessToken: accessSeconds,
      AuthorizationCode: codeSeconds,
      RefreshToken: refreshSeconds,
      Grant: refreshSeconds,
      Interaction: interactionSeconds,
      Session: interactionSeconds,
      IdToken: accessSeconds,
    },
    // One form for all refusals: the door makes a page of it for who sees pages.
    renderError: (ctx: { body: unknown }, { error, error_description }: OauthError) => {
      ctx.body = { error, error_description }
    },
    fetch: (url: string | URL, { headers }: { headers: Headers }) => fetched(options, String(url), headers),
    fetchResponseBodyLimits: { 'client_id metadata document': metadataBytesMax },
    features: {
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
        allowFetch: async (ctx: Asking | undefined, id: string) => mayFetch(ctx, id),
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
    },
  })
  // Nobody is given a secret that no door takes: who names no way to prove himself is a public client too (RFC 7591, 3.2.1).
  provider.Client.needsSecret = () => false
  provider.use(async (ctx, next) => {
    // The library's page for this mode runs a script of its own, which no page of ours may: a mode that nobody knows.
    if (ctx.query.response_mode === 'form_post') ctx.query = { ...ctx.query, response_mode: 'none' }
    const { scope = '', client_id } = ctx.query
    // Who asks for nothing that is known here gets what one needs every day, and is told so with the token (RFC 6749, 3.3).
    if (ctx.path === authorizePath && typeof scope === 'string' && knownScopes(scope).length === 0)
      ctx.query = { ...ctx.query, scope: [knownText(scope), await usualScope(records, client_id)].join(' ').trim() }
    await next()
    if (ctx.oidc?.route === 'discovery') Object.assign(ctx.body as object, { response_modes_supported: responseModes })
  })
  // Addresses in answers are those that people see, whatever stands between.
  provider.proxy = true
  provider.on('server_error', (_ctx, error) => options.fault(error))
  return provider
}

/** The scopes of a text that exist here, `openid` among them; undefined: none. */
function knownText(text: string): string | undefined {
  const known = text.split(' ').filter((each) => each === 'openid' || (scopes as readonly string[]).includes(each))
  return known.length === 0 ? undefined : known.join(' ')
}

/** What one needs every day; of a client that said when it registered what it will ask for, no more than that. */
async function usualScope(records: Records, clientId: unknown): Promise<string> {
  const registered = typeof clientId === 'string' ? (await records.find('Client', clientId))?.scope : undefined
  const own = knownScopes(typeof registered === 'string' ? registered : '')
  return (own.length === 0 ? everydayScopes : own).join(' ')
}

/** A code that travels unencrypted to another machine can be read on its way. */
function isPlainRedirect(uri: string): boolean {
  if (!URL.canParse(uri)) return false
  const { protocol, hostname } = new URL(uri)
  return protocol === 'http:' && !['localhost', '127.0.0.1', '[::1]'].includes(hostname)
}

/** What a client says of itself at its own address, by the guarded way out. */
async function fetched({ outgoing }: ProviderOptions, url: string, headers: Headers): Promise<Response> {
  const answer = await outgoing.request({
    url,
    headers: { accept: headers.get('accept') ?? 'application/json' },
    totalMs: 2_500,
    answerBytesMax: metadataBytesMax,
  })
  if (!answer.ok) throw new Error(answer.reason)
  // A place where strangers may leave pages or pictures does not speak for its host.
  if (!jsonType.test(answer.headers['content-type']?.[0] ?? '')) throw new Error('it is not served as JSON')
  const given = new Headers()
  for (const [name, values] of Object.entries(answer.headers))
    for (const value of values ?? []) given.append(name, value)
  return new Response(new Uint8Array(answer.body), { status: answer.status, headers: given })
}
