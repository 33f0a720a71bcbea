/**
 * Who may send now: so many requests at a time in all, so many to one host, and every host gets its turn.
 *
 * A host that answers may have more of the slots, one that fails has a single one and shares half of all with the others
 * that fail: targets that are dead or slow delay each other, and no others.
 */
type HostQueuesOptions<Item> = {
  /** Requests at a time. */
  readonly slots: number
  /** To one host at a time. */
  readonly perHost: number
  /** Sends one; says in the end whether its host answered as it should, and soon. */
  readonly run: (item: Item, done: (answered: boolean) => void) => void
}

type HostQueue<Item> = {
  readonly host: string
  readonly waiting: Item[]
  flying: number
  /** How many it may have: one more for each success, one alone after a failure. */
  limit: number
  /** Its last request failed. */
  doubtful: boolean
  /** It stands in a row of those whose turn it is. */
  queued: boolean
}

const limitFirst = 1
/** Hosts remembered; those without deliveries now are dropped. */
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
    // What ends at once comes back here: the loop that runs takes it along.
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
