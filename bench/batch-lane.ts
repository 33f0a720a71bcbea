/** Posts by `/v1/commands`: each request carries many commands, one per line, and its answer has a line for each. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Outcome } from './lane.ts'
import { bodyOf, type SignedPost } from './sign-posts.ts'

export type Batch = { readonly request: Buffer; readonly lines: number }

const lastChunk = Buffer.from('\r\n0\r\n\r\n')
const status = /"status":(\d+)/g

export function batchOf(posts: readonly SignedPost[]): Batch {
  const newline = Buffer.from('\n')
  const lines = Buffer.concat(posts.flatMap((post, n) => (n === 0 ? [bodyOf(post)] : [newline, bodyOf(post)])))
  const head = `POST /v1/commands HTTP/1.1\r\nHost: bench\r\nContent-Type: application/x-ndjson\r\nContent-Length: ${lines.length}\r\n\r\n`
  return { request: Buffer.concat([Buffer.from(head), lines]), lines: posts.length }
}

/** Sends the batches in order, `inFlight` at a time. A latency is that of a batch, recorded once for each of its lines. */
export async function sendBatches(port: number, inFlight: number, batches: readonly Batch[]): Promise<Outcome> {
  const statuses: Record<number, number> = {}
  const latencies = new Float64Array(batches.reduce((sum, { lines }) => sum + lines, 0))
  let bodyBytes = 0
  let next = 0
  let done = 0
  const sockets = await Promise.all(Array.from({ length: Math.min(inFlight, batches.length) }, () => open(port)))
  const start = performance.now()
  try {
    await Promise.all(
      sockets.map(async (socket) => {
        for (let batch = batches[next++]; batch !== undefined; batch = batches[next++]) {
          const sentAt = performance.now()
          const answer = await ask(socket, batch.request)
          latencies.fill(performance.now() - sentAt, done, done + batch.lines)
          done += batch.lines
          bodyBytes += answer.length
          for (const [, code] of answer.matchAll(status)) statuses[Number(code)] = (statuses[Number(code)] ?? 0) + 1
        }
      }),
    )
  } finally {
    for (const socket of sockets) socket.destroy()
  }
  const answered = Object.values(statuses).reduce((sum, count) => sum + count, 0)
  if (answered !== latencies.length) throw new Error(`${answered} answers to ${latencies.length} lines`)
  return { seconds: (performance.now() - start) / 1000, latencies: latencies.sort(), statuses, bodyBytes }
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  return socket
}

function ask(socket: Socket, request: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    const closed = () => reject(new Error('the board closed a connection'))
    const take = (piece: Buffer): void => {
      pieces.push(piece)
      // The last chunk may arrive in two pieces.
      const end = piece.length >= lastChunk.length ? piece : Buffer.concat(pieces.slice(-2))
      if (!end.subarray(-lastChunk.length).equals(lastChunk)) return
      socket.off('data', take).off('error', reject).off('close', closed)
      resolve(bodyIn(Buffer.concat(pieces)))
    }
    socket.on('data', take).on('error', reject).on('close', closed)
    socket.write(request)
  })
}

/** The body of an answer without its head and without chunk sizes, which may occur in the middle of a line. */
function bodyIn(answer: Buffer): string {
  let body = ''
  let at = answer.indexOf('\r\n\r\n') + 4
  for (;;) {
    const end = answer.indexOf('\r\n', at)
    const size = Number.parseInt(answer.toString('latin1', at, end), 16)
    if (!(size > 0)) return body
    body += answer.toString('latin1', end + 2, end + 2 + size)
    at = end + 2 + size + 2
  }
}
