/**
 * One payment buys one call, however it is encoded, wherever it is sent, whatever a facilitator says the second time, and whatever stops
 * the board in between.
 */
import { expect, test } from 'vitest'
import { type FactRecord, fromFrame } from '../../../actors/records/record.ts'
import type { Outgoing } from '../../../src/outgoing/request.ts'
import { type Product, type SaleStore, Seller } from '../../../src/payments/seller.ts'
import { SaleJournal } from '../../support/sale-journal.ts'

type Said = object | undefined

/** A facilitator that calls every settlement a success, even a repeated one, after it has answered everything in `said`. */
function shop(said: { readonly verify?: Said[]; readonly settle?: Said[] } = {}) {
  const seen = { worked: 0, verified: 0, settled: 0 }
  const clock = { now: 1_800_000_000 }
  const journal = new SaleJournal(() => clock.now)
  /** Last segments of the names of written records, at each settlement request. */
  const written: (string | undefined)[] = []
  const outgoing = {
    async request({ url }: { url: string }) {
      await new Promise((done) => setImmediate(done))
      if (url.endsWith('/settle')) {
        seen.settled++
        written.push((journal.frames.at(-1) && (fromFrame(journal.frames.at(-1)!) as FactRecord).op) ?? undefined)
      } else seen.verified++
      const next = url.endsWith('/settle') ? said.settle : said.verify
      const found = next?.length ? next.shift() : { isValid: true, success: true, transaction: '0x1' }
      if (found === undefined) return { ok: false, failure: 'unknown', reason: '', sent: true }
      return { ok: true, status: 200, headers: {}, body: Buffer.from(JSON.stringify(found)) }
    },
  } as unknown as Outgoing
  const open = (book: SaleStore = journal.open()) =>
    new Seller({
      payTo: `0x${'2'.repeat(40)}`,
      facilitator: 'https://facilitator.example',
      network: 'eip155:8453',
      micros: 1_000,
      realm: 'board.example',
      secret: Buffer.alloc(32),
      outgoing,
      sales: book,
      wallSeconds: () => clock.now,
    })
  const seller = open()
  const ware = (id: string): Product => ({
    id,
    url: `https://board.example/pay/tools/${id}`,
    description: '',
    work: async () => ({ json: `{"n":${++seen.worked}}` }),
  })
  return { seller, ware, seen, open, journal, clock, written }
}

const authorization = {
  from: `0x${'aB'.repeat(20)}`,
  to: `0x${'2'.repeat(40)}`,
  value: '1000',
  validAfter: '0',
  validBefore: '1900000000',
  nonce: `0x${'7'.repeat(64)}`,
}

async function paymentFor({ seller, ware }: ReturnType<typeof shop>, more: object = {}): Promise<object> {
  const asked = await seller.sell(ware('broadside:hash'), {})
  const required = asked.headers.find(([name]) => name === 'PAYMENT-REQUIRED')![1]
  const { accepts } = JSON.parse(Buffer.from(required, 'base64').toString('utf8')) as { accepts: object[] }
  return { x402Version: 2, accepted: accepts[0], payload: { signature: '0xabcd', authorization }, ...more }
}

const written = (payment: object, space = 0) => Buffer.from(JSON.stringify(payment, null, space)).toString('base64')

test('the same payment in another encoding, immediately or later, gets what it bought', async () => {
  const open = shop()
  const { seller, ware, seen } = open
  const payment = await paymentFor(open)
  const sent = [
    written(payment),
    written(payment, 1),
    written(payment).replace(/=*$/, ''),
    written({ ...payment, x: 1 }),
  ]
  const bought = await Promise.all(sent.map((x402) => seller.sell(ware('broadside:hash'), { x402 })))
  bought.push(await seller.sell(ware('broadside:hash'), { x402: written(payment, 2) }))
  expect(bought.map(({ status, body }) => [status, body])).toEqual(bought.map(() => [200, '{"n":1}']))
  expect(seen).toEqual({ worked: 1, verified: 1, settled: 1 })
})

test('in the encoding of version 1 it is the same payment, and its settlement is reported in it', async () => {
  const open = shop()
  const { seller, ware, seen } = open
  const asked = await seller.sell(ware('broadside:hash'), {})
  const { x402Version, accepts } = JSON.parse(asked.body) as { x402Version: number; accepts: Record<string, unknown>[] }
  expect([x402Version, accepts]).toMatchObject([
    1,
    [{ scheme: 'exact', network: 'base', maxAmountRequired: '1000', resource: ware('broadside:hash').url }],
  ])
  const payload = { signature: '0xabcd', authorization }
  const v1 = { x402Version: 1, scheme: 'exact', network: 'base', payload }
  const bought = await seller.sell(ware('broadside:hash'), { x402v1: written(v1) })
  expect([bought.status, bought.headers.at(-1)![0]]).toEqual([200, 'X-PAYMENT-RESPONSE'])
  expect((await seller.sell(ware('broadside:hash'), { x402: written(await paymentFor(open)) })).body).toBe('{"n":1}')
  expect((await seller.sell(ware('broadside:diff'), { x402v1: written(v1) })).status).toBe(402)
  expect(seen).toEqual({ worked: 1, verified: 1, settled: 1 })
  for (const wrong of [{ x402Version: 2 }, { scheme: 'upto' }, { network: 'base-sepolia' }, { payload: 'x' }])
    expect((await seller.sell(ware('broadside:hash'), { x402v1: written({ ...v1, ...wrong }) })).status).toBe(402)
})

