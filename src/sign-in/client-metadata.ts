/**
 * What a client says of itself, in its registration or in its own document, as this server takes it. What it asks for and is not
 * offered is substituted, and the answer to a registration says what is left (RFC 7591, 2 and 3.2.1).
 */
import { errors } from 'oidc-provider'
import { scopes } from '../../actors/kernel/operation.ts'

/** As it came: nothing is known of its types. */
export type Metadata = {
  redirect_uris?: unknown
  application_type?: unknown
  token_endpoint_auth_method?: unknown
  grant_types?: unknown
  response_types?: unknown
  scope?: unknown
}

export const grantTypes = ['authorization_code', 'refresh_token'] as const
export const responseTypes = ['code'] as const

/** Ways for a client to authenticate by a secret that a server gives it: this board gives none. */
const secretMethods: readonly unknown[] = ['client_secret_basic', 'client_secret_post', 'client_secret_jwt']
const loopback: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Changes the metadata to what holds here. What is no list, or no text, is left for the library to refuse. */
export function settleMetadata(given: Metadata): void {
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
 * A scheme of its own is an app's on a user's device, which is what native means (RFC 8252, 7.1). Such apps name a page on the
 * web beside it, and call themselves web or nothing.
 */
function isPrivateUse({ protocol }: URL): boolean {
  return protocol !== 'https:' && protocol !== 'http:'
}

/** Those of the list that are offered here; all of it where none is, for the library to say so. */
function offered(list: unknown, here: readonly string[]): unknown {
  if (!Array.isArray(list)) return list
  const left = list.filter((each) => here.includes(each))
  return left.length === 0 ? list : left
}

function parsed(uri: unknown): readonly URL[] {
  return typeof uri === 'string' && URL.canParse(uri) ? [new URL(uri)] : []
}

/** A code that travels unencrypted to another machine can be read on its way. */
function isPlainRedirect({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && !loopback.has(hostname)
}

/** The scopes of a text that exist here; undefined: none. */
export function knownText(text: string): string | undefined {
  const known = text.split(' ').filter((each) => scopes.some((scope) => scope === each))
  return known.length === 0 ? undefined : known.join(' ')
}
