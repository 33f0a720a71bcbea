/** How a query is parsed, and which words count as the same in a search. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  dayOf,
  highlighter,
  inflections,
  matcher,
  rankOf,
  readQuery,
  toFts,
  wordsOf,
} from '../../../src/search/query.ts'

function faultOf(text: string): string | undefined {
  const read = readQuery(text)
  return read.ok ? undefined : read.fault
}

function holds(query: string, text: string): boolean {
  const read = readQuery(query)
  if (!read.ok) throw new Error(read.fault)
  return matcher(read.query)(text)
}

test('words match in all their forms, phrases by their words, and excluded phrases only by the exact text', () => {
  const fts = (text: string) => {
    const read = readQuery(text)
    return read.ok && toFts(read.query)
  }
  expect(fts('Fox A')).toEqual({ match: '("fox" OR "foxes" OR "foxed" OR "foxing") AND ("a")', isByText: false })
  expect(fts('"Big cats" -ab')).toEqual({ match: '(("big" AND "cats")) NOT (("ab"))', isByText: true })
  expect(fts('a -"b c"')).toEqual({ match: '("a")', isByText: true })
  expect(fts('wor*')).toEqual({ match: '("wor"*)', isByText: false })
  expect(fts('"foxes"')).toEqual({ match: '("foxes")', isByText: false })
  expect(fts('ab-cd* a_b')).toEqual({ match: '("ab" AND "cd"*) AND ("a" AND "b")', isByText: true })
  expect(fts('OR NO "AND"')).toEqual({ match: '("or") AND ("no") AND ("and")', isByText: false })
})

test.each([
  ['fox', 'two foxes'],
  ['foxes', 'a fox'],
  ['FOX', 'Foxes!'],
  ['study', 'case studies'],
  ['studies', 'we studied it'],
  ['hop', 'hopping along'],
  ['hoping', 'we hope so'],
  ['install', 'it was installed'],
  ['installing', 'how to install'],
  ['box', 'in boxes'],
  ['cache', 'while caching'],
  ['query', 'slow queries'],
  ['grüsse', 'Grüße aus Köln'],
  ['GRÜSSE', 'Grüße'],
  ['Grüße', 'GRÜSSE'],
  ['grusse', 'GRÜẞE'],
  ['strasse', 'Straße'],
  ['creme brulee', 'Crème brûlée'],
  ['file', 'the \ufb01le'],
  ['ocr', 'ＯＣＲ'],
  ['οδος', 'ΟΔΟΣ'],
  ['istanbul', 'İstanbul'],
  ['हिन्दी', 'हिन्दी में'],
  ['"क्षेत्र"', 'यह क्षेत्र'],
  ['universi*', 'the University'],
  ['runnin*', 'running'],
  ['日本*', '日本語'],
  ['foo-bar', 'Foo, bar'],
])('%s finds %s', (query, text) => {
  expect(holds(query, text)).toBe(true)
})

test.each([
  ['the', 'a thing'],
  ['thing', 'the'],
  ['new', 'the news'],
  ['news', 'brand new'],
  ['use', 'us'],
  ['hop', 'hoping'],
  ['"fox"', 'foxes'],
  ['"foxes"', 'a fox'],
  ['fox -foxes', 'two foxes'],
  ['fox -fox', 'a fox'],
  ['"brown quick"', 'quick brown'],
  ['fox -"quick brown"', 'the quick brown fox'],
  ['quic* -brow*', 'quick brown'],
])('%s does not find %s', (query, text) => {
  expect(holds(query, text)).toBe(false)
})

test('from, room and kind are parsed apart from the words', () => {
  const read = (text: string) => {
    const found = readQuery(text)
    return found.ok && [found.restrictions, found.query.wanted.flatMap(({ words }) => words)]
  }
  expect(read('from:alice bread')).toEqual([{ from: 'alice' }, ['bread']])
  expect(read('bread FROM:@Alice room:kitchen kind:request')).toEqual([
    { from: '@Alice', room: 'kitchen', kind: 'request' },
    ['bread'],
  ])
  expect(read('"from:alice" from https://a.example/x 12:30')).toEqual([
    {},
    ['from', 'alice', 'from', 'https', 'a', 'example', 'x', '12', '30'],
  ])
})

test.each([
  ['', 'query must contain at least one word to search for (-words and names with a colon do not count)'],
  ['!!!', 'query must contain at least one word to search for (-words and names with a colon do not count)'],
  ['-foo -"a b"', 'query must contain at least one word to search for (-words and names with a colon do not count)'],
  ['from:alice', 'query must contain at least one word to search for (-words and names with a colon do not count)'],
  ['a*', 'a prefix in query needs at least 2 letters or digits before its *, and a* has fewer'],
  ['x -y*', 'a prefix in query needs at least 2 letters or digits before its *, and -y* has fewer'],
  ['日*', 'a prefix in query needs at least 2 letters or digits before its *, and ?* has fewer'],
  ['aa* bb* cc* dd* ee*', 'query may have at most 4 prefixes (word*)'],
  ['aa* -bb* cc* -dd* ee-ff*', 'query may have at most 4 prefixes (word*)'],
  ['x -from:bob', '-from: is not known in query: fields cannot be excluded'],
  ['x from:', 'from: in query must be followed directly by its value'],
  ['x room:a room:b', 'query may have one room: only'],
  ['x before:3', 'before: in query must be followed by a day in UTC such as 2026-01-31'],
])('%j is refused: %s', (text, fault) => {
  expect(faultOf(text)).toBe(fault)
})

test('a word has few forms, the first of which is the word itself', () => {
  for (const word of wordsOf(
    'foxes installed categories nodes processes stopping a of 42 größe x402 this is was the buses',
  )) {
    const forms = inflections(word)
    expect(forms[0]).toBe(word)
    expect(forms.length).toBeLessThanOrEqual(16)
    expect(new Set(forms).size).toBe(forms.length)
  }
})

function queryOf(text: string) {
  const read = readQuery(text)
  if (!read.ok) throw new Error(read.fault)
  return read.query
}

/** The highlighted parts of a text, by code points. */
function marked(query: string, text: string): string[] {
  const points = [...text]
  return highlighter(queryOf(query))(text).map(([start, end]) => points.slice(start, end).join(''))
}