test('a payment buys nothing of a second tool, nor under a second signature of the same transfer', async () => {
  const open = shop()
  const { seller, ware, seen } = open
  const payment = await paymentFor(open)
  const shouting = { ...authorization, from: authorization.from.toUpperCase().replace('X', 'x') }
  const others = [
    seller.sell(ware('broadside:hash'), { x402: written(payment) }),
    seller.sell(ware('broadside:diff'), { x402: written(payment) }),
    seller.sell(ware('broadside:hash'), {
      x402: written({ ...payment, payload: { signature: '0xdcba', authorization } }),
    }),
    seller.sell(ware('broadside:hash'), {
      x402: written({ ...payment, payload: { signature: '0xabcd', authorization: shouting } }),
    }),
  ]
  expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 402, 402, 402])
  expect(seen).toEqual({ worked: 1, verified: 1, settled: 1 })
  const nameless = { ...payment, payload: { signature: '0xabcd', authorization: { ...authorization, nonce: 7 } } }
  expect((await seller.sell(ware('broadside:hash'), { x402: written(nameless) })).status).toBe(402)
})

const refused = (errorReason: string) => ({ success: false, errorReason, transaction: '' })
const used = refused('invalid_exact_evm_nonce_already_used')

test.each([
  ['is made after all', [undefined, undefined], [503, 200], true],
  ['is pending at first', [refused('settlement_pending')], [503, 200], true],
  ['was made unheard', [undefined, used], [200], false],
  ['was made unheard, as is found out later', [undefined, undefined, used], [503, 200], false],
  ['is refused later for what may follow from itself', [undefined, refused('insufficient_funds')], [503, 200], true],
  [
    'was sent and not seen to the end',
    [{ ...refused('settle_exact_node_failure'), transaction: '0x1' }, used],
    [503, 200],
    false,
  ],
  [
    'reverted under a name, where another may have been made',
    [{ ...refused('invalid_transaction_state'), transaction: '0x1' }, used],
    [503, 200],
    false,
  ],
  ['failed nobody knows how far', [refused('transaction_failed'), used], [503, 200], false],
  ['met an error at the facilitator', [refused('unexpected_settle_error')], [503, 200], true],
  ['is refused without a word why', [{ success: false }, used], [503, 200], false],
  ['is refused and never was in doubt', [refused('insufficient_funds')], [402], true],
  ['is refused because it bought something elsewhere', [used], [402], true],
])(
  'a payment whose settlement %s is not demanded again while it may have been made',
  async (_, settle, ends, isProven) => {
    // Verified once: a settled payment is no longer valid.
    const said = { verify: [{ isValid: true }, { isValid: false, invalidReason: 'nonce used' }], settle: [...settle] }
    const open = shop(said)
    const { seller, ware, seen } = open
    const sent = { x402: written(await paymentFor(open)) }
    const found = []
    for (const _ of ends) found.push(await seller.sell(ware('broadside:hash'), sent))
    expect(found.map(({ status }) => status)).toEqual(ends)
    expect(found.at(-1)!.headers.some(([name]) => name === 'PAYMENT-RESPONSE')).toBe(isProven)
    if (ends.at(-1) !== 200) return
    // It bought one call, and the same again is the same.
    expect((await seller.sell(ware('broadside:hash'), sent)).body).toBe('{"n":1}')
    expect((await seller.sell(ware('broadside:diff'), sent)).status).toBe(402)
    expect(seen.worked).toBe(1)
  },
)

test('a payment in doubt is reserved for what it was sent for', async () => {
  const open = shop({ settle: [undefined, undefined] })
  const { seller, ware, seen } = open
  const sent = { x402: written(await paymentFor(open)) }
  expect((await seller.sell(ware('broadside:hash'), sent)).status).toBe(503)
  expect((await seller.sell(ware('broadside:diff'), sent)).status).toBe(402)
  expect((await seller.sell(ware('broadside:hash'), sent)).status).toBe(200)
  expect(seen.worked).toBe(1)
})

const start = ['journal', 'snapshot'] as const

