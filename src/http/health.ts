/**
 * HEALTH_PORT: a port of its own that answers `/healthz` to health checks: 503 while the board starts and while it
 * stops, 200 in between. It is node:http whatever engine the board has, for checks that speak HTTP/1.0 or name no Host, as those of
 * HAProxy and of old nginx do. It knows nothing else.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { BadConfig } from '../environment.ts'
import { log } from '../observe.ts'

type HealthOptions = {
  readonly host: string
  readonly port: number
  /** 0 takes a free one; undefined: there is no such port. */
  readonly healthPort: number | undefined
}

type Running = { close(): Promise<void> }
type State = 'starting' | 'ok' | 'stopping'

/** `/` too: HAProxy asks for it by default. */
const paths: ReadonlySet<string> = new Set(['/healthz', '/'])
const methods = 'GET, HEAD, OPTIONS'
/** A check is short, and comes on a connection of its own. */
const headTimeoutMs = 5_000
const headBytesMax = 8_192
const connectionsMax = 256

/** Starts the board of the port; the port is there before it, and gone after it. */
export async function withHealthPort<Board extends Running>(
  { host, port, healthPort }: HealthOptions,
  start: () => Promise<Board>,
): Promise<Board> {
  if (healthPort === undefined) return start()
  if (healthPort === port && port !== 0)
    throw new BadConfig(`HEALTH_PORT must be another port than PORT, which is ${port}.`)
  let state: State = 'starting'
  const server = await listen(host, healthPort, () => state)
  const board = await start().catch((error: unknown) => {
    shut(server)
    throw error
  })
  state = 'ok'
  return {
    ...board,
    close: async () => {
      state = 'stopping'
      await board.close()
      shut(server)
    },
  }
}

function listen(host: string, port: number, state: () => State): Promise<Server> {
  const limits = { headersTimeout: headTimeoutMs, requestTimeout: headTimeoutMs, maxHeaderSize: headBytesMax }
  const server = createServer({ ...limits, requireHostHeader: false }, (request, response) =>
    answer(request, response, state()),
  )
  server.maxConnections = connectionsMax
  return new Promise((resolve, reject) => {
    server.once('error', ({ message }) =>
      reject(new BadConfig(`HEALTH_PORT must be a port that is free on ${host}, but ${port} is not: ${message}.`)),
    )
    server.listen({ host, port, exclusive: true }, () => {
      log('info', 'health', { port: (server.address() as AddressInfo).port })
      resolve(server)
    })
  })
}

function answer({ method = '', url = '' }: IncomingMessage, response: ServerResponse, state: State): void {
  const isThere = paths.has(url.replace(/\?.*$/, ''))
  const isTaken = methods.split(', ').includes(method)
  const status = !isThere ? 404 : !isTaken ? 405 : state === 'ok' ? 200 : 503
  const text =
    status === 404 ? 'only /healthz is here\n' : status === 405 ? `${methods} are accepted here\n` : `${state}\n`
  response.shouldKeepAlive = false
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
    'content-length': text.length,
    ...(status === 405 ? { allow: methods } : {}),
  })
  response.end(method === 'HEAD' ? '' : text)
}

function shut(server: Server): void {
  server.close()
  server.closeAllConnections()
}
