/** The connection from a follower to the leader: requests arrive at its `/replica/`, and some get lost. */

import type { Clock } from '../../src/clock.ts'
import type { Header, RouteHandler } from '../../src/http/port.ts'
import { EngineExchange } from '../../src/http/wire.ts'
import { type AskBox, Leader, OutOfReach } from '../../src/replication/leader.ts'
import { isUnreadable } from '../../storage/disk.ts'
import type { Simulation } from '../support/simulation.ts'

type BoxRequest = Parameters<AskBox>[2]
type Answer = Awaited<ReturnType<AskBox>>

export class Network {
  readonly #sim: Simulation
  readonly #key: string
  readonly #address: string
  /** The handler of `/replica/`; undefined: no board runs there. */
  readonly #replicaRoute: () => RouteHandler | undefined
  /** Requests for these paths do not get through. */
  cut: RegExp | undefined
  /** Percentage of requests that get lost, or whose answers do. */
  lost = 0

  /** `key`: 64 hex. */
  constructor(sim: Simulation, given: { address: string; key: string; replicaRoute: () => RouteHandler | undefined }) {
    this.#sim = sim
    this.#address = given.address
    this.#key = given.key
    this.#replicaRoute = given.replicaRoute
  }

  heal(): void {
    this.cut = undefined
    this.lost = 0
  }

  /** As a thread with this clock queries it: answers after the end of that thread reach nobody. */
  leader(clock: Clock): Leader {
    return new Leader([this.#address], this.#key, (_address, path, asked) => this.#ask(clock, path, asked))
  }

  #ask(clock: Clock, path: string, request: BoxRequest): Promise<Answer> {
    const sim = this.#sim
    const isCut = this.cut?.test(path) === true
    const isLost = isCut || sim.randomBelow(100) < this.lost
    // Whether the request, or the answer to it, gets through.
    const isHeard = !isLost || (!isCut && sim.randomBelow(2) === 0)
    return new Promise((resolve, reject) => {
      const giveUp = clock.later(() => reject(this.#outOfReach()), request.beginsWithinMs)
      const back = (give: () => void): void => {
        if (isLost) return
        sim.schedule(() => {
          clock.later(() => {
            giveUp()
            give()
          }, 0)
        }, sim.randomBelow(10))
      }
      if (!isHeard) return
      sim.schedule(() => {
        const replicaRoute = this.#replicaRoute()
        if (replicaRoute === undefined) return back(() => reject(this.#outOfReach(this.#address)))
        const exchange = new SimulatedExchange(path, request, (answer) => {
          // A machine without power sends nothing.
          if (sim.isDown) return
          back(() => (answer === undefined ? reject(this.#outOfReach()) : resolve(answer)))
        })
        sim.runInMain(() => exchange.handle(replicaRoute, path))
      }, sim.randomBelow(10))
    })
  }

  #outOfReach(unsentTo?: string): OutOfReach {
    return new OutOfReach(`${this.#address} is out of reach`, unsentTo)
  }
}

/** An unreadable disk is answered with 500, as by an engine. Everything else is a bug in the board. */
function onFault(error: unknown): string {
  if (isUnreadable(error)) return '{}'
  throw error
}

/** A request as the leader receives it. `answered`: without an answer its connection was closed. */
class SimulatedExchange extends EngineExchange {
  readonly method: string
  readonly path: string
  readonly query = ''
  readonly remoteAddress = '192.0.2.2'
  readonly headers: readonly string[]
  readonly isUpgrade = false
  readonly #body: string
  readonly #onAnswer: (answer: Answer | undefined) => void

  constructor(path: string, { key, body }: BoxRequest, answered: (answer: Answer | undefined) => void) {
    super({ options: { now: () => 0, refusal: () => '', onFault }, draining: false, pending: new Set() })
    this.method = body === undefined ? 'GET' : 'POST'
    this.path = `/replica/${path}`
    this.headers = ['authorization', `Bearer ${key}`]
    this.#body = body ?? ''
    this.isBodyComing = body !== undefined
    this.#onAnswer = answered
  }

  handle(replicaRoute: RouteHandler, path: string): void {
    try {
      replicaRoute(this, path)
    } catch (error) {
      this.fault(error)
    }
  }

  protected override bodyWanted(): void {
    const bytes = Buffer.from(this.#body)
    this.onPart(bytes.length, true, () => bytes)
  }

  reply(status: number, _headers: readonly Header[], body: Uint8Array | string): void {
    if (this.ended) return
    this.end()
    this.#onAnswer({ status, bytes: Buffer.from(body) })
  }

  drop(): void {
    if (this.ended) return
    this.end()
    this.#onAnswer(undefined)
  }

  stream(): never {
    throw new Error('nothing that followers ask for is streamed')
  }

  accept(): undefined {}
}
