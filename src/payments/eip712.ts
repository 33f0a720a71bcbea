/** EIP-712 hashes for two kinds of signatures: an EIP-3009 transfer and an MPP proof. */
import type { Hash } from './wallet.ts'

type Domain = {
  readonly name: string
  readonly version: string
  readonly chainId: number
  /** Absent if the domain has none. */
  readonly verifyingContract?: string
}

export type Transfer = {
  readonly from: string
  readonly to: string
  /** Decimal texts, as sent. */
  readonly value: string
  readonly validAfter: string
  readonly validBefore: string
  /** 0x and 64 hex. */
  readonly nonce: string
}

const transferType =
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)'
const proofType = 'Proof(address account,string challengeId,string realm)'

export function transferHash(domain: Domain, transfer: Transfer, keccak: Hash): Buffer {
  const { from, to, value, validAfter, validBefore, nonce } = transfer
  const numbers = [value, validAfter, validBefore].map((each) => word(BigInt(each)))
  const parts = [text(transferType, keccak), address(from), address(to), ...numbers, Buffer.from(nonce.slice(2), 'hex')]
  return typedHash(domain, keccak(Buffer.concat(parts)), keccak)
}

export function proofHash(
  chainId: number,
  { account, challengeId, realm }: { account: string; challengeId: string; realm: string },
  keccak: Hash,
): Buffer {
  const parts = [text(proofType, keccak), address(account), text(challengeId, keccak), text(realm, keccak)]
  return typedHash({ name: 'MPP', version: '3', chainId }, keccak(Buffer.concat(parts)), keccak)
}

function typedHash(domain: Domain, struct: Buffer, keccak: Hash): Buffer {
  return keccak(Buffer.concat([Buffer.of(0x19, 0x01), domainHash(domain, keccak), struct]))
}

function domainHash({ name, version, chainId, verifyingContract }: Domain, keccak: Hash): Buffer {
  const contract = verifyingContract === undefined ? '' : ',address verifyingContract'
  const type = `EIP712Domain(string name,string version,uint256 chainId${contract})`
  const parts = [text(type, keccak), text(name, keccak), text(version, keccak), word(BigInt(chainId))]
  return keccak(Buffer.concat(verifyingContract === undefined ? parts : [...parts, address(verifyingContract)]))
}

function text(value: string, keccak: Hash): Buffer {
  return keccak(Buffer.from(value, 'utf8'))
}

/** A number as 32 bytes. */
export function word(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex')
}

/** An address as 32 bytes. */
export function address(value: string): Buffer {
  return Buffer.from(value.slice(2).padStart(64, '0'), 'hex')
}
