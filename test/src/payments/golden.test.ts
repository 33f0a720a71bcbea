/** What we sign and parse of x402 and MPP, against known vectors and the packages in common use. */

import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { caip2, friendlyName } from '../../../src/money/networks.ts'
import { microsOf, priceOf } from '../../../src/money/price.ts'
import type { Answered } from '../../../src/outgoing/request.ts'
import type { Challenge } from '../../../src/payments/challenge.ts'
import { proofHash, transferHash } from '../../../src/payments/eip712.ts'
import { challengesIn, mppOffers, mppReceiptOf } from '../../../src/payments/mpp.ts'
import { createPayer } from '../../../src/payments/payer.ts'
import { feeMicrosMax, rlp } from '../../../src/payments/tempo.ts'
import { walletOf } from '../../../src/payments/wallet.ts'
import {
  decodeBase64Json,
  encodeBase64Json,
  x402DemandOf,
  x402Offers,
  x402ReceiptOf,
} from '../../../src/payments/x402.ts'
import { machine } from '../../../src/platform.ts'
import { loadPeer, missingPackage } from '../../peers/npm-peers.ts'
import { skipNote, skipWithout } from '../../peers/peers.ts'

const now = 1_795_200_600
const secret = Buffer.from('ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80', 'hex')
const wallet = await walletOf(secret)
const usdcBase = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
const payTo = '0x1111111111111111111111111111111111111111'
const id = '0123456789abcdef0123456789abcdef'

const accepted = {
  scheme: 'exact',
  network: 'eip155:8453',
  amount: '2500',
  asset: usdcBase,
  payTo,
  maxTimeoutSeconds: 60,
  extra: { name: 'USD Coin', version: '2' },
}
const resource = {
  url: 'https://board.example/tool/geo',
  description: 'Reverse geocoding',
  mimeType: 'application/json',
}
const required = { x402Version: 2, error: 'Payment required', resource, accepts: [accepted] }

function answer(headers: Record<string, string>, body: unknown = {}): Answered {
  const distinct = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
  return { ok: true, status: 402, headers: distinct, body: Buffer.from(JSON.stringify(body)) }
}

test('the wallet has the standard address of this key', () => {
  expect(wallet.address).toBe('0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266')
})

