/** One string of a large text, found without parsing the rest; and texts on which the search gives up. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { stringAt } from '../../../src/format/json-head.ts'

const long = 'A'.repeat(1_900_000)
const at = (text: string, ...path: string[]) => stringAt(Buffer.from(text), path)

test.each<[string, string]>([
  ['first', `{"operation":"blob.put","data":"${long}"}`],
  ['last', `{"data":"${long}","operation":"blob.put"}`],
  ['between spaces', ` {\n "data" : "${long}" ,\r\n\t"operation" : "blob.put" } \n`],
  ['in other letters', `{"data":"${long}","\\u006fperation":"blob\\u002eput"}`],
  [
    'behind lists, numbers and words',
    `{"members":["a",{"operation":"post"}],"ttl":12,"x":null,"data":"${long}","operation":"blob.put"}`,
  ],
  [
    'behind quotes that are escaped',
    `{"filename":"a\\"operation\\":\\"post\\"\\\\","operation":"blob.put","data":"${long}"}`,
  ],
])('it is found %s', (_where, text) => {
  expect(at(text, 'operation')).toBe('blob.put')
})

test('inside of objects by a path of keys, and only there', () => {
  const message = `{"method":"tools/call","params":{"name":"command","arguments":{"command":{"data":"${long}","operation":"blob.put"}}}}`
  expect(at(message, 'params', 'arguments', 'command', 'operation')).toBe('blob.put')
  expect(at(message, 'operation')).toBe(undefined)
  expect(at(message, 'params', 'operation')).toBe(undefined)
  expect(at(`{"command":["operation","blob.put"],"data":"${long}"}`, 'command', 'operation')).toBe(undefined)
})

test.each<[string, string]>([
  ['white space', `{"operation":"blob.put",${' '.repeat(2_000_000)}"data":"x"}`],
  ['white space at its end', `{"operation":"blob.put"}${' '.repeat(2_000_000)}`],
  ['a list', `{"operation":"blob.put","members":[${'1,'.repeat(100_000)}1]}`],
  ['brackets', `{"operation":"blob.put","x":${'['.repeat(2_000_000)}`],
  ['members', `{"operation":"blob.put",${'"a":1,'.repeat(100_000)}"b":1}`],
  ['digits', `{"operation":"blob.put","ttl":${'1'.repeat(2_000_000)}}`],
  ['quotes that are escaped', `{"operation":"blob.put","data":"${'\\"'.repeat(1_000_000)}"}`],
  ['a string without an end', `{"operation":"blob.put","data":"${long}`],
  ['a string without an end, of backslashes', `{"operation":"blob.put","data":"${'\\'.repeat(1_999_999)}"`],
  ['something behind it', `{"operation":"blob.put"}{"data":"${long}"}`],
  ['no object', `["operation","blob.put","${long}"]`],
  ['nothing', ''],
])('the search gives up on %s', (_what, text) => {
  expect(at(text, 'operation')).toBe(undefined)
})

test('for any command that is strict JSON it finds what JSON.parse finds', () => {
  const value = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.maxSafeInteger(),
    fc.array(fc.string(), { maxLength: 5 }),
    fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 }),
    fc.constantFrom(null, true, false),
  )
  const key = fc.oneof(fc.constantFrom('operation', 'data', '__proto__'), fc.string({ unit: 'grapheme' }))
  fc.assert(
    fc.property(fc.array(fc.tuple(key, value), { maxLength: 8 }), fc.constantFrom(0, 1, '\t'), (members, space) => {
      const object = Object.fromEntries(members)
      const { operation } = object
      const expected = Object.hasOwn(object, 'operation') && typeof operation === 'string' ? operation : undefined
      expect(at(JSON.stringify(object, null, space), 'operation')).toBe(expected)
    }),
  )
})

test('any bytes at all get an answer', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), fc.string(), (bytes, path) => {
      const found = stringAt(Buffer.from(bytes), [path])
      expect(found === undefined || typeof found === 'string').toBe(true)
    }),
    { numRuns: 2_000 },
  )
})
