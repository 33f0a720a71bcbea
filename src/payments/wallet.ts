/**
 * The wallet: one secp256k1 key that signs payments. Its libraries are loaded only if the board has one. The key never leaves this file,
 * which provides only signatures over hashes and the key's address.
 */
import { readFileSync, statSync } from 'node:fs'

export type Hash = (bytes: Uint8Array) => Buffer

export type Wallet = {
  /** 0x and 40 hex, with the checksum of EIP-55. */
  readonly address: string
  readonly keccak: Hash
  /** 65 bytes r, s, v (27 or 28) over a 32-byte hash, low s. */
  readonly sign: (hash: Uint8Array) => Buffer
}

/** Why a key file cannot be used, in a sentence that names the fix. */
class UnusableWallet extends Error {
  override name = 'UnusableWallet'
}

/** Opens a file that contains 32 bytes in hex and is not readable by others. */
export async function openWallet(file: string): Promise<Wallet> {
  let text: string
  try {
    if ((statSync(file).mode & 0o077) !== 0)
      throw new UnusableWallet(`WALLET_KEY_FILE ${file} can be read by others. Run: chmod 600 ${file}`)
    text = readFileSync(file, 'latin1').trim()
  } catch (error) {
    if (error instanceof UnusableWallet) throw error
    throw new UnusableWallet(
      `WALLET_KEY_FILE ${file} cannot be read (${(error as Error).message}). Name a file that contains the key, or leave it out to disable payments.`,
    )
  }
  if (!/^(0x)?[0-9a-fA-F]{64}$/.test(text))
    throw new UnusableWallet(`WALLET_KEY_FILE ${file} must contain the 32 bytes of a secp256k1 key, as 64 hex digits.`)
  return walletOf(Buffer.from(text.replace(/^0x/, ''), 'hex'))
}

/** `secret`: 32 bytes. */
export async function walletOf(secret: Uint8Array): Promise<Wallet> {
  const [{ secp256k1 }, { keccak_256 }] = await Promise.all([
    import('@noble/curves/secp256k1.js'),
    import('@noble/hashes/sha3.js'),
  ])
  if (!secp256k1.utils.isValidSecretKey(secret))
    throw new UnusableWallet(
      'WALLET_KEY_FILE does not contain a secp256k1 key: it must be above zero and below the order of the curve.',
    )
  const keccak: Hash = (bytes) => Buffer.from(keccak_256(bytes))
  const uncompressed = secp256k1.getPublicKey(secret, false)
  return {
    address: checksummed(keccak(uncompressed.subarray(1)).subarray(12), keccak),
    keccak,
    sign: (hash) => {
      const signed = Buffer.from(secp256k1.sign(hash, secret, { prehash: false, lowS: true, format: 'recovered' }))
      return Buffer.concat([signed.subarray(1), Buffer.of(27 + signed[0]!)])
    },
  }
}

/** EIP-55. */
function checksummed(address: Uint8Array, keccak: Hash): string {
  const hex = Buffer.from(address).toString('hex')
  const hash = keccak(Buffer.from(hex, 'latin1')).toString('hex')
  return `0x${[...hex].map((digit, at) => (Number.parseInt(hash[at]!, 16) >= 8 ? digit.toUpperCase() : digit)).join('')}`
}
