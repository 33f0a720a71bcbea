/**
 * A queue for work that costs more than its request. Each network has one job in progress at a time, and networks take turns. A network
 * with many searches waits only for its own, and is refused if that would take too long; other networks are unaffected.
 *
 * Networks are those of `networkOf`. For an IPv6 /48, which one customer may hold entirely, and for the sign-ins that share an address,
 * only a few are served at a time.
 */

import { networkOf, widerNetworkOf } from '../../actors/kernel/networks.ts'
import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import type { Client } from '../command/ports.ts'

export type FairQueueOptions = {
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly timers: Pick<Timers, 'later'>
  /** Jobs in progress: in total, and for the networks of one /48 or the sign-ins of one address. */
  readonly runningMax: number
  readonly runningOfSiteMax: number
  /** Jobs waiting: of one network, of such a /48 or address, and in total. */
  readonly waitingOfNetworkMax: number
  readonly waitingOfSiteMax: number
  readonly waitingMax: number
  /** The longest that a job may wait. */
  readonly waitMsMax: number
}

type Job = {
  readonly run: (done: () => void) => void
  /** `seconds`: when a retry can succeed. */
  readonly refuse: (seconds: number) => void
  readonly lane: Lane
  readonly since: number
}
/** The jobs of one network, or of one sign-in, oldest first. */
type Lane = {
  readonly name: string
  readonly site: Site
  readonly waiting: Set<Job>
  isRunning: boolean
  /** It is due for a turn: it is in `#ready`, or held. */
  isReady: boolean
}
/** Lanes that one customer may hold. `held`: lanes that were due while too many others of the site were being served. */
type Site = { readonly name: string; running: number; waiting: number; lanes: number; held: Lane[] }

/** Estimate for one job before any was measured. */
const firstMs = 20
/** Weight of the newest job in the mean. */
const newestShare = 0.2

export class FairQueue {
  readonly #options: FairQueueOptions
  readonly #lanes = new Map<string, Lane>()
  readonly #sites = new Map<string, Site>()
  /** Lanes that have a waiting job and none in progress, in the order of their turns. */
  readonly #ready: Lane[] = []
  /** Oldest first. */
  readonly #waiting = new Set<Job>()
  #running = 0
  #meanMs = firstMs
  #cancel: Cancel = () => {}

  constructor(options: FairQueueOptions) {
    this.#options = options
  }

  /** Calls `run` when it is this client's network's turn. Calls `refuse` immediately, or once the job has waited too long. */
  take(client: Client, run: Job['run'], refuse: Job['refuse']): void {
    const { now, waitingMax, waitingOfNetworkMax, waitingOfSiteMax, waitMsMax } = this.#options
    const lane = this.#laneOf(client)
    const ownMs = this.#ownMs(lane)
    const isOwnFull = lane.waiting.size === waitingOfNetworkMax || lane.site.waiting === waitingOfSiteMax
    const isFull = this.#waiting.size === waitingMax
    if (isFull || isOwnFull || ownMs > waitMsMax) {
      const allMs = isFull ? (waitingMax * this.#meanMs) / Math.max(1, this.#running) : 0
      this.#drop(lane)
      return refuse(secondsOf(Math.max(ownMs, allMs)))
    }
    const job: Job = { run, refuse, lane, since: now() }
    lane.waiting.add(job)
    lane.site.waiting++
    this.#waiting.add(job)
    if (!lane.isRunning && !lane.isReady) this.#makeReady(lane)
    client.onGone?.(() => this.#forget(job))
    this.#pump()
    this.#watch()
  }

  /** Estimated wait for one more job of this network. */
  #ownMs({ waiting, isRunning }: Lane): number {
    return (waiting.size + (isRunning ? 1 : 0)) * this.#meanMs
  }

  #pump(): void {
    const { now, runningMax, runningOfSiteMax } = this.#options
    while (this.#running < runningMax) {
      const lane = this.#ready.shift()
      if (lane === undefined) return
      const [job] = lane.waiting
      const { site } = lane
      if (job !== undefined && site.running === runningOfSiteMax) {
        site.held.push(lane)
        continue
      }
      lane.isReady = false
      if (job === undefined) {
        this.#drop(lane)
        continue
      }
      this.#remove(job)
      lane.isRunning = true
      site.running++
      this.#running++
      const since = now()
      let isDone = false
      job.run(() => {
        if (isDone) return
        isDone = true
        this.#meanMs += newestShare * (now() - since - this.#meanMs)
        this.#end(lane)
      })
    }
  }

  #end(lane: Lane): void {
    const { site } = lane
    lane.isRunning = false
    this.#running--
    site.running--
    this.#ready.push(...site.held.splice(0, 1))
    if (lane.waiting.size > 0) this.#makeReady(lane)
    else this.#drop(lane)
    this.#pump()
  }

  #makeReady(lane: Lane): void {
    lane.isReady = true
    this.#ready.push(lane)
  }

  /** Drops a job that no client waits for anymore. */
  #forget(job: Job): void {
    this.#remove(job)
    this.#watch()
  }

  #remove(job: Job): void {
    if (!this.#waiting.delete(job)) return
    job.lane.waiting.delete(job)
    job.lane.site.waiting--
  }

  /** Arranges for the oldest job to be refused once it has waited too long. */
  #watch(): void {
    this.#cancel()
    const [oldest] = this.#waiting
    if (oldest === undefined) return
    const dueMs = oldest.since + this.#options.waitMsMax - this.#options.now()
    this.#cancel = this.#options.timers.later(() => this.#sweep(), Math.max(1, dueMs))
  }

  #sweep(): void {
    const before = this.#options.now() - this.#options.waitMsMax
    for (const job of this.#waiting) {
      if (job.since > before) break
      this.#remove(job)
      job.refuse(secondsOf(this.#ownMs(job.lane)))
    }
    this.#watch()
  }

  #laneOf({ address, signedIn }: Client): Lane {
    const network = networkOf(address)
    const name = signedIn === undefined ? network : `${network} ${signedIn}`
    const known = this.#lanes.get(name)
    if (known !== undefined) return known
    const siteName = widerNetworkOf(address) ?? network
    const site = this.#sites.get(siteName) ?? { name: siteName, running: 0, waiting: 0, lanes: 0, held: [] }
    this.#sites.set(siteName, site)
    site.lanes++
    const lane: Lane = { name, site, waiting: new Set(), isRunning: false, isReady: false }
    this.#lanes.set(name, lane)
    return lane
  }

  /** Removes a lane with nothing in it. */
  #drop(lane: Lane): void {
    if (lane.isRunning || lane.waiting.size > 0 || this.#lanes.get(lane.name) !== lane) return
    this.#lanes.delete(lane.name)
    lane.site.lanes--
    if (lane.site.lanes === 0) this.#sites.delete(lane.site.name)
  }
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}
