/** A third-party seller: @x402/express with the real facilitator scheme of @x402/evm over a chain that is a map in memory. */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { loadPeer } from './npm-peers.ts'
import { Seller, type Settled } from './seller.ts'

type Handler = (request: never, response: { json(value: unknown): void }) => void
type App = RequestListener & { use(handler: unknown): void; get(path: string, handler: Handler): void }
type Facilitator = {
  register(network: string, scheme: unknown): Facilitator
  verify(payload: unknown, requirements: unknown): Promise<unknown>
  settle(payload: unknown, requirements: unknown): Promise<unknown>
  getSupported(): unknown
}
type Constructed = new (...args: readonly unknown[]) => { register(network: string, scheme: unknown): unknown }
type VerifyTypedData = (data: object) => Promise<boolean>

const token = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const network = 'eip155:84532'
const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const word = (hex: string) => `0x${hex.replace(/^0x/, '').toLowerCase().padStart(64, '0')}`

export class X402Seller extends Seller {
  readonly settled: Settled[] = []
  protected readonly header = 'payment-signature'
  facilitator!: Facilitator
  #app!: RequestListener

  static async open(): Promise<X402Seller> {
    const seller = new X402Seller()
    const express = (await loadPeer<{ default: () => App }>('express')).default
    const { paymentMiddleware, x402ResourceServer } = await loadPeer<{
      paymentMiddleware: (
        routes: object,
        server: unknown,
      ) => (request: unknown, response: unknown, next: unknown) => unknown
      x402ResourceServer: Constructed
    }>('@x402/express')
    const { ExactEvmScheme } = await loadPeer<{ ExactEvmScheme: Constructed }>('@x402/evm/exact/server')
    const facilitator = await seller.#facilitator()
    seller.facilitator = facilitator
    const client = {
      verify: (payload: unknown, requirements: unknown) => facilitator.verify(payload, requirements),
      settle: (payload: unknown, requirements: unknown) => facilitator.settle(payload, requirements),
      getSupported: async () => facilitator.getSupported(),
    }
    const app = express()
    const middleware = () => {
      const server = new x402ResourceServer(client)
      server.register(network, new ExactEvmScheme())
      const accepts = { scheme: 'exact', price: `$${seller.price}`, network, payTo: seller.payTo }
      return paymentMiddleware({ 'GET /weather': { accepts, description: 'Weather' } }, server)
    }
    let made = { key: '', use: middleware() }
    app.use((request: never, response: never, next: never) => {
      const key = `${seller.price} ${seller.payTo}`
      if (made.key !== key) made = { key, use: middleware() }
      return made.use(request, response, next)
    })
    app.get('/weather', (_request, response) => response.json({ weather: 'fair' }))
    seller.#app = app
    return seller.listen()
  }

  transferIn({ transaction = '' }: { transaction?: string }): Settled | undefined {
    return this.#byHash.get(transaction)
  }

  protected answer(request: IncomingMessage, response: ServerResponse): void {
    this.#app(request, response)
  }

  async #facilitator(): Promise<Facilitator> {
    const { x402Facilitator } = await loadPeer<{ x402Facilitator: new () => Facilitator }>('@x402/core/facilitator')
    const { ExactEvmScheme } = await loadPeer<{ ExactEvmScheme: Constructed }>('@x402/evm/exact/facilitator')
    const { verifyTypedData } = await loadPeer<{ verifyTypedData: VerifyTypedData }>('viem/utils').catch(() =>
      loadPeer<{ verifyTypedData: VerifyTypedData }>('viem'),
    )
    const signer = {
      getAddresses: () => [`0x${'22'.repeat(20)}`],
      getCode: async ({ address }: { address: string }) =>
        address.toLowerCase() === token.toLowerCase() ? '0x60' : undefined,
      readContract: async ({ functionName, args = [] }: { functionName: string; args?: readonly unknown[] }) => {
        if (functionName === 'balanceOf') return 10n ** 12n
        if (functionName === 'authorizationState') return this.settled.some(({ nonce }) => nonce === args[1])
        if (functionName === 'name') return 'USDC'
        if (functionName === 'version') return '2'
        return undefined
      },
      verifyTypedData: (data: object) => verifyTypedData(data),
      writeContract: async ({ args }: { args: readonly unknown[] }) => this.#transfer(args),
      sendTransaction: async () => `0x${'00'.repeat(32)}`,
      waitForTransactionReceipt: async ({ hash }: { hash: string }) => this.#receipt(hash),
    }
    return new x402Facilitator().register(network, new ExactEvmScheme(signer))
  }

  readonly #byHash = new Map<string, Settled>()

  #transfer(args: readonly unknown[]): string {
    const [from, to, value, , , nonce] = args as [string, string, bigint, bigint, bigint, string]
    if (this.settled.some((each) => each.nonce === nonce)) throw new Error('authorization is used')
    const made = { from, to, value, nonce }
    this.settled.push(made)
    const hash = `0x${randomBytes(32).toString('hex')}`
    this.#byHash.set(hash, made)
    return hash
  }

  #receipt(hash: string) {
    const { from, to, value } = this.#byHash.get(hash)!
    const topics = [transferTopic, word(from), word(to)]
    return { status: 'success', logs: [{ address: token, topics, data: word(value.toString(16)) }] }
  }
}
