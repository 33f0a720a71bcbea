/**
 * The targets of the webhooks bench, and the client that creates webhooks and posts: a separate process, with many loopback addresses so
 * that there are many hosts. A delivery is over when its POST has arrived and was answered; a target is as cheap as Node can make it,
 * because the board lacks what it spends on the same cores.
 */
import { hash } from 'node:crypto'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { signCommand, signerFromSeed } from '../src/cli/sign.ts'
import { requestBytes, sendAll } from './lane.ts'
import { processTime, residentMib, threadTimes } from './machine.ts'
import { signPosts } from './sign-posts.ts'

/** Posts at an even pace into a room that this many webhooks follow. */
export type WebhooksLoad = { readonly followers: number; readonly posts: number; readonly postsPerSecond: number }

export type WebhooksTask = {
  readonly port: number
  readonly pid: number
  readonly serviceId: string
  /** Total number of webhooks. */
  readonly hooks: number
  readonly loads: readonly WebhooksLoad[]
}

export type LoadFound = {
  /** From sending a post's request to the arrival of a delivery, over all of them, ms. */
  readonly p50: number
  readonly p99: number
  /** Seconds from the last post to the last delivery. */
  readonly drain: number
  readonly perSecond: number
  /** How long the answer to a post took, p99, ms: without deliveries, and during deliveries. */
  readonly aloneMs: number
  readonly besideMs: number
  /** Processor time for each delivery: of the board with the posts, of the delivery thread, of the target. */
  readonly boardUs: number
  readonly threadUs: number
  readonly targetUs: number
  readonly endMib: number
}
export type WebhooksFound = {
  readonly loads: readonly LoadFound[]
  /** Resident memory of the board: at first, after as many posts as there will be webhooks, and with them. */
  readonly emptyMib: number
  readonly postedMib: number
  readonly hooksMib: number
}

const hosts = 32
const perIdentity = 60
const idle = 'quiet'
const alone = 'alone'

/** Deliveries that arrived, and when each of their posts was sent, by id. */
let came = 0
let wanted = Number.POSITIVE_INFINITY
let whenAll: (() => void) | undefined
const sentAt = new Map<string, number>()
const times: number[] = []

const noContent = 'HTTP/1.1 204 No Content\r\n\r\n'
const eventName = '"event_id":"'

/** Takes one complete request and answers it. */
function take(socket: Socket, text: string, bodyAt: number): void {
  const at = text.indexOf(eventName, bodyAt) + eventName.length
  const sent = sentAt.get(text.slice(at, at + 32))
  if (sent === undefined) {
    const challenge = /"challenge":"([^"]+)"/.exec(text)?.[1]
    const echo = JSON.stringify({ challenge })
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${echo.length}\r\n\r\n${echo}`, 'latin1')
    return
  }
  socket.write(noContent, 'latin1')
  times.push(performance.now() - sent)
  if (++came === wanted) whenAll?.()
}

const server = createServer({ noDelay: true }, (socket) => {
  let piece = ''
  socket.on('data', (bytes: Buffer) => {
    piece += bytes.toString('latin1')
    for (;;) {
      const bodyAt = piece.indexOf('\r\n\r\n') + 4
      if (bodyAt < 4) return
      const length = Number(/content-length: ([0-9]+)/.exec(piece.slice(0, bodyAt))![1])
      if (piece.length < bodyAt + length) return
      take(socket, piece, bodyAt)
      piece = piece.slice(bodyAt + length)
    }
  })
  socket.on('error', () => socket.destroy())
})

const roomOf = (followers: number) => `followed-by-${followers}`

async function makeHooks({ port, serviceId, hooks, loads }: WebhooksTask): Promise<void> {
  const at = (server.address() as AddressInfo).port
  const nowSeconds = Math.floor(Date.now() / 1000)
  const sizes = [...new Set(loads.map(({ followers }) => followers))]
  const requests = Array.from({ length: hooks }, (_, n) => {
    const owner = Math.floor(n / perIdentity)
    const signer = signerFromSeed(hash('sha256', `hooked ${owner}`, 'buffer'))
    const url = `http://127.0.0.${2 + (owner % hosts)}:${at}/${owner}`
    // Spread over the owners, so that they are spread over the hosts too.
    let place = (n * 7919) % hooks
    const followed = sizes.find((followers) => {
      place -= followers
      return place < 0
    })
    const room = followed === undefined ? idle : roomOf(followed)
    const data = JSON.stringify({ schema: 1, url, kinds: ['room.post'], room })
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

type Posts = { readonly port: number; readonly serviceId: string }

/** Posts at an even pace; returns the p99 of the answers. */
async function post({ port, serviceId }: Posts, into: string, { posts, postsPerSecond }: WebhooksLoad) {
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

async function measure(task: WebhooksTask, load: WebhooksLoad, isDelivering: (id: number) => boolean) {
  const { pid } = task
  const deliveryUs = () =>
    threadTimes(pid).reduce((most, { id, cpuUs }) => (isDelivering(id) ? Math.max(most, cpuUs) : most), 0)
  const aloneMs = await post(task, alone, { ...load, posts: Math.min(load.posts, 100) })
  came = 0
  times.length = 0
  wanted = load.posts * load.followers
  const all = new Promise<void>((resolve) => {
    whenAll = resolve
  })
  const before = { own: process.cpuUsage(), board: processTime(pid), threadUs: deliveryUs() }
  const began = performance.now()
  const besideMs = await post(task, roomOf(load.followers), load)
  const posted = performance.now()
  await all
  const ended = performance.now()
  const { user, system } = process.cpuUsage(before.own)
  const board = processTime(pid)
  return {
    p50: at(times, 0.5),
    p99: at(times, 0.99),
    drain: (ended - posted) / 1000,
    perSecond: wanted / ((ended - began) / 1000),
    aloneMs,
    besideMs,
    boardUs: (board.userUs + board.systemUs - before.board.userUs - before.board.systemUs) / wanted,
    threadUs: (deliveryUs() - before.threadUs) / wanted,
    targetUs: (user + system) / wanted,
    endMib: residentMib(pid),
  }
}

async function main(task: WebhooksTask): Promise<WebhooksFound> {
  const rooms = [idle, alone, ...new Set(task.loads.map(({ followers }) => roomOf(followers)))]
  for (const name of rooms)
    await sendAll(task.port, 1, [signPosts(task.serviceId, 1, { room: name, text: '' })[0]!.request])
  const emptyMib = residentMib(task.pid)
  // The cost of any ten thousand commands is not a cost of webhooks.
  const posts = signPosts(task.serviceId, task.hooks, { room: alone, text: '' })
  await sendAll(
    task.port,
    64,
    posts.map(({ request }) => request),
  )
  const postedMib = residentMib(task.pid)
  const older = new Set(threadTimes(task.pid).map(({ id }) => id))
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  await makeHooks(task)
  const hooksMib = residentMib(task.pid)
  const loads: LoadFound[] = []
  for (const load of task.loads) loads.push(await measure(task, load, (id) => !older.has(id)))
  return { loads, emptyMib, postedMib, hooksMib }
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
