/**
 * `/pay/tools/<id>`: the board's own tools for clients that pay per call, by GET (input in the query) or POST (input as JSON). The only
 * path that answers 402, and 503 while a settlement is not confirmed.
 */

import { sizes } from '../../actors/kernel/limits.ts'
import { networkOf } from '../../actors/kernel/networks.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { Clock } from '../clock.ts'
import type { Exchange, RouteHandler } from '../http/port.ts'
import type { Replies } from '../http/replies.ts'
import { ownToolById } from '../own-tools/descriptors.ts'
import { BadInput, type Input, readJson } from '../own-tools/own-tool.ts'
import { inputFault, type OwnTools } from '../own-tools/run.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { Payment, Product, Seller } from './seller.ts'

type PayOptions = {
  readonly seller: Seller
  readonly own: OwnTools
  /** Public address of the board. */
  readonly address: string
  readonly throttle: Throttle
  readonly addressOf: (exchange: Exchange) => string
  readonly replies: Replies
  readonly clock: Pick<Clock, 'wallSeconds'>
}

const methods = 'GET, POST, OPTIONS'

/** Empty if nothing is sold. */
export function payRoutes(
  { seller, own }: { readonly seller: Seller | undefined; readonly own: OwnTools },
  options: Omit<PayOptions, 'seller' | 'own'>,
): Readonly<Record<string, RouteHandler>> {
  return seller === undefined ? {} : { '/pay/': payRoute({ ...options, seller, own }) }
}

function payRoute({ seller, own, address, throttle, addressOf, replies, clock }: PayOptions): RouteHandler {
  const sell = (exchange: Exchange, id: string, body: Buffer): void => {
    const tool = ownToolById.get(id)
    if (tool === undefined) {
      const message = 'this address sells the tools of this board, such as /pay/tools/broadside:hash'
      return replies.refuse(exchange, refusal('not_found', message))
    }
    const from = addressOf(exchange)
    const tooMany = throttle.count('reads', { address: from })
    if (tooMany !== undefined) return replies.refuse(exchange, tooMany)
    const { query } = exchange
    const work: Product['work'] = async () => {
      try {
        const input = inputOf(query, body)
        const fault = inputFault(tool, input)
        if (fault !== undefined) return { status: 400, problem: fault.message }
        const result = await own.run(id, input, { now: clock.wallSeconds(), from: networkOf(from) })
        if ('json' in result) return result
        return 'fault' in result ? { status: 400, problem: result.fault } : { status: 503, problem: result.failure }
      } catch (error) {
        if (error instanceof BadInput) return { status: 400, problem: error.message }
        throw error
      }
    }
    const mpp = /^Payment ([A-Za-z0-9_-]+=*)$/i.exec(exchange.header('authorization') ?? '')?.[1]
    const payment: Payment = {
      ...given('x402', exchange.header('payment-signature')),
      ...given('x402v1', exchange.header('x-payment')),
      ...given('mpp', mpp),
    }
    const product: Product = { id, url: `${address}/pay/tools/${id}`, description: tool.description, work }
    seller
      .sell(product, payment)
      .then(({ status, headers, body: text }) => exchange.reply(status, headers, text))
      .catch(() => exchange.drop())
  }
  return (exchange, parameter) => {
    const { method } = exchange
    const id = /^tools\/(.*)$/.exec(parameter)?.[1]?.replace(/%3a/i, ':')
    if (id === undefined) return replies.refuse(exchange, refusal('no_such_path', 'tools are sold at /pay/tools/{id}'))
    if (method === 'OPTIONS') return replies.preflight(exchange, methods)
    if (method === 'GET') return sell(exchange, id, Buffer.alloc(0))
    if (method !== 'POST') return replies.wrongMethod(exchange, methods)
    exchange.readBody(sizes.data_bytes, (result) => {
      if (result.ok) return sell(exchange, id, result.body)
      const message = `the body has at least ${result.sentAtLeast} bytes, ${sizes.data_bytes} are allowed`
      replies.refuse(exchange, refusal('too_large', message))
    })
  }
}

function given(protocol: keyof Payment, header: string | undefined): Payment {
  return header === undefined ? {} : { [protocol]: header }
}

function inputOf(query: string, body: Buffer): Input {
  const given = body.length === 0 ? {} : readJson(body.toString('utf8'), 'the body')
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new BadInput('the body must be one JSON object')
  return { ...Object.fromEntries(new URLSearchParams(query)), ...given }
}
