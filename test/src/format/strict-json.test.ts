import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findFault, nestingMax, structureMarksMax } from '../../../src/format/json-fault.ts'
import { parseStrictJson, parseStrictText } from '../../../src/format/strict-json.ts'

/** The refusal's message, or 'ok'. */
function said(input: string | Uint8Array): string {
  const result = typeof input === 'string' ? parseStrictText(input) : parseStrictJson(input)
  return result.ok ? 'ok' : result.message
}

const command = {
  operation: 'post',
  room: 'lobby',
  text: 'Hello <🌍>\u2028 "quoted" \\ back',
  timestamp: 1_790_000_000,
  attachments: ['a', 'b'],
}

test('a command is parsed as by JSON.parse, together with its original text', () => {
  const text = JSON.stringify(command)
  expect(parseStrictJson(Buffer.from(text))).toEqual({ ok: true, value: command, text })
  expect(parseStrictText(text)).toEqual({ ok: true, value: command, text })
  const view = Buffer.concat([Buffer.alloc(3, 255), Buffer.from(text), Buffer.alloc(2, 255)])
  expect(parseStrictJson(new Uint8Array(view.buffer, view.byteOffset + 3, view.length - 5))).toMatchObject({ ok: true })
})

describe('what is refused, and with which message', () => {
  const refused: readonly [what: string, input: string | Uint8Array, message: string][] = [
    ['nothing', '', 'the text ends where a value should be at byte 0'],
    ['only white space', ' \n', 'the text ends where a value should be at byte 2'],
    ['invalid UTF-8', Buffer.from([0x22, 0x61, 0xc3, 0x22]), 'invalid UTF-8 at or just before byte 2'],
    ['an overlong encoding', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), 'invalid UTF-8 at or just before byte 1'],
    ['a surrogate in UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), 'invalid UTF-8 at or just before byte 1'],
    ['a byte order mark', Buffer.from('\ufeff{}'), 'a byte order mark at byte 0'],
    ['a key given twice', '{"a":1,"b":2,"a":3}', 'key "a" is given twice at byte 13'],
    ['a key given twice, once escaped', '{"a":1,"\\u0061":2}', 'key "a" is given twice at byte 7'],
    ['a key given twice, deep down', '[{"x":{"é":[{"k":0,"k":0}]}}]', 'key "k" is given twice at byte 20'],
    ['__proto__ given twice', '{"__proto__":1,"__proto__":2}', 'key "__proto__" is given twice at byte 15'],
    ['the empty key given twice', '{"":1,"":2}', 'key "" is given twice at byte 6'],
    ['trailing junk', '{"a":1}x', 'something follows the JSON value at byte 7'],
    ['two values', '{} {}', 'something follows the JSON value at byte 3'],
    ['a trailing comma', '{"a":1,}', 'a key in double quotes should be here at byte 7'],
    ['a trailing comma in an array', '[1,]', 'a value should be here at byte 3'],
    ['a comment', '{/**/}', 'a key in double quotes should be here at byte 1'],
    ['single quotes', "{'a':1}", 'a key in double quotes should be here at byte 1'],
    ['an object left open', '{"a":1', "',' or '}' should be here at byte 6"],
    ['an array left open', '[1', "',' or ']' should be here at byte 2"],
    ['brackets that cross', '[{]}', 'a key in double quotes should be here at byte 2'],
    ['no colon', '{"a" 1}', "':' should be here at byte 5"],
    ['a string left open', '["abc', 'a string without an end begins at byte 1'],
    ['a string whose end is escaped', '["abc\\"]', 'a string without an end begins at byte 1'],
    ['a raw newline', '["a\nb"]', 'a control character that must be written as an escape at byte 3'],
    ['a raw NUL', '["a\0b"]', 'a control character that must be written as an escape at byte 3'],
    ['an unknown escape', '["a\\x"]', 'an escape that JSON does not have at byte 3'],
    ['a short escape', '["\\u12"]', 'an escape that JSON does not have at byte 2'],
    ['half a pair', '["\\ud83d"]', 'half a surrogate pair in the string that begins at byte 1'],
    ['the other half', '["a\\uDF0D"]', 'half a surrogate pair in the string that begins at byte 1'],
    ['half a pair as a key', '{"\\ud83d":1}', 'half a surrogate pair in the string that begins at byte 1'],
    ['half a pair, raw', '["\ud83d"]', 'half a surrogate pair in the string that begins at byte 1'],
    ['-0', '{"a":-0}', '-0 (write 0) at byte 5'],
    ['a leading zero', '[01]', "',' or ']' should be here at byte 2"],
    ['a plus sign', '[+1]', 'a value should be here at byte 1'],
    ['a lone minus', '[-]', 'a number without digits at byte 1'],
    ['NaN', '[NaN]', 'a value should be here at byte 1'],
    ['a misspelt literal', '[nul]', 'a value should be here at byte 1'],
  ]
  test.each(refused)('%s', (_what, input, message) => {
    expect(said(input)).toBe(message)
  })

  test.each(['1.5', '1.0', '1e2', '1E2', '1e400', '-1e-400', '0.1', '1e-1', '-0.0', '123456789012345678901e0'])(
    'the number %s, which is not written as a plain integer',
    (number) => {
      expect(said(`{"limit": ${number}}`)).toMatch(
        /plain integer, without fraction or exponent, at byte 10$|^-0 \(write 0\)/,
      )
    },
  )

  test.each(['9007199254740992', '-9007199254740992', '9007199254740993', '1'.repeat(400), '-1'.padEnd(30, '0')])(
    'the number %s, which is not safe',
    (number) =>
      expect(said(`[${number}]`)).toMatch(/an integer lies between -9007199254740991 and 9007199254740991, at byte 1$/),
  )

  test('text by strangers is shown shortened and without control characters', () => {
    const message = said(`{"${'k'.repeat(5_000)}\\u001b":1,"${'k'.repeat(5_000)}\\u001b":2}`)
    expect(message.length).toBeLessThan(100)
    expect(said('{"\\u001b[2J":1,"\\u001b[2J":2}')).toBe('key "\\u001b[2J" is given twice at byte 15')
  })

  test('bytes are counted as UTF-8', () => {
    expect(said(Buffer.from('{"é🌍":1,"x":y}'))).toBe('a value should be here at byte 16')
  })
})

