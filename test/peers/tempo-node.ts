/**
 * A node of Tempo's test network (chain 42431) with an in-memory ledger: the part of its JSON-RPC that sellers need to settle payments and
 * others to look them up. ox parses a transaction and recovers its signers. It refuses what the network refuses: another chain, an expired
 * validity, a repeated transaction, an amount above the balance.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadPeer } from './npm-peers.ts'
import type { Settled } from './seller.ts'

type Hex = `0x${string}`
type Call = { readonly to?: string; readonly data?: string }
type Envelope = {
  readonly chainId: number
  readonly from?: string
  readonly calls: readonly Call[]
  readonly nonceKey?: bigint
  readonly validBefore?: number
  readonly gas: bigint
  readonly maxFeePerGas: bigint
  readonly feeToken?: string
  readonly feePayerSignature?: object | null
}
type Envelopes = {
  deserialize(serialized: string): Envelope
  getSignPayload(envelope: Envelope): Hex
  getFeePayerSignPayload(envelope: Envelope, options: { sender: string }): Hex
}
type Recover = { recoverAddress(of: { payload: Hex; signature: object }): string }
type Transfer = { readonly token: string; readonly to: string; readonly amount: bigint; readonly memo: Hex }
type Log = { readonly address: string; readonly topics: readonly string[]; readonly data: string }
type Receipt = Readonly<Record<string, unknown>> & { readonly blockNumber: string; readonly logs: readonly Log[] }

export const tempoChain = 42431
export const pathUsd = '0x20c0000000000000000000000000000000000000'
const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const transferWithMemoTopic = '0x57bc7354aa85aed339e000bccffabbc529466af35f0772c8f8ee1145927de7f0'
const transferWithMemo = '0x95777d59'
const authorizationState = '0xe94a0102'
/** The maximum validity of an expiring nonce. */
const expirySecondsMax = 30
const gasUsed = 50_000n

const hex = (value: bigint | number): Hex => `0x${value.toString(16)}`
const word = (value: string): Hex => `0x${value.replace(/^0x/, '').toLowerCase().padStart(64, '0')}`
const failure = (message: string) => Object.assign(new Error(message), { code: -32_000 })

export class TempoNode {
  /** Transfers in order; `nonce` is the memo. */
  readonly settled: Settled[] = []
  /** Methods that were called, in order. */
  readonly asked: string[] = []
  /** Millionths of a dollar that the network took as fees, by payer. */
  readonly fees = new Map<string, bigint>()
  /** Nonces of EIP-3009 that a token of this network would report as used. */
  usedAuthorizations: () => readonly string[] = () => []
  /** Seconds by which its newest block is ahead of this machine's clock. */
  ahead = 0
  chainId = tempoChain
  readonly #balances = new Map<string, bigint>()
  readonly #receipts = new Map<string, Receipt>()
  /** What senders have signed: an expiring nonce is accepted once, whoever pays the fee. */
  readonly #taken = new Set<string>()
  readonly #envelopes: Envelopes
  readonly #secp256k1: Recover
  readonly #keccak: (serialized: string) => Hex
  #server: Server | undefined
  #block = 1_000
  port = 0

  private constructor(envelopes: Envelopes, secp256k1: Recover, keccak: (serialized: string) => Hex) {
    this.#envelopes = envelopes
    this.#secp256k1 = secp256k1
    this.#keccak = keccak
  }

