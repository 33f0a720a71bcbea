/**
 * The followers of the updates bench and its poster, in a separate process: plain sockets that wait for news of one room with long polls,
 * and others that read its tail. A round is over when every one of them has the post.
 */
import { connect, type Socket } from 'node:net'
import { sendAll } from './lane.ts'
import { processTime } from './machine.ts'
import { signPosts } from './sign-posts.ts'

export type UpdatesTask = {
  readonly port: number
  readonly pid: number
  readonly serviceId: string
  readonly polls: number
  readonly tails: number
  readonly posts: number
}
export type UpdatesFound = {
  /** From sending the post's request to a follower having it, over all followers of all rounds, ms. */
  readonly polls: Spread
  readonly tails: Spread
  /** Processor time of the board for each follower and post. */
  readonly serverUs: number
  readonly readersUs: number
}
export type Spread = { readonly p50: number; readonly p99: number; readonly worst: number }

const room = 'updates'
/** Occurs nowhere else in what is sent. */
const mark = '~'

let missing = 0
let sentAt = 0
let whenAll: (() => void) | undefined
const polled: number[] = []
const tailed: number[] = []

function heard(times: number[]): void {
  times.push(performance.now() - sentAt)
  if (--missing === 0) whenAll?.()
}

/** One address has too few ports for thousands of readers and those of the previous run. */
function socketTo(port: number, n: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (n % 20)}`, noDelay: true })
    socket.once('connect', () => resolve(socket))
    socket.on('error', reject)
    socket.setEncoding('latin1')
  })
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: bench\r\n\r\n`

/** Waits with `wait=50`, and again with the cursor of each answer. Resolves when the first request is sent. */
async function poll(port: number, n: number): Promise<Socket> {
  const socket = await socketTo(port, n)
  let text = ''
  socket.on('data', (chunk: string) => {
    text += chunk
    const body = text.indexOf('\r\n\r\n') + 4
    if (body === 3 || text.length < body + Number(/content-length: (\d+)/i.exec(text)?.[1])) return
    if (text.includes(mark)) heard(polled)
    const cursor = /"cursor":"([^"]+)"/.exec(text)?.[1]
    if (cursor === undefined) throw new Error(`no updates: ${text.slice(0, 500)}`)
    text = ''
    socket.write(get(`/api/updates?wait=50&room=${room}&cursor=${cursor}`))
  })
  socket.write(get(`/api/updates?wait=50&room=${room}`))
  return socket
}

async function tail(port: number, n: number): Promise<Socket> {
  const socket = await socketTo(port, n)
  socket.on('data', (chunk: string) => {
    if (chunk.includes(mark)) heard(tailed)
  })
  socket.write(get(`/tail/${room}?last=0`))
  return socket
}

async function openAll(count: number, open: (n: number) => Promise<Socket>): Promise<Socket[]> {
  const sockets: Socket[] = []
  for (let n = 0; n < count; n += 100)
    sockets.push(...(await Promise.all(Array.from({ length: Math.min(100, count - n) }, (_, k) => open(n + k)))))
  return sockets
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function main(task: UpdatesTask): Promise<UpdatesFound> {
  // The room must exist before it can be followed.
  const [first] = signPosts(task.serviceId, 1, { room, text: '' })
  await sendAll(task.port, 1, [first!.request])
  const sockets = [
    ...(await openAll(task.polls, (n) => poll(task.port, n))),
    ...(await openAll(task.tails, (n) => tail(task.port, n))),
  ]
  const requests = signPosts(task.serviceId, task.posts, { room, text: `hello ${mark}` }).map(({ request }) => request)
  let used = 0
  let own = 0
  for (const request of requests) {
    // All readers wait again before the next post.
    await pause(500 + (task.polls + task.tails) / 10)
    const before = { own: process.cpuUsage(), server: processTime(task.pid) }
    missing = task.polls + task.tails
    const all = new Promise<void>((resolve) => {
      whenAll = resolve
    })
    sentAt = performance.now()
    await Promise.all([sendAll(task.port, 1, [request]), all])
    const server = processTime(task.pid)
    used += server.userUs + server.systemUs - before.server.userUs - before.server.systemUs
    const { user, system } = process.cpuUsage(before.own)
    own += user + system
  }
  for (const socket of sockets) socket.destroy()
  const deliveries = task.posts * (task.polls + task.tails)
  return { polls: spread(polled), tails: spread(tailed), serverUs: used / deliveries, readersUs: own / deliveries }
}

function spread(times: number[]): Spread {
  times.sort((a, b) => a - b)
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99), worst: at(1) }
}

process.on('message', (task: UpdatesTask) => {
  main(task).then(
    (found) => process.send?.({ found }),
    (error: Error) => process.send?.({ problem: error.stack ?? error.message }),
  )
})
process.once('disconnect', () => process.exit(0))
