/**
 * The process that generates the load: signs its commands before the clock starts, sends them, and reports how long the answers took and
 * what both processes spent meanwhile.
 */
import { type Batch, batchOf, sendBatches } from './batch-lane.ts'
import { type Counts, countsBetween, readCounts } from './counts.ts'
import { type Outcome, requestBytes, sendAll, sendChains, sendPaced } from './lane.ts'
import { processorTime, processTime, readWriteCalls, type ThreadTime, threadTimes } from './machine.ts'
import { sendNostr, sendRedis, signNostr } from './peers/clients.ts'
import { signLives } from './sign-lives.ts'
import { bodyOf, remember, signPosts } from './sign-posts.ts'

export type Load = {
  readonly port: number
  /** The process whose time is read besides our own. */
  readonly pid: number
  readonly inFlight: number
  /** The socket of counting.ts in that process. */
  readonly counts?: string
  readonly work: /** `isEchoed`: the server does not store them, so later posts do not reply to them. */
    | {
        readonly kind: 'posts'
        readonly serviceId: string
        readonly count: number
        readonly isEchoed?: true
      }
    /** Posts at a steady rate into this many rooms, over `inFlight` connections. */
    | {
        readonly kind: 'steady posts'
        readonly serviceId: string
        readonly count: number
        readonly perSecond: number
        readonly rooms: number
      }
    /** The same posts to a peer that does not speak HTTP. */
    | { readonly kind: 'redis'; readonly count: number }
    | { readonly kind: 'nostr'; readonly count: number }
    /** Posts, this many per request to `/v1/commands`. */
    | { readonly kind: 'batches'; readonly serviceId: string; readonly count: number; readonly lines: number }
    /** `count` works, each from its request to its acceptance. */
    | { readonly kind: 'lives'; readonly serviceId: string; readonly count: number }
    /** `count` GETs, the targets in turn; with `perSecond` at that rate, otherwise `inFlight` at a time. */
    | {
        readonly kind: 'gets'
        readonly targets: readonly string[]
        readonly count: number
        readonly perSecond?: number
      }
}

/** The cost of one load. Times in microseconds, for the whole load. */
export type Measured = {
  readonly requests: number
  readonly seconds: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  readonly statuses: Readonly<Record<number, number>>
  /** Of requests not answered with 200, from write to answer; 0: there were none. */
  readonly refusedP99Ms: number
  readonly bodyBytes: number
  readonly clientUs: number
  readonly serverUserUs: number
  readonly serverSystemUs: number
  readonly threads: readonly ThreadTime[]
  /** The part of the time of all processors in which they were idle. */
  readonly idle: number
  readonly readWriteCalls: number
  /** What counting.ts counted meanwhile. */
  readonly counts?: Counts
  /** Ids of what was posted. */
  readonly eventIds: readonly string[]
}

async function run(load: Load): Promise<Measured> {
  const { port, inFlight, work } = load
  if (work.kind === 'posts') {
    const posts = signPosts(work.serviceId, work.count)
    const requests = posts.map(({ request }) => request)
    const eventIds = posts.map(({ eventId }) => eventId)
    const measured = await observed(load, eventIds, () => sendAll(port, inFlight, requests))
    if (work.isEchoed !== true) remember(posts)
    return measured
  }
  if (work.kind === 'steady posts') {
    const { perSecond, rooms } = work
    const posts = signPosts(work.serviceId, work.count, undefined, rooms)
    const requests = posts.map(({ request }) => request)
    const measured = await observed(load, [], () => sendPaced(port, { connections: inFlight, perSecond }, requests))
    // It is unknown which of them were refused: a reply to one of those would not be a post.
    if (measured.statuses[200] === posts.length) remember(posts)
    return measured
  }
  if (work.kind === 'batches') {
    const posts = signPosts(work.serviceId, work.count)
    const batches: Batch[] = []
    for (let at = 0; at < posts.length; at += work.lines) batches.push(batchOf(posts.slice(at, at + work.lines)))
    const measured = await observed(load, [], () => sendBatches(port, inFlight, batches))
    remember(posts)
    return measured
  }
  if (work.kind === 'redis') {
    const bodies = signPosts('peers', work.count).map(bodyOf)
    return observed(load, [], () => sendRedis(port, inFlight, bodies))
  }
  if (work.kind === 'nostr') {
    const texts = signPosts('peers', work.count).map((post) => String(JSON.parse(bodyOf(post).toString()).text))
    const requests = signNostr(texts)
    return observed(load, [], () => sendNostr(port, inFlight, requests))
  }
  if (work.kind === 'lives') {
    const lives = signLives(work.serviceId, work.count)
    return observed(load, [], () => sendChains(port, inFlight, lives))
  }
  const ready = work.targets.map((target) => requestBytes(target))
  const requests = Array.from({ length: work.count }, (_, n) => ready[n % ready.length]!)
  const { perSecond } = work
  if (perSecond === undefined) return observed(load, [], () => sendAll(port, inFlight, requests))
  return observed(load, [], () => sendPaced(port, { connections: inFlight, perSecond }, requests))
}

async function observed(
  { pid, counts }: Load,
  eventIds: readonly string[],
  send: () => Promise<Outcome>,
): Promise<Measured> {
  const countsBefore = counts === undefined ? undefined : await readCounts(counts)
  const before = {
    own: process.cpuUsage(),
    server: processTime(pid),
    threads: threadTimes(pid),
    machine: processorTime(),
    calls: readWriteCalls(pid),
  }
  const { seconds, latencies, statuses, bodyBytes, refusals = new Float64Array() } = await send()
  const own = process.cpuUsage(before.own)
  const server = processTime(pid)
  const threads = threadTimes(pid)
  const machine = processorTime()
  const calls = readWriteCalls(pid) - before.calls
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
    refusedP99Ms: refusals[Math.floor(refusals.length * 0.99)] ?? 0,
    bodyBytes,
    clientUs: own.user + own.system,
    serverUserUs: server.userUs - before.server.userUs,
    serverSystemUs: server.systemUs - before.server.systemUs,
    threads: threads.map(({ id, name, cpuUs, waitUs, switches }) => ({
      id,
      name,
      cpuUs: cpuUs - (past.get(id)?.cpuUs ?? 0),
      waitUs: waitUs - (past.get(id)?.waitUs ?? 0),
      switches: switches - (past.get(id)?.switches ?? 0),
    })),
    idle: (machine.idle - before.machine.idle) / (machine.all - before.machine.all),
    readWriteCalls: calls,
    ...(countsBefore === undefined ? {} : { counts: countsBetween(countsBefore, await readCounts(counts!)) }),
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