test.each(start)('a sold result is returned after a start from the %s without asking the facilitator', async (from) => {
  const made = shop()
  const { open, ware, seen, journal, written: when } = made
  const sent = { x402: written(await paymentFor(made)) }
  const first = await open().sell(ware('broadside:hash'), sent)
  expect(first.status).toBe(200)
  // It was on disk before anybody was asked to move money.
  expect(when).toEqual(['sale.begun'])
  const again = open(journal.open(from))
  expect(await again.sell(ware('broadside:hash'), sent)).toEqual(first)
  expect((await again.sell(ware('broadside:diff'), sent)).status).toBe(402)
  expect(seen).toEqual({ worked: 1, verified: 1, settled: 1 })
})

test.each(start)(
  'a payment in doubt stays so after a start from the %s: a retry is settled, not verified',
  async (from) => {
    const made = shop({ settle: [undefined, undefined, used] })
    const { open, ware, seen, journal } = made
    const sent = { x402: written(await paymentFor(made)) }
    expect((await open().sell(ware('broadside:hash'), sent)).status).toBe(503)
    const again = open(journal.open(from))
    expect((await again.sell(ware('broadside:diff'), sent)).status).toBe(402)
    expect(await again.sell(ware('broadside:hash'), sent)).toMatchObject({ status: 200, body: '{"n":1}' })
    expect(seen).toEqual({ worked: 1, verified: 1, settled: 3 })
    // After the next start it is known as sold.
    expect(await open(journal.open(from)).sell(ware('broadside:hash'), sent)).toMatchObject({ body: '{"n":1}' })
    expect(seen.settled).toBe(3)
  },
)

test('a refused payment may be used again, also after a start', async () => {
  const made = shop({ settle: [refused('insufficient_funds')] })
  const { open, ware, journal } = made
  const sent = { x402: written(await paymentFor(made)) }
  expect((await open().sell(ware('broadside:hash'), sent)).status).toBe(402)
  expect(await open(journal.open()).sell(ware('broadside:hash'), sent)).toMatchObject({
    status: 200,
    body: '{"n":2}',
  })
})

test('nothing is settled that is not recorded, and nothing verified while the records cannot be read', async () => {
  const made = shop()
  const { open, ware, seen, journal } = made
  const sent = { x402: written(await paymentFor(made)) }
  const book = journal.open()
  const unwritten: SaleStore = {
    find: (key) => book.find(key),
    begin: () => Promise.reject(new Error('no answer')),
    settle: (sold) => book.settle(sold),
    drop: (key) => book.drop(key),
  }
  expect((await open(unwritten).sell(ware('broadside:hash'), sent)).status).toBe(503)
  expect(seen).toEqual({ worked: 1, verified: 1, settled: 0 })
  journal.isDown = true
  expect((await open(book).sell(ware('broadside:hash'), sent)).status).toBe(503)
  expect(seen).toEqual({ worked: 1, verified: 1, settled: 0 })
  journal.isDown = false
  expect((await open(book).sell(ware('broadside:hash'), sent)).status).toBe(200)
})

test('a sale whose end is not recorded is resolved later, and a result too large is not sold', async () => {
  const made = shop({ settle: [{ success: true, transaction: '0x1' }, used] })
  const { open, ware, seen, journal } = made
  const sent = { x402: written(await paymentFor(made)) }
  const book = journal.open()
  const halfWritten: SaleStore = {
    find: (key) => book.find(key),
    begin: (sale) => book.begin(sale),
    settle: () => Promise.reject(new Error('no answer')),
    drop: (key) => book.drop(key),
  }
  expect((await open(halfWritten).sell(ware('broadside:hash'), sent)).status).toBe(200)
  expect(await open(book).sell(ware('broadside:hash'), sent)).toMatchObject({ status: 200, body: '{"n":1}' })
  const other = { ...authorization, nonce: `0x${'8'.repeat(64)}` }
  const more = { x402: written(await paymentFor(made, { payload: { signature: '0x', authorization: other } })) }
  const large: Product = { ...ware('broadside:hash'), work: async () => ({ json: '"'.padEnd(1024 * 1024 + 1, 'x') }) }
  expect((await open(book).sell(large, more)).status).toBe(400)
  expect(seen.settled).toBe(2)
})

test.each([
  ['1800000300', 2 * 86_400],
  ['1800864000', 864_000],
  ['9999999999', 30 * 86_400],
  ['soon', 2 * 86_400],
])('a payment that is valid until %s is remembered for %i seconds', async (validBefore, seconds) => {
  const made = shop({ settle: [{ success: true, transaction: '0x1' }] })
  const { open, ware, seen, journal, clock } = made
  const payload = { signature: '0x', authorization: { ...authorization, validBefore } }
  const sent = { x402: written(await paymentFor(made, { payload })) }
  await open().sell(ware('broadside:hash'), sent)
  clock.now += seconds - 1
  expect((await open(journal.open()).sell(ware('broadside:hash'), sent)).status).toBe(200)
  expect(seen.verified).toBe(1)
  clock.now++
  await open(journal.open()).sell(ware('broadside:hash'), sent)
  expect(seen.verified).toBe(2)
})
