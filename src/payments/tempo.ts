/**
 * MPP method `tempo`, intent `charge`: a TIP-20 transfer that the seller broadcasts (pull), or a proof for an amount of 0.
 *
 * The transaction has type 0x76 with an expiring nonce (nonce key 2^256-1, nonce 0, valid for seconds). So it is created without querying
 * any node, and after its time it can never be taken. It is RLP of
 *   [chain id, max priority fee, max fee, gas, [[to, value, data]], access list, nonce key, nonce, valid before, valid after,
 *    fee token, fee payer, authorizations, signature]
 * signed over the keccak-256 of 0x76 and the same list without signature. If the seller pays the fee, `fee payer` is 0x00 and the fee token
 * stays open. The seller's signature fills them in and changes the hash, so the transfer is identified by its memo.
 */

import { tempoTokens } from '../money/networks.ts'
import { type Challenge, credential } from './challenge.ts'
import { address, proofHash, word } from './eip712.ts'
import type { Offer, Payment } from './payment.ts'
import type { Hash, Wallet } from './wallet.ts'
import { type Fields, plainText } from './x402.ts'

/** How long a transaction is valid, in seconds; the network accepts at most 30. */
const lifeSeconds = 25
const proofLifeSeconds = 300
const gas = 300_000n
/** Attodollars. The network has a fixed base fee, and unused gas is not charged. */
const maxFeePerGas = 25_000_000_000n
/** Maximum fee in millionths of a dollar. */
export const feeMicrosMax = Number((gas * maxFeePerGas) / 1_000_000_000_000n)

const nonceKey = 2n ** 256n - 1n
const transferWithMemo = '95777d59'

/** Headers for a credential: any other that a seller names could be a header with a different meaning. */
const credentialHeaders = new Set(['authorization', 'payment-authorization'])

type Charge = {
  readonly chainId: number
  readonly amount: bigint
  readonly currency: string
  readonly recipient: string
  readonly isSponsored: boolean
}

/** Undefined if there is nothing that we can pay. `expires`: Unix seconds. */
export function tempoOffer(
  challenge: Challenge,
  request: Fields | undefined,
  wallet: Wallet,
  expires: number | undefined,
): Offer | undefined {
  const charge = chargeOf(request)
  if (charge === undefined || !credentialHeaders.has((challenge.header ?? 'authorization').toLowerCase()))
    return undefined
  const { chainId, amount, recipient, isSponsored } = charge
  const fee = isSponsored || amount === 0n ? 0 : feeMicrosMax
  return {
    protocol: 'mpp',
    network: `eip155:${chainId}`,
    payee: recipient,
    micros: Number(amount) + fee,
    feeMicros: fee,
    sign: async (now) =>
      amount === 0n ? proof(challenge, charge, wallet, now) : transfer(challenge, charge, wallet, now, expires),
  }
}

function chargeOf(request: Fields | undefined): Charge | undefined {
  const { amount, currency, recipient, methodDetails } = request ?? {}
  const details = (methodDetails ?? {}) as {
    chainId?: unknown
    feePayer?: unknown
    splits?: unknown
    supportedModes?: unknown
  }
  const { chainId = 42431, feePayer, splits, supportedModes } = details
  const tokens = tempoTokens[Number(plainText(chainId))]
  const [units, payee, token] = [amount, recipient, currency].map(plainText) as [string, string, string]
  if (tokens === undefined || !/^(0|[1-9]\d{0,14})$/.test(units)) return undefined
  if (!/^0x[0-9a-fA-F]{40}$/.test(payee) || !tokens.includes(token.toLowerCase())) return undefined
  // Further payees were not approved; and a transaction that the client must broadcast is known only after it is paid.
  if (splits !== undefined || (Array.isArray(supportedModes) && !supportedModes.includes('pull'))) return undefined
  return {
    chainId: Number(chainId),
    amount: BigInt(units),
    currency: token,
    recipient: payee,
    isSponsored: feePayer === true,
  }
}

