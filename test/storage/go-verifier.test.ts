import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { encodeBase64 } from '../../storage/base64.ts'
import { formatCheckpoint } from '../../storage/checkpoint.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { leafHashes } from '../../storage/merkle.ts'
import { formatNote, signatureLine, signNote } from '../../storage/note.ts'
import { TreeWriter } from '../../storage/tree.ts'
import { TreeReader } from '../../storage/tree-reader.ts'
import { buildGoVerifier, type GoRequest, missingForGoVerifier, skipNote, skipWithout } from '../peers/peers.ts'
import { logKey, ORIGIN, otherKey, witness } from './note-fixtures.ts'

const missing = missingForGoVerifier()
const sizeMax = 1234

describe.skipIf(skipWithout(missing))(`the Go checksum database's own code${skipNote(missing)}`, () => {
  const entries = Array.from({ length: sizeMax }, (_, i) => Buffer.from(`broadside/entry@v1\nkind post\nevent ${i}\n`))
  let go: ReturnType<typeof buildGoVerifier>
  let reader: TreeReader
  let folder: string

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'broadside-go-'))
    go = buildGoVerifier(folder)
    const path = join(folder, 'nodes.bin')
    const writer = TreeWriter.open(machineDisk, path, 0)
    for (let at = 0; at < sizeMax; at += 100) writer.append(leafHashes(entries.slice(at, at + 100)))
    writer.close()
    reader = TreeReader.open(machineDisk, path)
    reader.advance(sizeMax)
  })
  afterAll(() => {
    reader?.close()
    rmSync(folder, { recursive: true })
  })

  const text = (size: number): string => formatCheckpoint({ origin: ORIGIN, size, root: reader.root(size) })

  function proof(index: number, size: number): NonNullable<GoRequest['proofs']>[number] {
    const path = reader.inclusionPath(index, size).map(encodeBase64)
    return { index, entry: encodeBase64(entries[index] as Buffer), path }
  }

  function consistency(from: number, to: number): NonNullable<GoRequest['consistency']>[number] {
    const [fromRoot, toRoot] = [encodeBase64(reader.root(from)), encodeBase64(reader.root(to))]
    return { from, from_root: fromRoot, to, to_root: toRoot, path: reader.consistencyPath(from, to).map(encodeBase64) }
  }

  function request(size: number): GoRequest & Required<Pick<GoRequest, 'proofs' | 'consistency'>> {
    const indexes = Array.from({ length: size }, (_, i) => i).filter(
      (i) => i % 7 === 0 || i > size - 4 || i % 256 === 255,
    )
    return {
      vkey: logKey.vkey,
      checkpoint: signNote(text(size), logKey.signer),
      proofs: indexes.map((index) => proof(index, size)),
      consistency: indexes.map((index) => consistency(index + 1, size)),
    }
  }

  test.each([1, 2, 3, 255, 256, 257, 1000, sizeMax])('agrees with every checkpoint and proof at size %i', (size) => {
    const asked = request(size)
    const sentence = `verified: ${ORIGIN} at ${size}, ${asked.proofs.length} inclusion and ${asked.proofs.length} consistency proofs`
    expect(go.ask(asked)).toEqual({ agrees: true, sentence })
  })

  test('agrees with leaf hashes as we computed them', () => {
    const proofs = request(sizeMax).proofs.map(({ index, path }) => ({
      index,
      path,
      leaf_hash: encodeBase64(reader.leaf(index)),
    }))
    expect(go.ask({ ...request(sizeMax), proofs })).toMatchObject({ agrees: true })
  })

  test('agrees with a checkpoint that has further signatures', () => {
    const w = witness('witness.example/w1', 0x33, 1_790_000_000n)
    const lines = [otherKey.signer, w.signer, logKey.signer].map((signer) => signatureLine(text(500), signer))
    const checkpoint = formatNote(text(500), lines)
    expect(go.ask({ ...request(500), checkpoint })).toMatchObject({ agrees: true })
  })

  test('refuses what was tampered with', () => {
    const good = request(1000)
    const [first, ...rest] = good.proofs as [(typeof good.proofs)[number], ...typeof good.proofs]
    const [older, ...newer] = good.consistency as [(typeof good.consistency)[number], ...typeof good.consistency]
    const flipped = (hash: string): string => {
      const bytes = Buffer.from(hash, 'base64')
      bytes[9] = (bytes[9] as number) ^ 1
      return encodeBase64(bytes)
    }
    const tampered: Record<string, GoRequest> = {
      'a changed entry': { ...good, proofs: [{ ...first, entry: encodeBase64(Buffer.from('x')) }, ...rest] },
      'a changed path': { ...good, proofs: [{ ...first, path: first.path.with(2, flipped(first.path[2] as string)) }] },
      'a cut path': { ...good, proofs: [{ ...first, path: first.path.slice(1) }] },
      'another index': { ...good, proofs: [{ ...first, index: first.index + 1 }] },
      'a proof for another size': { ...good, proofs: [proof(5, 600)] },
      'a changed consistency path': { ...good, consistency: [{ ...older, path: older.path.toReversed() }, ...newer] },
      'another older root': { ...good, consistency: [{ ...older, from_root: flipped(older.from_root) }] },
      'another size in the checkpoint': { ...good, checkpoint: good.checkpoint.replace('\n1000\n', '\n1001\n') },
      'another log': { ...good, vkey: otherKey.vkey },
      'a hyphen for the dash': { ...good, checkpoint: good.checkpoint.replace('\u2014', '-') },
    }
    for (const [what, asked] of Object.entries(tampered)) {
      const answer = go.ask(asked)
      expect({ what, ...answer }).toEqual({ what, agrees: false, sentence: expect.stringMatching(/^refused: /) })
    }
  })
})
