/**
 * Memory for the bodies of requests that are still arriving. Their senders decide how long that takes, and until then a body is of no use to
 * anyone. So it is bounded: in total, and for one network, which is an IPv4 address or an IPv6 /64. The /48 above it has four times as much.
 *
 * The first bytes of each body take nothing, so that ordinary commands arrive even while all the memory is taken.
 */
import { rates } from '../../actors/kernel/limits.ts'
import { networkOf, widerNetworkOf } from '../../actors/kernel/networks.ts'
import { ClientAddresses } from './client-address.ts'
import type { BodyBounds, Exchange } from './port.ts'

type Holder = { readonly network: string; readonly max: number }

export class BodySpace {
  readonly #bounds: BodyBounds
  readonly #addresses: ClientAddresses
  readonly #taken = new Map<string, number>()
  #total = 0

  constructor(bounds: BodyBounds) {
    this.#bounds = bounds
    // The board warns of proxies that are not trusted.
    this.#addresses = new ClientAddresses(bounds.trustedProxy, () => {})
  }

  /** Space for the body of one request, which must be released. */
  begin(exchange: Exchange): BodyPlace {
    return new BodyPlace(this, exchange, this.#bounds.free)
  }

  holdersOf(exchange: Exchange): readonly Holder[] {
    const { ofNetworkMax } = this.#bounds
    const address = this.#addresses.of(exchange)
    const own = { network: networkOf(address), max: ofNetworkMax }
    const wider = widerNetworkOf(address)
    return wider === undefined ? [own] : [own, { network: wider, max: ofNetworkMax * rates.ipv6_48_factor }]
  }

  /** False if there is not enough. */
  take(holders: readonly Holder[], bytes: number): boolean {
    const isFull = holders.some(({ network, max }) => this.#of(network) + bytes > max)
    if (isFull || this.#total + bytes > this.#bounds.max) return false
    this.#add(holders, bytes)
    return true
  }

  give(holders: readonly Holder[], bytes: number): void {
    this.#add(holders, -bytes)
  }

  #of(network: string): number {
    return this.#taken.get(network) ?? 0
  }

  #add(holders: readonly Holder[], bytes: number): void {
    this.#total += bytes
    for (const { network } of holders) {
      const taken = this.#of(network) + bytes
      if (taken === 0) this.#taken.delete(network)
      else this.#taken.set(network, taken)
    }
  }
}

/** What the body of one request takes. */
export class BodyPlace {
  readonly #space: BodySpace
  readonly #exchange: Exchange
  readonly #free: number
  #holders: readonly Holder[] = []
  #taken = 0

  constructor(space: BodySpace, exchange: Exchange, free: number) {
    this.#space = space
    this.#exchange = exchange
    this.#free = free
  }

  /** `bytes`: all that have arrived. False if there is no space for them. */
  takes(bytes: number): boolean {
    const more = bytes - this.#free - this.#taken
    if (more <= 0) return true
    if (this.#taken === 0) this.#holders = this.#space.holdersOf(this.#exchange)
    if (!this.#space.take(this.#holders, more)) return false
    this.#taken += more
    return true
  }

  release(): void {
    this.#space.give(this.#holders, this.#taken)
    this.#taken = 0
  }
}
