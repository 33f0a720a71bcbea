import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatCheckpoint } from '../../storage/checkpoint.ts'
import { signNote } from '../../storage/note.ts'
import {
  EXTRA_BYTES_MAX,
  formatProofFile,
  PATH_HASHES_MAX,
  PROOF_FILE_BYTES_MAX,
  type ProofFile,
  parseProofFile,
  verifyProofFile,
} from '../../storage/proof-file.ts'
import { EMPTY_CHECKPOINT, logKey, mangled, ORIGIN, otherKey, pinned } from './note-fixtures.ts'
import { ReferenceTree } from './reference-tree.ts'

const tree = new ReferenceTree(Array.from({ length: 300 }, (_, i) => Buffer.from(`entry ${i}`)))
const key = pinned(logKey.vkey)

function signedHead(size: number): string {
  return signNote(formatCheckpoint({ origin: ORIGIN, size, root: tree.root(size) }), logKey.signer)
}

function proofOf(index: number, size: number): ProofFile {
  return { index, path: tree.path(index, size), checkpoint: signedHead(size) }
}

/** Parses and verifies a file for the leaf of this index. */
function check(file: Uint8Array | string, index: number): string {
  const proof = parseProofFile(file)
  if (!proof.ok) return proof.problem
  const checkpoint = verifyProofFile(proof.value, tree.leaves[index] as Buffer, key)
  return checkpoint.ok ? `proved at ${checkpoint.value.size}` : checkpoint.problem
}

const file = formatProofFile(proofOf(3, 8))

