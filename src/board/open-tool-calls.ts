/** Assembles the parts that tool calls need: outgoing requests, the board's own tools, the wallet, and the relay. */

import { createHmac } from 'node:crypto'
import { drained, pause } from '../clock.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import type { Actors } from '../command/ports.ts'
import type { Config } from '../config.ts'
import { log } from '../observe.ts'
import { createOutgoing, type Outgoing } from '../outgoing/request.ts'
import { OwnTools } from '../own-tools/run.ts'
import { createPayer } from '../payments/payer.ts'
import type { Payer } from '../payments/payment.ts'
import { Sales } from '../payments/sales.ts'
import { Seller } from '../payments/seller.ts'
import { openWallet, type Wallet } from '../payments/wallet.ts'
import type { Platform } from '../platform.ts'
import { dataOf, type ReadCall, type ReadRequest } from '../reads/read.ts'
import { release } from '../release.ts'
import { Unsettled } from '../tool-calls/open-payments.ts'
import { Relay } from '../tool-calls/relay.ts'
import { Calls } from '../tool-calls/service.ts'
import { ToolProbes } from '../tools/service.ts'
import type { Checks } from '../verify/verifier.ts'
import type { ReadRouter } from './read-router.ts'

type CallingOptions = Pick<Platform, 'clock' | 'random' | 'startThread'> & {
  /** Public address of the board. */
  readonly address: string
  readonly directory: { readonly facts: { readonly service_id: string }; readonly identity: { readonly id: string } }
  /** The log that is being appended to. */
  readonly log: { readonly vkey: string }
  readonly news: Pick<LiveFacts, 'noteChange'>
  readonly actorHost: Actors
  readonly secret: Buffer
  readonly reads: Pick<ReadRouter, 'read'>
  readonly verifier: Pick<Checks, 'verify'>
  /** Replaces the network. */
  readonly outgoing?: Outgoing | undefined
  /** Replaces the key file of the configuration. */
  readonly wallet?: Wallet | undefined
}

export type Calling = {
  readonly calls: Calls
  readonly own: OwnTools
  readonly tools: ToolProbes
  /** Sells the board's own tools, if the operator enables it. */
  readonly seller: Seller | undefined
  /** Continues the calls that an earlier run left open. */
  resume(): Promise<void>
  close(): Promise<void>
}

/** Minimum gap between two probes of one machine in the daily round. */
const labGapSeconds = 60
/** Time for calls in progress to finish when the board stops. Calls still open then stay open. */
const drainMs = 4_000

export async function startCalling(config: Config, options: CallingOptions): Promise<Calling> {
  const { address, directory, log: growing, reads, verifier, secret, clock, random } = options
  const stopping = new AbortController()
  const outgoing =
    options.outgoing ??
    createOutgoing({ timers: clock, loopback: config.loopback, userAgent: `Broadside/${release} (+${address})` })
  const wallet = options.wallet ?? (config.walletKeyFile === '' ? undefined : await openWallet(config.walletKeyFile))
  if (wallet !== undefined) log('info', 'wallet', { address: wallet.address, cap_day_micros: config.payCapMicros })
  const payer = createPayer({
    ...(wallet === undefined ? {} : { wallet }),
    nodes: config.payNodes,
    outgoing,
    wallSeconds: clock.wallSeconds,
    random,
  })
  const own = new OwnTools(
    {
      serviceId: directory.facts.service_id,
      vkey: growing.vkey,
      verify: (...asked) => verifier.verify(...asked),
      search: (args, from) => search(reads, args, from),
    },
    options,
  )
  const { relay, unsettled } = openRelay(config, options, { outgoing, payer, signal: stopping.signal })
  const calls = new Calls({
    read: (request, answer) => reads.read(request, answer),
    own,
    operators: new Set(config.operators),
    relay,
    pays: wallet !== undefined,
    secret,
    now: clock.monotonicMs,
    wallSeconds: clock.wallSeconds,
    report: (error) => log('error', 'call_failed', { problem: error.message, stack: error.stack }),
  })
  const tools = openToolProbes(config, options, outgoing)
  return {
    calls,
    own,
    tools,
    seller: openSeller(config, options, outgoing),
    async resume() {
      await unsettled.resume(relay)
      tools.resume()
    },
    async close() {
      tools.close()
      await drained(clock, () => calls.open === 0, drainMs)
      stopping.abort()
      unsettled.close()
      outgoing.close()
      await own.close()
    },
  }
}

/** Calls of other people's tools, and payments for them whose outcome is unknown. */
function openRelay(
  config: Config,
  { actorHost, reads, clock }: CallingOptions,
  { outgoing, payer, signal }: { readonly outgoing: Outgoing; readonly payer: Payer; readonly signal: AbortSignal },
) {
  const read: ReadCall = (request, answer) => reads.read(request, answer)
  const common = {
    read,
    payer,
    wallSeconds: clock.wallSeconds,
    pause: (ms: number) => pause(clock, ms),
  }
  const unsettled = new Unsettled({ ...common, report: (event, facts) => log('warn', event, facts) })
  const walletMicros = config.payCapMicros
  const relay = new Relay({
    ...common,
    actors: actorHost,
    outgoing,
    walletMicros,
    now: clock.monotonicMs,
    signal,
    unsettled,
  })
  return { relay, unsettled }
}

/** Probes and reviews of the tools in the directory. */
function openToolProbes(
  config: Config,
  { actorHost, news, reads, secret, clock }: CallingOptions,
  outgoing: Outgoing,
): ToolProbes {
  return new ToolProbes({
    limitsOn: config.limitsOn,
    secret,
    actors: actorHost,
    read: (request, answer) => reads.read(request, answer),
    outgoing,
    operators: new Set(config.operators),
    noteChange: (actor, change) => news.noteChange(actor, change),
    wallSeconds: clock.wallSeconds,
    // Each machine gets at most one request in two seconds; loopback is this machine, so no pause.
    pause: () => (config.loopback ? Promise.resolve() : pause(clock, 2_000)),
    seed: createHmac('sha256', secret).update('broadside-lab-v1').digest('hex'),
    gapSeconds: config.loopback ? 0 : labGapSeconds,
    later: clock.later,
    report: (facts) => log('error', 'tool_desk', facts),
  })
}

function openSeller(
  { sale }: Config,
  { address, directory, actorHost, reads, secret, clock }: CallingOptions,
  outgoing: Outgoing,
): Seller | undefined {
  if (sale === undefined) return undefined
  const sales = new Sales({
    actors: actorHost,
    read: (request, answer) => reads.read(request, answer),
    boardIdentity: directory.identity.id,
  })
  const paySecret = createHmac('sha256', secret).update('broadside-pay-v1').digest()
  return new Seller({
    ...sale,
    realm: new URL(address).host,
    secret: paySecret,
    outgoing,
    sales,
    wallSeconds: clock.wallSeconds,
  })
}

/** Searches everything public, as anyone could. */
function search(
  reads: CallingOptions['reads'],
  args: ReadRequest['args'],
  from: string,
): ReturnType<ConstructorParameters<typeof OwnTools>[0]['search']> {
  return new Promise((resolve) =>
    reads.read(
      { op: 'events.list', args, reader: '' },
      (found) => {
        if (found === undefined) return resolve('the search did not answer: try again')
        if (found.ok) return resolve(dataOf(found))
        resolve(('refusal' in found ? found.refusal : found.absent).message)
      },
      { address: from },
    ),
  )
}
