/** Who calls at /mcp: an identity by a sign-in, whose key the board keeps; or an anonymous caller. */
import type { Scope } from '../../actors/kernel/operation.ts'

export type Caller = {
  /** Identity id. */
  readonly identity: string
  /** 32 hex: the delegation that the sign-in made. */
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

/** What a client asks for by default: a challenge with less would give a token that can do nothing else. */
export const everydayScopes: readonly Scope[] = ['board:read', 'board:post', 'board:work', 'events:subscribe']

/** The token in an Authorization header; undefined: there is none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^Bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '')?.[1]
}

/** Undefined: not a token of this board, or one that counts no longer. */
export type Authenticate = (token: string) => Promise<Caller | undefined>
