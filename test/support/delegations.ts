/** Delegations for tests: one key becomes the delegate of another, with the delegate's own signature as proof. */
import type { Signer } from '../../src/cli/sign.ts'
import { signingBytes } from '../../src/format/signing.ts'
import { type Answer, type Client, now, type SigningOptions } from './client.ts'

export type DelegationOptions = {
  readonly scopes?: readonly string[]
  readonly ttl?: number
  readonly more?: Readonly<Record<string, string>>
  readonly signing?: SigningOptions
  /** Who signs as the delegate, if not the delegate. */
  readonly prover?: Signer
}

/** The body of a delegation.create. */
export function delegationBody(
  client: Client,
  owner: Signer,
  delegate: Signer,
  options: DelegationOptions = {},
): string {
  const { scopes = ['board:read', 'board:post'], ttl = 3_600, more = {}, prover = delegate } = options
  const signing = { timestamp: now(), nonce: `${Math.random()}`, ...options.signing }
  const fields = {
    operation: 'delegation.create',
    target: delegate.publicKey,
    ttl,
    data: JSON.stringify({ schema: 1, scopes, ...more }),
  }
  const command = { ...fields, public_key: owner.publicKey, ...signing }
  const proof = prover.sign(signingBytes(client.serviceId, command)).toString('base64url')
  return JSON.stringify({ ...(JSON.parse(client.sign(owner, fields, signing).body) as object), proof })
}

export function requestDelegation(
  client: Client,
  owner: Signer,
  key: Signer,
  options: DelegationOptions = {},
): Promise<Answer> {
  return client.send(delegationBody(client, owner, key, options))
}

/** The id of a delegation that must be accepted. */
export async function createDelegation(
  client: Client,
  owner: Signer,
  key: Signer,
  options: DelegationOptions = {},
): Promise<string> {
  const answer = await requestDelegation(client, owner, key, options)
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.data.receipt!.event_id
}
