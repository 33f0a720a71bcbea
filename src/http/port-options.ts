/** What the port answers by itself: refusals of malformed requests and the answer to a fault, in the board's own format. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { log } from '../observe.ts'
import { connectionsMaxOf, descriptorsMax } from './descriptors.ts'
import type { HttpOptions, OpenConnections } from './port.ts'

/** How often the log says that no more connections are accepted. */
const fullEveryMs = 60_000

export function portOptions(connections: OpenConnections, { monotonicMs }: Clock): HttpOptions {
  const connectionsMax = connectionsMaxOf(descriptorsMax())
  let quietUntil = 0
  return {
    now: monotonicMs,
    refusal: (_status, code, message) => JSON.stringify({ ok: false, error: { code, message } }),
    onFault: (error) =>
      JSON.stringify({
        ok: false,
        error: { code: 'internal', message: `a fault of this board, logged as ${logFault(error)}` },
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

/** Records a fault of the board; returns its id in the log. */
export function logFault(error: unknown): string {
  const id = randomUUID()
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  log('error', 'fault', { id, problem: message, stack })
  return id
}
