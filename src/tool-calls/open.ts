/** Everything that calls of tools are made of, put together: the way out, the board's own tools, the wallet, the relay. */
import { createHmac } from 'node:crypto'
import { drained, monotonicMs, wallSeconds } from '../clock.ts'
import type { News } from '../command/live-facts.ts'
import type { Doors } from '../command/plan.ts'
import type { Actors } from '../command/ports.ts'
import type { Front } from '../command/router.ts'
import type { Config } from '../config.ts'
import { log } from '../observe.ts'
import { createOutgoing, type Outgoing } from '../outgoing/request.ts'
import { createPayer } from '../payments/payer.ts'
import { Sales } from '../payments/sales.ts'
import { Seller } from '../payments/seller.ts'
import { openWallet } from '../payments/wallet.ts'
import type { ReadRequest } from '../reads/read.ts'
import { release } from '../release.ts'
import { ToolDesk } from '../tools/service.ts'
import { Unsettled } from './open-payments.ts'
import { OwnTools } from './own-tools/run.ts'
import { Relay } from './relay.ts'
import { Calls } from './service.ts'

export type CallingOptions = {
  /** Public address of the board. */
  readonly address: string
  readonly directory: { readonly facts: { readonly service_id: string }; readonly identity: { readonly id: string } }
  readonly vkey: string
  readonly news: Pick<News, 'noteChange'>
  readonly actors: Actors
  readonly secret: Buffer
  readonly read: Front['read']
  readonly verify: Doors['verify']
}

type Calling = {
  readonly calls: Calls
  readonly own: OwnTools
  readonly tools: ToolDesk
  /** Sells the board's own tools, where the operator wants it. */
  readonly seller: Seller | undefined
  /** The way out for requests to addresses that users gave. */
  readonly outgoing: Outgoing
  /** Takes up what an earlier run has left. */
  resume(): Promise<void>
  close(): Promise<void>
}

/** The daily round probes one machine this often at most. */
const labGapSeconds = 60
/** Calls that are under way when the board is stopped have so long; what is open then stays so. */
const drainMs = 4_000

export async function startCalling(config: Config, options: CallingOptions): Promise<Calling> {
  const { address, directory, vkey, news, actors, secret, read, verify } = options
  const serviceId = directory.facts.service_id
  const stopping = new AbortController()
  const operators = new Set(config.operators)
  const userAgent = `Broadside/${release} (+${address})`
  const outgoing = createOutgoing({ loopback: config.loopback, userAgent })
  const wallet = config.walletKeyFile === '' ? undefined : await openWallet(config.walletKeyFile)
  const own = new OwnTools({ serviceId, vkey, verify, search: (args, from) => search(read, args, from) })
  const payer = createPayer({
    ...(wallet === undefined ? {} : { wallet }),
    nodes: config.payNodes,
    outgoing,
    wallSeconds,
  })
  const later = (callback: () => void, ms: number) => void setTimeout(callback, ms).unref()
  const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref())
  const unsettled = new Unsettled({
    read,
    payer,
    wallSeconds,
    pause,
    report: (event, facts) => log('warn', event, facts),
  })
  const relay: Relay = new Relay({
    actors,
    read,
    outgoing,
    payer,
    walletMicros: config.payCapMicros,
    now: monotonicMs,
    wallSeconds,
    pause,
    signal: stopping.signal,
    unsettled: (call, payment) => unsettled.take(relay, call, payment),
  })
  const calls = new Calls({
    read,
    own,
    operators,
    relay,
    pays: wallet !== undefined,
    secret,
    now: monotonicMs,
    wallSeconds,
    report: (error) => log('error', 'call_failed', { problem: error.message, stack: error.stack }),
  })
  const tools = new ToolDesk({
    limitsOn: config.limitsOn,
    secret,
    actors,
    read,
    outgoing,
    operators,
    noteChange: (actor, change) => news.noteChange(actor, change),
    wallSeconds,
    // One machine is asked once in two seconds; loopback is this machine.
    pause: () => (config.loopback ? Promise.resolve() : pause(2_000)),
    seed: createHmac('sha256', secret).update('broadside-lab-v1').digest('hex'),
    gapSeconds: config.loopback ? 0 : labGapSeconds,
    later,
    report: (facts) => log('error', 'tool_desk', facts),
  })
  if (wallet !== undefined) log('info', 'wallet', { address: wallet.address, cap_day_micros: config.payCapMicros })
  const sale = config.sale
  const paySecret = createHmac('sha256', secret).update('broadside-pay-v1').digest()
  const realm = new URL(address).host
  const book = new Sales({ actors, read, boardIdentity: directory.identity.id })
  const seller =
    sale === undefined ? undefined : new Seller({ ...sale, realm, secret: paySecret, outgoing, book, wallSeconds })
  return {
    calls,
    own,
    tools,
    seller,
    outgoing,
    async resume() {
      await unsettled.resume(relay)
      tools.resume()
    },
    async close() {
      tools.close()
      await drained(() => calls.open === 0, drainMs)
      stopping.abort()
      unsettled.close()
      outgoing.close()
      await own.close()
    },
  }
}

/** Searches everything public, as any caller would. */
function search(
  read: CallingOptions['read'],
  args: ReadRequest['args'],
  from: string,
): ReturnType<ConstructorParameters<typeof OwnTools>[0]['search']> {
  return new Promise((resolve) =>
    read(
      { op: 'events.list', args, reader: '' },
      (found) => {
        if (found === undefined) return resolve('the search did not answer: try again')
        if (found.ok) return resolve(JSON.parse(found.json))
        resolve(('refusal' in found ? found.refusal : found.absent).message)
      },
      { address: from },
    ),
  )
}
