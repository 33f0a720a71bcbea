/** Clients of the peers that do not speak HTTP: like `sendAll`, a fixed number of pending requests, each over its own connection. */
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import type { Outcome } from '../lane.ts'

type Lane = { ask(request: Buffer): Promise<Buffer>; close(): void }

async function sendOver(
  open: () => Promise<Lane>,
  inFlight: number,
  requests: readonly Buffer[],
  isGood: (answer: Buffer) => boolean,
): Promise<Outcome> {
  const lanes = await Promise.all(Array.from({ length: Math.min(inFlight, requests.length) }, open))
  const latencies = new Float64Array(requests.length)
  const statuses: Record<number, number> = {}
  let next = 0
  let done = 0
  let bodyBytes = 0
  const start = performance.now()
  try {
    await Promise.all(
      lanes.map(async (lane) => {
        for (let request = requests[next++]; request !== undefined; request = requests[next++]) {
          const sentAt = performance.now()
          const answer = await lane.ask(request)
          latencies[done++] = performance.now() - sentAt
          const status = isGood(answer) ? 200 : 500
          statuses[status] = (statuses[status] ?? 0) + 1
          bodyBytes += answer.length
        }
      }),
    )
  } finally {
    for (const lane of lanes) lane.close()
  }
  return { seconds: (performance.now() - start) / 1000, latencies: latencies.sort(), statuses, bodyBytes }
}

/** The bodies appended to one stream, without signature checks: Redis has none. */
export function sendRedis(port: number, inFlight: number, bodies: readonly Buffer[]): Promise<Outcome> {
  const requests = bodies.map((body) => {
    const head = `*5\r\n$4\r\nXADD\r\n$5\r\nposts\r\n$1\r\n*\r\n$4\r\nbody\r\n$${body.length}\r\n`
    return Buffer.concat([Buffer.from(head), body, Buffer.from('\r\n')])
  })
  const open = async (): Promise<Lane> => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    let take: (answer: Buffer) => void
    let fail: (error: Error) => void
    // An answer to XADD is one id, far smaller than one read.
    socket.on('data', (answer) => take(answer)).on('close', () => fail?.(new Error('Redis closed a connection')))
    return {
      ask: (request) =>
        new Promise((resolve, reject) => {
          take = resolve
          fail = reject
          socket.write(request)
        }),
      close: () => socket.destroy(),
    }
  }
  return sendOver(open, inFlight, requests, (answer) => answer[0] === 0x24)
}

type Web = {
  on(name: string, take: (data: Buffer) => void): Web
  send(text: Buffer, options: object): void
  terminate(): void
}

const keys = 20

/** Text notes of the same texts, signed as nostr requires: Schnorr signatures over secp256k1. */
export function signNostr(texts: readonly string[]): Buffer[] {
  const load = createRequire(import.meta.url)
  const { getPublicKey, schnorrSign } = nostrKeys(load)
  const authors = Array.from({ length: keys }, (_, n) => {
    const secret = hash('sha256', `bench nostr ${n}`, 'hex')
    return { secret, pubkey: getPublicKey(secret) }
  })
  const now = Math.floor(Date.now() / 1000)
  return texts.map((content, n) => {
    const { secret, pubkey } = authors[n % keys]!
    const event = [0, pubkey, now, 1, [['t', `room-${n % 200}`]], content]
    const id = hash('sha256', JSON.stringify(event), 'hex')
    const sig = schnorrSign(id, secret)
    return Buffer.from(
      JSON.stringify(['EVENT', { id, pubkey, created_at: now, kind: 1, tags: event[4], content, sig }]),
    )
  })
}

type NostrKeys = { getPublicKey(secret: string): string; schnorrSign(id: string, secret: string): string }

function nostrKeys(load: NodeJS.Require): NostrKeys {
  const { schnorrSign } = load('@nostr-relay/common') as Pick<NostrKeys, 'schnorrSign'>
  const { schnorr } = load('@noble/curves/secp256k1') as { schnorr: { getPublicKey(secret: string): Uint8Array } }
  return { schnorrSign, getPublicKey: (secret) => Buffer.from(schnorr.getPublicKey(secret)).toString('hex') }
}

export function sendNostr(port: number, inFlight: number, requests: readonly Buffer[]): Promise<Outcome> {
  const { WebSocket } = createRequire(import.meta.url)('ws') as { WebSocket: new (url: string, options: object) => Web }
  const open = async (): Promise<Lane> => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false })
    let take: (answer: Buffer) => void
    let fail: (error: Error) => void
    await new Promise<void>((resolve, reject) => {
      fail = reject
      socket
        .on('open', () => resolve())
        .on('message', (answer) => take(answer))
        .on('error', () => fail(new Error('the relay failed')))
        .on('close', () => fail(new Error('the relay closed a connection')))
    })
    return {
      ask: (request) =>
        new Promise((resolve, reject) => {
          take = resolve
          fail = reject
          socket.send(request, { binary: false })
        }),
      close: () => socket.terminate(),
    }
  }
  return sendOver(open, inFlight, requests, (answer) => /^\["OK","\w+",true/.test(answer.toString()))
}
