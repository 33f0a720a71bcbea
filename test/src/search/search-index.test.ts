import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BoardRecord, RecordType } from '../../../actors/record.ts'
import { matches, parseQuery, toFts, wordsOf } from '../../../src/search/query.ts'
import { type SearchAsk, SearchIndex } from '../../../src/search/search-index.ts'
import { openDatabase } from '../../../src/search/sqlite.ts'
import { boardDirectory } from '../../support/board-process.ts'
import { scratchDirectory } from '../../support/scratch.ts'
import { corpusAbsent, corpusTexts } from './corpus-rows.ts'

const author = Buffer.alloc(32, 1)

function idOf(change: number): Buffer {
  const id = Buffer.alloc(16)
  id.writeUInt32BE(change, 12)
  return id
}

function event(text: string, change: number, more: object = {}): BoardRecord {
  const signed = Buffer.from(JSON.stringify({ version: 1, service: 's', command: { operation: 'post', text } }))
  return {
    type: RecordType.event,
    room: 'lobby',
    page: 'main',
    kind: 'note',
    seq: change,
    at: 1,
    author,
    by: { key: author, sig: Buffer.alloc(64), signed },
    via: 'command',
    ...more,
  }
}

function mark(op: string, change: number): BoardRecord {
  return { type: RecordType.act, room: 'lobby', at: 1, author, op, facts: { id: idOf(change) } }
}

function search(index: SearchIndex, text: string, more: Partial<SearchAsk> = {}, now = 10): number[] {
  const query = parseQuery(text)
  if (query === undefined) return []
  return index.find({ query, order: 'desc', limit: 100_000, ...more }, now).map(({ change }) => change)
}

describe.skipIf(corpusAbsent)(
  `on real messages${corpusAbsent ? ' [skipped: no corpus in ../shared/data/board]' : ''}`,
  () => {
    const texts = corpusAbsent ? [] : corpusTexts(23)
    let index: SearchIndex

    beforeAll(() => {
      index = SearchIndex.open(boardDirectory(), 'log', 1)
      for (const [n, text] of texts.entries()) index.add(event(text, n + 1), idOf(n + 1), n + 1)
      index.settle(1, 10)
    })
    afterAll(() => index.close())

    const naive = (text: string): number[] => {
      const query = parseQuery(text)
      if (query === undefined) return []
      return texts.flatMap((each, n) => (matches(query, each) ? [n + 1] : [])).reverse()
    }
    const words = fc.constantFrom(...new Set(texts.flatMap(wordsOf)))
    const run = fc.constantFrom(...texts.filter((text) => wordsOf(text).length > 2)).chain((text) => {
      const all = wordsOf(text)
      return fc.nat(all.length - 2).map((at) => all.slice(at, at + 2).join(' '))
    })
    const term = fc.oneof(
      words,
      words.map((word) => `-${word}`),
      words.map((word) => `${word.slice(0, 3)}*`),
      run.map((phrase) => `"${phrase}"`),
      run.map((phrase) => `-"${phrase}"`),
    )

    test('the index finds what a look at every text finds, newest first', () => {
      expect(texts.length).toBeGreaterThan(2000)
      fc.assert(
        fc.property(fc.array(term, { minLength: 1, maxLength: 4 }), (terms) => {
          expect(search(index, terms.join(' '))).toEqual(naive(terms.join(' ')))
        }),
        { numRuns: 400 },
      )
    })

    test('pages of any size, both ways, put together are the whole', () => {
      for (const word of ['the', 'ubuntu', 'install']) {
        const whole = search(index, word)
        for (const order of ['asc', 'desc'] as const) {
          const found: number[] = []
          for (;;) {
            const from = found.at(-1)
            const page = search(index, word, { order, limit: 7, ...(from === undefined ? {} : { from }) })
            if (page.length === 0) break
            found.push(...page)
          }
          expect(found).toEqual(order === 'asc' ? whole.toReversed() : whole)
        }
      }
    })
  },
)

test('no query is an error of SQL, whatever it holds', () => {
  const index = SearchIndex.open(scratchDirectory(), 'log', 1)
  index.add(event('plain words', 1), idOf(1), 1)
  index.settle(1, 10)
  const parts = fc.constantFrom(
    '"',
    "'",
    '-',
    '*',
    '(',
    ')',
    'AND',
    'OR',
    'NOT',
    'NEAR',
    'text:',
    '{',
    '}',
    '^',
    '+',
    ';',
    '--',
    ' ',
    'plain',
    '\\',
    'é',
    '日本',
    '🌍',
  )
  fc.assert(
    fc.property(
      fc.oneof(
        fc.array(parts).map((all) => all.join('')),
        fc.string({ unit: 'binary' }),
      ),
      (text) => {
        const found = search(index, text.replaceAll('\0', ''))
        expect(found.length).toBeLessThanOrEqual(1)
      },
    ),
    { numRuns: 2000 },
  )
  index.close()
})

test('how a query is read', () => {
  const read = (text: string) => {
    const query = parseQuery(text)
    return query === undefined ? undefined : toFts(query)
  }
  expect(read('Foo BAR')).toBe('"foo" AND "bar"')
  expect(read('"foo bar" -baz')).toBe('("foo bar") NOT ("baz")')
  expect(read('foo -"bar baz" -qux')).toBe('("foo") NOT ("bar baz" OR "qux")')
  expect(read('"not closed at all')).toBe('"not closed at all"')
  expect(read('wor*')).toBe('"wor"*')
  expect(read('foo-bar a_b')).toBe('"foo bar" AND "a b"')
  expect(read('AND OR NOT NEAR')).toBe('"and" AND "or" AND "not" AND "near"')
  for (const text of ['', '!!!', '-foo', '"', '*', '-"a b"']) expect(read(text)).toBe(undefined)
})

