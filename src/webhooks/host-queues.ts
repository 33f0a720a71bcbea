/**
 * Schedules requests: a limit on concurrent requests in total and per host, with hosts taking turns.
 *
 * A host that answers may use more of the slots. A host that fails has a single one, and all failing hosts together may use
 * half of the slots. So dead or slow targets delay only each other.
 */
type HostQueuesOptions<Item> = {
  /** Concurrent requests. */
  readonly slots: number
  /** Concurrent requests to one host. */
  readonly perHost: number
  /** Sends one; calls `done` with whether its host answered correctly, and soon. */
  readonly run: (item: Item, done: (answered: boolean) => void) => void
}

type HostQueue<Item> = {
  readonly host: string
  readonly waiting: Item[]
  flying: number
  /** How many requests it may have pending: one more for each success, one after a failure. */
  limit: number
  /** Its last request failed. */
  doubtful: boolean
  /** It is in a queue of hosts whose turn it is. */
  queued: boolean
}

const limitFirst = 1
/** Hosts remembered; those without deliveries are then dropped. */
const queuesMax = 16_384

export class HostQueues<Item> {
  readonly #options: HostQueuesOptions<Item>
  readonly #queues = new Map<string, HostQueue<Item>>()
  #sound: HostQueue<Item>[] = []
  #doubtful: HostQueue<Item>[] = []
  #flying = 0
  #doubtfulFlying = 0
  #pumping = false

  constructor(options: HostQueuesOptions<Item>) {
    this.#options = options
  }

  get flying(): number {
    return this.#flying
  }

  add(host: string, item: Item): void {
    let queue = this.#queues.get(host)
    if (queue === undefined) {
      if (this.#queues.size >= queuesMax) this.#forgetIdle()
      queue = { host, waiting: [], flying: 0, limit: limitFirst, doubtful: false, queued: false }
      this.#queues.set(host, queue)
    }
    queue.waiting.push(item)
    this.#enqueue(queue)
    this.#pump()
  }

  #forgetIdle(): void {
    for (const [host, { flying, waiting }] of this.#queues) if (flying + waiting.length === 0) this.#queues.delete(host)
  }

  #enqueue(queue: HostQueue<Item>): void {
    if (queue.queued || queue.waiting.length === 0 || queue.flying >= Math.min(queue.limit, this.#options.perHost))
      return
    queue.queued = true
    ;(queue.doubtful ? this.#doubtful : this.#sound).push(queue)
  }

  #pump(): void {
    // A request that ends immediately calls this again: the running loop handles it.
    if (this.#pumping) return
    this.#pumping = true
    const { slots } = this.#options
    while (this.#flying < slots) {
      const queue = this.#sound.shift() ?? (this.#doubtfulFlying < slots >> 1 ? this.#doubtful.shift() : undefined)
      if (queue === undefined) break
      queue.queued = false
      const item = queue.waiting.shift()!
      this.#send(queue, item)
      this.#enqueue(queue)
    }
    this.#pumping = false
  }

  #send(queue: HostQueue<Item>, item: Item): void {
    const { doubtful } = queue
    queue.flying++
    this.#flying++
    if (doubtful) this.#doubtfulFlying++
    this.#options.run(item, (answered) => {
      queue.flying--
      this.#flying--
      if (doubtful) this.#doubtfulFlying--
      queue.limit = answered ? Math.min(queue.limit + 1, this.#options.perHost) : 1
      queue.doubtful = !answered
      if (queue.waiting.length > 0) this.#enqueue(queue)
      else if (queue.flying === 0 && !queue.doubtful) this.#queues.delete(queue.host)
      this.#pump()
    })
  }
}
