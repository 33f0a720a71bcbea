import { createPublicKey } from 'node:crypto'
import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { formatCheckpoint } from '../../storage/checkpoint.ts'
import { CompactRange, inclusionPathOf, leafHashes, type NodeReader } from '../../storage/merkle.ts'
import { signNote } from '../../storage/note.ts'
import { logKey, ORIGIN, otherKey } from './note-fixtures.ts'
import { ReferenceTree } from './reference-tree.ts'

// The verifier of npm provenance. Its main entry point does not export its Merkle and checkpoint parts.
const require = createRequire(import.meta.url)
const { verifyMerkleInclusion } = require('@sigstore/verify/dist/tlog/merkle.js') as {
  verifyMerkleInclusion(entry: Entry, checkpoint: SigstoreCheckpoint): void
}
const { verifyCheckpoint } = require('@sigstore/verify/dist/tlog/checkpoint.js') as {
  verifyCheckpoint(entry: Entry, tlogs: readonly unknown[]): SigstoreCheckpoint
}

type Entry = {
  readonly inclusionProof: {
    readonly logIndex: string
    readonly hashes: readonly Uint8Array[]
    readonly checkpoint: { readonly envelope: string }
  }
  readonly canonicalizedBody: Uint8Array
}
type SigstoreCheckpoint = { readonly origin: string; readonly logSize: bigint; readonly logHash: Uint8Array }

const size = 1100
const entries = Array.from({ length: size }, (_, i) => Buffer.from(`entry ${i}`))
const tree = new ReferenceTree(entries)
const read: NodeReader = (level, index) => tree.root((index + 1) * 2 ** level, index * 2 ** level)
const range = new CompactRange()
range.append(leafHashes(entries), Buffer.alloc((2 * size + 54) * 32))
const checkpoint = signNote(formatCheckpoint({ origin: ORIGIN, size, root: range.root() }), logKey.signer)

function entryOf(index: number, envelope = checkpoint): Entry {
  const inclusionProof = { logIndex: `${index}`, hashes: inclusionPathOf(read, index, size), checkpoint: { envelope } }
  return { inclusionProof, canonicalizedBody: entries[index] as Buffer }
}

function trusted(key: typeof logKey): readonly unknown[] {
  const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key.publicKey])
  const publicKey = createPublicKey({ key: spki, format: 'der', type: 'spki' })
  const logID = Buffer.alloc(4)
  logID.writeUInt32BE(key.signer.keyId)
  return [{ logID, publicKey, baseURL: `https://${key.signer.name}` }]
}

describe('@sigstore/verify', () => {
  test('opens our checkpoint and finds every leaf in it', () => {
    const open = verifyCheckpoint(entryOf(0), trusted(logKey))
    expect(open).toMatchObject({ origin: ORIGIN, logSize: BigInt(size) })
    expect(Buffer.from(open.logHash)).toEqual(tree.root(size))
    for (let index = 0; index < size; index += 1) verifyMerkleInclusion(entryOf(index), open)
  })

  test('refuses another leaf, another key and a changed checkpoint', () => {
    const open = verifyCheckpoint(entryOf(0), trusted(logKey))
    expect(() => verifyMerkleInclusion({ ...entryOf(5), canonicalizedBody: Buffer.from('x') }, open)).toThrow()
    const { inclusionProof, canonicalizedBody } = entryOf(5)
    const moved = { inclusionProof: { ...inclusionProof, logIndex: '6' }, canonicalizedBody }
    expect(() => verifyMerkleInclusion(moved, open)).toThrow()
    expect(() => verifyCheckpoint(entryOf(0), trusted(otherKey))).toThrow()
    const larger = checkpoint.replace('\n1100\n', '\n1101\n')
    expect(() => verifyCheckpoint(entryOf(0, larger), trusted(logKey))).toThrow()
  })
})
