/**
 * Decides who may call what at /mcp, before the protocol library runs: reading public data needs nothing, everything else a token. The
 * refusals are those of RFC 6750 and of the MCP authorization text (2026-07-28): 401 without a valid token, 403 if it lacks a scope, both
 * with a challenge that says where to sign in and for what.
 */
import type { Scope } from '../../actors/kernel/operation.ts'
import { type Authenticate, bearerToken, type Caller, everydayScopes } from '../sign-in/caller.ts'
import { type Need, toolByName } from './tool-list.ts'

export type Refused = {
  readonly status: 401 | 403
  readonly challenge: string
  readonly body: { readonly error: string; readonly error_description: string; readonly without_sign_in?: string }
}

export type Passed = { readonly caller: Caller | undefined }

/** What a JSON-RPC message needs. */
function needOf(message: unknown): Need {
  if (typeof message !== 'object' || message === null) return 'nothing'
  const { method, params } = message as { method?: unknown; params?: { name?: unknown } }
  if (method === 'events/subscribe' || method === 'events/unsubscribe') return { scope: 'events:subscribe' }
  if (method !== 'tools/call' || typeof params?.name !== 'string') return 'nothing'
  return toolByName.get(params.name)?.need ?? 'nothing'
}

type GateOptions = {
  readonly authenticate: Authenticate
  readonly metadataUrl: string
  /** How to sign a command with one's own key. */
  readonly guideUrl: string
}

export async function pass(
  message: unknown,
  authorization: string | undefined,
  { authenticate, metadataUrl, guideUrl }: GateOptions,
): Promise<Passed | Refused> {
  const need = needOf(message)
  if (authorization === undefined)
    return need === 'nothing'
      ? { caller: undefined }
      : unauthorized('Missing Authorization header', { metadataUrl, guideUrl }, need.scope)
  const token = bearerToken(authorization)
  const caller = token === undefined ? undefined : await authenticate(token)
  if (caller === undefined)
    return unauthorized('The token is unknown, expired, revoked or for another resource', { metadataUrl, guideUrl })
  if (need === 'nothing' || need.scope === undefined || caller.scopes.includes(need.scope)) return { caller }
  const wanted = [...new Set([...caller.scopes, need.scope])].join(' ')
  const description = `This needs the scope ${need.scope}`
  return {
    status: 403,
    challenge: challengeOf('insufficient_scope', description, wanted, metadataUrl),
    body: { error: 'insufficient_scope', error_description: description },
  }
}

/** A host without OAuth shows its user the body, which says what works without signing in. */
function unauthorized(
  description: string,
  { metadataUrl, guideUrl }: Omit<GateOptions, 'authenticate'>,
  scope?: Scope,
): Refused {
  const wanted = [...new Set([...everydayScopes, ...(scope === undefined ? [] : [scope])])].join(' ')
  return {
    status: 401,
    challenge: challengeOf('invalid_token', description, wanted, metadataUrl),
    body: {
      error: 'invalid_token',
      error_description: description,
      without_sign_in: `Reading public rooms needs no token: events_list, thread_get, rooms_list and the other read tools. To write without OAuth, sign commands with your own key and send them with the tool command, or by POST /v1/command: ${guideUrl}`,
    },
  }
}

function challengeOf(error: string, description: string, scope: string, metadataUrl: string): string {
  return `Bearer error="${error}", error_description="${description}", scope="${scope}", resource_metadata="${metadataUrl}"`
}
