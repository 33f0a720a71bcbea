/** A common interface to both protocols: what a 402 demands, what we could pay, the result, and whether a chain has the payment. */

import { chainIdOf } from '../money/networks.ts'
import type { Answered, Outgoing } from '../outgoing/request.ts'
import type { Random } from '../platform.ts'
import { address as addressWord } from './eip712.ts'
import { challengesOf, mppOffers, mppReceiptOf, shownChallenge } from './mpp.ts'
import type { Demand, Payer, Payment, PaymentReceipt } from './payment.ts'
import type { Wallet } from './wallet.ts'
import { isObject, parsedObject, x402DemandOf, x402Offers, x402ReceiptOf } from './x402.ts'

type PayerOptions = {
  /** If absent, demands are parsed and nothing is offered. */
  readonly wallet?: Wallet
  /** Node addresses by CAIP-2 network, to query whether a payment was made. */
  readonly nodes: ReadonlyMap<string, string>
  readonly outgoing: Outgoing
  readonly wallSeconds: () => number
  readonly random: Random
}

export function createPayer({ wallet, nodes, outgoing, random, wallSeconds }: PayerOptions): Payer {
  return {
    demandOf(answer, id): Demand {
      const x402 = x402DemandOf(answer)
      const challenges = challengesOf(answer)
      const offers =
        wallet === undefined
          ? []
          : [
              ...(x402 === undefined ? [] : x402Offers(x402, wallet, id, random)),
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
    canAsk: (network) => nodes.has(network),
    async wasMade({ network, reference, validUntil }) {
      const url = nodes.get(network)
      return url === undefined ? undefined : isPaid(nodeAt(url, outgoing), { network, reference, validUntil })
    },
  }
}

/** Its result, or undefined if it gave none. */
type Node = (method: string, params: readonly unknown[]) => Promise<{ readonly result: unknown } | undefined>
type Asked = Pick<Payment, 'reference' | 'validUntil'> & { readonly network: string }

/** `authorizationState(address,bytes32)` of EIP-3009. */
const authorizationState = '0xe94a0102'
/** `TransferWithMemo(address,address,uint256,bytes32)` of TIP-20. */
const transferWithMemo = '0x57bc7354aa85aed339e000bccffabbc529466af35f0772c8f8ee1145927de7f0'
/** A transfer is searched by memo in this many blocks per second since the payment could first be made; Tempo makes about two. */
const blocksPerSecond = 4
/** No payment that is found by its memo is valid for longer. */
const lifeSecondsMax = 600

/**
 * A node of a network, queried by JSON-RPC whether a payment was made. It may be wrong in every way that leads to a premature yes or no: on
 * another network, behind, or undecided. So a no counts only if the node names the right network and its newest block is later than the
 * payment's validity. Everything else is no answer.
 */
function nodeAt(url: string, outgoing: Outgoing): Node {
  return async (method, params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const headers = { 'content-type': 'application/json' }
    const answer = await outgoing.request({ url, method: 'POST', headers, body })
    const found = answer.ok && answer.status === 200 ? parsedObject(answer.body.toString('utf8')) : undefined
    return found === undefined || found.error !== undefined || found.result === undefined
      ? undefined
      : { result: found.result }
  }
}

export async function isPaid(node: Node, { network, reference, validUntil }: Asked): Promise<boolean | undefined> {
  const chainId = numberIn((await node('eth_chainId', []))?.result)
  if (chainId === undefined || chainId !== chainIdOf(network)) return undefined
  const block = (await node('eth_getBlockByNumber', ['latest', false]))?.result
  const [height, time] = isObject(block) ? [numberIn(block.number), numberIn(block.timestamp)] : []
  if (height === undefined || time === undefined) return undefined
  // Queried after the block, and at it: a machine of the node that has not reached it gives no answer, rather than an older one.
  const first = Math.max(0, height - blocksBack(time, validUntil))
  const isThere = await isKnown(node, reference, { first, last: height })
  return isThere === false && time <= validUntil ? undefined : isThere
}

function blocksBack(time: number, validUntil: number): number {
  return Math.max(0, time - validUntil + lifeSecondsMax) * blocksPerSecond
}

type Blocks = { readonly first: number; readonly last: number }

async function isKnown(node: Node, reference: Asked['reference'], blocks: Blocks): Promise<boolean | undefined> {
  const { from, to, nonce, asset, hash, memo } = reference
  if (hash !== undefined) {
    const found = await node('eth_getTransactionReceipt', [hash])
    return found === undefined ? undefined : isObject(found.result) && found.result.status === '0x1'
  }
  if (asset === undefined || from === undefined) return undefined
  if (memo !== undefined && to !== undefined) {
    const topics = [transferWithMemo, word(from), word(to), memo]
    const filter = { address: asset, topics, fromBlock: hex(blocks.first), toBlock: hex(blocks.last) }
    const found = await node('eth_getLogs', [filter])
    return Array.isArray(found?.result) ? found.result.length > 0 : undefined
  }
  if (nonce === undefined) return undefined
  const data = `${authorizationState}${word(from).slice(2)}${nonce.slice(2)}`
  const found = await node('eth_call', [{ to: asset, data }, hex(blocks.last)])
  const isAnswer = typeof found?.result === 'string' && /^0x0*[01]$/.test(found.result)
  return isAnswer ? (found.result as string).endsWith('1') : undefined
}

function hex(value: number): string {
  return `0x${value.toString(16)}`
}

function word(address: string): string {
  return `0x${addressWord(address).toString('hex')}`
}

function numberIn(value: unknown): number | undefined {
  return typeof value === 'string' && /^0x[0-9a-f]{1,13}$/i.test(value) ? Number(value) : undefined
}
