/**
 * Is a tail over uWebSockets.js as fast as a plain socket? One 500-byte message to N streaming readers, M times.
 *
 * The readers are another process with raw sockets from several loopback addresses; a round ends when it has counted every message at every
 * reader. Both processes share the machine's cores, so compare ratios. Compared: the native engine's `write` alone, in a cork, and in a
 * cork that has no effect because another connection's callback holds it; our ByteStream on both engines; node:net with prepared chunks.
 * src/http/uws.ts explains the differences.
 *
 *   node bench/fanout.bench.ts [readers ...] default 1000 9000
 */

import type { HttpResponse } from 'uWebSockets.js'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { cpus } from 'node:os'
import { setImmediate as turn } from 'node:timers/promises'
import { createNodeServer } from '../src/http/node.ts'
import type { ByteStream, HttpOptions } from '../src/http/port.ts'
import { createUwsServer } from '../src/http/uws.ts'
import { type Bench, type Row, tableText } from './report.ts'

const deliveriesPerRound = 60_000
const roundMsMax = 15_000
const slice = 500
const message = Buffer.from(`@${'x'.repeat(498)}\n`)
const mark = 0x40
const request = 'GET /tail HTTP/1.1\r\nHost: bench\r\n\r\n'
const hello = Buffer.from('# hello\n')

/** One way to write: a server that holds its readers, and a function that delivers the message to all of them. */
type Way = {
  listen(): Promise<number>
  readers(): number
  deliver(): Promise<void> | void
  close(): Promise<void> | void
}

const httpOptions: HttpOptions = { now: () => performance.now(), refusal: () => '{}', onFault: String }

async function nativeWay(kind: 'uncorked' | 'corked' | 'in a foreign cork'): Promise<Way> {
  const native = await import('uWebSockets.js')
  const app = native.App()
  const responses: HttpResponse[] = []
  const write = (res: HttpResponse) => res.write(message)
  const corked = (res: HttpResponse) => res.cork(() => void res.write(message))
  let port = 0
  app.post('/deliver', (res) => {
    res.onAborted(() => {})
    for (const reader of responses) corked(reader)
    res.end()
  })
  app.any('/*', (res) => {
    res.onAborted(() => responses.splice(0))
    res.cork(() => void res.write(hello))
    responses.push(res)
  })
  const deliverSliced = async () => {
    const one = kind === 'corked' ? corked : write
    for (let i = 0; i < responses.length; i++) {
      one(responses[i] as HttpResponse)
      if (i % slice === slice - 1) await turn()
    }
  }
  return {
    listen: async () => {
      port = await new Promise<number>((resolve, reject) => {
        app.listen('127.0.0.1', 0, (socket) => {
          if (socket === false) reject(new Error('cannot listen'))
          else resolve(native.us_socket_local_port(socket as never))
        })
      })
      return port
    },
    readers: () => responses.length,
    deliver: kind === 'in a foreign cork' ? () => deliverByRequest(port) : deliverSliced,
    close: () => void app.close(),
  }
}

async function deliverByRequest(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.write('POST /deliver HTTP/1.1\r\nHost: bench\r\nContent-Length: 0\r\n\r\n')
  await once(socket, 'data')
  socket.destroy()
}

/** `burst`: the next message does not wait until this one is written, as when posts arrive faster than a round takes. */
async function streamWay(engine: 'uws' | 'node', pace: 'one by one' | 'burst'): Promise<Way> {
  const streams: ByteStream[] = []
  const create = engine === 'uws' ? createUwsServer : createNodeServer
  const server = await create((exchange) => {
    const stream = exchange.stream(200, [['Content-Type', 'text/plain']])
    stream.write(hello)
    streams.push(stream)
  }, httpOptions)
  return {
    listen: () => server.listen('127.0.0.1', 0),
    readers: () => streams.length,
    deliver: async () => {
      for (let i = 0; i < streams.length; i++) {
        streams[i]?.write(message)
        if (pace === 'one by one' && i % slice === slice - 1) await turn()
      }
    },
    close: () => server.close(),
  }
}