function source({ address: from }: Wallet, chainId: number): string {
  return `did:pkh:eip155:${chainId}:${from}`
}

function proof(challenge: Challenge, { chainId }: Charge, wallet: Wallet, now: number): Payment {
  const message = { account: wallet.address, challengeId: challenge.id, realm: challenge.realm }
  const signature = `0x${wallet.sign(proofHash(chainId, message, wallet.keccak)).toString('hex')}`
  const header = credential(challenge, { type: 'proof', signature }, source(wallet, chainId))
  return { header, validUntil: now + proofLifeSeconds, reference: { challenge: challenge.id.slice(0, 128) } }
}

function transfer(
  challenge: Challenge,
  charge: Charge,
  wallet: Wallet,
  now: number,
  expires: number | undefined,
): Payment {
  const validUntil = Math.min(now + lifeSeconds, Math.floor(expires ?? Number.POSITIVE_INFINITY))
  const memo = attribution(challenge, wallet.keccak)
  const transaction = signedTransfer(memo, charge, wallet, validUntil)
  const payload = { type: 'transaction', signature: `0x${transaction.toString('hex')}` }
  const { currency: asset, recipient: to, isSponsored } = charge
  const reference: Payment['reference'] = isSponsored
    ? { asset, from: wallet.address, to, memo: `0x${memo.toString('hex')}` }
    : { hash: `0x${wallet.keccak(transaction).toString('hex')}` }
  return { header: credential(challenge, payload, source(wallet, charge.chainId)), validUntil, reference }
}

function signedTransfer(memo: Buffer, charge: Charge, wallet: Wallet, validBefore: number): Buffer {
  const { chainId, amount, currency, recipient, isSponsored } = charge
  const data = Buffer.concat([Buffer.from(transferWithMemo, 'hex'), address(recipient), word(amount), memo])
  const fields: Rlp[] = [
    number(BigInt(chainId)),
    number(0n),
    number(maxFeePerGas),
    number(gas),
    [[hex(currency), number(0n), data]],
    [],
    number(nonceKey),
    number(0n),
    number(BigInt(validBefore)),
    number(0n),
    isSponsored ? number(0n) : hex(currency),
    isSponsored ? Buffer.of(0) : number(0n),
    [],
  ]
  const type = Buffer.of(0x76)
  const signature = wallet.sign(wallet.keccak(Buffer.concat([type, rlp(fields)])))
  return Buffer.concat([type, rlp([...fields, signature])])
}

/** Memo of 32 bytes that binds the transfer to its challenge: tag, version, server, no client, challenge. */
function attribution({ id, realm }: Challenge, keccak: Hash): Buffer {
  const print = (text: string, bytes: number) => keccak(Buffer.from(text, 'utf8')).subarray(0, bytes)
  return Buffer.concat([print('mpp', 4), Buffer.of(1), print(realm, 10), Buffer.alloc(10), print(id, 7)])
}

type Rlp = Buffer | readonly Rlp[]

/** Recursive length prefix. */
export function rlp(value: Rlp): Buffer {
  if (Buffer.isBuffer(value)) {
    if (value.length === 1 && value[0]! < 0x80) return value
    return Buffer.concat([prefix(0x80, value.length), value])
  }
  const items = Buffer.concat(value.map(rlp))
  return Buffer.concat([prefix(0xc0, items.length), items])
}

function prefix(base: number, length: number): Buffer {
  if (length < 56) return Buffer.of(base + length)
  const digits = number(BigInt(length))
  return Buffer.concat([Buffer.of(base + 55 + digits.length), digits])
}

/** Big-endian without leading zeros; 0 is empty. */
function number(value: bigint): Buffer {
  const text = value === 0n ? '' : value.toString(16)
  return Buffer.from(text.length % 2 === 0 ? text : `0${text}`, 'hex')
}

function hex(text: string): Buffer {
  return Buffer.from(text.slice(2), 'hex')
}
