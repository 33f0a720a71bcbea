/** How a search text is understood: a table of phrases, and laws that hold for any text. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { stem } from '../../../src/search/stem.ts'
import { expansionOf } from '../../../src/tools/expansion.ts'
import { type Filters, parseQuery } from '../../../src/tools/parse.ts'
import { billionthsOf, decimalOf, plainPrice } from '../../../src/tools/prices.ts'

const none = 'open,wallet,allowance'
const table: readonly (readonly [text: string, query: string, filters: Partial<Filters>])[] = [
  // The examples from which the rules were derived.
  [
    'scrape a web page, returns json under 1 cent on base',
    'scrape web page',
    { max_price: '0.01', network: 'base', output: 'json' },
  ],
  ['crypto price under 0.01 usd on base sepolia', 'crypto price', { max_price: '0.01', network: 'base-sepolia' }],
  ['stock quotes < $.002 as csv', 'stock quotes', { max_price: '0.002', output: 'csv' }],
  ['cheaper than 2c ocr', 'ocr', { max_price: '0.02' }],
  ['up to 10 cents video', 'video', { max_price: '0.1' }],
  ['free translation', 'translation', { max_price: '0' }],
  ['weather forecast via x402', 'weather forecast', { protocol: 'x402' }],
  ['mpp/tempo search', 'search', { protocol: 'mpp/tempo' }],
  ['email finder no sign-up', 'email finder', { door: none }],
  ['search without a wallet', 'search', { door: 'allowance,open' }],
  ['agents that summarise news', 'summarise news', { type: ['agent'] }],
  ['eip155:8453 gas price', 'gas price', { network: 'eip155:8453' }],
  ['tools based on base', 'based', { network: 'base' }],
  ['under the sea data', 'under sea data', {}],
  ['json formatter', 'json formatter', {}],
  // Prices need a sign or a unit.
  ['under 5 results', 'under 5 results', {}],
  ['under $5', '', { max_price: '5' }],
  ['ocr under 3¢', 'ocr', { max_price: '0.03' }],
  ['ocr at most 0.5 dollars', 'ocr', { max_price: '0.5' }],
  ['ocr max $0.05 per call', 'ocr', { max_price: '0.05' }],
  ['ocr maximum 2 usdc', 'ocr', { max_price: '2' }],
  ['ocr <= $0.01', 'ocr', { max_price: '0.01' }],
  ['ocr <$1', 'ocr', { max_price: '1' }],
  ['ocr less than 1 cent.', 'ocr', { max_price: '0.01' }],
  ['cheaper than 0.5 cents, ocr', 'ocr', { max_price: '0.005' }],
  ['up to 10 pages', 'up 10 pages', {}],
  ['under $1.5.2', 'under 1.5.2', {}],
  ['under 1 cent under 2 cents', 'under 2 cents', { max_price: '0.01' }],
  // Free only if it says what costs nothing.
  ['translation for free', 'translation', { max_price: '0' }],
  ['translation free of charge', 'translation', { max_price: '0' }],
  ['no cost translation', 'translation', { max_price: '0' }],
  ['gluten free recipes', 'gluten free recipes', {}],
  ['free-form text', 'free-form text', {}],
  ['freedom of information', 'freedom information', {}],
  ['free ocr under 1 cent', 'free ocr', { max_price: '0.01' }],
  // Networks and protocols.
  ['prices on solana', 'prices', { network: 'solana' }],
  ['news via tempo', 'news', { network: 'tempo' }],
  ['news using x402', 'news', { protocol: 'x402' }],
  ['news with mpp', 'news', { protocol: 'mpp' }],
  ['news over polygon', 'news', { network: 'polygon' }],
  ['baseball on basement', 'baseball on basement', {}],
  [
    'SOLANA:EtWTRABZaYq6iMfeYKouRu166VU2xqa1 balance',
    'balance',
    { network: 'solana:etwtrabzayq6imfeykouru166vu2xqa1' },
  ],
  ['gas on arbitrum with x402', 'gas', { network: 'arbitrum', protocol: 'x402' }],
  ['x402', '', { protocol: 'x402' }],
  // Outputs.
  ['weather in json', 'weather', { output: 'json' }],
  ['page as markdown', 'page', { output: 'markdown' }],
  ['chart returning image', 'chart', { output: 'image' }],
  ['outputs csv of trades', 'trades', { output: 'csv' }],
  ['news in english', 'news in english', {}],
  // Access: accounts and keys.
  ['ocr without account', 'ocr', { door: none }],
  ['ocr without an api key', 'ocr', { door: none }],
  ['ocr no registration', 'ocr', { door: none }],
  ['ocr with an api key', 'ocr', { door: 'key' }],
  ['ocr no wallet', 'ocr', { door: 'allowance,open' }],
  ['no account no wallet ocr', 'ocr', { door: none }],
  // Types and categories.
  ['type:site facilitators', 'facilitators', { type: ['site'] }],
  ['services for weather', 'weather', { type: ['service'] }],
  ['offerings to scrape', 'scrape', { type: ['offering'] }],
  ['category:weather hourly', 'hourly', { category: 'weather' }],
  ['real estate agents', 'real estate agents', {}],
  // Words.
  ['please find me an api for the weather', 'weather', {}],
  ['how do I scrape a page?', 'scrape page', {}],
  ['Where can I find weather', 'weather', {}],
  ['what is there for OCR', 'ocr', {}],
  ['What’s the price of btc, and why', 'price btc', {}],
  ['how would you translate some text', 'translate text', {}],
  ['how do I', 'how do i', {}],
  ['what works under $5', 'works', { max_price: '5' }],
  ['I need a tool', 'i need a tool', {}],
  ['"crypto"   (prices)!', 'crypto prices', {}],
  ['ｆｕｌｌｗｉｄｔｈ ＯＣＲ', 'fullwidth ocr', {}],
  ['crypto crypto crypto', 'crypto', {}],
  ['', '', {}],
  ['???', '', {}],
]

test.each(table)('%s', (text, query, filters) => {
  const { words, filters: found } = parseQuery(text)
  const used = Object.fromEntries(Object.entries(found).filter(([, value]) => value.length > 0))
  expect({ query: words.join(' '), filters: used }).toEqual({ query, filters })
})

test('a question about where to sign up is recognized, and a wish to avoid it is not', () => {
  const asked = [
    'where can I sign up for weather',
    'register an agent',
    'get an api key for maps',
    'create account',
    'where do i join',
  ]
  const others = ['weather no sign-up', 'without registration maps', 'signal processing', 'upload a sign']
  expect(asked.map((text) => parseQuery(text).isSignUp)).toEqual(asked.map(() => true))
  expect(others.map((text) => parseQuery(text).isSignUp)).toEqual(others.map(() => false))
  expect(parseQuery('where can i sign up for weather').words).toEqual(['weather'])
  expect(parseQuery('sign up').words).toEqual(['sign', 'up'])
})

test('explicit filters override parsed ones', () => {
  const { words, filters } = parseQuery('ocr under 1 cent on base', { max_price: '2', network: 'tempo' })
  expect(words).toEqual(['ocr'])
  expect(filters).toMatchObject({ max_price: '2', network: 'tempo' })
})

test('a stem widens a term to at most three categories', () => {
  expect(expansionOf(['scrape', 'web', 'page'])).toEqual({ scrape: ['scraping'], page: ['scraping'] })
  expect(expansionOf(['scraping', 'websites', 'transcribing'])).toEqual({
    scraping: ['scraping'],
    websites: ['scraping', 'web'],
    transcribing: ['audio', 'ai'],
  })
  expect(expansionOf(['constructor', '__proto__', 'tostring'])).toEqual({})
})

describe('laws', () => {
  const anyText = fc.oneof(
    fc.string({ maxLength: 300, unit: 'binary' }),
    fc
      .array(
        fc.constantFrom(
          ...table.map(([text]) => text),
          'under',
          '$',
          '1e9',
          '<=',
          'no',
          'category:',
          '¢',
          '\u202e',
          '😀',
        ),
        {
          maxLength: 12,
        },
      )
      .map((parts) => parts.join(' ')),
  )

  test('no text makes it fail, and its result is bounded', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const { words, filters, expanded } = parseQuery(text)
        expect(words.length).toBeLessThanOrEqual(32)
        expect(words.every((word) => word !== '' && !/\s/u.test(word))).toBe(true)
        if (filters.max_price !== '') expect(billionthsOf(filters.max_price)).toBeDefined()
        expect(Object.values(expanded).every((categories) => categories.length <= 3)).toBe(true)
      }),
      { numRuns: 400 },
    )
  })

  test('a text without a trigger word has no filter', () => {
    const plain = fc.array(fc.stringMatching(/^[a-z]{1,9}$/), { maxLength: 8 })
    const triggers =
      /\b(mpp|under|below|less|cheaper|most|max(imum)?|up|free|cost|on|via|over|using|with|accepts?|speaks?|returns?|returning|outputs?|in|as|no|without|agents?|services?|offerings?|sites?)\b/
    fc.assert(
      fc.property(plain, (words) => {
        const text = words.join(' ')
        fc.pre(!triggers.test(text))
        expect(Object.values(parseQuery(text).filters).flat().join('')).toBe('')
      }),
    )
  })

  test('prices are exact: to billionths and back, and from any number that a list may hold', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 14n }), (billionths) => {
        expect(billionthsOf(decimalOf(billionths))).toBe(billionths)
      }),
    )
    expect(['1e-7', '0.00001', 20, '1.150000000', '0.0000000001', '7', '.5'].map((price) => plainPrice(price))).toEqual(
      ['0.0000001', '0.00001', '20', '1.15', '0.000000001', '7', '0.5'],
    )
    expect(['', '-1', 'free', 'NaN', '1e9', '0x10'].map((price) => plainPrice(price))).toEqual(Array(6).fill(undefined))
  })
})

test('stems are those of the paper', () => {
  const paper =
    'caresses caress,ponies poni,cats cat,feed feed,agreed agre,plastered plaster,motoring motor,sing sing,conflated conflat,troubled troubl,sized size,hopping hop,falling fall,hissing hiss,filing file,happy happi,sky sky,relational relat,conditional condit,rational ration,digitizer digit,operator oper,decisiveness decis,hopefulness hope,triplicate triplic,formalize formal,electrical electr,goodness good,revival reviv,allowance allow,inference infer,adjustable adjust,replacement replac,adoption adopt,communism commun,activate activ,effective effect,probate probat,rate rate,cease ceas,roll roll'
  const wrong = paper
    .split(',')
    .map((pair) => pair.split(' '))
    .filter(([word, right]) => stem(word!) !== right)
  expect(wrong).toEqual([])
  expect(['scraping', 'scrapes', 'scraped', 'scrape'].map(stem)).toEqual(Array(4).fill('scrape'))
  expect(['x402', 'größe', 'a2a', 'is'].map(stem)).toEqual(['x402', 'größe', 'a2a', 'is'])
})
