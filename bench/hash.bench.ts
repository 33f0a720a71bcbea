/**
 * Which SHA-256 for the tree and the ids, and how close do our tree hashes come to it?
 *
 * 65 bytes is a tree node, 400 a command. The limit is the rate at which OpenSSL hashes one long message, in blocks of 64 bytes (a message
 * of 65 bytes takes two with its padding, FIPS 180-4 section 5.1.1); the plain alternative is createHash, and @noble/hashes where native
 * code is not an option.
 */
import { createHash, hash } from 'node:crypto'
import { createRequire } from 'node:module'
import { sha256 } from '@noble/hashes/sha2.js'
import { leafHash, nodeHash } from '../storage/merkle.ts'
import { type Case, compare, looped } from './compare.ts'
import type { Bench, Table } from './report.ts'

type Sodium = { crypto_hash_sha256(into: Buffer, message: Uint8Array): void }

const longBytes = 256 * 1024

export const hashBench: Bench = {
  name: 'hash',
  question: 'Which SHA-256 call is the fastest, and what do our tree hashes lose to it?',
  run: async ({ isQuick }) => {
    const left = Buffer.alloc(32, 1)
    const right = Buffer.alloc(32, 2)
    const entry = Buffer.alloc(399, 3)
    return [
      await table(65, [looped('nodeHash of storage/merkle.ts', 500, () => nodeHash(left, right))], isQuick),
      await table(400, [looped('leafHash of storage/merkle.ts', 500, () => leafHash(entry))], isQuick),
    ]
  },
}

async function table(bytes: number, ours: readonly Case[], isQuick: boolean): Promise<Table> {
  const sodium = createRequire(import.meta.url)('sodium-native') as Sodium
  const message = Buffer.alloc(bytes, 1)
  const digest = Buffer.alloc(32)
  const long = Buffer.alloc(longBytes, 1)
  const blocks = Math.ceil((bytes + 9) / 64)
  const limit: Case = {
    name: `${blocks} blocks of a long message`,
    operations: longBytes / 64 / blocks,
    run: () => hash('sha256', long, 'binary'),
  }
  const cases = [
    looped('sodium-native into one buffer', 500, () => sodium.crypto_hash_sha256(digest, message)),
    looped('crypto.hash, string of 32 characters', 500, () => hash('sha256', message, 'binary')),
    looped('crypto.hash, Buffer', 500, () => hash('sha256', message, 'buffer')),
    looped('crypto.hash, hex', 500, () => hash('sha256', message, 'hex')),
    looped('plain: createHash', 500, () => createHash('sha256').update(message).digest()),
    looped('@noble/hashes', 100, () => sha256(message)),
  ]
  return {
    title: `SHA-256 of ${bytes} bytes`,
    rows: await compare(limit, [...cases, ...ours], { isQuick, unit: 'hashes' }),
  }
}
