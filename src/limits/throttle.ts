/**
 * The rates of the board: who may do how much. Whatever is counted is taken from the identity that signed it and from the network
 * that it came from, because keys are free and addresses are not.
 *
 * An identity counts by itself alone, and not in its network, where many honest ones share an address: signed in at /mcp, where
 * the address is its host's; as an operator of the board; and where an operator has raised its limits.
 */

import { type Rates, rates } from '../../actors/kernel/limits.ts'
import { networkOf, widerNetworkOf } from '../../actors/kernel/networks.ts'
import type { Refusal } from '../../actors/kernel/refusals.ts'
import { type Allowance, Charge, identityLimits, type Limit, Meter, networkLimits, type Subject } from './meters.ts'

/** How many times its limits an identity or an address may use: 1, more by a grant, Infinity where none hold. */
export type Factors = {
  ofIdentity(identity: string): number
  ofAddress(address: string): number
}

/** Where a request came from. `signedIn`: the identity of a sign-in at /mcp. */
export type Source = { readonly address: string; readonly signedIn?: string }

export type Writer = {
  readonly identity: string
  readonly address: string
  /** It does not count in the network of its address. */
  readonly isApart: boolean
  /** It is a sign-in at the address of its host. */
  readonly isHosted?: boolean
}

/** What the sign-ins of one address have open, in times of what one network has. */
const hostFactor = 16

type NetworkKind = keyof typeof networkLimits
type IdentityKind = keyof typeof identityLimits

type NetworkAllowances = {
  readonly network: string
  readonly allowances: Readonly<Record<NetworkKind, Allowance>>
}

export class Throttle {
  readonly #on: boolean
  readonly #factors: Factors
  readonly #networks: Readonly<Record<NetworkKind, Meter>>
  readonly #identities: Readonly<Record<IdentityKind, Meter>>
  readonly #refusals = new Map<string, number>()

  constructor(options: { on: boolean; now: () => number; factors: Factors }) {
    this.#on = options.on
    this.#factors = options.factors
    this.#networks = metersOf(networkLimits, 'network', options.now)
    this.#identities = metersOf(identityLimits, 'identity', options.now)
  }

  /** How often each limit refused something since the start, by its name at /capabilities. */
  get refusals(): ReadonlyMap<string, number> {
    return this.#refusals
  }

