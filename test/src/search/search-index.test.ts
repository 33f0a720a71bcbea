import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BoardRecord, RecordType } from '../../../actors/records/record.ts'
import { matcher, readQuery, wordsOf } from '../../../src/search/query.ts'
import type { Search, SearchAsk } from '../../../src/search/search.ts'
import { SearchIndex } from '../../../src/search/search-index.ts'
import { openDatabase } from '../../../src/sqlite.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { boardDirectory } from '../../support/board-process.ts'
import { corpus, corpusTexts } from '../../support/corpus.ts'
import { flipByte, scratchDirectory } from '../../support/scratch.ts'

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
  const read = readQuery(text)
  if (!read.ok) return []
  const under = index.search({ query: read.query, order: 'desc', limit: 100_000, ...more }, now)
  return ended(under).map(({ change }) => change)
}

function ended(under: Search, rowsPerStep = 1_000): Search['hits'] {
  while (!under.isOver) under.step(rowsPerStep)
  return under.hits
}

describe.skipIf(corpus.isAbsent)(`on real messages${corpus.note}`, () => {
  let texts: string[]
  let index: SearchIndex

  beforeAll(() => {
    texts = corpusTexts(23)
    // In several parts, as on a board of millions.
    index = SearchIndex.open(boardDirectory(), 'log', 1, { rows: 500, bytes: 40_000 })
    for (const [n, text] of texts.entries()) index.add(event(text, n + 1), idOf(n + 1), n + 1)
    index.settle(1, 10)
  })
  afterAll(() => index.close())

  const naive = (text: string): number[] => {
    const read = readQuery(text)
    if (!read.ok) return []
    const holds = matcher(read.query)
    return texts.flatMap((each, n) => (holds(each) ? [n + 1] : [])).reverse()
  }

  /** Search terms: words of the texts, parts of them and phrases. */
  const terms = (): fc.Arbitrary<string> => {
    const words = fc.constantFrom(...new Set(texts.flatMap(wordsOf)))
    const run = fc.constantFrom(...texts.filter((text) => wordsOf(text).length > 2)).chain((text) => {
      const all = wordsOf(text)
      return fc.nat(all.length - 2).map((at) => all.slice(at, at + 2).join(' '))
    })
    return fc.oneof(
      words,
      words.map((word) => `-${word}`),
      words.map((word) => `${word.slice(0, 2)}*`),
      words.map((word) => `${word.slice(0, 3)}*`),
      words.map((word) => `${word.slice(0, 5)}*`),
      run.map((phrase) => `"${phrase}"`),
      run.map((phrase) => `-"${phrase}"`),
    )
  }

  test('the index finds what a scan of every text finds, newest first', () => {
    expect(texts.length).toBeGreaterThan(2000)
    fc.assert(
      fc.property(fc.array(terms(), { minLength: 1, maxLength: 4 }), (all) => {
        expect(search(index, all.join(' '))).toEqual(naive(all.join(' ')))
      }),
      { numRuns: 150 },
    )
  })

  test('pages of any size, in both directions, add up to the whole', () => {
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
})

test('no query causes an SQL error, whatever it holds', () => {
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
    { numRuns: 600 },
  )
  index.close()
})

describe('a search in steps', () => {
  const inParts = (): SearchIndex => {
    const index = SearchIndex.open(scratchDirectory(), 'log', 9, { rows: 10, bytes: 1_000_000 })
    for (let n = 1; n <= 95; n++) index.add(event(n % 3 === 0 ? 'third of all' : 'all of it', n), idOf(n), n)
    index.settle(1, 10)
    return index
  }
  const all = readQuery('"of all"')
  const asked: SearchAsk = { query: (all as Extract<typeof all, { ok: true }>).query, order: 'desc', limit: 1_000 }
  const thirds = Array.from({ length: 31 }, (_, n) => 3 * (31 - n))

  test('examines a bounded number of rows or the rest of one part per step, and can resume where it stopped', () => {
    const index = inParts()
    for (const order of ['asc', 'desc'] as const)
      for (const rowsPerStep of [1, 4, 10, 1_000]) {
        const found: number[] = []
        let under = index.search({ ...asked, order }, 10)
        for (let steps = 1; !under.isOver; steps++) {
          const before = under.hits.length
          under.step(rowsPerStep)
          expect(under.hits.length - before).toBeLessThanOrEqual(Math.min(10, rowsPerStep))
          if (steps % 3 > 0 || under.isOver) continue
          found.push(...under.hits.map(({ change }) => change))
          under = index.search({ ...asked, order, from: under.reached! }, 10)
        }
        found.push(...under.hits.map(({ change }) => change))
        expect(found).toEqual(order === 'desc' ? thirds : thirds.toReversed())
      }
    index.close()
  })

  test('continues while texts are added, edited and deleted between its steps', () => {
    const index = inParts()
    const under = index.search(asked, 10)
    under.step(4)
    for (let n = 96; n <= 130; n++) index.add(event('new of all', n), idOf(n), n)
    index.add(event('edited away', 131, { original: idOf(3) }), idOf(131), 131)
    index.add(mark('event.redact', 6), idOf(132), 132)
    index.settle(2, 10)
    expect(ended(under).map(({ change }) => change)).toEqual(thirds.filter((change) => change !== 3 && change !== 6))
    index.close()
  })

  test('an empty index is searched immediately', () => {
    const index = SearchIndex.open(scratchDirectory(), 'log', 9)
    for (const order of ['asc', 'desc'] as const) expect(ended(index.search({ ...asked, order }, 10))).toEqual([])
    index.close()
  })
})

test('removed texts are not found, and can be added again, in the same parts and with the same names', () => {
  const index = SearchIndex.open(scratchDirectory(), 'log', 9, { rows: 10, bytes: 1_000_000 })
  const add = (from: number, to: number) => {
    for (let n = from; n <= to; n++) index.add(event(`of all ${n}`, n, { room: `room-${n % 7}` }), idOf(n), n)
  }
  add(1, 9)
  index.settle(1, 10)
  // Three more parts, and rooms that had no numbers.
  for (let tries = 0; tries < 2; tries++) {
    for (let n = 10; n <= 35; n++) index.add(event('of all', n, { room: `taken-${n}` }), idOf(n), n)
    index.takeBack()
    expect(search(index, 'all')).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1])
  }
  add(10, 35)
  index.settle(2, 10)
  expect(search(index, 'all')).toEqual(Array.from({ length: 35 }, (_, n) => 35 - n))
  expect(search(index, 'all', { room: 'room-3' })).toEqual([31, 24, 17, 10, 3])
  expect(search(index, 'all', { room: 'taken-12' })).toEqual([])
  index.close()
})

