/**
 * What this machine can do at best, measured in the same run as our code: one verification, one sync, one hash, in a loop with nothing
 * around them. A ratio to these is stable on a noisy machine; a rate is not.
 */
import { hash } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { chooseBackend } from '../src/verify/backends.ts'
import { machineDisk } from '../storage/machine-disk.ts'

type Sodium = {
  crypto_sign_seed_keypair(publicKey: Buffer, secretKey: Buffer, seed: Uint8Array): void
  crypto_sign_detached(signature: Buffer, message: Uint8Array, secretKey: Buffer): void
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean
}

/** A signed command of the size that posts have. */
export const messageBytes = 400

export type SignedBytes = { readonly signature: Buffer; readonly message: Buffer; readonly publicKey: Buffer }

/** `count` signatures by `count` keys. */
export function signedBytes(count: number, bytes: number = messageBytes): SignedBytes[] {
  return Array.from({ length: count }, (_, n) => {
    const publicKey = Buffer.alloc(32)
    const secretKey = Buffer.alloc(64)
    const signature = Buffer.alloc(64)
    const message = Buffer.alloc(bytes, `${n} message `)
    sodium().crypto_sign_seed_keypair(publicKey, secretKey, hash('sha256', `bench key ${n}`, 'buffer'))
    sodium().crypto_sign_detached(signature, message, secretKey)
    return { signature, message, publicKey }
  })
}

function sodium(): Sodium {
  return createRequire(import.meta.url)('sodium-native') as Sodium
}

/** Calls of `call` per second, in rounds of `step` calls for `ms` milliseconds. */
export function rateOf(ms: number, step: number, call: (n: number) => void): number {
  const start = performance.now()
  let calls = 0
  let elapsed = 0
  do {
    for (let n = 0; n < step; n++) call(calls + n)
    calls += step
    elapsed = performance.now() - start
  } while (elapsed < ms)
  return (calls / elapsed) * 1000
}

/** libsodium's own verification, with no check of ours around it. Throws if the signature is invalid. */
export function rawVerifier(): (item: SignedBytes) => void {
  const library = sodium()
  return ({ signature, message, publicKey }) => {
    if (!library.crypto_sign_verify_detached(signature, message, publicKey)) throw new Error('a good signature fails')
  }
}

let signed: SignedBytes[] | undefined
let backend: ReturnType<typeof chooseBackend> | undefined

/** What our verifier checks by our rule on one core, in batches of 32: signatures a second, and microseconds of processor time for each. */
export function rawVerify(ms = 300): { readonly perSecond: number; readonly cpuUs: number } {
  signed ??= signedBytes(64)
  backend ??= chooseBackend()
  const [items, rule] = [signed, backend]
  const cpu = process.cpuUsage()
  let calls = 0
  const perSecond = rateOf(ms, 32, (n) => {
    calls++
    const { signature, message, publicKey } = items[n % 64]!
    if (!rule.verify(signature, message, publicKey)) throw new Error('a good signature fails')
  })
  const used = process.cpuUsage(cpu)
  return { perSecond, cpuUs: (used.user + used.system) / calls }
}

/** write + fdatasync of `bytes` at the end of a growing file: syncs a second. */
export function rawSyncPerSecond(directory: string, bytes = 400, ms = 150): number {
  const file = machineDisk.openFile(join(directory, `sync-${performance.now()}`), 'create')
  const block = Buffer.alloc(bytes, 'x')
  let end = 0
  try {
    return rateOf(ms, 4, () => {
      file.writeAt(block, end)
      end += bytes
      file.sync()
    })
  } finally {
    file.close()
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
