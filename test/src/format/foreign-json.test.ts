/** JSON of others is read as it is, but for what could not be written again. */
import { expect, test } from 'vitest'
import { foreignJson } from '../../../src/format/foreign-json.ts'

test.each([
  '{"a":[1,2,{"b":null}]}',
  `"${'['.repeat(1_000)}"`,
  String.raw`["\"[[[","\\",{"\\\"{":"]"}]`,
  `${'['.repeat(64)}${']'.repeat(64)}`,
  '[[],[],[],{}]',
])('%s is read', (text) => {
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
