/**
 * The process that the load comes from: signs its commands before the clock starts, sends them, and says how long the
 * answers took and what both processes spent meanwhile.
 */
import { hash } from 'node:crypto'
import { type SignedCommand, type Signer, signCommand, signerFromSeed } from '../src/cli/sign.ts'
import { requestBytes, sendAll } from './lane.ts'
import { processTime, threadTimes } from './machine.ts'

export type Load = {
  readonly port: number
  /** Whose time is read beside our own. */
  readonly pid: number
  readonly inFlight: number
  readonly work:
    | { readonly kind: 'posts'; readonly serviceId: string; readonly count: number; readonly rooms: number }
    /** `count` GETs, the targets in turn. */
    | { readonly kind: 'gets'; readonly targets: readonly string[]; readonly count: number }
}

/** What one load cost. Times of the server in microseconds for the whole load. */
export type Measured = {
  readonly seconds: number
  readonly perSecond: number
  readonly p50Ms: number
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

const authors = 1000
const knownMax = 40
const words =
  'the board keeps every post signed and proven so that anyone can check what was said when and by whom without asking it again ☂ log root leaf'.split(
    ' ',
  )

let signers: Signer[] | undefined
let posted = 0
/** Event ids by room that were acknowledged in an earlier load: what a reply may answer. */
const known = new Map<number, string[]>()

function signPosts(serviceId: string, count: number, rooms: number): [SignedCommand, room: number][] {
  signers ??= Array.from({ length: authors }, (_, n) => signerFromSeed(hash('sha256', `bench author ${n}`, 'buffer')))
  const nowSeconds = Math.floor(Date.now() / 1000)
  return Array.from({ length: count }, () => {
    const n = posted++
    const room = (n * 7919) % rooms
    const parents = known.get(room) ?? []
    // As in the corpus: five in six answer an earlier message of their room.
    const parent = n % 6 === 0 ? undefined : parents[(n * 31) % parents.length]
    const fields = { operation: 'post', room: `room-${room}`, text: textOf(n) }
    const signer = signers![(n * 613) % authors]!
    const reply = parent === undefined ? {} : { reply_to: parent }
    return [signCommand({ ...fields, ...reply }, { signer, serviceId, nowSeconds }), room]
  })
}

/** 100 to 300 bytes, no two alike. */
function textOf(n: number): string {
  let text = `${n}`
  const length = 100 + ((n * 97) % 180)
  for (let k = 0; text.length < length; k++) text += ` ${words[(n + k * k) % words.length]}`
  return text
}

function remember(sent: readonly (readonly [SignedCommand, number])[]): void {
  for (const [{ eventId }, room] of sent) {
    const ids = known.get(room) ?? []
    ids.push(eventId)
    if (ids.length > knownMax) ids.shift()
    known.set(room, ids)
  }
}

async function run({ port, pid, inFlight, work }: Load): Promise<Measured> {
  const signed = work.kind === 'posts' ? signPosts(work.serviceId, work.count, work.rooms) : []
  const ready = work.kind === 'gets' ? work.targets.map((target) => requestBytes(target)) : []
  const requests =
    work.kind === 'posts'
      ? signed.map(([{ body }]) => requestBytes('/v1/command', body))
      : Array.from({ length: work.count }, (_, n) => ready[n % ready.length]!)
  const before = { own: process.cpuUsage(), server: processTime(pid), threads: threadTimes(pid) }
  const { seconds, latencies, statuses, bodyBytes } = await sendAll(port, inFlight, requests)
  const own = process.cpuUsage(before.own)
  const server = processTime(pid)
  const threads = threadTimes(pid)
  remember(signed)
  const past = new Map(before.threads.map((time) => [time.id, time]))
  return {
    seconds,
    perSecond: requests.length / seconds,
    p50Ms: latencies[Math.floor(latencies.length * 0.5)]!,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)]!,
    statuses,
    bodyBytes,
    clientUs: own.user + own.system,
    serverUserUs: server.userUs - before.server.userUs,
    serverSystemUs: server.systemUs - before.server.systemUs,
    threads: threads.map(({ id, cpuUs, waitUs }) => ({
      id,
      cpuUs: cpuUs - (past.get(id)?.cpuUs ?? 0),
      waitUs: waitUs - (past.get(id)?.waitUs ?? 0),
    })),
    eventIds: signed.map(([{ eventId }]) => eventId),
  }
}

process.on('message', (load: Load) => {
  run(load).then(
    (measured) => process.send?.({ measured }),
    (error: Error) => process.send?.({ problem: error.stack ?? error.message }),
  )
})
process.once('disconnect', () => process.exit(0))
