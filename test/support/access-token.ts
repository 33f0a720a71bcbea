/** An access token for the MCP endpoint of a board: client registration, PKCE, one signature, code, token. */
import { createHash, randomBytes } from 'node:crypto'
import type { Signer } from '../../src/cli/sign.ts'
import { signIn } from './sign-in.ts'

const redirect = 'http://127.0.0.1:9/callback'

export async function accessToken(address: string, signer: Signer, scope: string): Promise<string> {
  const metadata = (await (await fetch(`${address}/.well-known/oauth-authorization-server`)).json()) as Record<
    string,
    string
  >
  const registered = await fetch(metadata.registration_endpoint!, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'a subscriber',
      application_type: 'native',
      redirect_uris: [redirect],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    }),
  })
  const { client_id } = (await registered.json()) as { client_id: string }
  const verifier = randomBytes(32).toString('base64url')
  const query = {
    client_id,
    redirect_uri: redirect,
    response_type: 'code',
    scope,
    resource: `${address}/mcp`,
    state: 's',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }
  const back = await signIn(new URL(`${metadata.authorization_endpoint}?${new URLSearchParams(query)}`), signer)
  const response = await fetch(metadata.token_endpoint!, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: back.searchParams.get('code') ?? '',
      redirect_uri: redirect,
      client_id,
      code_verifier: verifier,
      resource: `${address}/mcp`,
    }),
  })
  const { access_token } = (await response.json()) as { access_token?: string }
  if (access_token === undefined) throw new Error(`no token: ${response.status}`)
  return access_token
}
