/** A real board in a separate process, and a client process for it: started, used and ended by a bench. */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Load, Measured } from './client-process.ts'
import { countingModule } from './counts.ts'
import { processTime, projectDirectory, residentMib, withDirectory } from './machine.ts'

const measureMsMax = 120_000
const stopMsMax = 15_000

/** Something on a port that answers HTTP, and its process. */
export type Target = { readonly port: number; readonly pid: number }

export type BoardRun = Target & {
  readonly serviceId: string
  /** Posts `count` signed posts from the client process. */
  post(inFlight: number, count: number): Promise<Measured>
  /** Posts at a steady rate over this many connections, whatever is refused. */
  postSteadily(perSecond: number, connections: number, count: number): Promise<Measured>
  /** The same posts to another server, which does not store them. */
  echo(target: Target, inFlight: number, count: number): Promise<Measured>
  /** Posts them by `/v1/commands`, `lines` per request. */
  postBatches(inFlight: number, count: number, lines: number): Promise<Measured>
  /** Takes `count` works through their lives, from the client process. */
  live(inFlight: number, count: number): Promise<Measured>
  /** Gets the targets in turn from the client process, from the board or another server. */
  get(inFlight: number, targets: readonly string[], count: number, from?: Target): Promise<Measured>
  /** The same at a steady rate, over this many connections. */
  getPaced(
    perSecond: number,
    connections: number,
    targets: readonly string[],
    count: number,
    from?: Target,
  ): Promise<Measured>
  residentMib(): number
  /** The time until the board reported that it is ready: wall time and processor time. */
  readonly start: { readonly seconds: number; readonly cpuSeconds: number }
}

/** Threads of each kind that a board starts by default on this machine. */
const half = String(Math.max(1, availableParallelism() >> 1))

/**
 * Starts a board on a fresh directory, passes it to `use`, and ends it whatever happens. Rate limits are off unless `more` says otherwise.
 * PLACEMENT, SHARDS, VERIFY_THREADS and other variables of the board are passed on. `more` are variables too; its DATA_DIR is an existing
 * board. `checkout` is the directory of a built Broadside, by default this one. `under`: a tracer and its arguments to run it under.
 */
export function withBoard<Result>(
  use: (board: BoardRun) => Promise<Result>,
  more: Readonly<Record<string, string>> = {},
  checkout: string = projectDirectory,
  under: readonly string[] = [],
): Promise<Result> {
  return withDirectory(async (directory) => {
    const counts = join(directory, 'counts')
    const given: Record<string, string> = { SHARDS: half, LOG_LEVEL: 'warn', ...more, ...process.env }
    const program = join(checkout, 'dist', 'src', 'cli', 'main.js')
    const args = ['--import', countingModule, program, 'serve']
    args.push('--data', more.DATA_DIR ?? join(directory, 'data'), '--port', '0')
    const env = { BROADSIDE_LIMITS: 'off', BENCH_COUNTS: counts, ...given }
    const startedAt = performance.now()
    const [command = '', ...words] = [...under, process.execPath, ...args]
    const server = spawn(command, words, { cwd: checkout, env, stdio: ['ignore', 'pipe', 'inherit'] })
    const client = fork(new URL('./client-process.ts', import.meta.url))
    try {
      const address = await readyAddress(server)
      const pid = under.length === 0 ? server.pid! : childOf(server.pid!)
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
        residentMib: () => residentMib(pid),
        start: { seconds, cpuSeconds: (userUs + systemUs) / 1e6 },
        getPaced: (perSecond, connections, targets, count, from = { port, pid }) =>
          measure(client, { ...from, inFlight: connections, work: { kind: 'gets', targets, count, perSecond } }),
        post: (inFlight, count) =>
          measure(client, { port, pid, counts, inFlight, work: { kind: 'posts', serviceId, count } }),
        postSteadily: (perSecond, connections, count) =>
          measureAny(client, {
            port,
            pid,
            inFlight: connections,
            work: { kind: 'steady posts', serviceId, count, perSecond, rooms: 1 },
          }),
        echo: (target, inFlight, count) =>
          measure(client, { ...target, inFlight, work: { kind: 'posts', serviceId, count, isEchoed: true } }),
        postBatches: (inFlight, count, lines) =>
          measure(client, { port, pid, counts, inFlight, work: { kind: 'batches', serviceId, count, lines } }),
        live: (inFlight, count) => measure(client, { port, pid, inFlight, work: { kind: 'lives', serviceId, count } }),
        get: (inFlight, targets, count, from = { port, pid }) =>
          measure(client, { port: from.port, pid: from.pid, inFlight, work: { kind: 'gets', targets, count } }),
      })
    } finally {
      client.disconnect()
      if (under.length > 0 && server.exitCode === null) process.kill(childOf(server.pid!), 'SIGTERM')
      await stop(server)
    }
  })
}

/** The process inside a tracer. */
function childOf(tracer: number): number {
  return Number(readFileSync(`/proc/${tracer}/task/${tracer}/children`, 'utf8').trim().split(' ')[0])
}

/** Runs `use` next to a server of static bytes, which any read is compared with. */
export async function withStatic<Result>(use: (target: Target) => Promise<Result>): Promise<Result> {
  const child = fork(new URL('./static-process.ts', import.meta.url))
  try {
    const [{ port }] = (await once(child, 'message')) as [{ port: number }]
    return await use({ port, pid: child.pid! })
  } finally {
    child.disconnect()
  }
}

export async function readyAddress(server: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: server.stdout! })) {
    const address = /\bhttps?:\/\/\S+/.exec(line)?.[0]
    if (address === undefined) continue
    server.stdout!.resume()
    return address
  }
  throw new Error('the server did not start')
}

/** Fails if an answer is not 200. */
export async function measure(client: ChildProcess, load: Load): Promise<Measured> {
  const measured = await measureAny(client, load)
  const bad = Object.entries(measured.statuses).filter(([status]) => status !== '200')
  if (bad.length > 0)
    throw new Error(`answers that were not 200: ${bad.map(([status, n]) => `${n} x ${status}`).join()}`)
  return measured
}

export async function measureAny(client: ChildProcess, load: Load): Promise<Measured> {
  const answer = once(client, 'message', { signal: AbortSignal.timeout(measureMsMax) })
  client.send(load)
  const [{ measured, problem }] = (await answer) as [{ measured?: Measured; problem?: string }]
  if (measured === undefined) throw new Error(`the client failed: ${problem}`)
  return measured
}

export async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const ended = once(server, 'exit')
  server.kill('SIGTERM')
  const timer = setTimeout(() => server.kill('SIGKILL'), stopMsMax)
  await ended
  clearTimeout(timer)
}
