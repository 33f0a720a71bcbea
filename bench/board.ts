/** A real board in a process of its own, and a client process for it: started, used and ended by a bench. */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Load, Measured } from './client-process.ts'
import { processTime, projectDirectory, residentMib, threadTimes, withDirectory } from './machine.ts'

const measureMsMax = 120_000
const stopMsMax = 15_000

/** Something at a port that answers HTTP, and its process. */
export type Target = { readonly port: number; readonly pid: number }

export type BoardRun = Target & {
  readonly serviceId: string
  /** Posts `count` signed posts from the client process. */
  post(inFlight: number, count: number): Promise<Measured>
  /** Has `count` works live their lives, from the client process. */
  live(inFlight: number, count: number): Promise<Measured>
  /** Gets the targets in turn from the client process, of the board or of another server. */
  get(inFlight: number, targets: readonly string[], count: number, from?: Target): Promise<Measured>
  /** The same at a steady rate, over so many connections. */
  getPaced(
    perSecond: number,
    connections: number,
    targets: readonly string[],
    count: number,
    from?: Target,
  ): Promise<Measured>
  residentMib(): number
  /** What it took until the board said that it is ready: by the clock, and on processors. */
  readonly start: { readonly seconds: number; readonly cpuSeconds: number }
  /** The threads that the board starts, by name, for their time in `Measured`. */
  readonly threadNames: ReadonlyMap<number, string>
}

/** Threads of each kind that a board takes by itself on this machine. */
const half = String(Math.max(1, availableParallelism() >> 1))

/**
 * Starts a board on a fresh directory, hands it to `use`, and ends it whatever happens. Rates are lifted unless `more` says otherwise. PLACEMENT,
 * SHARDS, VERIFY_THREADS and other variables of the board are handed on. `more` are variables too; its DATA_DIR is a board that exists.
 */
export function withBoard<Result>(
  use: (board: BoardRun) => Promise<Result>,
  more: Readonly<Record<string, string>> = {},
): Promise<Result> {
  return withDirectory(async (directory) => {
    const given: Record<string, string> = { SHARDS: half, LOG_LEVEL: 'warn', ...more, ...process.env }
    const program = join(projectDirectory, 'dist', 'src', 'cli', 'main.js')
    const args = [program, 'serve', '--data', more.DATA_DIR ?? join(directory, 'data'), '--port', '0']
    const env = { BROADSIDE_LIMITS: 'off', ...given }
    const startedAt = performance.now()
    const server = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
    const client = fork(new URL('./client-process.ts', import.meta.url))
    try {
      const pid = server.pid!
      const address = await readyAddress(server)
      const seconds = (performance.now() - startedAt) / 1000
      const { userUs, systemUs } = processTime(pid)
      const port = Number(new URL(address).port)
      const answer = await fetch(`${address}/capabilities`)
      const { data } = (await answer.json()) as { data: { service_id: string } }
      const serviceId = data.service_id
      return await use({
        port,
        pid,
        serviceId,
        threadNames: nameThreads(pid, await actorThreads(address), given.VERIFY_THREADS),
        residentMib: () => residentMib(pid),
        start: { seconds, cpuSeconds: (userUs + systemUs) / 1e6 },
        getPaced: (perSecond, connections, targets, count, from = { port, pid }) =>
          measure(client, { ...from, inFlight: connections, work: { kind: 'gets', targets, count, perSecond } }),
        post: (inFlight, count) => measure(client, { port, pid, inFlight, work: { kind: 'posts', serviceId, count } }),
        live: (inFlight, count) => measure(client, { port, pid, inFlight, work: { kind: 'lives', serviceId, count } }),
        get: (inFlight, targets, count, from = { port, pid }) =>
          measure(client, { port: from.port, pid: from.pid, inFlight, work: { kind: 'gets', targets, count } }),
      })
    } finally {
      client.disconnect()
      await stop(server)
    }
  })
}

/** Runs `use` beside a server of ready bytes: what any read is compared with. */
export async function withStatic<Result>(use: (target: Target) => Promise<Result>): Promise<Result> {
  const child = fork(new URL('./static-process.ts', import.meta.url))
  try {
    const [{ port }] = (await once(child, 'message')) as [{ port: number }]
    return await use({ port, pid: child.pid! })
  } finally {
    child.disconnect()
  }
}

async function readyAddress(server: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: server.stdout! })) {
    const address = /\bhttps?:\/\/\S+/.exec(line)?.[0]
    if (address === undefined) continue
    server.stdout!.resume()
    return address
  }
  throw new Error('the board did not start')
}

/** Threads that the board names in its metrics beside the main one, in the order of their start. */
async function actorThreads(address: string): Promise<string[]> {
  const metrics = await (await fetch(`${address}/metrics`)).text()
  const names = [...metrics.matchAll(/^broadside_heap_bytes\{thread="([\w-]+)"\}/gm)].map(([, name]) => name!)
  return names.filter((name) => name !== 'front')
}

/** Verifying threads start after those of the actors; where shard and log share a thread there are none. */
function nameThreads(pid: number, actors: readonly string[], verifyThreads: string | undefined): Map<number, string> {
  const verifiers = Number(verifyThreads ?? (actors.includes('back') ? 0 : half))
  const names = [...actors, ...Array.from({ length: verifiers }, (_, n) => (verifiers > 1 ? `verify ${n}` : 'verify'))]
  const newest = threadTimes(pid)
    .filter(({ isNode }) => isNode)
    .slice(-names.length)
  return new Map([[pid, 'front'], ...newest.map(({ id }, n): [number, string] => [id, names[n]!])])
}

async function measure(client: ChildProcess, load: Load): Promise<Measured> {
  const answer = once(client, 'message', { signal: AbortSignal.timeout(measureMsMax) })
  client.send(load)
  const [{ measured, problem }] = (await answer) as [{ measured?: Measured; problem?: string }]
  if (measured === undefined) throw new Error(`the client failed: ${problem}`)
  const bad = Object.entries(measured.statuses).filter(([status]) => status !== '200')
  if (bad.length > 0)
    throw new Error(`answers that were not 200: ${bad.map(([status, n]) => `${n} x ${status}`).join()}`)
  return measured
}

async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const ended = once(server, 'exit')
  server.kill('SIGTERM')
  const timer = setTimeout(() => server.kill('SIGKILL'), stopMsMax)
  await ended
  clearTimeout(timer)
}