test.each([
  ['fox', 'Two foxes, one fox.', ['foxes', 'fox']],
  ['"fox"', 'Two foxes, one fox.', ['fox']],
  ['fo*', 'Two foxes, one fort.', ['foxes', 'fort']],
  ['"crossed the road"', 'They crossed  the\nroad twice', ['crossed  the\nroad']],
  ['the-ro*', 'on the road', ['the road']],
  ['fox -dog', 'fox and dog', ['fox']],
  ['from:ada fox', 'from ada, a fox', ['fox']],
  ['grusse', '\u{1f600} Grüße \u{1f600} gru\u0308sse', ['Grüße', 'gru\u0308sse']],
  ['straße', 'STRASSE', ['STRASSE']],
  ['日本', '日本 の 日本', ['日本', '日本']],
  ['nothing', 'of it', []],
])('%j highlights its words in %j', (query, text, words) => {
  expect(marked(query, text)).toEqual(words)
})

test('highlights are inside the text, ordered and without overlap, for any query and text', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('a', '"a b"', 'a*b c*', 'ß', 'é "e e"'),
      (text, query) => {
        const points = [...text].length
        const read = readQuery(query)
        if (!read.ok) return
        let last = 0
        for (const [start, end] of highlighter(read.query)(text)) {
          expect(start).toBeGreaterThanOrEqual(last)
          expect(end).toBeGreaterThan(start)
          expect(end).toBeLessThanOrEqual(points)
          last = end
        }
      },
    ),
  )
})

test('a text has a bounded number of highlights', () => {
  expect(marked('a', 'a '.repeat(1_000))).toHaveLength(50)
})

test('a text about a word ranks above one that mentions it', () => {
  const rank = rankOf(queryOf('merkle tree'))
  const line = (text: string) => rank(wordsOf(text).join(' '))
  const about = line('Merkle trees: how a merkle tree is built, and why a tree')
  const mentions = line(`${'other words '.repeat(60)} merkle ${'and '.repeat(40)} tree`)
  expect(about).toBeGreaterThan(mentions)
  expect(mentions).toBeGreaterThan(line('nothing of that'))
})

test('days are calendar days', () => {
  expect(dayOf('2026-02-28')).toBe(Date.UTC(2026, 1, 28) / 1_000)
  for (const text of ['2026-02-30', '2026-2-3', '20260203', '', '2026-13-01', 'yesterday'])
    expect(dayOf(text)).toBeUndefined()
})