describe('what became of a text', () => {
  test('only the newest version is found, at the position of the first', () => {
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

  test('a hidden text is not found until it is restored; a redacted or expired one is gone from the disk', () => {
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

test('a full part is merged while texts are removed from it, and holds the others in one list of words', () => {
  const directory = scratchDirectory()
  const rows = 3_000
  const partMax = { rows, bytes: 100_000_000 }
  let index = SearchIndex.open(directory, 'log', 99, partMax)
  const words = (n: number, times: number) =>
    Array.from({ length: times }, (_, at) => `word${n * 7_919 + at * 31_337}x`)
  const posts = 2 * rows + 300
  for (let n = 1; n <= posts; n++) {
    index.add(event(`common ${words(n, 30).join(' ')}`, n), idOf(n), n)
    // In a part that is full, being merged, or growing; and after a restart between two steps.
    if (n % 100 === 0) index.add(mark('event.redact', n - 50), idOf(100_000 + n), n)
    if (n % 300 === 0) index.settle(1, 10)
    if (n !== rows + 900) continue
    index.close()
    index = SearchIndex.open(directory, 'log', 99, partMax)
  }
  for (let n = 0; n < 30; n++) index.settle(1, 10)
  const isGone = (n: number) => n % 100 === 50 && n < posts
  const left = Array.from({ length: posts }, (_, n) => posts - n).filter((n) => !isGone(n))
  expect(search(index, 'common')).toEqual(left)
  for (let n = 1; n <= posts; n += 49) expect(search(index, words(n, 1)[0]!)).toEqual(isGone(n) ? [] : [n])
  index.close()
  const database = openDatabase(join(directory, 'index.db'))
  const segmentsOf = (table: string) =>
    database.prepare(`SELECT count(DISTINCT segid) AS count FROM ${table}_idx`).get()?.count
  expect([segmentsOf('texts_1'), segmentsOf(`texts_${rows + 1}`)]).toEqual([1, 1])
  database.close()
  const bytes = readdirSync(directory).map((name) => readFileSync(join(directory, name), 'latin1'))
  for (let n = 50; n < posts; n += 100) expect(bytes.some((each) => each.includes(words(n, 1)[0]!))).toBe(false)
})

test('what a kill left in the write-ahead log after a deletion is gone when it is opened', () => {
  const [directory, killed] = [scratchDirectory(), scratchDirectory()]
  const index = SearchIndex.open(directory, 'log', 9)
  index.add(event('secretword', 1), idOf(1), 1)
  index.settle(1, 10)
  // As settle does it, and killed before the log is emptied.
  const database = openDatabase(join(directory, 'index.db'))
  database.exec(`PRAGMA secure_delete = ON; BEGIN; DELETE FROM texts_1 WHERE rowid = 1; DELETE FROM docs; COMMIT`)
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

test('it reports when the next of its texts expires, also after it is reopened', () => {
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
  test('it continues where it was', () => {
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
  ])('an index %s is rebuilt', (_, log, through) => {
    const directory = scratchDirectory()
    const first = SearchIndex.open(directory, 'log', 5)
    first.add(event('kept', 1), idOf(1), 1)
    first.settle(5, 10)
    first.close()
    const again = SearchIndex.open(directory, log, through)
    expect([again.applied, search(again, 'kept')]).toEqual([0, []])
    again.close()
  })

  test('an index of the previous format is rebuilt', () => {
    const directory = scratchDirectory()
    machineDisk.makeDirectory(directory)
    const before = openDatabase(join(directory, 'index.db'))
    before.exec(`
      CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
      INSERT INTO meta VALUES ('format', '1'), ('log', 'log'), ('applied', '5');
      CREATE TABLE docs (
        change INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, room TEXT NOT NULL, page TEXT NOT NULL, kind TEXT NOT NULL,
        author BLOB NOT NULL, seq INTEGER NOT NULL, expires INTEGER NOT NULL, hidden INTEGER NOT NULL
      );
      CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = "unicode61 remove_diacritics 2");
      INSERT INTO texts (rowid, text) VALUES (1, 'redacted since');
    `)
    before.close()
    const again = SearchIndex.open(directory, 'log', 5)
    again.add(event('kept', 1), idOf(1), 1)
    again.settle(5, 10)
    expect([again.applied, search(again, 'kept'), search(again, 'redacted')]).toEqual([5, [1], []])
    again.close()
    for (const name of readdirSync(directory))
      expect(readFileSync(join(directory, name)).includes('redacted')).toBe(false)
  })

  test('damage causes a rebuild', () => {
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

describe('a byte that changes in the index', () => {
  /** Words enough for many pages, some of them deleted, put into the file several times. */
  function made(): string {
    const directory = scratchDirectory()
    const index = SearchIndex.open(directory, 'log', 9)
    for (let change = 1; change <= 600; change++) {
      index.add(event(`word${change} common text of number ${change % 7}`, change), idOf(change), change)
      if (change % 50 === 0) index.settle(change / 100, 10)
      if (change % 200 === 0) {
        index.add(mark('event.redact', change - 1), idOf(1_000 + change), 1_000 + change)
        index.settle(change / 100, 10)
      }
    }
    index.close()
    return directory
  }

  const problemsOf = (directory: string): string[] => {
    const problems: string[] = []
    const index = SearchIndex.open(directory, 'log', 9, undefined, (problem) => problems.push(problem))
    expect(index.applied).toBe(problems.length === 0 ? 6 : 0)
    index.close()
    return problems
  }

  test('is found on every page when it is opened, and the index is rebuilt', () => {
    const directory = made()
    expect(problemsOf(directory)).toEqual([])
    const size = statSync(join(directory, 'index.db')).size
    expect(size).toBeGreaterThan(20 * 4_096)
    for (let offset = 77; offset < size; offset += 4_096) {
      const copy = scratchDirectory()
      cpSync(directory, copy, { recursive: true })
      flipByte(join(copy, 'index.db'), offset)
      const page = Math.floor(offset / 4_096)
      expect(problemsOf(copy)).toEqual([expect.stringContaining(`page ${page + 1} of `)])
    }
  })

  test('is found in its checksums too, and a kill at any moment is no damage', () => {
    const directory = made()
    flipByte(join(directory, 'index.sums'), 20)
    expect(problemsOf(directory)).toEqual([expect.stringContaining('index.sums is not what was written')])
    const killed = scratchDirectory()
    const other = scratchDirectory()
    const index = SearchIndex.open(other, 'log', 9)
    for (let change = 1; change <= 300; change++) {
      index.add(event(`word${change}`, change), idOf(change), change)
      if (change === 200) index.add(mark('event.redact', 5), idOf(900), 900)
      if (change % 50 !== 0) continue
      index.settle(change / 50, 10)
      rmSync(killed, { recursive: true })
      cpSync(other, killed, { recursive: true })
      const problems: string[] = []
      const again = SearchIndex.open(killed, 'log', 9, undefined, (problem) => problems.push(problem))
      expect([problems, again.applied]).toEqual([[], change / 50])
      again.close()
    }
    index.close()
  })
})
