/** An HTTP thread: shares the board's port with other such threads, holds connections, and forwards requests to the main thread. */
import { internalLimits } from '../../actors/kernel/limits.ts'
import { Link, type Port } from '../../actors/kernel/link.ts'
import type { EngineChoice } from '../config.ts'
import { ConnectionCount } from '../http/connection-count.ts'
import { createHttpServer, refusalBody } from '../http/engine.ts'
import type { FromClients, ToClients } from '../http/forward-messages.ts'
import { Forwarder } from '../http/forwarder.ts'
import { handshakeFault } from '../http/handshake.ts'
import { answerDeadlineMs, type BodyBounds, type HttpOptions } from '../http/port.ts'
import { readFault, type ThreadStarter } from './thread.ts'

export type HttpThread = {
  readonly front: Port
  /** Counted from 0. */
  readonly number: number
  /** Open connections of each thread. */
  readonly connections: Int32Array<SharedArrayBuffer>
  /** 1 for each thread that has closed everything. */
  readonly closed: Int32Array<SharedArrayBuffer>
  readonly engine: EngineChoice
  readonly connectionsMax: number | undefined
  readonly socketPath: string | undefined
  /** Memory for bodies that are still arriving at this thread. */
  readonly bodies: BodyBounds | undefined
  /** The longest body that any handler reads. */
  readonly bodyBytesMax: number
  /** Longest time until a response starts, enforced by the main thread. */
  readonly deadlineMs: number | undefined
}

/** The main thread drops a request that is too old. If it fails to, this thread does so this much later. */
const graceMs = 10_000

export const thread: ThreadStarter<HttpThread> = async (data, { clock, report }) => {
  const {
    front,
    number,
    connections,
    engine,
    connectionsMax,
    socketPath,
    bodies,
    bodyBytesMax,
    deadlineMs = answerDeadlineMs,
  } = data
  let link: Link | undefined
  const tell = (message: FromClients): void => link?.tell(message)
  const forwarder = new Forwarder({
    tell,
    timers: clock,
    bodyBytesMax,
    // If upgraded to a WebSocket later, the native engine of this release may close it immediately.
    opensAtOnce: (exchange) => server.engine === 'uws' && handshakeFault(exchange) === undefined,
  })
  const { closed } = data
  const options: HttpOptions = {
    now: clock.monotonicMs,
    refusal: refusalBody,
    onFault: (error) => JSON.stringify({ ok: false, error: readFault(report, error).refusal }),
    deadlineMs: deadlineMs + graceMs,
    connections: new ConnectionCount(connections, number),
    ...(connectionsMax === undefined ? {} : { connectionsMax }),
    onFull: () => tell(['full']),
    ...(socketPath === undefined ? {} : { socketPath }),
    bodies,
  }
  const server = await createHttpServer(engine, forwarder.handle, options, report)
  const noteClosed = (): void => {
    Atomics.store(closed, number, 1)
    Atomics.notify(closed, number)
  }
  let isListening = false
  const take = (message: ToClients): void => {
    if (message[0] === 'close') void server.close().then(noteClosed)
    else if (message[0] === 'stop accepting') void server.stopAccepting().then(() => tell(['stopped accepting']))
    else if (message[0] === 'listen' && !isListening) {
      isListening = true
      const [, host, port] = message
      server.listen(host, port, true).then(
        () => tell(['listening']),
        (error: Error) => tell(['not listening', error.message]),
      )
    } else forwarder.take(message)
  }
  link = new Link({
    port: front,
    openMax: 1,
    patienceMs: internalLimits.patienceMs,
    now: clock.monotonicMs,
    timers: clock,
    onTell: (body) => take(body as ToClients),
    onFlush: () => forwarder.flushing(),
  })
  return {
    facts: { engine: server.engine },
    stop: async () => {
      await server.close()
      link?.close()
    },
  }
}