  /** Takes one from the network of an address; a read of a sign-in from its identity. */
  count(kind: NetworkKind, { address, signedIn }: Source): Refusal | undefined {
    const isByIdentity = signedIn !== undefined && kind === 'reads'
    const charge = new Charge()
    if (isByIdentity) charge.add(this.#identities.reads, this.#identity(signedIn), 1)
    else charge.add(this.#networks[kind], this.#networksOf(address), 1)
    return this.#taken(charge)
  }

  /** One more read; 0, or seconds to wait: for those who say it in words of their own. */
  reads(address: string, signedIn?: string): number {
    return this.count('reads', { address, ...(signedIn === undefined ? {} : { signedIn }) })?.retryAfter ?? 0
  }

  /** One more OAuth client that registers by itself; 0, or seconds to wait. */
  registrations(address: string): number {
    return this.count('client_registrations', { address })?.retryAfter ?? 0
  }

  /** Whom something counts against that stays open. Many honest sign-ins share the address of their host, but not any number. */
  holders({ address, signedIn }: Source): readonly Subject[] {
    const networks = this.#networksOf(address)
    if (signedIn === undefined) return networks
    const shared = networks.map(({ key, share }) => ({ key, share: share / hostFactor }))
    return [...this.#identity(signedIn), ...shared]
  }

  placeRefused(limit: keyof Rates): void {
    this.#noteRefusal(limit)
  }

  /** Why no signature from this address is checked now: it sent too many bad ones. */
  signaturesObjection(address: string): Refusal | undefined {
    const meter = this.#networks.bad_signatures
    for (const subject of this.#networksOf(address)) {
      const wait = meter.peek(subject)
      if (wait > 0) return this.#refused(meter, subject, wait)
    }
    return undefined
  }

  /** One more did not hold. */
  badSignature(address: string): void {
    this.count('bad_signatures', { address })
  }

  /** One write of `bytes` signed bytes. `isNew`: nothing of this identity was ever accepted. `requestIds`: it has one, or none. */
  write(writer: Writer, bytes: number, isNew: boolean, requestIds: 0 | 1 = 0): Charge {
    const [identity, network] = this.#subjects(writer)
    const charge = new Charge()
    charge.add(this.#identities.writes, identity, 1)
    charge.add(this.#identities.bytes, identity, bytes)
    charge.add(this.#networks.writes, network, 1)
    charge.add(this.#networks.bytes, network, bytes)
    if (isNew) charge.add(this.#networks.new_identities, network, 1)
    if (requestIds > 0) charge.add(this.#networks.request_ids, this.#remembering(writer), requestIds)
    charge.take()
    return charge
  }

  /** The actor refused the write: it leaves no bytes and makes no identity, but its place in the minute is taken. */
  writeRefused(charge: Charge): void {
    const { bytes, new_identities, request_ids } = this.#networks
    charge.giveBack(this.#identities.bytes, bytes, new_identities, request_ids)
  }

  /** Something else of this identity was accepted meanwhile. */
  notNew(charge: Charge): void {
    charge.giveBack(this.#networks.new_identities)
  }

  /** Bytes that come unsigned and are written down. */
  bytes(address: string, bytes: number): Refusal | undefined {
    const charge = new Charge()
    charge.add(this.#networks.bytes, this.#networksOf(address), bytes)
    return this.#taken(charge)
  }

  /** One more of what is counted by the day. */
  take(kind: 'rooms' | 'conversations' | 'probes', writer: Writer): Charge {
    const [identity, network] = this.#subjects(writer)
    const charge = new Charge()
    charge.add(this.#identities[kind], identity, 1)
    if (kind !== 'probes') charge.add(this.#networks[kind], network, 1)
    charge.take()
    return charge
  }

  /** Why a charge was not taken. */
  refusalOf({ full }: Charge): Refusal {
    if (full === undefined) throw new Error('a charge that was taken is no refusal')
    return this.#refused(full.meter, full.subject, full.wait)
  }

  /** Nothing of this identity is counted in the network of its address. */
  countsApart({ identity, isApart }: Writer): boolean {
    return isApart || this.#factors.ofIdentity(identity) > 1
  }

  /** What is left to an identity. */
  allowancesOf(identity: string): Readonly<Record<IdentityKind, Allowance>> {
    const [subject = { key: identity, share: 0 }] = this.#identity(identity)
    return allowances(this.#identities, subject)
  }

  /** What is left to the network of an address, and to the network above that. */
  networkAllowances(address: string): readonly NetworkAllowances[] {
    const found = this.#networksOf(address)
    const subjects = found.length > 0 ? found : [{ key: networkOf(address), share: 0 }]
    return subjects.map((subject) => ({ network: subject.key, allowances: allowances(this.#networks, subject) }))
  }

  #taken(charge: Charge): Refusal | undefined {
    charge.take()
    return charge.full === undefined ? undefined : this.refusalOf(charge)
  }

  #refused(meter: Meter, subject: Subject, wait: number): Refusal {
    this.#noteRefusal(meter.name)
    return meter.refusal(subject, wait)
  }

  #noteRefusal(limit: string): void {
    this.#refusals.set(limit, (this.#refusals.get(limit) ?? 0) + 1)
  }

  #subjects(writer: Writer): [identity: Subject[], network: Subject[]] {
    return [this.#identity(writer.identity), this.countsApart(writer) ? [] : this.#networksOf(writer.address)]
  }

  /**
   * What is remembered fills a memory that all share. Keys are free, and so are sign-ins of them: a host is a network like any other
   * here, and its sign-ins go on without request ids when it has used its own.
   */
  #remembering(writer: Writer): Subject[] {
    const isExempt = this.#factors.ofIdentity(writer.identity) > 1 || (writer.isApart && writer.isHosted !== true)
    return isExempt ? [] : this.#networksOf(writer.address)
  }

  /** How many times its limits this identity may use. */
  factorOf(identity: string): number {
    return this.#factors.ofIdentity(identity)
  }

  #identity(identity: string): Subject[] {
    const factor = this.#factors.ofIdentity(identity)
    return !this.#on || factor === Number.POSITIVE_INFINITY ? [] : [{ key: identity, share: 1 / factor }]
  }

  #networksOf(address: string): Subject[] {
    const factor = this.#factors.ofAddress(address)
    if (!this.#on || factor === Number.POSITIVE_INFINITY) return []
    const own = { key: networkOf(address), share: 1 / factor }
    const wider = widerNetworkOf(address)
    return wider === undefined ? [own] : [own, { key: wider, share: 1 / (factor * rates.ipv6_48_factor) }]
  }
}

function metersOf<Kind extends string>(
  limits: Readonly<Record<Kind, Limit>>,
  of: 'network' | 'identity',
  now: () => number,
): Record<Kind, Meter> {
  return mapped<Kind, Limit, Meter>(limits, (limit) => new Meter(limit, of, now))
}

function allowances<Kind extends string>(
  meters: Readonly<Record<Kind, Meter>>,
  subject: Subject,
): Record<Kind, Allowance> {
  return mapped<Kind, Meter, Allowance>(meters, (meter) => meter.allowance(subject))
}

function mapped<Key extends string, From, To>(from: Readonly<Record<Key, From>>, to: (value: From) => To) {
  const entries = Object.entries<From>(from).map(([key, value]) => [key, to(value)])
  return Object.fromEntries(entries) as Record<Key, To>
}
