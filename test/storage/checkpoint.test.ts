import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatCheckpoint, isOrigin, openCheckpoint, parseCheckpoint } from '../../storage/checkpoint.ts'
import { EMPTY_ROOT } from '../../storage/merkle.ts'
import { formatNote, signatureLine, signNote } from '../../storage/note.ts'
import { createNoteKey } from '../../storage/note-signer.ts'
import {
  EIGHT_CHECKPOINT,
  EMPTY_CHECKPOINT,
  logKey,
  mangled,
  ORIGIN,
  otherKey,
  pinned,
  witness,
} from './note-fixtures.ts'

const root = Buffer.from('m4S7+7fcgTLrk3spJmrV9eWFNOk/BwIcGL9JNNWrRE0=', 'base64')
const eight = formatCheckpoint({ origin: ORIGIN, size: 8, root })
const key = pinned(logKey.vkey)

describe('a checkpoint', () => {
  test('is written and signed like the composed example, byte for byte', () => {
    expect(signNote(eight, logKey.signer)).toBe(EIGHT_CHECKPOINT)
    expect(signNote(formatCheckpoint({ origin: ORIGIN, size: 0, root: EMPTY_ROOT }), logKey.signer)).toBe(
      EMPTY_CHECKPOINT,
    )
  })

  test('is read back as it was written', () => {
    const origins = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }).filter(isOrigin)
    const sizes = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
    const roots = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes))
    fc.assert(
      fc.property(origins, sizes, roots, (origin, size, anyRoot) => {
        const parsed = parseCheckpoint(formatCheckpoint({ origin, size, root: anyRoot }))
        expect(parsed).toEqual({ ok: true, value: { origin, size, root: anyRoot, extensions: [] } })
      }),
    )
  })

  test('may have extension lines, which are retained', () => {
    expect(parseCheckpoint(`${eight}one\ntwo\n`)).toMatchObject({
      ok: true,
      value: { size: 8, extensions: ['one', 'two'] },
    })
    const open = openCheckpoint(signNote(`${eight}one\n`, logKey.signer), key)
    expect(open).toMatchObject({ ok: true, value: { origin: ORIGIN, size: 8, root, extensions: ['one'] } })
  })

  const malformed: Record<string, string> = {
    'no origin': eight.replace(ORIGIN, ''),
    'a space in the origin': eight.replace(ORIGIN, 'a b'),
    'a "+" in the origin': eight.replace(ORIGIN, 'a+b'),
    'an origin of 256 bytes': eight.replace(ORIGIN, 'x'.repeat(256)),
    'an origin of 129 letters and 258 bytes': eight.replace(ORIGIN, 'é'.repeat(129)),
    'a size with a leading zero': eight.replace('\n8\n', '\n08\n'),
    'a size with a sign': eight.replace('\n8\n', '\n+8\n'),
    'a negative size': eight.replace('\n8\n', '\n-8\n'),
    'a size in hex': eight.replace('\n8\n', '\n0x8\n'),
    'a size with an exponent': eight.replace('\n8\n', '\n8e0\n'),
    'a size with a space': eight.replace('\n8\n', '\n8 \n'),
    'no size': eight.replace('\n8\n', '\n\n'),
    'a size of digits that are not ASCII': eight.replace('\n8\n', '\n\u0668\n'),
    'a size of 2^53': eight.replace('\n8\n', '\n9007199254740992\n'),
    'a root of 31 bytes': eight.replace(/[^\n]*\n$/, `${root.subarray(1).toString('base64')}\n`),
    'a root of 33 bytes': eight.replace(
      /[^\n]*\n$/,
      `${Buffer.concat([root, root]).subarray(0, 33).toString('base64')}\n`,
    ),
    'a root without padding': eight.replace('=', ''),
    'a root with bits beyond its last byte': eight.replace('RE0=', 'RE1='),
    'a root in hex': eight.replace(/[^\n]*\n$/, `${root.toString('hex')}\n`),
    'no root': eight.replace(/[^\n]*\n$/, ''),
    'no last line feed': eight.slice(0, -1),
    'an empty extension line': `${eight}\n`,
    'an empty line between extensions': `${eight}one\n\ntwo\n`,
    'a line before the origin': `\n${eight}`,
    'CRLF line ends': eight.replaceAll('\n', '\r\n'),
  }
  test.each(Object.keys(malformed))('with %s is refused', (what) => {
    expect(parseCheckpoint(malformed[what] as string)).toMatchObject({ ok: false, problem: expect.stringMatching(/./) })
  })

  test('may have an origin of 255 bytes and a size of 2^53 - 1', () => {
    const [origin, size] = ['x'.repeat(255), Number.MAX_SAFE_INTEGER]
    expect(parseCheckpoint(formatCheckpoint({ origin, size, root }))).toMatchObject({ value: { origin, size } })
  })

  test('of an impossible log is not written', () => {
    for (const size of [-1, 0.5, 2 ** 53, Number.NaN]) {
      expect(() => formatCheckpoint({ origin: ORIGIN, size, root })).toThrow(RangeError)
    }
    for (const origin of ['', 'a b', 'a+b', 'a\n', 'x'.repeat(256)]) {
      expect(() => formatCheckpoint({ origin, size: 1, root })).toThrow(RangeError)
    }
    expect(() => formatCheckpoint({ origin: ORIGIN, size: 1, root: root.subarray(1) })).toThrow(RangeError)
    expect(() => formatCheckpoint({ origin: ORIGIN, size: 0, root })).toThrow(RangeError)
  })
})