  static async open(): Promise<TempoNode> {
    const { TxEnvelopeTempo } = await loadPeer<{ TxEnvelopeTempo: Envelopes }>('ox/tempo')
    const { Secp256k1 } = await loadPeer<{ Secp256k1: Recover }>('ox')
    const { keccak256 } = await loadPeer<{ keccak256: (serialized: string) => Hex }>('viem')
    const node = new TempoNode(TxEnvelopeTempo, Secp256k1, keccak256)
    node.#server = createServer(async (request, response) => {
      const text = Buffer.concat(await request.toArray()).toString()
      const { id, method, params = [] } = JSON.parse(text) as { id: number; method: string; params?: unknown[] }
      response.setHeader('content-type', 'application/json')
      node.asked.push(method)
      try {
        response.end(JSON.stringify({ jsonrpc: '2.0', id, result: node.#answer(method, params) }))
      } catch (error) {
        const { code = -32_603, message } = error as Error & { code?: number }
        response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }))
      }
    })
    await new Promise<void>((ready) => node.#server!.listen(0, '127.0.0.1', ready))
    node.port = (node.#server.address() as AddressInfo).port
    return node
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/`
  }

  close(): void {
    this.#server?.close()
    this.#server?.closeAllConnections()
  }

  balance(address: string): bigint {
    return this.#balances.get(address.toLowerCase()) ?? 0n
  }

  give(address: string, amount: bigint): void {
    this.#balances.set(address.toLowerCase(), this.balance(address) + amount)
  }

  transferIn(hash: string): Settled | undefined {
    const memo = this.#receipts.get(hash)?.logs.at(-1)?.topics.at(-1)
    return this.settled.find(({ nonce }) => nonce === memo)
  }

  get #now(): number {
    return Math.floor(Date.now() / 1_000) + this.ahead
  }

  #answer(method: string, params: readonly unknown[]): unknown {
    switch (method) {
      case 'eth_chainId':
        return hex(this.chainId)
      case 'eth_blockNumber':
        return hex(this.#block)
      case 'eth_getBlockByNumber':
        return { number: hex(this.#block), timestamp: hex(this.#now), hash: word(hex(this.#block)), transactions: [] }
      case 'eth_call':
        return this.#call(params[0] as Call & { from?: string; calls?: readonly Call[] })
      case 'eth_sendRawTransaction':
        return this.#take(params[0] as string).transactionHash
      case 'eth_sendRawTransactionSync':
        return this.#take(params[0] as string)
      case 'eth_getTransactionReceipt':
        return this.#receipts.get(params[0] as string) ?? null
      case 'eth_getLogs':
        return this.#logs(params[0] as { address: string; topics: readonly (string | null)[]; fromBlock?: string })
      default:
        throw Object.assign(new Error(`the method ${method} does not exist`), { code: -32_601 })
    }
  }

  #call({ from = '', calls, data }: Call & { from?: string; calls?: readonly Call[] }): Hex {
    if (calls !== undefined) {
      const transfers = calls.map(transferOf)
      const sum = transfers.reduce((all, { amount }) => all + amount, 0n)
      if (sum > this.balance(from)) throw failure('execution reverted: InsufficientBalance')
      return word('1')
    }
    if (data?.startsWith(authorizationState)) {
      const nonce = `0x${data.slice(-64)}`
      return word(this.usedAuthorizations().includes(nonce) ? '1' : '0')
    }
    return '0x'
  }

  #take(serialized: string): Receipt {
    const envelope = this.#envelopes.deserialize(serialized)
    const { chainId, from, calls, nonceKey, validBefore = 0, gas, maxFeePerGas, feePayerSignature } = envelope
    if (chainId !== this.chainId) throw failure('invalid chain id')
    if (from === undefined) throw failure('invalid signature')
    if (nonceKey !== 2n ** 256n - 1n) throw failure('this node takes expiring nonces alone')
    if (validBefore <= this.#now) throw failure('transaction expired')
    if (validBefore > this.#now + expirySecondsMax) throw failure('the time of an expiring nonce is too long')
    const signed = this.#envelopes.getSignPayload(envelope)
    if (this.#taken.has(signed)) throw failure('already known')
    if (feePayerSignature === null) throw failure('the fee payer has not signed')
    const payer = feePayerSignature === undefined ? from : this.#sponsorOf(envelope, feePayerSignature)
    const transfers = calls.map(transferOf)
    const [fee, most] = [gasUsed, gas].map((units) => (units * maxFeePerGas) / 10n ** 12n) as [bigint, bigint]
    const paid = transfers.reduce((all, { amount }) => all + amount, 0n)
    const needed = paid + (payer === from ? most : 0n)
    if (this.balance(from) < needed || this.balance(payer) < most) throw failure('insufficient funds')
    this.#taken.add(signed)
    this.give(payer, -fee)
    this.fees.set(payer, (this.fees.get(payer) ?? 0n) + fee)
    const logs = transfers.flatMap((each) => this.#move(from, each))
    return this.#mined(this.#keccak(serialized), from, logs)
  }

  #sponsorOf(envelope: Envelope, signature: object): string {
    const payload = this.#envelopes.getFeePayerSignPayload(envelope, { sender: envelope.from! })
    return this.#secp256k1.recoverAddress({ payload, signature })
  }

  #move(from: string, { token, to, amount, memo }: Transfer): Log[] {
    this.give(from, -amount)
    this.give(to, amount)
    this.settled.push({ from, to, value: amount, nonce: memo })
    const topics = [word(from), word(to)]
    const log = (first: string, ...more: string[]) => ({
      address: token,
      topics: [first, ...topics, ...more],
      data: word(hex(amount)),
    })
    return [log(transferTopic), log(transferWithMemoTopic, memo)]
  }

  #mined(transactionHash: Hex, from: string, logs: readonly Log[]): Receipt {
    const at = { blockNumber: hex(++this.#block), blockHash: word(hex(this.#block)), transactionHash }
    const receipt: Receipt = {
      ...{ ...at, from, to: pathUsd, type: '0x76', status: '0x1', transactionIndex: '0x0' },
      ...{
        cumulativeGasUsed: hex(gasUsed),
        gasUsed: hex(gasUsed),
        effectiveGasPrice: hex(1),
        logsBloom: `0x${'00'.repeat(256)}`,
      },
      logs: logs.map((log, index) => ({
        ...log,
        ...at,
        transactionIndex: '0x0',
        logIndex: hex(index),
        removed: false,
      })),
    }
    this.#receipts.set(transactionHash, receipt)
    return receipt
  }

  #logs({
    address,
    topics,
    fromBlock = '0x0',
  }: {
    address: string
    topics: readonly (string | null)[]
    fromBlock?: string
  }) {
    const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()
    const first = fromBlock.startsWith('0x') ? Number(fromBlock) : 0
    return [...this.#receipts.values()]
      .filter(({ blockNumber }) => Number(blockNumber) >= first)
      .flatMap(({ logs }) => logs)
      .filter((log) => isSame(log.address, address))
      .filter((log) => topics.every((topic, at) => topic === null || isSame(topic, log.topics[at] ?? '')))
  }
}

function transferOf({ to = '', data = '' }: Call): Transfer {
  if (!data.startsWith(transferWithMemo) || to.toLowerCase() !== pathUsd) throw failure('execution reverted')
  const [recipient, amount, memo] = data.slice(transferWithMemo.length).match(/.{64}/g) as [string, string, string]
  return { token: pathUsd, to: `0x${recipient.slice(24)}`, amount: BigInt(`0x${amount}`), memo: `0x${memo}` }
}
