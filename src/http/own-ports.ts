/**
 * Additional ports, each with one path. They use node:http whichever engine the board uses.
 *
 * - HEALTH_PORT answers `/healthz` for health checks: 503 while the board starts and stops, 200 in between. It serves checks that speak
 *   HTTP/1.0 or send no Host, like those of HAProxy and old nginx.
 * - METRICS_PORT answers `/metrics`, which the board's port then does not.
 */
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { BadConfig } from '../environment.ts'
import { createServer, type ServerResponse } from '../node-http.ts'
import { log } from '../observe.ts'
import { metricsType } from './answers.ts'

type OwnPorts = {
  readonly host: string
  readonly port: number
  /** 0 picks a free port; undefined for no such port. */
  readonly healthPort: number | undefined
  readonly metricsPort: number | undefined
}

type Running = { metrics(): Promise<string | undefined>; health?(): string; close(): Promise<void> }
type Answered = { readonly status: number; readonly type: string; readonly text: string }
/** The answer for a path; undefined if there is none. */
type Answer = (path: string) => Promise<Answered | undefined>

const methods = 'GET, HEAD, OPTIONS'
/** Health checks are short, and each uses its own connection. */
const headTimeoutMs = 5_000
const headBytesMax = 8_192
const connectionsMax = 256
const words = 'text/plain; charset=utf-8'

/** Throws BadConfig if two of these ports are the same. */
export function checkPorts({ port, healthPort, metricsPort }: Omit<OwnPorts, 'host'>): void {
  const ports = { PORT: port, HEALTH_PORT: healthPort, METRICS_PORT: metricsPort }
  const taken = new Map<number, string>()
  for (const [name, own] of Object.entries(ports)) {
    if (own === undefined || own === 0) continue
    const other = taken.get(own)
    if (other !== undefined) throw new BadConfig(`${name} must be a different port than ${other}, which is ${own}.`)
    taken.set(own, name)
  }
}

/** Starts the board with its other ports; they open before it starts, and close after it has stopped. */
export async function withOwnPorts<Board extends Running>(
  ports: OwnPorts,
  start: () => Promise<Board>,
): Promise<Board> {
  checkPorts(ports)
  const { host, healthPort, metricsPort } = ports
  const servers: Server[] = []
  const shut = (): void => {
    for (const server of servers) {
      server.close()
      server.closeAllConnections()
    }
  }
  let state: 'starting' | 'ok' | 'stopping' = 'starting'
  let board: Board | undefined
  try {
    if (healthPort !== undefined) {
      // "/" as well, because HAProxy requests it by default.
      const answer: Answer = async (path) =>
        path === '/healthz' || path === '/'
          ? {
              status: state === 'ok' ? 200 : 503,
              type: words,
              text: state === 'ok' ? (board?.health?.() ?? 'ok\n') : `${state}\n`,
            }
          : undefined
      servers.push(await listen({ name: 'HEALTH_PORT', event: 'health', host, port: healthPort, answer }))
    }
    if (metricsPort !== undefined) {
      const answer: Answer = async (path) => {
        if (path !== '/metrics') return undefined
        const text = await board?.metrics()
        return text === undefined
          ? { status: 503, type: words, text: 'no figures yet\n' }
          : { status: 200, type: metricsType, text }
      }
      servers.push(await listen({ name: 'METRICS_PORT', event: 'metrics', host, port: metricsPort, answer }))
    }
    board = await start()
  } catch (error) {
    shut()
    throw error
  }
  const running = board
  state = 'ok'
  return {
    ...running,
    close: async () => {
      state = 'stopping'
      await running.close()
      shut()
    },
  }
}

type Listening = {
  /** Name of the setting. */
  readonly name: string
  /** Name of the log event. */
  readonly event: string
  readonly host: string
  readonly port: number
  readonly answer: Answer
}

function listen({ name, event, host, port, answer }: Listening): Promise<Server> {
  const limits = { headersTimeout: headTimeoutMs, requestTimeout: headTimeoutMs, maxHeaderSize: headBytesMax }
  const server = createServer({ ...limits, requireHostHeader: false }, (request, response) => {
    answer((request.url ?? '').replace(/\?.*$/, '')).then(
      (found) => give(request, response, found),
      () => response.destroy(),
    )
  })
  server.maxConnections = connectionsMax
  return new Promise((resolve, reject) => {
    server.once('error', ({ message }) =>
      reject(new BadConfig(`${name} must be a port that is free on ${host}, but ${port} is not: ${message}.`)),
    )
    server.listen({ host, port, exclusive: true }, () => {
      log('info', event, { port: (server.address() as AddressInfo).port })
      resolve(server)
    })
  })
}

function give({ method = '' }: IncomingMessage, response: ServerResponse, found: Answered | undefined): void {
  const isTaken = methods.split(', ').includes(method)
  const { status, type, text } =
    found === undefined
      ? { status: 404, type: words, text: 'there is nothing here\n' }
      : isTaken
        ? found
        : { status: 405, type: words, text: `${methods} are accepted here\n` }
  response.shouldKeepAlive = false
  response.writeHead(status, {
    'content-type': type,
    'cache-control': 'no-store',
    'content-length': Buffer.byteLength(text),
    ...(status === 405 ? { allow: methods } : {}),
  })
  response.end(method === 'HEAD' ? '' : text)
}