describe('a signed checkpoint', () => {
  test('opens with the key of its log', () => {
    const expected = { origin: ORIGIN, size: 8, root, extensions: [], signedBy: [key] }
    expect(openCheckpoint(EIGHT_CHECKPOINT, key)).toEqual({ ok: true, value: expected })
    expect(openCheckpoint(Buffer.from(EIGHT_CHECKPOINT), key)).toEqual({ ok: true, value: expected })
  })

  test('with any byte changed, lost or added does not open', () => {
    for (const { at, bytes } of mangled(Buffer.from(EIGHT_CHECKPOINT))) {
      expect({ at, bytes: bytes.toString('latin1'), ok: openCheckpoint(bytes, key).ok }).toMatchObject({ ok: false })
    }
  })

  test('of another log, or signed by somebody else, does not open', () => {
    const foreign = formatCheckpoint({ origin: 'other.example/log/2026a', size: 8, root })
    expect(openCheckpoint(signNote(foreign, logKey.signer), key)).toMatchObject({
      problem: expect.stringMatching(/another log/),
    })
    expect(openCheckpoint(signNote(eight, otherKey.signer), key)).toMatchObject({
      problem: expect.stringMatching(/no known key/),
    })
    const namesake = createNoteKey(ORIGIN, Buffer.alloc(32, 0x44))
    expect(openCheckpoint(EIGHT_CHECKPOINT, pinned(namesake.vkey))).toMatchObject({ ok: false })
    const forged = { ...signatureLine(eight, namesake.signer), keyId: logKey.signer.keyId }
    expect(openCheckpoint(formatNote(eight, [forged]), key)).toMatchObject({
      problem: expect.stringMatching(/is not valid/),
    })
  })

  test('names the witnesses that signed, and needs the log itself', () => {
    const w = witness('witness.example/w1', 0x33, 1_790_000_000n)
    const lines = [signatureLine(eight, logKey.signer), signatureLine(eight, w.signer)]
    expect(openCheckpoint(formatNote(eight, lines), key, [w.key])).toMatchObject({ value: { signedBy: [key, w.key] } })
    expect(openCheckpoint(formatNote(eight, lines.slice(1)), key, [w.key])).toMatchObject({
      problem: expect.stringMatching(/the log itself/),
    })
    const lie = { ...signatureLine(eight, w.signer), signature: Buffer.alloc(72) }
    expect(openCheckpoint(formatNote(eight, [...lines, lie]), key, [w.key])).toMatchObject({
      problem: expect.stringMatching(/is not valid/),
    })
    expect(openCheckpoint(formatNote(eight, [...lines, lie]), key)).toMatchObject({ ok: true })
  })
})