describe('what is accepted', () => {
  const taken: readonly [string, unknown][] = [
    ['0', 0],
    ['[-1, 9007199254740991, -9007199254740991]', [-1, 9007199254740991, -9007199254740991]],
    ['"\\u0000\\ud83c\\udf0d\\u2028"', '\u0000🌍\u2028'],
    ['"\\\\"', '\\'],
    ['"\\\\\\""', '\\"'],
    ['{"a:b,{[":":,]}\\"","c":"1.5e3 -0"}', { 'a:b,{[': ':,]}"', c: '1.5e3 -0' }],
    [' \t\r\n[true,\nfalse , null] ', [true, false, null]],
    ['{"a":{"a":1},"b":[{"a":1},{"a":2}]}', { a: { a: 1 }, b: [{ a: 1 }, { a: 2 }] }],
    ['{"é":1,"e\u0301":2}', { é: 1, 'e\u0301': 2 }],
  ]
  test.each(taken)('%s', (text, value) => {
    expect(parseStrictText(text)).toEqual({ ok: true, value, text })
  })

  test('__proto__ is an ordinary key and changes no prototype', () => {
    const result = parseStrictText('{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}}}')
    if (!result.ok) throw new Error(result.message)
    const value = result.value as Record<string, unknown>
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(value.admin).toBeUndefined()
    expect(({} as Record<string, unknown>).x).toBeUndefined()
  })
})

describe('bounds', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)

  test('nesting 32 deep is accepted, 33 is not, in arrays, objects and both', () => {
    expect(said(nested(nestingMax))).toBe('ok')
    expect(said(nested(nestingMax + 1))).toBe('nested more than 32 deep at byte 32')
    const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
    expect(said(objects(nestingMax))).toBe('ok')
    expect(said(objects(nestingMax + 1))).toBe('nested more than 32 deep at byte 160')
    expect(said(`[${'{"a":['.repeat(16)}${']}'.repeat(16)}]`)).toMatch(/nested more than 32/)
  })

  test('many values side by side are not deep', () => {
    expect(said(`[${Array.from({ length: 1_000 }, () => nested(20)).join()}]`)).toBe('ok')
  })

  test('bombs are refused: a million brackets, closed or not, a million members, a million backslashes', () => {
    expect(said('['.repeat(1_000_000))).toMatch(/nested more than 32/)
    expect(said(nested(1_000_000))).toMatch(/nested more than 32/)
    expect(said('{"a":'.repeat(1_000_000))).toMatch(/nested more than 32/)
    expect(said(`"${'\\'.repeat(1_000_001)}"`)).toMatch(/string without an end/)
    expect(said(`"${'\\"'.repeat(1_000_000)}`)).toMatch(/string without an end/)
    expect(said(`{${'"a":1,'.repeat(300_000)}"a":1}`)).toMatch(/key "a" is given twice/)
    expect(said(`[${'{},'.repeat(600_000)}{}]`)).toMatch(/more than 65536/)
  })

  test('the count of structure is exact', () => {
    const commas = (count: number) => `[${'0,'.repeat(count)}0]`
    expect(said(commas(structureMarksMax - 1))).toBe('ok')
    expect(said(commas(structureMarksMax))).toMatch(/more than 65536 of \{ \[ : ,/)
  })

  test('the first list in a command that is too long ends the parsing, and the message names its key', () => {
    const limits = { marksMax: 100, itemsMax: 3 }
    const read = (text: string) => {
      const result = parseStrictText(text, limits)
      return result.ok ? 'ok' : [result.message, result.member]
    }
    expect(read('{"a":[1,2,3],"b":[[1,2,3,4,5]],"c":{"d":1,"e":2,"f":3,"g":4}}')).toBe('ok')
    expect(read('{"a":[1,2,3],"b":[1,2,3,4]}')).toEqual(['an array has more than 3 items at byte 23', 'b'])
    expect(read('{"a":[1,2,3,4')).toEqual(['an array has more than 3 items at byte 11', 'a'])
    expect(read(`[${'1,'.repeat(50)}1]`)).toBe('ok')
    expect(read(`[${'1,'.repeat(100)}1]`)).toEqual(['more than 100 of { [ : , at byte 200', undefined])
  })

  test('a file of 1.9 MB in one string is accepted', () => {
    expect(said(Buffer.from(`{"data":"${'A'.repeat(1_900_000)}"}`))).toBe('ok')
  })
})

