/**
 * The targets of the webhooks bench, and whoever makes them and posts: a process of its own, with many addresses of loopback
 * so that there are many hosts. A delivery is over when its POST has come and was answered.
 */
import { hash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { signCommand, signerFromSeed } from '../src/cli/sign.ts'
import { requestBytes, sendAll } from './lane.ts'
import { processTime, residentMib } from './machine.ts'
import { signPosts } from './sign-posts.ts'

export type WebhooksTask = {
  readonly port: number
  readonly pid: number
  readonly serviceId: string
  /** Webhooks in all, and those of them that follow the room that is posted into. */
  readonly hooks: number
  readonly followers: number
  readonly posts: number
  readonly postsPerSecond: number
}
export type WebhooksFound = {
  /** From a post's request leaving to a delivery of it having come, over all of them, ms. */
  readonly p50: number
  readonly p99: number
  /** Seconds from the last post to the last delivery. */
  readonly drain: number
  readonly perSecond: number
  /** How long the answer to a post took, p99, ms: alone, and while deliveries were made. */
  readonly aloneMs: number
  readonly besideMs: number
  /** Processor time of the board for each delivery, posts included. */
  readonly boardUs: number
  readonly targetUs: number
  readonly emptyMib: number
  readonly hooksMib: number
  readonly endMib: number
}

const hosts = 32
const perIdentity = 60
const room = 'followed'
const quiet = 'quiet'

/** Deliveries that came, and when each of their posts was sent, by text. */
let came = 0
let wanted = Number.POSITIVE_INFINITY
let whenAll: (() => void) | undefined
const sentAt = new Map<string, number>()
const times: number[] = []

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const text = Buffer.concat(chunks).toString('utf8')
    const challenge = /"challenge":"([^"]+)"/.exec(text)?.[1]
    response.end(challenge === undefined ? '' : JSON.stringify({ challenge }))
    if (challenge !== undefined) return
    const sent = sentAt.get(/"event_id":"([0-9a-f]{32})"/.exec(text)?.[1] ?? '')
    if (sent !== undefined) times.push(performance.now() - sent)
    if (++came === wanted) whenAll?.()
  })
})

async function makeHooks({ port, serviceId, hooks, followers }: WebhooksTask): Promise<void> {
  const at = (server.address() as AddressInfo).port
  const nowSeconds = Math.floor(Date.now() / 1000)
  const requests = Array.from({ length: hooks }, (_, n) => {
    const owner = Math.floor(n / perIdentity)
    const signer = signerFromSeed(hash('sha256', `hooked ${owner}`, 'buffer'))
    const url = `http://127.0.0.${2 + (owner % hosts)}:${at}/${owner}`
    // Spread over the owners, so that they are spread over the hosts too.
    const follows = (n * 7919) % hooks < followers
    const data = JSON.stringify({ schema: 1, url, kinds: ['room.post'], room: follows ? room : quiet })
    return requestBytes(
      '/v1/command',
      signCommand({ operation: 'webhook.create', data }, { signer, serviceId, nowSeconds }).body,
    )
  })
  // The first of each owner has its address challenged, for all the others.
  const isFirst = (_: Buffer, n: number) => n % perIdentity === 0
  const { statuses } = await sendAll(port, 8, requests.filter(isFirst))
  const rest = await sendAll(
    port,
    64,
    requests.filter((each, n) => !isFirst(each, n)),
  )
  const made = (statuses[200] ?? 0) + (rest.statuses[200] ?? 0)
  if (made !== hooks)
    throw new Error(`${made} of ${hooks} webhooks were made: ${JSON.stringify([statuses, rest.statuses])}`)
}

/** Posts at an even pace; the p99 of the answers. */
async function post({ port, serviceId, posts, postsPerSecond }: WebhooksTask, into: string): Promise<number> {
  const signed = signPosts(serviceId, posts, { room: into, text: '' })
  const began = performance.now()
  const latencies: number[] = []
  const under: Promise<void>[] = []
  for (const [n, { eventId, request }] of signed.entries()) {
    const wait = began + (n * 1000) / postsPerSecond - performance.now()
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    sentAt.set(eventId, performance.now())
    under.push(sendAll(port, 1, [request]).then((done) => void latencies.push(done.latencies[0]!)))
  }
  await Promise.all(under)
  return at(latencies, 0.99)
}

async function main(task: WebhooksTask): Promise<WebhooksFound> {
  for (const name of [room, quiet, 'alone'])
    await sendAll(task.port, 1, [signPosts(task.serviceId, 1, { room: name, text: '' })[0]!.request])
  const emptyMib = residentMib(task.pid)
  const aloneMs = await post(task, 'alone')
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  await makeHooks(task)
  const hooksMib = residentMib(task.pid)
  came = 0
  times.length = 0
  wanted = task.posts * task.followers
  const all = new Promise<void>((resolve) => {
    whenAll = resolve
  })
  const before = { own: process.cpuUsage(), board: processTime(task.pid) }
  const began = performance.now()
  const besideMs = await post(task, room)
  const posted = performance.now()
  await all
  const ended = performance.now()
  const { user, system } = process.cpuUsage(before.own)
  const board = processTime(task.pid)
  return {
    p50: at(times, 0.5),
    p99: at(times, 0.99),
    drain: (ended - posted) / 1000,
    perSecond: wanted / ((ended - began) / 1000),
    aloneMs,
    besideMs,
    boardUs: (board.userUs + board.systemUs - before.board.userUs - before.board.systemUs) / wanted,
    targetUs: (user + system) / wanted,
    emptyMib,
    hooksMib,
    endMib: residentMib(task.pid),
  }
}

function at(values: number[], share: number): number {
  values.sort((a, b) => a - b)
  return values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN
}

process.on('message', (task: WebhooksTask) => {
  main(task).then(
    (found) => process.send?.({ found }),
    (error: Error) => process.send?.({ problem: error.stack ?? error.message }),
  )
})
process.once('disconnect', () => process.exit(0))
