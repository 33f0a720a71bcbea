/** The caller at /mcp: an identity that signed in, with a key held by the board, or an anonymous caller. */
import type { Scope } from '../../actors/kernel/operation.ts'

export type Caller = {
  /** Identity id. */
  readonly identity: string
  /** 32 hex: the delegation created by the sign-in. */
  readonly delegation: string
  /** What this token may do: at most what the delegation covers. */
  readonly scopes: readonly string[]
  /** OAuth client, untrusted text. */
  readonly clientId: string
  readonly token: string
  /** Unix seconds. */
  readonly expires: number
  /** Public key of the sign-in, 43 characters. */
  readonly publicKey: string
  /** Signs as the delegate. */
  readonly sign: (bytes: Buffer) => Buffer
}

/** What a client requests by default: a challenge with fewer scopes would yield a token that can do nothing else. */
export const everydayScopes: readonly Scope[] = ['board:read', 'board:post', 'board:work', 'events:subscribe']

/** The token in an Authorization header; undefined if there is none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^Bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '')?.[1]
}

/** Undefined if it is not a token of this board, or is no longer valid. */
export type Authenticate = (token: string) => Promise<Caller | undefined>
