/** Both protocols behind one interface: what a 402 asks, what we could pay, what came of it. */
import type { Answered, Outgoing } from '../outgoing/request.ts'
import { address as addressWord } from './eip712.ts'
import { challengesOf, mppOffers, mppReceiptOf, shownChallenge } from './mpp.ts'
import type { Demand, Payer, PaymentReceipt } from './payment.ts'
import type { Wallet } from './wallet.ts'
import { isObject, parsedObject, x402DemandOf, x402Offers, x402ReceiptOf } from './x402.ts'

export type PayerOptions = {
  /** Absent: demands are read and nothing is offered. */
  readonly wallet?: Wallet
  /** Address of a node by CAIP-2 network: asked whether a payment was made. */
  readonly nodes: ReadonlyMap<string, string>
  readonly outgoing: Outgoing
  readonly wallSeconds: () => number
}

/** `authorizationState(address,bytes32)` of EIP-3009. */
const authorizationState = '0xe94a0102'

export function createPayer({ wallet, nodes, outgoing, wallSeconds }: PayerOptions): Payer {
  const ask = async (
    network: string,
    method: string,
    params: readonly unknown[],
  ): Promise<{ result: unknown } | undefined> => {
    const url = nodes.get(network)
    if (url === undefined) return undefined
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const answer = await outgoing.request({
      url,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    const found = answer.ok && answer.status === 200 ? parsedObject(answer.body.toString('utf8')) : undefined
    return found === undefined || found.error !== undefined || found.result === undefined
      ? undefined
      : { result: found.result }
  }
  return {
    demandOf(answer, id): Demand {
      const x402 = x402DemandOf(answer)
      const challenges = challengesOf(answer)
      const offers =
        wallet === undefined
          ? []
          : [
              ...(x402 === undefined ? [] : x402Offers(x402, wallet, id)),
              ...mppOffers(challenges, wallet, wallSeconds()),
            ]
      return {
        accepts: x402?.accepts ?? [],
        challenges: challenges.map(shownChallenge),
        offers: offers.sort((a, b) => a.micros - b.micros),
      }
    },
    receiptOf(answer: Answered, network): PaymentReceipt | undefined {
      const mpp = mppReceiptOf(answer)
      return x402ReceiptOf(answer) ?? (mpp === undefined ? undefined : { ...mpp, network })
    },
    async wasMade({ network, reference }) {
      const { from, nonce, asset, hash } = reference
      if (hash !== undefined) {
        const found = await ask(network, 'eth_getTransactionReceipt', [hash])
        if (found === undefined) return undefined
        return isObject(found.result) && found.result.status === '0x1'
      }
      if (from === undefined || nonce === undefined || asset === undefined) return undefined
      const data = `${authorizationState}${addressWord(from).toString('hex')}${nonce.slice(2)}`
      const found = await ask(network, 'eth_call', [{ to: asset, data }, 'latest'])
      return typeof found?.result === 'string' && /^0x0*[01]$/.test(found.result)
        ? found.result.endsWith('1')
        : undefined
    },
  }
}
