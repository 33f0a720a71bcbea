/** Everything that calls of tools are made of, put together: the way out, the board's own tools, the wallet, the relay. */
import { drained, monotonicMs, wallSeconds } from '../clock.ts'
import type { Config } from '../config.ts'
import { log } from '../observe.ts'
import { createOutgoing, type Outgoing } from '../outgoing/request.ts'
import { OwnTools } from '../own-tools/run.ts'
import { createPayer } from '../payments/payer.ts'
import { openWallet } from '../payments/wallet.ts'
import { release } from '../release.ts'
import type { ReadAnswer, ReadRequest } from '../views/reads/read.ts'
import { Calls } from './calls.ts'
import type { Doors } from './plan.ts'
import type { Actors, NoAnswer } from './ports.ts'
import { Relay } from './relay.ts'
import { Unsettled } from './unsettled.ts'

export type CallingOptions = {
  /** Public address of the board. */
  readonly address: string
  readonly directory: { readonly facts: { readonly service_id: string } }
  readonly vkey: string
  readonly actors: Actors
  readonly secret: Buffer
  readonly read: (request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void) => void
  readonly verify: Doors['verify']
}

export type Calling = {
  readonly calls: Calls
  readonly own: OwnTools
  /** The way out for whoever has to send something to an address that somebody gave. */
  readonly outgoing: Outgoing
  /** Takes up what an earlier run has left. */
  resume(): Promise<void>
  close(): Promise<void>
}

/** Calls that are under way when the board is told to stop have so long; what is open then stays so. */
const drainMs = 4_000

export async function startCalling(config: Config, options: CallingOptions): Promise<Calling> {
  const { address, directory, vkey, actors, secret, read, verify } = options
  const serviceId = directory.facts.service_id
  const stopping = new AbortController()
  const userAgent = `Broadside/${release} (+${address})`
  const outgoing = createOutgoing({ loopback: config.loopback, userAgent })
  const wallet = config.walletKeyFile === '' ? undefined : await openWallet(config.walletKeyFile)
  const own = new OwnTools({ serviceId, vkey, verify, search: (args) => search(read, args) })
  const payer = createPayer({
    ...(wallet === undefined ? {} : { wallet }),
    nodes: config.payNodes,
    outgoing,
    wallSeconds,
  })
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
    operators: new Set(config.operators),
    now: monotonicMs,
    wallSeconds,
    pause,
    signal: stopping.signal,
    unsettled: (call, payment) => unsettled.take(relay, call, payment),
  })
  const calls = new Calls({
    read,
    own,
    relay,
    pays: wallet !== undefined,
    secret,
    now: monotonicMs,
    wallSeconds,
    report: (error) => log('error', 'call_failed', { problem: error.message, stack: error.stack }),
  })
  if (wallet !== undefined) log('info', 'wallet', { address: wallet.address, cap_day_micros: config.payCapMicros })
  return {
    calls,
    own,
    outgoing,
    resume: () => unsettled.resume(relay),
    async close() {
      await drained(() => calls.open === 0, drainMs)
      stopping.abort()
      unsettled.close()
      outgoing.close()
      await own.close()
    },
  }
}

/** Searches everything public, as anybody would. */
function search(
  read: CallingOptions['read'],
  args: ReadRequest['args'],
): ReturnType<ConstructorParameters<typeof OwnTools>[0]['search']> {
  return new Promise((resolve) =>
    read({ op: 'events.list', args, reader: '' }, (found) => {
      if (found === undefined) return resolve('the search did not answer: try again')
      if (found.ok) return resolve(JSON.parse(found.json))
      resolve(('refusal' in found ? found.refusal : found.absent).message)
    }),
  )
}
