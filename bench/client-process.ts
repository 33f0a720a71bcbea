/**
 * The process that the load comes from: signs its commands before the clock starts, sends them, and says how long the
 * answers took and what both processes spent meanwhile.
 */
import { type Outcome, requestBytes, sendAll, sendChains, sendPaced } from './lane.ts'
import { processTime, threadTimes } from './machine.ts'
import { signLives } from './sign-lives.ts'
import { remember, signPosts } from './sign-posts.ts'

export type Load = {
  readonly port: number
  /** Whose time is read beside our own. */
  readonly pid: number
  readonly inFlight: number
  readonly work:
    | { readonly kind: 'posts'; readonly serviceId: string; readonly count: number }
    /** `count` works, each from its request to its acceptance. */
    | { readonly kind: 'lives'; readonly serviceId: string; readonly count: number }
    /** `count` GETs, the targets in turn; with `perSecond` at that rate, else `inFlight` at a time. */
    | {
        readonly kind: 'gets'
        readonly targets: readonly string[]
        readonly count: number
        readonly perSecond?: number
      }
}

/** What one load cost. Times in microseconds, for the whole load. */
export type Measured = {
  readonly requests: number
  readonly seconds: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  readonly statuses: Readonly<Record<number, number>>
  readonly bodyBytes: number
  readonly clientUs: number
  readonly serverUserUs: number
  readonly serverSystemUs: number
  readonly threads: readonly { readonly id: number; readonly cpuUs: number; readonly waitUs: number }[]
  /** Ids of what was posted. */
  readonly eventIds: readonly string[]
}

async function run({ port, pid, inFlight, work }: Load): Promise<Measured> {
  if (work.kind === 'posts') {
    const posts = signPosts(work.serviceId, work.count)
    const requests = posts.map(({ request }) => request)
    const eventIds = posts.map(({ eventId }) => eventId)
    const measured = await observed(pid, eventIds, () => sendAll(port, inFlight, requests))
    remember(posts)
    return measured
  }
  if (work.kind === 'lives') {
    const lives = signLives(work.serviceId, work.count)
    return observed(pid, [], () => sendChains(port, inFlight, lives))
  }
  const ready = work.targets.map((target) => requestBytes(target))
  const requests = Array.from({ length: work.count }, (_, n) => ready[n % ready.length]!)
  const { perSecond } = work
  if (perSecond === undefined) return observed(pid, [], () => sendAll(port, inFlight, requests))
  return observed(pid, [], () => sendPaced(port, { connections: inFlight, perSecond }, requests))
}

async function observed(pid: number, eventIds: string[], send: () => Promise<Outcome>): Promise<Measured> {
  const before = { own: process.cpuUsage(), server: processTime(pid), threads: threadTimes(pid) }
  const { seconds, latencies, statuses, bodyBytes } = await send()
  const own = process.cpuUsage(before.own)
  const server = processTime(pid)
  const past = new Map(before.threads.map((time) => [time.id, time]))
  const requests = latencies.length
  return {
    requests,
    seconds,
    perSecond: requests / seconds,
    p50Ms: latencies[Math.floor(requests * 0.5)]!,
    p95Ms: latencies[Math.floor(requests * 0.95)]!,
    p99Ms: latencies[Math.floor(requests * 0.99)]!,
    statuses,
    bodyBytes,
    clientUs: own.user + own.system,
    serverUserUs: server.userUs - before.server.userUs,
    serverSystemUs: server.systemUs - before.server.systemUs,
    threads: threadTimes(pid).map(({ id, cpuUs, waitUs }) => ({
      id,
      cpuUs: cpuUs - (past.get(id)?.cpuUs ?? 0),
      waitUs: waitUs - (past.get(id)?.waitUs ?? 0),
    })),
    eventIds,
  }
}

process.on('message', (load: Load) => {
  run(load).then(
    (measured) => process.send?.({ measured }),
    (error: Error) => process.send?.({ problem: error.stack ?? error.message }),
  )
})
process.once('disconnect', () => process.exit(0))
