/** JSON of other people's programs: one meaning or none. */
import { expect, test } from 'vitest'
import { plainJson } from '../../../src/format/plain-json.ts'

const read = (text: string | Buffer) => plainJson(Buffer.from(text as string))

test.each([
  '{"a":1.5e3,"b":[{"c":null},"\\ud83d\\ude00",-0.1]}',
  '[]',
  '7',
  '{"a":{"x":1},"b":{"x":1}}',
  '{"a":"\\"a\\":"}',
])('%s is taken as it stands', (text) => {
  expect(read(text)).toEqual({ ok: true, value: JSON.parse(text) })
})

test.each<[string, string | Buffer, string]>([
  ['a byte that is no UTF-8', Buffer.from('{"text":"caf\xe9"}', 'latin1'), 'is not UTF-8'],
  ['a key twice', '{"text":"first","text":"second"}', 'has a key twice in one object'],
  ['a key twice deep inside', '{"a":[{"b":1,"\\u0062":2}]}', 'has a key twice in one object'],
  ['a mark before it', '\ufeff{}', 'is not JSON'],
  ['half of it', '{"a":', 'is not JSON'],
  ['a million brackets', '['.repeat(1_000_000), 'nests deeper than 64: nothing here is that deep'],
  ['a list of a million', `[${'1,'.repeat(1_000_000)}1]`, 'has more than 32768 of { [ : , outside strings'],
  ['a million pairs of brackets', `[${'[],'.repeat(1_000_000)}1]`, 'has more than 32768 of { [ : , outside strings'],
])('%s is refused', (_what, text, fault) => {
  expect(read(text)).toEqual({ ok: false, fault })
})
