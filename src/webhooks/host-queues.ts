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
  inFlight: number
  /** How many requests it may have pending: one more for each success, one after a failure. */
  limit: number
  /** Its last request failed. */
  isFailing: boolean
  /** It is in a queue of hosts whose turn it is. */
  isQueued: boolean
}

const limitFirst = 1
/** Hosts remembered; those without deliveries are then dropped. */
const queuesMax = 16_384

export class HostQueues<Item> {
  readonly #options: HostQueuesOptions<Item>
  readonly #queues = new Map<string, HostQueue<Item>>()
  #healthy: HostQueue<Item>[] = []
  #failing: HostQueue<Item>[] = []
  #inFlight = 0
  #failingInFlight = 0
  #isPumping = false

  constructor(options: HostQueuesOptions<Item>) {
    this.#options = options
  }

  get inFlight(): number {
    return this.#inFlight
  }

  add(host: string, item: Item): void {
    let queue = this.#queues.get(host)
    if (queue === undefined) {
      if (this.#queues.size >= queuesMax) this.#forgetIdle()
      queue = { host, waiting: [], inFlight: 0, limit: limitFirst, isFailing: false, isQueued: false }
      this.#queues.set(host, queue)
    }
    queue.waiting.push(item)
    this.#enqueue(queue)
    this.#pump()
  }

  #forgetIdle(): void {
    for (const [host, { inFlight, waiting }] of this.#queues)
      if (inFlight + waiting.length === 0) this.#queues.delete(host)
  }

  #enqueue(queue: HostQueue<Item>): void {
    if (queue.isQueued || queue.waiting.length === 0 || queue.inFlight >= Math.min(queue.limit, this.#options.perHost))
      return
    queue.isQueued = true
    ;(queue.isFailing ? this.#failing : this.#healthy).push(queue)
  }

  #pump(): void {
    // A request that ends immediately calls this again: the running loop handles it.
    if (this.#isPumping) return
    this.#isPumping = true
    const { slots } = this.#options
    while (this.#inFlight < slots) {
      const queue = this.#healthy.shift() ?? (this.#failingInFlight < slots >> 1 ? this.#failing.shift() : undefined)
      if (queue === undefined) break
      queue.isQueued = false
      const item = queue.waiting.shift()!
      this.#send(queue, item)
      this.#enqueue(queue)
    }
    this.#isPumping = false
  }

  #send(queue: HostQueue<Item>, item: Item): void {
    const { isFailing } = queue
    queue.inFlight++
    this.#inFlight++
    if (isFailing) this.#failingInFlight++
    this.#options.run(item, (answered) => {
      queue.inFlight--
      this.#inFlight--
      if (isFailing) this.#failingInFlight--
      queue.limit = answered ? Math.min(queue.limit + 1, this.#options.perHost) : 1
      queue.isFailing = !answered
      if (queue.waiting.length > 0) this.#enqueue(queue)
      else if (queue.inFlight === 0 && !queue.isFailing) this.#queues.delete(queue.host)
      this.#pump()
    })
  }
}
