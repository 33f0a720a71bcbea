/** Third-party JSON is passed on unchanged, except what could not be serialized again; a message has one meaning or none. */
import { expect, test } from 'vitest'
import { exactJson, foreignJson, parseMessage } from '../../../src/format/foreign-json.ts'

test.each([
  '{"a":[1,2,{"b":null}]}',
  `"${'['.repeat(1_000)}"`,
  String.raw`["\"[[[","\\",{"\\\"{":"]"}]`,
  `${'['.repeat(64)}${']'.repeat(64)}`,
  '[[],[],[],{}]',
])('%s is accepted', (text) => {
  expect(foreignJson(text)).toEqual(JSON.parse(text))
})

test.each([
  '',
  '{',
  '[1,]',
  'undefined',
  `${'['.repeat(65)}${']'.repeat(65)}`,
  `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`,
])('%s is not', (text) => {
  expect(foreignJson(text)).toBeUndefined()
})

test.each([
  '{"a":[1.5,-0.1,2e3,0,-7,1E-400],"b":0.1234567890123456789}',
  '{"a":9007199254740991,"b":18014398509481984,"c":-9007199254740992}',
  String.raw`{"a":"1234567890123456789","b":"\"1e999","\u0061b":"{\"a\":1"}`,
  '{"a":{"x":1},"b":{"x":1},"__proto__":{"x":1}}',
  '1e308',
])('%s means the same once parsed', (text) => {
  expect(exactJson(text)).toEqual(JSON.parse(text))
})

test.each([
  ['a whole number that is rounded', '{"id":1234567890123456789}'],
  ['a negative one', '[-9007199254740993]'],
  ['one that has no end', `[1${'0'.repeat(400)}]`],
  ['a number that becomes infinite', '{"a":1e400}'],
  ['a key twice', '{"a":[{"b":1,"\u0062":2}]}'],
  ['what is not JSON', '{'],
  ['what nests too deeply', `${'['.repeat(65)}${']'.repeat(65)}`],
])('%s would not', (_what, text) => {
  expect(exactJson(text)).toBeUndefined()
})

const read = (text: string | Buffer) => parseMessage(Buffer.from(text as string))

test.each([
  '{"a":1.5e3,"b":[{"c":null},"\\ud83d\\ude00",-0.1]}',
  '[]',
  '7',
  '{"a":{"x":1},"b":{"x":1}}',
  '{"a":"\\"a\\":"}',
])('%s is passed on as it is', (text) => {
  expect(read(text)).toEqual({ ok: true, value: JSON.parse(text) })
})

test.each<[string, string | Buffer, unknown]>([
  ['a byte that is no UTF-8', Buffer.from('{"text":"caf\xe9"}', 'latin1'), 'is not UTF-8'],
  ['a key twice', '{"text":"first","text":"second"}', 'has a key twice in one object'],
  ['a key twice deep inside', '{"a":[{"b":1,"\\u0062":2}]}', 'has a key twice in one object'],
  ['a mark before it', '\ufeff{}', expect.stringContaining('is not JSON: ')],
  ['half of it', '{"a":', expect.stringContaining('is not JSON: ')],
  ['a million brackets', '['.repeat(1_000_000), 'nests deeper than 64'],
  ['a list of a million', `[${'1,'.repeat(1_000_000)}1]`, 'has more than 32768 of { [ : , outside strings'],
  ['a million pairs of brackets', `[${'[],'.repeat(1_000_000)}1]`, 'has more than 32768 of { [ : , outside strings'],
])('%s is refused', (_what, text, fault) => {
  expect(read(text)).toEqual({ ok: false, fault })
})