/** JSON as text together with the expected result. Objects are lists of pairs, so a key may occur twice. */
type Tree =
  | number
  | string
  | boolean
  | null
  | readonly Tree[]
  | { readonly pairs: readonly (readonly [string, Tree])[] }
const key = fc.oneof(fc.constantFrom('a', 'b', '', '__proto__', '0', 'toString'), fc.string({ unit: 'grapheme' }))
const tree: fc.Arbitrary<Tree> = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    fc.maxSafeInteger().map((number) => number + 0),
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom<Tree>(true, false, null, '":,{}[]', '\\', '-0', '1.5'),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.record({ pairs: fc.array(fc.tuple(key, tie('tree')), { maxLength: 4 }) }),
  ),
})).tree

function write(value: Tree, space: string): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if ('pairs' in value) {
    // Every other key is escaped: the same key in other characters is the same key.
    const members = value.pairs.map(([name, member], index) => {
      const written = index % 2 === 1 ? JSON.stringify(name).replace(/[ab]/, escapeOf) : JSON.stringify(name)
      return `${space}${written}${space}:${write(member, space)}`
    })
    return `{${members.join(',')}${space}}`
  }
  return `[${space}${value.map((element) => write(element, space)).join(`${space},`)}]`
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Naive detection of duplicates. */
function repeatsKey(value: Tree): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (!('pairs' in value)) return value.some(repeatsKey)
  const names = value.pairs.map(([name]) => name)
  return new Set(names).size < names.length || value.pairs.some(([, member]) => repeatsKey(member))
}

describe('laws', () => {
  test('valid text is accepted, as JSON.parse reads it, exactly when no object repeats a key', () => {
    fc.assert(
      fc.property(tree, fc.constantFrom('', ' ', '\n\t'), (value, space) => {
        const text = write(value, space)
        const result = parseStrictJson(Buffer.from(text))
        expect(result.ok, text).toBe(!repeatsKey(value))
        if (result.ok) expect(result).toEqual({ ok: true, value: JSON.parse(text), text })
        else expect(result.message).toMatch(/^key ".*" is given twice at byte \d+$/)
      }),
      { numRuns: 1_000 },
    )
  })

  test('however a text is damaged, the fast reader refuses it exactly when the slow one finds a fault', () => {
    const splice = fc.constantFrom(
      '"',
      '\\',
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '-',
      '0',
      '.',
      'e',
      '\\ud800',
      '\u0001',
      ' ',
    )
    const damage = fc.tuple(fc.nat(), fc.nat({ max: 2 }), splice)
    fc.assert(
      fc.property(tree, fc.array(damage, { maxLength: 3 }), (value, damages) => {
        let text = write(value, '')
        for (const [place, cut, put] of damages) {
          const at = place % (text.length + 1)
          text = text.slice(0, at) + put + text.slice(at + cut)
        }
        const result = parseStrictText(text)
        expect(result.ok, text).toBe(findFault(text) === undefined)
        if (result.ok) expect(result.value).toEqual(JSON.parse(text))
        const limits = { marksMax: 12, itemsMax: 2 }
        expect(parseStrictText(text, limits).ok, text).toBe(findFault(text, limits) === undefined)
      }),
      { numRuns: 3_000 },
    )
  })

  test('any bytes at all get an answer', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const result = parseStrictJson(bytes)
        if (!result.ok) expect(result.message).toMatch(/ byte \d+$/)
      }),
      { numRuns: 2_000 },
    )
  })
})