describe('x402 version 2', () => {
  const demand = x402DemandOf(answer({ 'payment-required': encodeBase64Json(required) }))!

  test('is demanded in a header and paid in one, with the chosen offer unchanged', async () => {
    const [offer] = x402Offers(demand, wallet, id, machine.random)
    expect(offer).toMatchObject({ protocol: 'x402', network: 'eip155:8453', payee: payTo, micros: 2_500 })
    const { header, validUntil, reference } = await offer!.sign(now)
    expect(header[0]).toBe('PAYMENT-SIGNATURE')
    const sent = decodeBase64Json(header[1])!
    expect(sent).toMatchObject({ x402Version: 2, resource, accepted })
    const { authorization } = sent.payload as { authorization: Record<string, string> }
    expect(authorization).toEqual({
      from: wallet.address,
      to: payTo,
      value: '2500',
      validAfter: String(now - 600),
      validBefore: String(now + 60),
      nonce: reference.nonce,
    })
    expect(validUntil).toBe(now + 60)
    expect(authorization.nonce).toMatch(/^0x[0-9a-f]{64}$/)
  })

  test.each([
    { scheme: 'upto' },
    { network: 'eip155:5' },
    { network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' },
    { asset: payTo },
    { payTo: 'nobody' },
    { payTo: `${payTo}0` },
    { amount: '-1' },
    { amount: '1e3' },
    { amount: '0x10' },
    { amount: undefined },
    { extra: { name: 'Other Coin', version: '2' } },
    { extra: { name: 'USD Coin', version: '1' } },
    { extra: { assetTransferMethod: 'permit2' } },
    { maxTimeoutSeconds: 0 },
    { maxTimeoutSeconds: 'long' },
  ])('with %j is no offer', (change) => {
    const changed = { ...demand, accepts: [{ ...accepted, ...change }] }
    expect(x402Offers(changed, wallet, id, machine.random)).toEqual([])
  })

  test('is never signed for longer than ten minutes', async () => {
    const long = { ...demand, accepts: [{ ...accepted, maxTimeoutSeconds: 86_400 }] }
    expect((await x402Offers(long, wallet, id, machine.random)[0]!.sign(now)).validUntil).toBe(now + 600)
  })

  test('identifies the call to a seller that requires it', async () => {
    const extensions = { 'payment-identifier': { info: { required: true }, schema: {} }, other: {} }
    const [offer] = x402Offers({ ...demand, extensions }, wallet, id, machine.random)
    const sent = decodeBase64Json((await offer!.sign(now)).header[1])
    expect(sent?.extensions).toEqual({ 'payment-identifier': { info: { required: true, id }, schema: {} } })
  })

  test('is settled in a header', () => {
    const settled = { success: true, transaction: '0xabc', network: 'eip155:8453', payer: wallet.address }
    const found = x402ReceiptOf(answer({ 'payment-response': encodeBase64Json(settled) }))
    expect(found).toEqual({ protocol: 'x402', network: 'eip155:8453', transaction: '0xabc' })
    for (const bad of [{ ...settled, success: false }, { success: true }, 7])
      expect(x402ReceiptOf(answer({ 'payment-response': encodeBase64Json(bad) }))).toBeUndefined()
    expect(x402ReceiptOf(answer({ 'payment-response': 'no base64 of json' }))).toBeUndefined()
  })
})

test('x402 version 1 is demanded in the body, by short names, and paid in X-PAYMENT', async () => {
  const { amount, ...rest } = accepted
  const v1 = { ...rest, network: 'base', maxAmountRequired: amount, resource: resource.url, description: 'x' }
  const demand = x402DemandOf(answer({}, { x402Version: 1, error: 'X-PAYMENT header is required', accepts: [v1] }))!
  const [offer] = x402Offers(demand, wallet, id, machine.random)
  expect(offer).toMatchObject({ network: 'eip155:8453', micros: 2_500 })
  const { header } = await offer!.sign(now)
  expect(header[0]).toBe('X-PAYMENT')
  expect(decodeBase64Json(header[1])).toMatchObject({ x402Version: 1, scheme: 'exact', network: 'base' })
})

describe('MPP', () => {
  const request = 'eyJhbW91bnQiOiI1IiwiY3VycmVuY3kiOiJjcmVkaXQiLCJyZWNpcGllbnQiOiJib2FyZCJ9'
  const line = `Payment id="RFCivVoMIn_etv3zCIje2zBL7PksB094mTUCw8ZE1WY", realm="board.local", method="credit", intent="charge", request="${request}", expires="2026-11-21T12:00:00Z"`

  test('challenges are parsed from a header, including the known vector', () => {
    const [challenge] = challengesIn(line)
    expect(challenge).toEqual({
      id: 'RFCivVoMIn_etv3zCIje2zBL7PksB094mTUCw8ZE1WY',
      realm: 'board.local',
      method: 'credit',
      intent: 'charge',
      request,
      expires: '2026-11-21T12:00:00Z',
    })
    const { realm, method, intent, expires } = challenge!
    const slots = [realm, method, intent, request, expires, '', ''].join('|')
    const mac = createHmac('sha256', '0123456789abcdef0123456789abcdef').update(slots).digest('base64url')
    expect(mac).toBe(challenge!.id)
  })

  test.each([
    [`Basic realm="x, Payment id=\\"1\\"", ${line}`, 1],
    [`${line}, ${line.replace('RFC', 'ABC')}`, 2],
    [`Bearer abc==, ${line}, Digest nonce="1"`, 1],
    [line.replaceAll('"', ''), 1],
    [`${line}, id="again"`, 0],
    [line.replace('method="credit"', 'method="Credit"'), 0],
    [line.replace('id="RFCivVoMIn_etv3zCIje2zBL7PksB094mTUCw8ZE1WY"', 'id=""'), 0],
    [line.replace(/request="[^"]*"/, 'note="x"'), 0],
    [line.slice(0, -1), 0],
    ['Payment', 0],
    ['=', 0],
    ['', 0],
    ['"', 0],
  ])('%s holds %i', (header, count) => {
    expect(challengesIn(header)).toHaveLength(count)
  })

  test('texts above Latin-1 and quotes are preserved', () => {
    const [challenge] = challengesIn(`${line}, description="5 \\u20ac \\"net\\" \\\\ x"`)
    expect(challenge?.description).toBe('5 € "net" \\ x')
  })

  test('a receipt is accepted if it says success', () => {
    const receipt = { status: 'success', method: 'tempo', timestamp: '2026-11-21T12:00:03Z', reference: '0xab' }
    const encoded = Buffer.from(JSON.stringify(receipt)).toString('base64url')
    expect(mppReceiptOf(answer({ 'payment-receipt': encoded }))).toEqual({
      protocol: 'mpp',
      reference: '0xab',
      timestamp: '2026-11-21T12:00:03Z',
    })
    const failed = Buffer.from('{"status":"failed"}').toString('base64url')
    expect(mppReceiptOf(answer({ 'payment-receipt': failed }))).toBeUndefined()
  })
})

test.each([
  ['0', 0],
  ['1', 1_000_000],
  ['0.0025', 2_500],
  ['0.000001', 1],
  ['0.0000001', 1],
  ['123456.789', 123_456_789_000],
])('%s dollars are %i millionths', (price, micros) => {
  expect(microsOf(price)).toBe(micros)
  if (!price.endsWith('0000001')) expect(priceOf(micros)).toBe(price)
})

test.each(['', 'free', '-1', '1e3', '01', '1.', '.5', '1000000'])('"%s" is no price', (text) => {
  expect(microsOf(text)).toBeUndefined()
})

test('each network is known by its CAIP-2 id and its short name', () => {
  expect([caip2('base'), caip2('eip155:1'), friendlyName('eip155:8453'), friendlyName('x:1')]).toEqual([
    'eip155:8453',
    'eip155:1',
    'base',
    'x:1',
  ])
})

// The examples of the Ethereum wiki.
test.each([
  [Buffer.from('dog'), '83646f67'],
  [[Buffer.from('cat'), Buffer.from('dog')], 'c88363617483646f67'],
  [Buffer.alloc(0), '80'],
  [[], 'c0'],
  [Buffer.of(0), '00'],
  [Buffer.of(15), '0f'],
  [Buffer.of(4, 0), '820400'],
  [[[], [[]], [[], [[]]]], 'c7c0c1c0c3c0c1c0'],
  [Buffer.alloc(56, 'a'), `b838${'61'.repeat(56)}`],
])('rlp of %j', (value, hex) => {
  expect(rlp(value).toString('hex')).toBe(hex)
})

test('without a wallet a demand is shown and nothing is offered', () => {
  const outgoing = { request: () => Promise.reject(new Error('nobody asks')), close() {} }
  const payer = createPayer({ nodes: new Map(), outgoing, random: machine.random, wallSeconds: () => now })
  const found = payer.demandOf(answer({ 'payment-required': encodeBase64Json(required), 'www-authenticate': 'x' }), id)
  expect(found).toEqual({ accepts: [accepted], challenges: [], offers: [] })
  for (const broken of [
    '',
    '%%%',
    encodeBase64Json([]),
    encodeBase64Json({ x402Version: 2 }),
    encodeBase64Json({ x402Version: 3, accepts: [] }),
  ])
    expect(payer.demandOf(answer({ 'payment-required': broken }), id).accepts).toEqual([])
})

const missing = missingPackage('viem') ?? missingPackage('mppx')

type Viem = {
  hashTypedData(data: object): string
  recoverAddress(data: { hash: string; signature: string }): Promise<string>
}
type Tx = { deserialize(text: string): Record<string, unknown>; getSignPayload(tx: unknown): string }

describe.skipIf(skipWithout(missing))(`compared with the packages of others${skipNote(missing)}`, () => {
  test('an EIP-3009 transfer is hashed and signed as by viem', async () => {
    const { hashTypedData, recoverAddress } = await loadPeer<Viem>('viem')
    const domain = { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: usdcBase }
    const message = {
      from: wallet.address,
      to: payTo,
      value: '2500',
      validAfter: '1',
      validBefore: '99',
      nonce: `0x${'ab'.repeat(32)}`,
    }
    const field = (type: string, name: string) => ({ type, name })
    const TransferWithAuthorization = [
      field('address', 'from'),
      field('address', 'to'),
      field('uint256', 'value'),
      field('uint256', 'validAfter'),
      field('uint256', 'validBefore'),
      field('bytes32', 'nonce'),
    ]
    const theirs = hashTypedData({
      domain,
      types: { TransferWithAuthorization },
      primaryType: 'TransferWithAuthorization',
      message,
    })
    const ours = transferHash(domain, message, wallet.keccak)
    expect(`0x${ours.toString('hex')}`).toBe(theirs)
    const signature = `0x${wallet.sign(ours).toString('hex')}`
    expect(await recoverAddress({ hash: theirs, signature })).toBe(wallet.address)
  })

  test('a proof of MPP is hashed as by mppx', async () => {
    const { Proof } = await loadPeer<{ Proof: { hash(data: object): string } }>('mppx/tempo')
    const message = { account: wallet.address, challengeId: 'abc', realm: 'board.local' }
    const theirs = Proof.hash({ ...message, chainId: 42431 })
    expect(`0x${proofHash(42431, message, wallet.keccak).toString('hex')}`).toBe(theirs)
  })

  test.each([false, true])(
    'a Tempo transfer is parsed and its signer recovered (seller pays the fee: %s)',
    async (feePayer) => {
      const tx = (await loadPeer<{ TxEnvelopeTempo: Tx }>('ox/tempo')).TxEnvelopeTempo
      const { recoverAddress } = await loadPeer<Viem>('viem')
      const request = {
        amount: '2500',
        currency: '0x20c0000000000000000000000000000000000000',
        recipient: payTo,
        methodDetails: { chainId: 42431, ...(feePayer ? { feePayer } : {}) },
      }
      const challenge: Challenge = {
        id: 'c1',
        realm: 'r',
        method: 'tempo',
        intent: 'charge',
        request: Buffer.from(JSON.stringify(request)).toString('base64url'),
      }
      const [offer] = mppOffers([challenge], wallet, now)
      expect(offer).toMatchObject({ protocol: 'mpp', payee: payTo, micros: 2_500 + (feePayer ? 0 : feeMicrosMax) })
      const { header, validUntil } = await offer!.sign(now)
      const credential = JSON.parse(Buffer.from(header[1].slice('Payment '.length), 'base64url').toString()) as {
        payload: { signature: string }
        challenge: object
        source: string
      }
      expect(credential.challenge).toEqual(challenge)
      expect(credential.source).toBe(`did:pkh:eip155:42431:${wallet.address}`)
      const found = tx.deserialize(credential.payload.signature) as {
        signature: { signature: { r: bigint; s: bigint; yParity: number } }
        validBefore: number
        calls: readonly { to: string; data: string }[]
      }
      expect(found).toMatchObject({ chainId: 42431, nonceKey: 2n ** 256n - 1n, validBefore: validUntil })
      expect(found.calls[0]!.data).toMatch(/^0x95777d590{24}(11){20}0{60}09c4ef1ed712/)
      const payload = tx.getSignPayload(found)
      const { r, s, yParity } = found.signature.signature
      const hex = (value: bigint) => value.toString(16).padStart(64, '0')
      const signature = `0x${hex(r)}${hex(s)}${yParity === 0 ? '1b' : '1c'}`
      expect(await recoverAddress({ hash: payload, signature })).toBe(wallet.address)
    },
  )

  test('challenges by mppx are parsed as it means them', async () => {
    const { Challenge: theirs } = await loadPeer<{
      Challenge: { from(data: object, options?: object): object; serialize(challenge: object): string }
    }>('mppx')
    const made = theirs.from({
      realm: 'b',
      method: 'tempo',
      intent: 'charge',
      request: { amount: '5' },
      description: '5 € “net” \\',
      expires: '2027-01-01T00:00:00Z',
      secretKey: 'x'.repeat(32),
    })
    const [ours] = challengesIn(theirs.serialize(made))
    expect(ours).toMatchObject({ realm: 'b', method: 'tempo', description: '5 € “net” \\' })
  })
})
