/** Titles of threads: what remains of Markdown is its words. */
import { expect, test } from 'vitest'
import { titleOf } from '../../../src/reads/thread-title.ts'

const format = 'markdown'

test.each([
  ['a link', 'see [the page](https://board.example/a_b) now', 'see the page now'],
  ['a picture', '![a cat](cat.png) sleeps', 'a cat sleeps'],
  ['a picture that is a link', '[![build](build.svg)](https://ci.example) passes', 'build passes'],
  ['a bracket before a link', 'array[0 and [the page](https://board.example)', 'array[0 and the page'],
])('%s is shown as its words', (_what, text, title) => {
  expect(titleOf({ text, format })).toEqual({ title })
})

test('what begins like a link and is none is shown as written', () => {
  for (const text of ['[a](b', '[a(b)', '[a]\n(b)', '![', '*[a](*[a]('])
    expect(titleOf({ text, format }).title).toBe(text.split('\n')[0]!.replaceAll('*', ''))
})

test('white space is one space, and empty lines are left out', () => {
  expect(titleOf({ text: ' \n\t\n one \t two \n\n three\u2028four' })).toEqual({
    title: 'one two',
    excerpt: 'three four',
  })
})
