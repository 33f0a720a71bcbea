/**
 * Who may send now: so many requests at a time in all, so many to one host, and every host gets its turn.
 *
 * A host that answers may have more of the slots, one that fails has a single one and shares half of all with the others
 * that fail: targets that are dead or slow delay each other, and no others.
 */
type LanesOptions<Item> = {
  /** Requests at a time. */
  readonly slots: number
  /** To one host at a time. */
  readonly perHost: number
  /** Sends one; says in the end whether its host answered as it should, and soon. */
  readonly run: (item: Item, done: (answered: boolean) => void) => void
}

type Lane<Item> = {
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
const lanesMax = 16_384

export class HostQueues<Item> {
  readonly #options: LanesOptions<Item>
  readonly #lanes = new Map<string, Lane<Item>>()
  #sound: Lane<Item>[] = []
  #doubtful: Lane<Item>[] = []
  #flying = 0
  #doubtfulFlying = 0
  #pumping = false

  constructor(options: LanesOptions<Item>) {
    this.#options = options
  }

  get flying(): number {
    return this.#flying
  }

  add(host: string, item: Item): void {
    let lane = this.#lanes.get(host)
    if (lane === undefined) {
      if (this.#lanes.size >= lanesMax) this.#forgetIdle()
      lane = { host, waiting: [], flying: 0, limit: limitFirst, doubtful: false, queued: false }
      this.#lanes.set(host, lane)
    }
    lane.waiting.push(item)
    this.#queue(lane)
    this.#pump()
  }

  #forgetIdle(): void {
    for (const [host, { flying, waiting }] of this.#lanes) if (flying + waiting.length === 0) this.#lanes.delete(host)
  }

  #queue(lane: Lane<Item>): void {
    if (lane.queued || lane.waiting.length === 0 || lane.flying >= Math.min(lane.limit, this.#options.perHost)) return
    lane.queued = true
    ;(lane.doubtful ? this.#doubtful : this.#sound).push(lane)
  }

  #pump(): void {
    // What ends at once comes back here: the loop that runs takes it along.
    if (this.#pumping) return
    this.#pumping = true
    const { slots } = this.#options
    while (this.#flying < slots) {
      const lane = this.#sound.shift() ?? (this.#doubtfulFlying < slots >> 1 ? this.#doubtful.shift() : undefined)
      if (lane === undefined) break
      lane.queued = false
      const item = lane.waiting.shift()!
      this.#send(lane, item)
      this.#queue(lane)
    }
    this.#pumping = false
  }

  #send(lane: Lane<Item>, item: Item): void {
    const { doubtful } = lane
    lane.flying++
    this.#flying++
    if (doubtful) this.#doubtfulFlying++
    this.#options.run(item, (answered) => {
      lane.flying--
      this.#flying--
      if (doubtful) this.#doubtfulFlying--
      lane.limit = answered ? Math.min(lane.limit + 1, this.#options.perHost) : 1
      lane.doubtful = !answered
      if (lane.waiting.length > 0) this.#queue(lane)
      else if (lane.flying === 0 && !lane.doubtful) this.#lanes.delete(lane.host)
      this.#pump()
    })
  }
}