async function netWay(): Promise<Way> {
  const chunk = Buffer.concat([Buffer.from(`${message.length.toString(16)}\r\n`), message, Buffer.from('\r\n')])
  const sockets: import('node:net').Socket[] = []
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n# hello\n\r\n')
      sockets.push(socket)
    })
  })
  return {
    listen: async () => {
      server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 })
      await once(server, 'listening')
      return (server.address() as AddressInfo).port
    },
    readers: () => sockets.length,
    deliver: async () => {
      for (let i = 0; i < sockets.length; i++) {
        sockets[i]?.write(chunk)
        if (i % slice === slice - 1) await turn()
      }
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

const ways: [string, () => Promise<Way>][] = [
  ['uws write, no cork', () => nativeWay('uncorked')],
  ['uws write, cork held by another', () => nativeWay('in a foreign cork')],
  ['uws write, corked', () => nativeWay('corked')],
  ['ByteStream on uws', () => streamWay('uws', 'one by one')],
  ['ByteStream on uws, burst', () => streamWay('uws', 'burst')],
  ['ByteStream on node:http', () => streamWay('node', 'one by one')],
  ['node:net, ready-made chunks', () => netWay()],
]

type Found = { readonly perSecond: number; readonly writeUs: number; readonly readUs: number }

/** Deliveries per second and the microseconds of each process's processor per delivery. */
async function measure(way: Way, readers: number): Promise<Found> {
  const messages = Math.max(4, Math.round(deliveriesPerRound / readers))
  const port = await way.listen()
  const child = fork(new URL(import.meta.url), ['--reader', String(port), String(readers), String(messages)])
  try {
    await next(child)
    if (way.readers() !== readers) throw new Error(`${way.readers()} of ${readers} readers connected`)
    const done = next(child)
    const cpu = process.cpuUsage()
    const started = performance.now()
    for (let i = 0; i < messages; i++) {
      await way.deliver()
      await turn()
    }
    const { cpuUs } = await done
    const elapsedMs = performance.now() - started
    const used = process.cpuUsage(cpu)
    const deliveries = messages * readers
    return {
      perSecond: (deliveries / elapsedMs) * 1000,
      writeUs: (used.user + used.system) / deliveries,
      readUs: cpuUs / deliveries,
    }
  } finally {
    child.kill()
    await way.close()
  }
}

async function next(child: ChildProcess): Promise<{ cpuUs: number }> {
  const [answer] = await once(child, 'message', { signal: AbortSignal.timeout(roundMsMax) })
  return answer as { cpuUs: number }
}

/** The readers' process: reports when all are connected, then when all messages have reached all of them. */
async function read(port: number, readers: number, messages: number): Promise<void> {
  let missing = readers * messages
  let cpu = process.cpuUsage()
  const open = async (i: number) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (i % 20)}` })
    socket.on('error', () => {})
    socket.write(request)
    await once(socket, 'data')
    socket.on('data', (bytes) => {
      for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, at + 1)) missing--
      if (missing > 0) return
      const used = process.cpuUsage(cpu)
      process.send?.({ cpuUs: used.user + used.system })
    })
  }
  for (let i = 0; i < readers; i += 100) {
    await Promise.all(Array.from({ length: Math.min(100, readers - i) }, (_, k) => open(i + k)))
  }
  cpu = process.cpuUsage()
  process.send?.({ cpuUs: 0 })
}

/** Each way in its own process: otherwise nine thousand closing sockets would be charged to the next one. */
async function measureApart(way: number, readers: number): Promise<Found> {
  // The native engine warns on stderr about every write without a cork: two more system calls, which are part of its cost.
  const child = fork(new URL(import.meta.url), ['--way', String(way), String(readers)], {
    stdio: ['ignore', 'inherit', 'ignore', 'ipc'],
  })
  const ended = once(child, 'exit')
  const [found] = (await Promise.race([once(child, 'message'), ended])) as [Found | number]
  await ended
  if (typeof found !== 'object' || found === null) throw new Error(`${ways[way]?.[0]} to ${readers} readers failed`)
  return found
}

/** Deliveries a second of plain sockets with prepared chunks: the most that this machine's sockets accept from Node. */
export async function socketsPerSecond(readers: number): Promise<number> {
  return (await measureApart(ways.length - 1, readers)).perSecond
}

async function rowsOf(readers: number, chosen: readonly number[]): Promise<Row[]> {
  const found = new Map<number, Found>()
  for (const way of chosen) found.set(way, await measureApart(way, readers))
  const limit = found.get(ways.length - 1)!.perSecond
  return [...found].map(([way, { perSecond, writeUs, readUs }]) => ({
    readers,
    way: ways[way]?.[0] ?? '',
    'deliveries/s': perSecond,
    'writer us each': writeUs,
    'readers us each': readUs,
    'of node:net': perSecond / limit,
  }))
}

export const fanout: Bench = {
  name: 'fanout',
  question: 'Is a stream of ours as fast as a plain socket?',
  run: async ({ isQuick }) => {
    const chosen = isQuick ? [3, ways.length - 1] : ways.map((_, way) => way)
    const rows: Row[] = []
    for (const readers of isQuick ? [1000] : [1000, 9000]) rows.push(...(await rowsOf(readers, chosen)))
    return [{ title: `${message.length} bytes to many readers`, rows }]
  },
}

async function main(): Promise<void> {
  const [first, ...rest] = process.argv.slice(2)
  const numbers = rest.map(Number)
  if (first === '--reader') return read(numbers[0] ?? 0, numbers[1] ?? 0, numbers[2] ?? 0)
  if (first === '--way') {
    const [way = 0, readers = 0] = numbers
    const [name, build] = ways[way] ?? []
    if (name === undefined || build === undefined) throw new Error(`no way ${way}`)
    const { perSecond, writeUs, readUs } = await measure(await build(), readers)
    process.send?.({ perSecond, writeUs, readUs } satisfies Found)
    process.disconnect()
    process.exit(0)
  }
  const counts = first === undefined ? [1000, 9000] : [Number(first), ...numbers]
  console.log(`Node ${process.versions.node}, ${cpus().length} x ${cpus()[0]?.model}`)
  for (const readers of counts) {
    const rows = await rowsOf(
      readers,
      ways.map((_, way) => way),
    )
    console.log(tableText({ title: `${message.length} bytes to ${readers} readers`, rows }))
  }
}

if (import.meta.main) await main()
