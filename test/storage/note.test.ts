import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  formatNote,
  formatVkey,
  isKeyName,
  NOTE_BYTES_MAX,
  parseNote,
  parseVkey,
  SIGNATURE_LINES_MAX,
  type SignatureLine,
  signatureLine,
  signNote,
  type VerifierKey,
  verifyNote,
} from '../../storage/note.ts'
import { createNoteKey } from '../../storage/note-signer.ts'
import {
  EIGHT_CHECKPOINT,
  EMPTY_CHECKPOINT,
  LOG_VKEY,
  logKey,
  mangled,
  ORIGIN,
  otherKey,
  pinned,
  WITNESS_VKEY,
  witness,
} from './note-fixtures.ts'

const key = pinned(logKey.vkey)
const other = pinned(otherKey.vkey)
const text = 'first\n\nthird\n'
const signed = signNote(text, logKey.signer)
const goodLine = signatureLine(text, logKey.signer)
const badLine: SignatureLine = { ...goodLine, signature: Buffer.from(goodLine.signature).fill(1, 10, 11) }

/** The names of the signers, or the problem. */
function check(note: Uint8Array | string, ...keys: VerifierKey[]): string {
  const parsed = parseNote(note)
  if (!parsed.ok) return parsed.problem
  const signedBy = verifyNote(parsed.value, keys)
  return signedBy.ok ? `signed by ${signedBy.value.map((signer) => signer.name).join(', ')}` : signedBy.problem
}
const byLog = `signed by ${ORIGIN}`

describe('keys', () => {
  test('have the vkey and the signatures of the composed example', () => {
    expect(logKey.vkey).toBe(LOG_VKEY)
    expect(key.keyId).toBe(0x34815444)
    expect(pinned(WITNESS_VKEY)).toMatchObject({ name: 'witness.example/w1', keyId: 0xd92427b4, type: 4 })
    for (const note of [EMPTY_CHECKPOINT, EIGHT_CHECKPOINT]) {
      expect(signNote(note.slice(0, note.indexOf('\n\n') + 1), logKey.signer)).toBe(note)
      expect(check(note, key)).toBe(byLog)
    }
  })

  test('are parsed from every vkey, also with "+" in the base64', () => {
    let withPlus = 0
    for (let seed = 0; seed < 64; seed += 1) {
      const { vkey, publicKey, signer } = createNoteKey('name', Buffer.alloc(32, seed))
      expect(pinned(vkey)).toMatchObject({ name: 'name', keyId: signer.keyId, type: 1, publicKey })
      withPlus += vkey.split('+').length > 3 ? 1 : 0
    }
    expect(withPlus).toBeGreaterThan(0)
  })

  test('in a vkey with any byte changed, lost or added are refused', () => {
    for (const vkey of [LOG_VKEY, WITNESS_VKEY]) {
      for (const { bytes } of mangled(Buffer.from(vkey))) {
        expect({ bytes: bytes.toString(), ok: parseVkey(bytes.toString()).ok }).toMatchObject({ ok: false })
      }
      expect(parseVkey(`${vkey}\n`).ok).toBe(false)
    }
  })

  test('of unknown type, of another length or without their own id are refused', () => {
    const publicKey = logKey.publicKey
    expect(parseVkey(formatVkey({ name: 'n', type: 2, publicKey }))).toMatchObject({
      problem: expect.stringMatching(/unknown type 2/),
    })
    expect(parseVkey(formatVkey({ name: 'n', type: 1, publicKey: publicKey.subarray(1) }))).toMatchObject({
      problem: expect.stringMatching(/32 bytes/),
    })
    expect(parseVkey(LOG_VKEY.replace('34815444', '34815445'))).toMatchObject({
      problem: expect.stringMatching(/the id/),
    })
    expect(parseVkey(LOG_VKEY.replace('+', ''))).toMatchObject({ ok: false })
    expect(parseVkey('')).toMatchObject({ ok: false })
  })

  test('have names without white space, "+" and control characters', () => {
    for (const name of ['', 'a b', 'a+b', 'a\nb', 'a\u00a0b', 'a\u0085b', 'a\u3000', '\u0001', 'a\ud800']) {
      expect({ name, good: isKeyName(name) }).toEqual({ name, good: false })
      expect(() => createNoteKey(name, Buffer.alloc(32))).toThrow(RangeError)
    }
    for (const name of ['a', ORIGIN, '127.0.0.1:8787/log/2026a', 'é', '\u2014']) expect(isKeyName(name)).toBe(true)
    expect(() => createNoteKey('a', Buffer.alloc(31))).toThrow(RangeError)
  })
})

