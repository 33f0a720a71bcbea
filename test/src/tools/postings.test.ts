/** The scoring of the tools directory, compared with MiniSearch, and its parts with their plain definitions. */
import fc from 'fast-check'
import MiniSearch from 'minisearch'
import { expect, test } from 'vitest'
import { Postings } from '../../../src/tools/postings.ts'
import { TopItems } from '../../../src/tools/search.ts'
import { Words } from '../../../src/tools/words.ts'

const word = fc.constantFrom('map', 'maps', 'mapper', 'weather', 'wether', 'price', 'pricey', 'a', 'ab', 'hash', '2024')
const text = fc.array(word, { maxLength: 8 })
const document = fc.record({ name: text, description: text })
type Document = { name: string[]; description: string[] }

function fieldsOf({ name, description }: Document) {
  return [name, description].map((words) => ({ words, length: new Set(words).size }))
}

function asSaid(id: number, { name, description }: Document) {
  return { id, name: name.join(' '), description: description.join(' ') }
}

test('documents score as in MiniSearch, while some are dropped and swept out', () => {
  fc.assert(
    fc.property(
      fc.array(document, { minLength: 1, maxLength: 30 }),
      fc.array(fc.nat(29), { maxLength: 12 }),
      fc.uniqueArray(word, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      fc.boolean(),
      (documents, dropped, words, isFuzzy, isSwept) => {
        const postings = new Postings({ fields: [4, 1], prefix: 0.375, fuzzy: 0.45 })
        const peer = new MiniSearch({
          fields: ['name', 'description'],
          processTerm: (term) => term,
          tokenize: (said) => said.split(' ').filter((each) => each !== ''),
        })
        for (const [id, each] of documents.entries()) {
          expect(postings.add(fieldsOf(each))).toBe(id)
          peer.add(asSaid(id, each))
        }
        const gone = [...new Set(dropped)].filter((id) => id < documents.length)
        for (const id of gone) {
          postings.drop(id)
          peer.remove(asSaid(id, documents[id]!))
        }
        const to = isSwept ? postings.sweep() : Int32Array.from(documents, (_, id) => id)
        expect(postings.count).toBe(documents.length - gone.length)
        const matched = () => {
          const query = { words, fuzziness: isFuzzy ? 0.2 : 0, fuzzyMax: 2 }
          const { scores, clauses } = postings.scores(query)
          const slots = [...to].filter((slot) => slot !== -1 && scores[slot]! > 0)
          const found = postings.found(clauses, slots)
          return slots.map((slot) => [slot, scores[slot]!.toFixed(9), fieldsByWord(found.get(slot)!)] as const)
        }
        const said = {
          boost: { name: 4 },
          prefix: (_term: string, at: number, terms: string[]) => at === terms.length - 1,
          ...(isFuzzy ? { fuzzy: 0.2, maxFuzzy: 2 } : {}),
        }
        const expected = peer
          .search(words.join(' '), said)
          .map(
            ({ id, score, match }) =>
              [to[id as number]!, score.toFixed(9), fieldsByWord(Object.entries(match))] as const,
          )
          .sort(([a], [b]) => a - b)
        expect(matched()).toEqual(expected)
      },
    ),
    { numRuns: 300 },
  )
})

/** As text, in an order that does not depend on insertion. */
function fieldsByWord(found: Iterable<readonly [string, readonly (string | number)[]]>): string {
  const numbers: Readonly<Record<string, number>> = { name: 0, description: 1 }
  const shown = [...found].map(([said, fields]) => `${said} ${fields.map((field) => numbers[field] ?? field).join()}`)
  return shown.sort().join(' | ')
}

test('words are found by prefix and by edit distance, and forgotten', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 7 })
  fc.assert(
    fc.property(
      fc.array(letters),
      fc.array(letters),
      letters,
      fc.integer({ min: 1, max: 2 }),
      (some, more, at, most) => {
        const words = new Words<string>()
        const check = (known: Set<string>) => {
          const sorted = [...known].sort()
          expect(words.beginning(at)).toEqual(sorted.filter((each) => each !== at && each.startsWith(at)))
          const near = sorted.map((each) => [each, distance(each, at)] as const)
          expect(words.near(at, most)).toEqual(near.filter(([, far]) => far > 0 && far <= most))
          expect(words.size).toBe(known.size)
        }
        for (const each of some) words.fetch(each, () => each)
        check(new Set(some))
        for (const each of more) words.fetch(each, () => each)
        check(new Set([...some, ...more]))
        words.sweep((value) => value.includes('b'))
        check(new Set([...some, ...more].filter((each) => !each.includes('b'))))
      },
    ),
  )
})

/** Levenshtein distance, by its definition. */
function distance(a: string, b: string): number {
  if (a === '' || b === '') return a.length + b.length
  const row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    let corner = row[0]!
    row[0] = i
    for (let j = 1; j <= b.length; j++) {
      const change = corner + (a[i - 1] === b[j - 1] ? 0 : 1)
      corner = row[j]!
      row[j] = Math.min(change, row[j]! + 1, row[j - 1]! + 1)
    }
  }
  return row[b.length]!
}

test('the best of many equal those found by sorting', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ max: 40, min: 0 })), fc.integer({ min: 1, max: 9 }), (all, most) => {
      const best = new TopItems<number>(most, (a, b) => a - b)
      for (const each of all) best.add(each)
      expect(best.inOrder()).toEqual([...all].sort((a, b) => a - b).slice(0, most))
      expect(best.isOver).toBe(all.length > most)
    }),
  )
})
