/**
 * The index and its pages: what is found and in what order, on small worlds and on real rows, and that the pages of a walk are one
 * consistent list while documents are added and removed.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { listingOf } from '../../../actors/tools/listing.ts'
import type { Review } from '../../../actors/tools/tools.ts'
import { CursorSealer } from '../../../src/format/cursor.ts'
import { ownToolById, ownTools } from '../../../src/own-tools/descriptors.ts'
import { type Doc, ofListing, ofOwnTool, sharedOwnSubject, summaryOf } from '../../../src/tools/doc.ts'
import { ToolIndex } from '../../../src/tools/index.ts'
import { type ListRow, rowsOf } from '../../../src/tools/list-rows.ts'
import { qualityIn, type Sources } from '../../../src/tools/quality.ts'
import { type Page, ToolSearch } from '../../../src/tools/search.ts'
import { pageJson } from '../../../src/tools/show.ts'
import { realData } from '../../support/real-data.ts'

vi.setConfig({ testTimeout: 300_000 })

const now = 1_800_000_000
const sealer = () => new CursorSealer(Buffer.alloc(32, 7))
const unknown: Sources = { entry: () => undefined, reviews: () => [], standing: () => 0 }

function put(index: ToolIndex, row: ListRow): void {
  index.put((number) => ofListing(number, listingOf(row.id, row, now), ''))
}

const row = (id: string, more: Partial<ListRow> = {}): ListRow => ({
  id,
  type: 'service',
  kind: 'http',
  name: `The ${id}`,
  description: 'something',
  url: `https://${id.replace(/[^a-z0-9]/g, '')}.example/`,
  source: 'a test',
  ...more,
})

function searchIn(index: ToolIndex, sources = unknown, first = 0): ToolSearch {
  return new ToolSearch(index, sources, sealer(), first)
}

function pageOf(search: ToolSearch, text: string, more: { cursor?: string; limit?: number; said?: object } = {}): Page {
  const { cursor = '', limit = 10, said = {} } = more
  const page = search.page({ text, said, cursor, limit }, now)
  if ('code' in page) throw new Error(page.message)
  return page
}

const idsOf = (page: Page) => page.results.map(({ doc }) => doc.id)

describe('what is found', () => {
  const index = new ToolIndex()
  for (const tool of ownTools) index.put((number) => ofOwnTool(number, tool, now))
  put(
    index,
    row('weather', { category: 'weather', price: '0.002', protocols: ['x402'], network: 'base', output: 'json' }),
  )
  put(
    index,
    row('maps', { description: 'maps with weather', price: '0.5', protocols: ['mpp/tempo'], network: 'tempo' }),
  )
  put(index, row('storms', { description: 'forecasts', category: 'weather' }))
  put(index, row('hasher', { name: 'Hash of everything', description: 'hash hash hash' }))
  const search = searchIn(index)

  test('names rank above categories and descriptions; an implied category counts less than an explicit one', () => {
    expect(idsOf(pageOf(search, 'weather'))).toEqual(['weather', 'storms', 'maps'])
    expect(pageOf(search, 'temperature').parsed.expanded).toEqual({ temperature: ['weather'] })
    expect(idsOf(pageOf(search, 'temperature'))).toEqual(['weather', 'storms'])
  })

  test('the last word may be a prefix, stems match as one word, and typos are tolerated when little is found', () => {
    expect(idsOf(pageOf(search, 'foreca'))).toEqual(['storms'])
    expect(idsOf(pageOf(search, 'forecasting'))).toEqual(['storms', 'weather'])
    expect(idsOf(pageOf(search, 'wether'))).toContain('weather')
  })

  test('filters exclude what does not match, and a tool without a price is not cheap', () => {
    expect(idsOf(pageOf(search, 'weather under 1 cent'))).toEqual(['weather'])
    expect(idsOf(pageOf(search, 'weather on tempo'))).toEqual(['maps'])
    expect(idsOf(pageOf(search, 'weather via mpp'))).toEqual(['maps'])
    expect(idsOf(pageOf(search, 'weather eip155:8453'))).toEqual(['weather'])
    expect(idsOf(pageOf(search, '', { said: { category: 'weather' } }))).toEqual(['weather', 'storms'])
    expect(pageOf(search, 'weather in csv').matched).toBe(0)
  })

  test('an empty search shows the tools of the board', () => {
    const page = pageOf(search, '')
    expect(idsOf(page).sort()).toEqual(ownTools.map(({ id }) => id).sort())
    expect(page.results.every(({ shownScore }) => shownScore === 0.9091)).toBe(true)
  })

  test('a search for places to sign up finds the board’s tools after all others, and scores never rise', () => {
    const all = pageOf(search, 'sign up for a hash', { limit: 50 })
    const own = all.results.map(({ doc }) => doc.isOwn)
    expect(own.indexOf(true)).toBeGreaterThan(own.lastIndexOf(false))
    expect(idsOf(pageOf(search, 'hash')).indexOf('broadside:hash')).toBeLessThan(own.length)
    const scores = all.results.map(({ shownScore }) => shownScore)
    expect(scores).toEqual([...scores].sort((a, b) => b - a))
  })

  test('an answer has the shape that readers know, and says why', () => {
    const showing = { index, rewarded: () => 2, callable: () => 'listed only' as const }
    const json = pageJson(showing, 'weather under 1 cent', pageOf(search, 'weather under 1 cent'), now, now)
    expect(json).toMatchObject({
      expanded: { weather: ['weather'] },
      filters: { max_price: '0.01', door: '', type: [] },
      index: { docs: { agent: 0, offering: 0, service: 14, site: 0 } },
      matched: 1,
      next_cursor: '',
      parsed_by: 'rules',
      query: 'weather',
      text: 'weather under 1 cent',
      text_is_untrusted: true,
    })
    const [first] = json.results
    expect(first).toMatchObject({
      id: 'weather',
      url: '/tools/t_e5e72beb4e3c6926d3dc9e3e2ef7833b',
      price: '0.002',
      price_text: '$0.002 per call',
      network: 'base',
      state: 'unknown',
      score: 0.9091,
      review_reward: { about_credits: 100, left: 3, of: 5 },
    })
    expect(first!.why).toBe(
      'matched weather in name and category and url; price $0.002 known; listed only: call it yourself',
    )
  })

  test('texts by strangers are cut between words, on one line, without invisible characters', () => {
    expect(summaryOf(`a\u202eb\u0000c\n  d ${'word '.repeat(80)}`)).toMatch(/^abc d (word )+word…$/)
    expect([...summaryOf('é'.repeat(500))]).toHaveLength(200)
    expect(summaryOf('short')).toBe('short')
  })

  test('a cursor of another search, or a forged one, is refused', () => {
    const { nextCursor } = pageOf(search, 'weather', { limit: 1 })
    expect(nextCursor).not.toBe('')
    expect(pageOf(search, 'weather', { limit: 1, cursor: nextCursor }).results).toHaveLength(1)
    for (const [text, cursor] of [
      ['maps', nextCursor],
      ['weather', `${nextCursor.slice(0, -2)}${nextCursor.endsWith('AA') ? 'BB' : 'AA'}`],
      ['weather', 'AAAA'],
    ] as const)
      expect(search.page({ text, said: {}, cursor, limit: 1 }, now)).toMatchObject({
        code: 'invalid_field',
        field: 'cursor',
      })
  })
})

describe('verdicts', () => {
  test('a tool reported as down, or to be avoided, ranks below its twin, and stays listed', () => {
    const index = new ToolIndex()
    for (const id of ['clean', 'downed', 'shunned'])
      put(index, row(id, { name: 'Weather', url: `https://${id}.example/` }))
    const subjects = Object.fromEntries(['clean', 'downed', 'shunned'].map((id) => [index.find(id)!.subject, id]))
    const kinds: Record<string, Review['kind']> = { downed: 'down', shunned: 'avoid' }
    const reviews = (subject: string): Review[] => {
      const kind = kinds[subjects[subject]!]
      if (kind === undefined) return []
      return ['a', 'b'].map((author) => ({ id: author, author, subject, kind, at: now - 10 }))
    }
    const page = pageOf(searchIn(index, { ...unknown, reviews }), 'weather')
    expect(idsOf(page)).toEqual(['clean', 'downed', 'shunned'])
    expect(page.results.map(({ shownScore }) => shownScore)).toEqual([0.9091, 0.7727, 0.6818])
  })

  test('a review of all the board’s tools counts for each, unless the author has since reviewed that one', () => {
    const index = new ToolIndex()
    const [hash, diff] = ['broadside:hash', 'broadside:diff'].map((id) => {
      index.put((number) => ofOwnTool(number, ownToolById.get(id)!, now))
      return index.find(id)!
    }) as [Doc, Doc]
    const said = (author: string, subject: string, kind: Review['kind']) => ({
      id: author + subject,
      author,
      subject,
      kind,
      at: now - 10,
    })
    const all = [
      said('a', sharedOwnSubject, 'down'),
      said('b', sharedOwnSubject, 'down'),
      said('a', diff.subject, 'works'),
    ]
    const sources = { ...unknown, reviews: (subject: string) => all.filter((each) => each.subject === subject) }
    const kindsOf = (doc: Doc) => qualityIn(sources, doc, now).reviews.map(({ kind }) => kind)
    expect([kindsOf(hash), kindsOf(diff)]).toEqual([
      ['down', 'down'],
      ['down', 'works'],
    ])
  })

  test('more than fifty of one host with one description are a flood: all of them are lowered, none is hidden', () => {
    const index = new ToolIndex()
    for (let n = 0; n < 51; n++)
      put(index, row(`flood-${n}`, { name: 'Weather', description: 'Premium', url: `https://flood.example/${n}` }))
    put(index, row('other', { name: 'Weather', description: 'Other' }))
    const search = searchIn(index)
    expect(idsOf(pageOf(search, 'weather'))[0]).toBe('other')
    expect(pageOf(search, 'weather').matched).toBe(52)
    index.drop('flood-0')
    expect(idsOf(pageOf(search, 'weather'))[0]).toBe('flood-1')
  })
})

describe('the pages of a walk', () => {
  const word = fc.constantFrom('weather', 'map', 'price', 'news', 'hash', 'cloud', 'data')
  const anyRow = fc.record({
    name: fc.array(word, { minLength: 1, maxLength: 3 }),
    description: fc.array(word, { maxLength: 6 }),
    price: fc.constantFrom('', '0.001', '0.01', '0'),
  })
  const rowAt = (n: number, { name, description, price }: { name: string[]; description: string[]; price: string }) =>
    row(`tool-${n}`, {
      name: name.join(' '),
      description: `${description.join(' ')} ${n}`,
      ...(price === '' ? {} : { price }),
    })

  test('are the whole list in its order, without duplicates, while documents are added', () => {
    fc.assert(
      fc.property(
        fc.array(anyRow, { minLength: 1, maxLength: 60 }),
        fc.array(anyRow, { maxLength: 30 }),
        fc.integer({ min: 1, max: 7 }),
        fc.constantFrom('weather', 'weather map', 'sign up for news data', 'price under 1 cent', 'free hash'),
        (before, added, limit, text) => {
          const index = new ToolIndex()
          for (const [n, each] of before.entries()) put(index, rowAt(n, each))
          const search = searchIn(index)
          const whole = idsOf(pageOf(search, text, { limit: 1_000 }))
          const walked: string[] = []
          const scores: number[] = []
          const more = [...added.entries()]
          let cursor = ''
          do {
            const page = pageOf(search, text, { limit, cursor })
            walked.push(...idsOf(page))
            scores.push(...page.results.map(({ shownScore }) => shownScore))
            cursor = page.nextCursor
            const next = more.pop()
            if (next !== undefined) put(index, rowAt(1_000 + next[0], next[1]))
          } while (cursor !== '')
          expect(walked).toEqual(whole)
          expect(scores).toEqual([...scores].sort((a, b) => b - a))
        },
      ),
      { numRuns: 60 },
    )
  })

  test('continue at their position after a restart, with nothing repeated', () => {
    const index = new ToolIndex()
    for (let n = 0; n < 40; n++) put(index, row(`t-${n}`, { name: `weather ${'x'.repeat(n % 7)}` }))
    const first = searchIn(index, unknown, 1_000)
    const whole = idsOf(pageOf(first, 'weather', { limit: 100 }))
    const begun = pageOf(first, 'weather', { limit: 15 })
    const again = searchIn(index, unknown, 2_000)
    const rest = pageOf(again, 'weather', { limit: 100, cursor: begun.nextCursor })
    expect([...idsOf(begun), ...idsOf(rest)]).toEqual(whole)
  })

  test('continue when so many were replaced that dropped ones are swept out', () => {
    const index = new ToolIndex()
    const many = (from: number, to: number) => {
      for (let n = from; n < to; n++) put(index, row(`t-${n}`, { name: `weather ${'x'.repeat(n % 7)}` }))
    }
    many(0, 1_300)
    const search = searchIn(index)
    const whole = idsOf(pageOf(search, 'weather', { limit: 300 }))
    const begun = pageOf(search, 'weather', { limit: 100 })
    const said = new Set(idsOf(pageOf(search, 'weather', { limit: 200 })))
    for (let n = 0; n < 1_300; n++) if (!said.has(`t-${n}`)) many(n, n + 1)
    expect(index.count).toBe(1_300)
    const rest = pageOf(search, 'weather', { limit: 100, cursor: begun.nextCursor })
    expect([...idsOf(begun), ...idsOf(rest)]).toEqual(whole.slice(0, 200))
    expect(pageOf(search, 'weather').matched).toBe(1_300)
    expect(idsOf(pageOf(search, 'weather', { limit: 300 }))).toEqual(whole)
  })

  test('leave out what was withdrawn meanwhile', () => {
    const index = new ToolIndex()
    for (let n = 0; n < 20; n++) put(index, row(`t-${n}`, { name: 'weather' }))
    const search = searchIn(index)
    const begun = pageOf(search, 'weather', { limit: 5 })
    const gone = ['t-13', 't-5', 't-9'].filter((id) => !idsOf(begun).includes(id))
    for (const id of gone) index.drop(id)
    const rest = pageOf(search, 'weather', { limit: 50, cursor: begun.nextCursor })
    expect(rest.results).toHaveLength(15 - gone.length)
    expect(rest.nextCursor).toBe('')
  })
})

const lists = realData('tools')

describe.skipIf(lists.isAbsent)(`real rows${lists.note}`, () => {
  test('9,746 of them become rows, and the order of well-known queries is stable', () => {
    const index = new ToolIndex()
    const bad: string[] = []
    for (const file of ['x402-resources', 'mpp-services', 'mcp-servers']) {
      for (const line of readFileSync(join(lists.path, `${file}.jsonl`), 'utf8')
        .trim()
        .split('\n'))
        for (const each of rowsOf(JSON.parse(line), file)) {
          if (typeof each === 'string') bad.push(each)
          else put(index, each)
        }
    }
    expect([bad, index.count]).toEqual([[], 9_746])
    expect(index.counts).toEqual({ agent: 0, offering: 3_724, service: 6_013, site: 9 })
    const search = searchIn(index)
    const first = (text: string, limit = 3) => idsOf(pageOf(search, text, { limit }))
    expect(first('weather forecast', 1)).toEqual(['x402:weather.hugen.tokyo/weather/forecast'])
    expect(first('crypto price')).toEqual([
      'mcp:mcp-crypto-price',
      'x402:crypto.apitoll.cloud/v1/crypto/price',
      'x402:brapi.dev/api/x402/crypto-prices',
    ])
    expect(first('scrape a web page, returns json under 1 cent on base', 1)).toEqual(['x402:scrapepay.melis.ai/scrape'])
    // 434 rows of one host with one description are a flood: none of them leads the results for its own words.
    const { results, matched } = pageOf(search, 'premium access', { limit: 50 })
    expect(matched).toBeGreaterThan(434)
    expect(results.slice(0, 3).every(({ doc }) => !index.isFlood(doc))).toBe(true)
    const cheap = pageOf(search, 'image under 1 cent', { limit: 50 })
    expect(cheap.results.every(({ doc }) => doc.billionths <= 10_000_000)).toBe(true)
  })
})