describe('a proof file', () => {
  test('has the bytes of C2SP tlog-proof', () => {
    const lines = tree.path(3, 8).map((hash) => `${hash.toString('base64')}\n`)
    const rest = `index 3\n${lines.join('')}\n${signedHead(8)}`
    expect(file).toBe(`c2sp.org/tlog-proof@v1\n${rest}`)
    const withExtra = formatProofFile({ ...proofOf(3, 8), extra: Buffer.from('salt') })
    expect(withExtra).toBe(`c2sp.org/tlog-proof@v1\nextra c2FsdA==\n${rest}`)
  })

  test('is parsed as it was written, and proves only its leaf', () => {
    const extras = fc.option(fc.uint8Array({ maxLength: 200 }), { nil: undefined })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), fc.nat(), extras, (size, pick, extra) => {
        const proof = { ...proofOf(pick % size, size), ...(extra && { extra: Buffer.from(extra) }) }
        const written = formatProofFile(proof)
        expect(parseProofFile(written)).toEqual({ ok: true, value: proof })
        expect(parseProofFile(Buffer.from(written))).toEqual({ ok: true, value: proof })
        expect(check(written, proof.index)).toBe(`proved at ${size}`)
        if (size > 1)
          expect(check(written, (proof.index + 1) % size)).toBe('the proof does not show that the entry is in the log')
      }),
      { numRuns: 50 },
    )
  })

  test('with any byte changed, lost or added proves nothing', () => {
    for (const { at, bytes } of mangled(Buffer.from(file))) {
      expect({ at, bytes: bytes.toString('latin1'), is: check(bytes, 3).slice(0, 6) }).not.toMatchObject({
        is: 'proved',
      })
    }
  })

  test('may change only in its extra data, which is not authenticated', () => {
    const extra = Buffer.from('some salt and content')
    const whole = Buffer.from(formatProofFile({ ...proofOf(3, 8), extra }))
    for (const { at, bytes } of mangled(whole)) {
      const proof = parseProofFile(bytes)
      if (!proof.ok || check(bytes, 3) !== 'proved at 8') continue
      expect({ at, same: extra.equals(proof.value.extra ?? Buffer.alloc(0)) }).toMatchObject({ same: false })
      expect({ ...proof.value, extra: undefined }).toEqual({ ...proofOf(3, 8), extra: undefined })
    }
  })

  test('of the only leaf of a log has no path', () => {
    const single = formatProofFile(proofOf(0, 1))
    expect(single).toBe(`c2sp.org/tlog-proof@v1\nindex 0\n\n${signedHead(1)}`)
    expect(check(single, 0)).toBe('proved at 1')
  })

  const hash = (tree.path(3, 8)[0] as Buffer).toString('base64')
  const malformed: Record<string, string | Uint8Array> = {
    'another version': file.replace('@v1', '@v2'),
    'no header': file.slice(file.indexOf('\n') + 1),
    'no index': file.replace('index 3\n', ''),
    'two indexes': file.replace('index 3\n', 'index 3\nindex 3\n'),
    'an index with a leading zero': file.replace('index 3', 'index 03'),
    'an index with a sign': file.replace('index 3', 'index +3'),
    'two spaces before the index': file.replace('index 3', 'index  3'),
    'extra data after the index': file.replace('index 3\n', 'index 3\nextra AAAA\n'),
    'extra data twice': file.replace('index 3\n', 'extra AAAA\nextra AAAA\nindex 3\n'),
    'extra data that is no base64': file.replace('index 3\n', 'extra AAA\nindex 3\n'),
    'a hash of 31 bytes': file.replace(hash, Buffer.alloc(31).toString('base64')),
    'a hash without padding': file.replace(hash, hash.slice(0, -1)),
    'a hash with a space before it': file.replace(hash, ` ${hash}`),
    'no empty line': file.replace('\n\n', '\n'),
    'two empty lines': file.replace('\n\n', '\n\n\n'),
    'CRLF line ends': file.replaceAll('\n', '\r\n'),
    'no checkpoint': file.slice(0, file.indexOf('\n\n') + 2),
    'an unsigned checkpoint': file.slice(0, file.lastIndexOf('\n\n') + 1),
    'a note that is no checkpoint': file.replace('\n8\n', '\n08\n'),
    'something after the checkpoint': `${file}more\n`,
    'bad UTF-8': Buffer.concat([Buffer.from(file), Buffer.of(0xc3, 0x0a)]),
    'nothing in it': '',
  }
  test.each(Object.keys(malformed))('with %s is refused', (what) => {
    expect(parseProofFile(malformed[what] as string)).toMatchObject({ ok: false, problem: expect.stringMatching(/./) })
  })

  test('of arbitrary bytes is parsed or refused, and never throws', () => {
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void expect(typeof parseProofFile(bytes).ok).toBe('boolean')))
  })

  test('has at most 63 hashes, 64 KiB of extra data and 160 KiB in all', () => {
    const path = (count: number): Buffer[] => Array.from({ length: count }, () => Buffer.alloc(32, 1))
    const head = signedHead(8)
    expect(parseProofFile(formatProofFile({ index: 3, path: path(PATH_HASHES_MAX), checkpoint: head })).ok).toBe(true)
    expect(() => formatProofFile({ index: 3, path: path(PATH_HASHES_MAX + 1), checkpoint: head })).toThrow(RangeError)
    const extra = Buffer.alloc(EXTRA_BYTES_MAX, 7)
    expect(parseProofFile(formatProofFile({ ...proofOf(3, 8), extra })).ok).toBe(true)
    expect(() => formatProofFile({ ...proofOf(3, 8), extra: Buffer.concat([extra, extra.subarray(1)]) })).toThrow(
      RangeError,
    )
    expect(parseProofFile(Buffer.alloc(PROOF_FILE_BYTES_MAX + 1)).ok).toBe(false)
  })

  test('that could not be parsed back is not written', () => {
    for (const index of [-1, 0.5, Number.NaN])
      expect(() => formatProofFile({ ...proofOf(3, 8), index })).toThrow(RangeError)
    expect(() => formatProofFile({ ...proofOf(3, 8), path: [Buffer.alloc(31)] })).toThrow(RangeError)
    expect(() => formatProofFile({ ...proofOf(3, 8), checkpoint: 'no note' })).toThrow(RangeError)
  })

  test('of another log, another key, another head or an empty log proves nothing', () => {
    const leaf = tree.leaves[3] as Buffer
    expect(verifyProofFile(proofOf(3, 8), leaf, pinned(otherKey.vkey))).toMatchObject({
      problem: expect.stringMatching(/another log/),
    })
    expect(verifyProofFile({ ...proofOf(3, 8), checkpoint: signedHead(9) }, leaf, key)).toMatchObject({ ok: false })
    expect(verifyProofFile({ ...proofOf(3, 8), checkpoint: EMPTY_CHECKPOINT }, leaf, key)).toMatchObject({ ok: false })
  })
})