describe('a note', () => {
  test('is parsed as it was written, whatever its text', () => {
    const lines = fc.array(
      fc.record({
        name: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter(isKeyName),
        keyId: fc.nat({ max: 0xffffffff }),
        signature: fc.uint8Array({ minLength: 1, maxLength: 100 }).map((bytes) => Buffer.from(bytes)),
      }),
      { minLength: 1, maxLength: 16 },
    )
    const texts = fc
      .array(
        fc.string({ unit: 'binary', maxLength: 30 }).map((row) => row.replace(/[\x00-\x1f]/g, '')),
        { maxLength: 6 },
      )
      .map((rows) => `${rows.join('\n')}\n`)
    fc.assert(
      fc.property(texts, lines, (anyText, anyLines) => {
        const note = formatNote(anyText, anyLines)
        const expected = { ok: true, value: { text: anyText, lines: anyLines } }
        expect(parseNote(note)).toEqual(expected)
        expect(parseNote(Buffer.from(note))).toEqual(expected)
      }),
    )
  })

  test('signed by the key is valid, from text and from bytes; a text may have empty lines', () => {
    expect(check(signed, key)).toBe(byLog)
    expect(check(Buffer.from(signed), key)).toBe(byLog)
    expect(parseNote(signed)).toMatchObject({ value: { text } })
    expect(signNote(text, logKey.signer)).toBe(signed)
  })

  test('with any byte changed, lost or added is refused', () => {
    for (const { at, bytes } of mangled(Buffer.from(signed))) {
      expect({ at, bytes: bytes.toString('latin1'), is: check(bytes, key) }).not.toMatchObject({ is: byLog })
    }
    // The decoder that threw before still works.
    expect(check(Buffer.from(signed), key)).toBe(byLog)
  })

  test('of arbitrary bytes is parsed or refused, and never throws', () => {
    const almost = fc.array(
      fc.constantFrom('a', '\n', '\n\n', '\u2014 ', ' ', 'AAAAAAA=', 'AAAAAAAA', '+', '\ufeff', '\0'),
    )
    fc.assert(fc.property(almost, (parts) => void expect(typeof parseNote(parts.join('')).ok).toBe('boolean')))
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void expect(typeof parseNote(bytes).ok).toBe('boolean')))
  })

  const line = signed.slice(signed.lastIndexOf('\u2014'))
  const malformed: Record<string, string | Uint8Array> = {
    'no separator': `first\n${line}`,
    'no signatures': `${text}\n`,
    'nothing at all': '',
    'no text': `\n${line}`,
    'a hyphen for the dash': signed.replace('\u2014', '-'),
    'an en dash for the em dash': signed.replace('\u2014', '\u2013'),
    'CRLF line ends': signed.replaceAll('\n', '\r\n'),
    'no line feed at the end': signed.slice(0, -1),
    'a line feed too many at the end': `${signed}\n`,
    'text after the signatures': `${signed}more\n`,
    'base64 without padding': signed.replace(/=+\n$/, '\n'),
    'base64 of the URL alphabet': formatNote(text, [{ ...goodLine, signature: Buffer.alloc(64, 0xff) }]).replace(
      /[/]/g,
      '_',
    ),
    'bits beyond the last byte': signed.replace(
      /(.)=\n$/,
      (_, last) => `${String.fromCharCode(last.charCodeAt(0) + 1)}=\n`,
    ),
    'a space after the base64': signed.replace(/\n$/, ' \n'),
    'two spaces after the name': signed.replace(`${ORIGIN} `, `${ORIGIN}  `),
    'no name': signed.replace(`\u2014 ${ORIGIN}`, '\u2014 '),
    'a "+" in the name': signed.replace(`\u2014 ${ORIGIN}`, '\u2014 a+b'),
    'no signature after the key id': signed.replace(/[^ ]+\n$/, 'NIFURA==\n'),
    'a control character': signed.replace('first', 'fir\tst'),
    'bad UTF-8': Buffer.concat([Buffer.of(0xff), Buffer.from(signed)]),
    'a surrogate half': `\ud800${signed}`,
  }
  test.each(Object.keys(malformed))('with %s is refused', (what) => {
    expect(parseNote(malformed[what] as string)).toMatchObject({ ok: false, problem: expect.stringMatching(/./) })
  })

  test('with an empty line between its signatures has another text, which nobody signed', () => {
    const twice = `${signed}\n${line}`
    expect(parseNote(twice)).toMatchObject({ ok: true, value: { text: signed } })
    expect(check(twice, key)).toBe(`the signature of ${ORIGIN} is not valid`)
  })

  test('with signatures of unknown keys is valid if a known key signed, in any order', () => {
    const unknown = Array.from({ length: 15 }, (_, i) => ({ ...badLine, keyId: i }))
    const postQuantum = { name: 'pq.example', keyId: 7, signature: Buffer.alloc(2424, 3) }
    expect(check(formatNote(text, [...unknown, postQuantum, goodLine]), key)).toBe(byLog)
    expect(check(formatNote(text, [goodLine, postQuantum, ...unknown]), key)).toBe(byLog)
    expect(check(formatNote(text, [{ ...goodLine, name: 'another' }]), key)).toBe('no known key has signed the note')
    expect(check(signed, other)).toBe('no known key has signed the note')
    expect(check(signed)).toBe('no known key has signed the note')
  })

  test('with a false signature of a known key is refused, whoever else signed', () => {
    for (const lines of [
      [badLine],
      [badLine, goodLine],
      [goodLine, badLine],
      [goodLine, { ...goodLine, signature: goodLine.signature.subarray(1) }],
    ]) {
      expect(check(formatNote(text, lines), key)).toBe(`the signature of ${ORIGIN} is not valid`)
    }
    const fromOther = signatureLine('another text\n', otherKey.signer)
    expect(check(formatNote(text, [goodLine, fromOther]), key, other)).toBe(
      `the signature of ${other.name} is not valid`,
    )
    expect(check(formatNote(text, [goodLine, fromOther]), key)).toBe(byLog)
  })

  test('with several lines of one key counts it once', () => {
    expect(check(formatNote(text, [goodLine, goodLine, goodLine]), key)).toBe(byLog)
    const both = formatNote(text, [goodLine, signatureLine(text, otherKey.signer), goodLine])
    expect(check(both, other, key)).toBe(`${byLog}, ${other.name}`)
  })

  test('may have cosignatures, which commit to their time', () => {
    const w = witness('witness.example/w1', 0x33, 1_790_000_000n)
    const line = signatureLine(text, w.signer)
    expect(check(formatNote(text, [goodLine, line]), key, w.key)).toBe(`${byLog}, witness.example/w1`)
    const later = Buffer.from(line.signature)
    later.writeBigUInt64BE(1_790_000_001n)
    expect(check(formatNote(text, [goodLine, { ...line, signature: later }]), key, w.key)).toMatch('is not valid')
    expect(check(formatNote(text, [goodLine, { ...line, signature: later.subarray(8) }]), key, w.key)).toMatch(
      'is not valid',
    )
  })

  test('has at most 100 signatures and 65,536 bytes', () => {
    const many = (count: number): string => `${text}\n${line.repeat(count)}`
    expect(check(many(SIGNATURE_LINES_MAX), key)).toBe(byLog)
    expect(parseNote(many(SIGNATURE_LINES_MAX + 1)).ok).toBe(false)
    const long = (bytes: number): string =>
      signNote(`${'x'.repeat(bytes - Buffer.byteLength(`\n\n${line}`))}\n`, logKey.signer)
    expect(check(long(NOTE_BYTES_MAX), key)).toBe(byLog)
    expect(() => long(NOTE_BYTES_MAX + 1)).toThrow(RangeError)
    const wide = `${'é'.repeat(NOTE_BYTES_MAX / 2)}\n\n${line}`
    expect(wide.length).toBeLessThan(NOTE_BYTES_MAX)
    expect(parseNote(wide)).toMatchObject({ ok: false, problem: expect.stringMatching(/bytes/) })
  })

  test('that could not be parsed back is not written', () => {
    for (const odd of ['', 'x', 'x\r\n', '\ud800\n']) expect(() => signNote(odd, logKey.signer)).toThrow(RangeError)
    expect(() => formatNote(text, [])).toThrow(RangeError)
    expect(() => formatNote(text, [{ ...goodLine, name: 'a b' }])).toThrow(RangeError)
  })
})