describe('what became of a text', () => {
  test('only the newest version is found, at the place of the first', () => {
    const index = SearchIndex.open(scratchDirectory(), 'log', 9)
    index.add(event('first words', 1), idOf(1), 1)
    index.add(event('other', 2), idOf(2), 2)
    index.add(event('second words', 3, { original: idOf(1) }), idOf(3), 3)
    index.settle(1, 10)
    expect(search(index, 'first')).toEqual([])
    expect(search(index, 'second')).toEqual([1])
    expect(search(index, 'words')).toEqual([1])
    index.close()
  })

  test('hidden is not found until it is restored; redacted and expired is gone from the disk', () => {
    const directory = scratchDirectory()
    const index = SearchIndex.open(directory, 'log', 9)
    index.add(event('hideme', 1), idOf(1), 1)
    index.add(event('redactmetoo secretword', 2), idOf(2), 2)
    index.add(event('expiringword', 3, { expires: 100 }), idOf(3), 3)
    index.settle(1, 10)
    index.add(mark('room.hide', 1), idOf(4), 4)
    index.add(mark('event.redact', 2), idOf(5), 5)
    expect(search(index, 'expiringword', {}, 99)).toEqual([3])
    expect(search(index, 'expiringword', {}, 100)).toEqual([])
    index.settle(2, 100)
    for (const word of ['hideme', 'secretword', 'expiringword']) expect(search(index, word)).toEqual([])
    index.add(mark('room.restore', 1), idOf(6), 6)
    index.add(event('edit of what is gone', 7, { original: idOf(2) }), idOf(7), 7)
    index.settle(3, 100)
    expect(search(index, 'hideme')).toEqual([1])
    expect(search(index, 'gone')).toEqual([])
    index.close()
    for (const name of readdirSync(directory)) {
      const bytes = readFileSync(join(directory, name))
      for (const word of ['secretword', 'expiringword']) expect([name, bytes.includes(word)]).toEqual([name, false])
    }
  })
})

test('what a kill left in the write-ahead log behind a deletion is gone when it is opened', () => {
  const [directory, killed] = [scratchDirectory(), scratchDirectory()]
  const index = SearchIndex.open(directory, 'log', 9)
  index.add(event('secretword', 1), idOf(1), 1)
  index.settle(1, 10)
  // As settle does it, and killed before the log is emptied.
  const database = openDatabase(join(directory, 'index.db'))
  database.exec(`PRAGMA secure_delete = ON; BEGIN; DELETE FROM texts WHERE rowid = 1; DELETE FROM docs; COMMIT`)
  cpSync(directory, killed, { recursive: true })
  database.close()
  index.close()
  const bytes = () => readdirSync(killed).map((name) => readFileSync(join(killed, name), 'latin1'))
  expect(bytes().join()).toContain('secretword')
  const again = SearchIndex.open(killed, 'log', 9)
  expect([again.applied, search(again, 'secretword')]).toEqual([1, []])
  expect(bytes().join()).not.toContain('secretword')
  again.close()
})

test('it says when the next of its texts expires, and when it is opened again', () => {
  const directory = scratchDirectory()
  let index = SearchIndex.open(directory, 'log', 9)
  const due = () => [index.dueIn(40), index.isDue(40), index.isDue(100), index.isDue(1_000_000)]
  const never = [Number.POSITIVE_INFINITY, false, false, false]
  expect(due()).toEqual(never)
  index.add(event('for ever', 1), idOf(1), 1)
  index.add(event('longer', 2, { expires: 200 }), idOf(2), 2)
  index.add(event('shorter', 3, { expires: 100 }), idOf(3), 3)
  index.settle(1, 10)
  expect(due()).toEqual([60, false, true, true])
  index.close()
  index = SearchIndex.open(directory, 'log', 9)
  expect(due()).toEqual([60, false, true, true])
  index.settle(1, 100)
  expect(due()).toEqual([160, false, false, true])
  index.settle(1, 200)
  expect([due(), search(index, 'ever')]).toEqual([never, [1]])
  index.close()
})

describe('opening', () => {
  test('it goes on where it stood', () => {
    const directory = scratchDirectory()
    const first = SearchIndex.open(directory, 'log', 5)
    first.add(event('kept', 1), idOf(1), 1)
    first.settle(5, 10)
    first.add(event('lost with the crash', 2), idOf(2), 2)
    first.close()
    const again = SearchIndex.open(directory, 'log', 5)
    expect([again.applied, search(again, 'kept'), search(again, 'lost')]).toEqual([5, [1], []])
    again.close()
  })

  test.each([
    ['of another log', 'another', 5],
    ['ahead of the log', 'log', 4],
  ])('an index %s is made anew', (_, log, through) => {
    const directory = scratchDirectory()
    const first = SearchIndex.open(directory, 'log', 5)
    first.add(event('kept', 1), idOf(1), 1)
    first.settle(5, 10)
    first.close()
    const again = SearchIndex.open(directory, log, through)
    expect([again.applied, search(again, 'kept')]).toEqual([0, []])
    again.close()
  })

  test('damage makes it anew', () => {
    const directory = scratchDirectory()
    SearchIndex.open(directory, 'log', 5).close()
    writeFileSync(
      join(directory, 'index.db'),
      'this is no database, and long enough to be looked at as one '.repeat(99),
    )
    const again = SearchIndex.open(directory, 'log', 5)
    expect(again.applied).toBe(0)
    again.close()
  })
})
