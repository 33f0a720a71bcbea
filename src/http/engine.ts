/** The port: which engine serves it, how many connections it accepts, and what it answers on its own, in the board's format. */

import { randomUUID } from 'node:crypto'
import { internalLimits } from '../../actors/kernel/limits.ts'
import { descriptorsMax } from '../../storage/machine-disk.ts'
import { descriptorsForSegments } from '../../storage/sealed-segments.ts'
import type { Clock } from '../clock.ts'
import type { EngineChoice } from '../config.ts'
import { log } from '../observe.ts'
import type { ConnectionCount } from './connection-count.ts'
import type { Handler, HttpOptions, HttpServer } from './port.ts'
import { createUwsServer, EngineMissing } from './uws.ts'

/** Only the chosen engine is loaded. Throws EngineMissing if `uws` is requested by name and has no binary for this machine. */
export async function createHttpServer(
  engine: EngineChoice,
  handler: Handler,
  options: HttpOptions,
  report: (level: 'warn', event: string, facts: Readonly<Record<string, unknown>>) => void = log,
): Promise<HttpServer> {
  const onNode = async () => (await import('./node.ts')).createNodeServer(handler, options)
  if (engine === 'node') return onNode()
  try {
    return await createUwsServer(handler, options)
  } catch (error) {
    if (engine === 'uws' || !(error instanceof EngineMissing)) throw error
    report('warn', 'engine.fallback', { engine: 'node', problem: error.message })
    return onNode()
  }
}

/**
 * How many simultaneous connections a board accepts, given the process's limit of file descriptors. Each connection is a descriptor, and a
 * thread that gets none for a journal file stops the board, so some descriptors are reserved.
 */
export function connectionsMaxOf(descriptors: number): number {
  const kept = internalLimits.descriptorsReserved + descriptorsForSegments(descriptors)
  return Math.max(1, descriptors - Math.min(kept, Math.ceil(descriptors / 2)))
}

/** How often the log reports that no more connections are accepted. */
const fullEveryMs = 60_000

/** What the port answers on its own, in the board's format: refusals of malformed requests, and the answer to a fault. */
export function portOptions(connections: ConnectionCount, { monotonicMs }: Clock): HttpOptions {
  const connectionsMax = connectionsMaxOf(descriptorsMax())
  let quietUntil = 0
  return {
    now: monotonicMs,
    refusal: refusalBody,
    onFault: (error) =>
      JSON.stringify({
        ok: false,
        error: { code: 'internal', message: `an internal error of this board, logged as ${logFault(error)}` },
      }),
    connections,
    connectionsMax,
    onFull: () => {
      if (monotonicMs() < quietUntil) return
      quietUntil = monotonicMs() + fullEveryMs
      log('warn', 'connections.full', { connections: connectionsMax })
    },
  }
}

/** The body of a refusal by the port itself. */
export function refusalBody(_status: number, code: string, message: string): string {
  return JSON.stringify({ ok: false, error: { code, message } })
}

/** Records a fault of the board; returns its id in the log. */
export function logFault(error: unknown): string {
  const id = randomUUID()
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  log('error', 'fault', { id, problem: message, stack })
  return id
}
