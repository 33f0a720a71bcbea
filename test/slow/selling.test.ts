/**
 * The board sells its own tools: real buyers of x402 and MPP pay it, through a facilitator on loopback; also when it is killed meanwhile.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { loadPeer, missingPackage } from '../peers/npm-peers.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { X402Seller } from '../peers/x402-seller.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { patience } from '../support/patience.ts'
import { respondJson, ToolServer } from '../support/tool-server.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const missing = ['@x402/core', 'mppx', 'x402-fetch', 'x402-axios']
  .map(missingPackage)
  .find((each) => each !== undefined)
const payTo = `0x${'44'.repeat(20)}`
const key = `0x${'59'.repeat(32)}`
const network = 'eip155:84532'

type Account = { readonly address: string }
type Fetch = typeof fetch
type Asked = 'verify' | 'settle'

describe.skipIf(skipWithout(missing))(`buyers of the board’s tools${skipNote(missing)}`, () => {
  let chain: X402Seller
  let facilitator: ToolServer
  let board: Board
  let account: Account
  let lose = 0
  /** Called for each request to the facilitator, before and after it is carried out. */
  let when: (asked: Asked, moment: 'before' | 'after') => unknown = () => {}

  // It takes seconds to load, in which keep-alive connections become too old.
  beforeAll(async () => {
    await loadPeer('mppx/client')
  })
  beforeAll(async () => {
    chain = await X402Seller.open()
    const asked =
      (what: Asked) =>
      async ({ body }: { body: string }, response: Parameters<typeof respondJson>[0]) => {
        const { paymentPayload, paymentRequirements } = JSON.parse(body) as {
          paymentPayload: unknown
          paymentRequirements: unknown
        }
        await when(what, 'before')
        const found = await chain.facilitator[what](paymentPayload, paymentRequirements)
        await when(what, 'after')
        if (what === 'settle' && lose-- > 0) response.destroy()
        else respondJson(response, found)
      }
    facilitator = await ToolServer.open({ '/verify': asked('verify'), '/settle': asked('settle') })
    board = await start(boardDirectory())
    const { privateKeyToAccount } = await loadPeer<{ privateKeyToAccount: (key: string) => Account }>('viem/accounts')
    account = privateKeyToAccount(key)
  })
  afterAll(() => {
    chain.close()
    facilitator.close()
  })

  const start = (directory: string) =>
    startBoard({
      directory,
      env: {
        BROADSIDE_LOOPBACK: '1',
        SHARDS: '1',
        PAY_TO: payTo,
        FACILITATOR_URL: facilitator.url(''),
        PAY_NETWORK: network,
        PAY_PRICE: '0.001',
      },
    })

  const url = (tool = 'broadside:hash', query = '?text=hello') => `${board.address}/pay/tools/${tool}${query}`

  /** Signs what a 402 demands; returns the headers of the payment. */
  async function x402Signer(): Promise<(asked: Response) => Promise<Record<string, string>>> {
    const { x402Client, x402HTTPClient } = await loadPeer<{
      x402Client: new () => {
        register(network: string, scheme: unknown): unknown
        createPaymentPayload(required: unknown): Promise<unknown>
      }
      x402HTTPClient: new (
        client: unknown,
      ) => {
        getPaymentRequiredResponse(header: (name: string) => string | null, body: unknown): unknown
        encodePaymentSignatureHeader(payload: unknown): Record<string, string>
      }
    }>('@x402/core/client')
    const { ExactEvmScheme } = await loadPeer<{ ExactEvmScheme: new (signer: unknown) => unknown }>(
      '@x402/evm/exact/client',
    )
    const client = new x402Client()
    client.register(network, new ExactEvmScheme(account))
    const http = new x402HTTPClient(client)
    return async (asked) => {
      const required = http.getPaymentRequiredResponse((name) => asked.headers.get(name), await asked.json())
      return http.encodePaymentSignatureHeader(await client.createPaymentPayload(required))
    }
  }

  async function x402Fetch(): Promise<Fetch> {
    const signed = await x402Signer()
    return async (input, init) => {
      const first = await fetch(input, init)
      if (first.status !== 402) return first
      return fetch(input, { ...init, headers: { ...(init?.headers as object), ...(await signed(first)) } })
    }
  }

  test('get a demand in each protocol at once, and only in a 402', async () => {
    const asked = await fetch(url())
    expect(asked.status).toBe(402)
    expect(asked.headers.get('cache-control')).toBe('no-store')
    const required = JSON.parse(Buffer.from(asked.headers.get('payment-required')!, 'base64').toString()) as {
      accepts: object[]
    }
    expect(required.accepts).toMatchObject([{ scheme: 'exact', network, amount: '1000', payTo }])
    expect(asked.headers.get('www-authenticate')).toMatch(
      /^Payment id="[\w-]{43}", realm="127\.0\.0\.1:\d+", method="evm", intent="charge"/,
    )
    expect(facilitator.requests).toHaveLength(0)
    expect((await fetch(url('broadside:nothing'))).status).toBe(400)
  })

  test('pay by x402 and get the result with the settlement', async () => {
    const settled = chain.settled.length
    const pay = await x402Fetch()
    const paid = await pay(url(), {})
    expect(paid.status).toBe(200)
    expect(await paid.json()).toMatchObject({ algorithm: 'sha256', hex: expect.stringMatching(/^2cf24d/) })
    const receipt = JSON.parse(Buffer.from(paid.headers.get('payment-response')!, 'base64').toString()) as object
    expect(receipt).toMatchObject({ success: true, network, transaction: expect.stringMatching(/^0x/) })
    expect(chain.settled.slice(settled)).toMatchObject([{ to: payTo, value: 1_000n }])
  })

  test.each(['x402-fetch', 'x402-axios'] as const)('pay by x402 version 1, as %s does', async (buyer) => {
    const settled = chain.settled.length
    const { createWalletClient, http } = await loadPeer<{
      createWalletClient: (options: object) => object
      http: () => unknown
    }>('viem')
    const { baseSepolia } = await loadPeer<{ baseSepolia: object }>('viem/chains')
    const wallet = createWalletClient({ account, chain: baseSepolia, transport: http() })
    const paid = buyer === 'x402-fetch' ? await byFetch(wallet) : await byAxios(wallet)
    expect([paid.status, paid.body]).toEqual([200, { algorithm: 'sha256', hex: expect.stringMatching(/^2cf24d/) }])
    const receipt = JSON.parse(Buffer.from(paid.response, 'base64').toString()) as object
    expect(receipt).toMatchObject({ success: true, network: 'base-sepolia', transaction: expect.stringMatching(/^0x/) })
    expect(chain.settled.slice(settled)).toMatchObject([{ to: payTo, value: 1_000n }])
  })

  type Paid = { readonly status: number; readonly body: unknown; readonly response: string }

  async function byFetch(wallet: object): Promise<Paid> {
    const { wrapFetchWithPayment } = await loadPeer<{ wrapFetchWithPayment(own: Fetch, wallet: object): Fetch }>(
      'x402-fetch',
    )
    const answer = await wrapFetchWithPayment(fetch, wallet)(url())
    return { status: answer.status, body: await answer.json(), response: answer.headers.get('x-payment-response')! }
  }

  async function byAxios(wallet: object): Promise<Paid> {
    type Axios = { get(url: string): Promise<{ status: number; data: unknown; headers: Record<string, string> }> }
    const { default: axios } = await loadPeer<{ default: { create(): Axios } }>('axios')
    const { withPaymentInterceptor } = await loadPeer<{ withPaymentInterceptor(own: Axios, wallet: object): Axios }>(
      'x402-axios',
    )
    const { status, data, headers } = await withPaymentInterceptor(axios.create(), wallet).get(url())
    return { status, body: data, response: headers['x-payment-response']! }
  }

  /** As if the board spoke only MPP. */
  const withoutX402: Fetch = async (input, init) => {
    const answer = await fetch(input, init)
    const headers = new Headers(answer.headers)
    headers.delete('payment-required')
    return new Response(answer.body, { status: answer.status, headers })
  }

  test('pay by MPP and get a receipt', async () => {
    const { Mppx, evm } = await loadPeer<{
      Mppx: { create(options: object): { fetch: Fetch } }
      evm: { charge(options: object): unknown }
    }>('mppx/client')
    const settled = chain.settled.length
    const currency = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
    const method = evm.charge({
      account,
      networks: [84532],
      currencies: [currency],
      authorization: { name: 'USDC', version: '2' },
    })
    const client = Mppx.create({ methods: [method], polyfill: false, fetch: withoutX402 })
    const paid = await client.fetch(url('broadside:hash', ''), { method: 'POST', body: '{"text":"hello"}' })
    expect([paid.status, await paid.json()]).toMatchObject([200, { hex: expect.stringMatching(/^2cf24d/) }])
    const receipt = JSON.parse(Buffer.from(paid.headers.get('payment-receipt')!, 'base64url').toString()) as object
    expect(receipt).toMatchObject({ status: 'success', method: 'evm', reference: expect.stringMatching(/^0x/) })
    expect(chain.settled.length - settled).toBe(1)
  })

  test('whose settlement answer gets lost are not charged twice', async () => {
    const settled = chain.settled.length
    const pay = await x402Fetch()
    lose = 1
    const found = await pay(url(), {})
    // The facilitator has settled and its answer was lost; for the same bytes again it says that their nonce is used.
    expect([found.status, await found.json()]).toEqual([200, { algorithm: 'sha256', hex: expect.any(String) }])
    expect(chain.settled.length - settled).toBe(1)
  })

  /** The same payment to the restarted board, until it is known what it bought. */
  async function boughtAgain(headers: Record<string, string>): Promise<{ answer: Response; body: unknown }> {
    const killed = board
    await killed.kill()
    board = await start(killed.directory)
    const answer = await vi.waitFor(async () => {
      const found = await fetch(url(), { headers })
      expect(found.status).not.toBe(503)
      return found
    }, patience)
    return { answer, body: await answer.json() }
  }

  test.each([
    ['verify', 'after'],
    ['settle', 'before'],
    ['settle', 'after'],
  ] as const)(
    'whose board is killed when it has requested to %s, %s that is done, pay once and get what they paid for',
    async (asked, moment) => {
      const settled = chain.settled.length
      const headers = await (await x402Signer())(await fetch(url()))
      when = (now, at) => {
        if (now !== asked || at !== moment) return
        when = () => {}
        return board.kill()
      }
      await expect(fetch(url(), { headers })).rejects.toThrow()
      const { answer, body } = await boughtAgain(headers)
      expect([answer.status, body]).toEqual([200, { algorithm: 'sha256', hex: expect.stringMatching(/^2cf24d/) }])
      expect(chain.settled.length - settled).toBe(1)
    },
  )

  test('who were told to resend a payment may do so after the board was killed', async () => {
    const settled = chain.settled.length
    const headers = await (await x402Signer())(await fetch(url()))
    lose = 2
    expect((await fetch(url(), { headers })).status).toBe(503)
    expect((await boughtAgain(headers)).answer.status).toBe(200)
    expect(chain.settled.length - settled).toBe(1)
  })

  test('get the same answer to the same payment after the board was killed', async () => {
    const headers = await (await x402Signer())(await fetch(url()))
    const first = await fetch(url(), { headers })
    expect(first.status).toBe(200)
    const asked = facilitator.requests.length
    const { answer, body } = await boughtAgain(headers)
    expect([answer.status, body]).toEqual([200, await first.json()])
    expect(answer.headers.get('payment-response')).toBe(first.headers.get('payment-response'))
    expect((await fetch(url('broadside:diff'), { headers })).status).toBe(402)
    expect(facilitator.requests.length).toBe(asked)
  })

  test.each([
    ['payment-signature', 'nonsense'],
    ['x-payment', 'nonsense'],
    ['x-payment', Buffer.from('{"x402Version":1,"scheme":"exact","network":"base","payload":{}}').toString('base64')],
    [
      'x-payment',
      Buffer.from('{"x402Version":1,"scheme":"exact","network":"base-sepolia","payload":{}}').toString('base64'),
    ],
    [
      'payment-signature',
      Buffer.from('{"x402Version":2,"accepted":{"scheme":"exact"},"payload":{}}').toString('base64'),
    ],
    ['authorization', 'Payment eyJjaGFsbGVuZ2UiOnt9LCJwYXlsb2FkIjp7fX0'],
    ['authorization', 'Payment AAAA'],
    ['authorization', 'Bearer x'],
  ])('with %s: %s get a 402 again and nothing is settled', async (name, value) => {
    const settled = chain.settled.length
    expect((await fetch(url(), { headers: { [name]: value } })).status).toBe(402)
    expect(chain.settled.length).toBe(settled)
  })

  test('who pay for invalid input are told so before anything is settled', async () => {
    const settled = chain.settled.length
    const pay = await x402Fetch()
    const found = await pay(url('broadside:hash', '?text=a&algorithm=md5'), {})
    expect(found.status).toBe(400)
    expect(chain.settled.length).toBe(settled)
  })
})

test('a board that sells nothing has no payment endpoint', async () => {
  const board = await startBoard({ directory: boardDirectory(), env: { SHARDS: '1' } })
  expect((await fetch(`${board.address}/pay/tools/broadside:hash`)).status).toBe(404)
})
