/**
 * The readers of the tail bench and its poster, in a separate process: N plain sockets that count marks in what they receive. A round is
 * over when every reader has every post.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { sendAll } from './lane.ts'
import { processTime, residentKib } from './machine.ts'
import { signPosts } from './sign-posts.ts'

export type TailTask = {
  readonly port: number
  /** Port of the board that takes the posts, if the readers follow another. */
  readonly postTo?: number
  readonly pid: number
  readonly serviceId: string
  readonly readers: number
  readonly posts: number
}
export type TailFound = {
  readonly pace: string
  readonly deliveriesPerSecond: number
  /** From sending the post's request to the last reader having it. */
  readonly p50Ms: number
  readonly serverUs: number
  readonly readersUs: number
  readonly bytes: number
  /** Memory that the server used for each reader, as they connected. */
  readonly kibPerReader: number
}

const room = 'tail'
/** Occurs nowhere else in a tail. */
const mark = '~'
const markByte = mark.charCodeAt(0)
/** A text that makes the delivered bytes about 500, as in the fan-out bench. */
const filler = 'x'.repeat(200)

let missing = 0
let bytes = 0
let whenAll: (() => void) | undefined
/** Shared by all: counted before the next read can happen. */
const shared = Buffer.allocUnsafeSlow(64 * 1024)

function open(port: number, n: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let isGreeted = false
    const callback = (size: number, buffer: Uint8Array): boolean => {
      if (isGreeted) count(buffer as Buffer, size)
      else {
        isGreeted = true
        resolve(socket)
      }
      return true
    }
    // One address has too few ports for nine thousand readers and those of the previous run.
    const localAddress = `127.0.0.${2 + (n % 20)}`
    const socket = connect({ port, host: '127.0.0.1', localAddress, onread: { buffer: shared, callback } })
    socket.on('error', reject)
    socket.write(`GET /tail/${room}?last=0 HTTP/1.1\r\nHost: bench\r\n\r\n`)
  })
}

function count(buffer: Buffer, size: number): void {
  bytes += size
  for (let at = buffer.indexOf(markByte); at !== -1 && at < size; at = buffer.indexOf(markByte, at + 1)) missing--
  if (missing === 0) whenAll?.()
}

/** `under` posts in flight; with one, the next waits until every reader has the previous one. */
async function run(task: TailTask, under: number): Promise<Omit<TailFound, 'kibPerReader'>> {
  const requests = signPosts(task.serviceId, task.posts, { room, text: filler + mark }).map(({ request }) => request)
  const before = { own: process.cpuUsage(), server: processTime(task.pid) }
  bytes = 0
  const start = performance.now()
  const times: number[] = []
  for (let at = 0; at < requests.length; at += under === 1 ? 1 : requests.length) {
    const now = requests.slice(at, under === 1 ? at + 1 : requests.length)
    const sentAt = performance.now()
    missing = now.length * task.readers
    const all = new Promise<void>((resolve) => {
      whenAll = resolve
    })
    await Promise.all([sendAll(task.postTo ?? task.port, under, now), all])
    times.push(performance.now() - sentAt)
  }
  const seconds = (performance.now() - start) / 1000
  const own = process.cpuUsage(before.own)
  const server = processTime(task.pid)
  const deliveries = task.posts * task.readers
  return {
    pace: under === 1 ? 'one by one' : `${task.posts} posts, ${under} in flight`,
    deliveriesPerSecond: deliveries / seconds,
    p50Ms: times.sort((a, b) => a - b)[times.length >> 1]!,
    serverUs: (server.userUs + server.systemUs - before.server.userUs - before.server.systemUs) / deliveries,
    readersUs: (own.user + own.system) / deliveries,
    bytes: bytes / deliveries,
  }
}

async function main(task: TailTask): Promise<TailFound[]> {
  // The room must exist before it can be followed.
  const [first] = signPosts(task.serviceId, 1, { room, text: '' })
  await sendAll(task.postTo ?? task.port, 1, [first!.request])
  // A follower has it a little later; servers other than boards do not know this path.
  if (task.postTo !== undefined)
    while ((await fetch(`http://127.0.0.1:${task.port}/api/threads?room=${room}`)).status !== 200) await pause(100)
  const sockets: Socket[] = []
  const before = residentKib(task.pid)
  for (let n = 0; n < task.readers; n += 100) {
    const some = Array.from({ length: Math.min(100, task.readers - n) }, (_, k) => open(task.port, n + k))
    sockets.push(...(await Promise.all(some)))
  }
  await new Promise((resolve) => setTimeout(resolve, 300))
  const kibPerReader = (residentKib(task.pid) - before) / task.readers
  const found = [await run(task, 1), await run(task, 16)]
  for (const socket of sockets) socket.destroy()
  return found.map((each) => ({ ...each, kibPerReader }))
}

process.on('message', (task: TailTask) => {
  main(task).then(
    (found) => process.send?.({ found }),
    (error: Error) => process.send?.({ problem: error.stack ?? error.message }),
  )
})
process.once('disconnect', () => process.exit(0))
