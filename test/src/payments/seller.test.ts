/** One payment buys one call, however it is written, wherever it is sent, and whatever a facilitator says of it the second time. */
import { expect, test } from 'vitest'
import type { Outgoing } from '../../../src/outgoing/request.ts'
import { Seller, type Ware } from '../../../src/payments/seller.ts'

type Said = object | undefined

/** A facilitator that calls every settlement a success, also of what it has settled before, where nothing else is to be `said` first. */
function shop(said: { readonly verify?: Said[]; readonly settle?: Said[] } = {}) {
  const seen = { worked: 0, settled: 0 }
  const outgoing = {
    async request({ url }: { url: string }) {
      await new Promise((done) => setImmediate(done))
      if (url.endsWith('/settle')) seen.settled++
      const next = url.endsWith('/settle') ? said.settle : said.verify
      const found = next?.length ? next.shift() : { isValid: true, success: true, transaction: '0x1' }
      if (found === undefined) return { ok: false, failure: 'unknown', reason: '', sent: true }
      return { ok: true, status: 200, headers: {}, body: Buffer.from(JSON.stringify(found)) }
    },
  } as unknown as Outgoing
  const seller = new Seller({
    payTo: `0x${'2'.repeat(40)}`,
    facilitator: 'https://facilitator.example',
    network: 'eip155:8453',
    micros: 1_000,
    realm: 'board.example',
    secret: Buffer.alloc(32),
    outgoing,
    wallSeconds: () => 1_800_000_000,
  })
  const ware = (id: string): Ware => ({
    id,
    url: `https://board.example/pay/tools/${id}`,
    description: '',
    work: async () => ({ json: `{"n":${++seen.worked}}` }),
  })
  return { seller, ware, seen }
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

test('the same payment in other words, at once or later, is the one that was sold', async () => {
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
  expect(seen).toEqual({ worked: 1, settled: 1 })
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
  expect(seen).toEqual({ worked: 1, settled: 1 })
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
  ['is refused and never was in doubt', [refused('insufficient_funds')], [402], true],
  ['is refused because it bought something elsewhere', [used], [402], true],
])(
  'a payment whose settlement %s is not asked for anew while it may have been made',
  async (_, settle, ends, isProven) => {
    // Verified once: what was settled is no longer valid.
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

test('a payment in doubt is kept for what it was sent for', async () => {
  const open = shop({ settle: [undefined, undefined] })
  const { seller, ware, seen } = open
  const sent = { x402: written(await paymentFor(open)) }
  expect((await seller.sell(ware('broadside:hash'), sent)).status).toBe(503)
  expect((await seller.sell(ware('broadside:diff'), sent)).status).toBe(402)
  expect((await seller.sell(ware('broadside:hash'), sent)).status).toBe(200)
  expect(seen.worked).toBe(1)
})
