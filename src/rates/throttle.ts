/**
 * The rates of the board: who may do how much. Whatever is counted is taken from the identity that signed it and from the network
 * that it came from, because keys are free and addresses are not.
 *
 * An identity counts by itself alone, and not in its network, where many honest ones share an address: signed in at /mcp, where
 * the address is its host's; as an operator of the board; and where an operator has raised its limits. Keys are free there too: all
 * sign-ins at one address together may do as much as `hostFactor` networks, beside what its network does.
 */

import { type Rates, rates } from '../../actors/kernel/limits.ts'
import { networkOf, widerNetworkOf } from '../../actors/kernel/networks.ts'
import type { Refusal } from '../../actors/kernel/refusals.ts'
import {
  type Allowance,
  Charge,
  identityLimits,
  type Limit,
  Meter,
  networkLimits,
  type Source,
  type Subject,
} from './meters.ts'
import type { Held, PlaceKeeper, Places } from './places.ts'

/** How many times its limits an identity or an address may use: 1, more by a grant, Infinity where none hold. */
export type Factors = {
  ofIdentity(identity: string): number
  ofAddress(address: string): number
}

export type Writer = {
  readonly identity: string
  readonly address: string
  /** It does not count in the network of its address. */
  readonly isApart: boolean
  /** It is a sign-in at the address of its host. */
  readonly isHosted?: boolean
}

/** What all sign-ins of one address may do and have open, in times of what one network may. */
export const hostFactor = 16
const vouchedMs = 600_000
const vouchedMax = 10_000

type NetworkKind = keyof typeof networkLimits
type IdentityKind = keyof typeof identityLimits

type NetworkAllowances = {
  readonly network: string
  readonly allowances: Readonly<Record<NetworkKind, Allowance>>
  /** What it has open of each kind of places, by the name of their limit. */
  readonly places: Readonly<Record<string, Held>>
}

export class Throttle implements PlaceKeeper {
  readonly #on: boolean
  readonly #factors: Factors
  readonly #networks: Readonly<Record<NetworkKind, Meter>>
  /** The same of networks as hosts of sign-ins. */
  readonly #hosts: Readonly<Record<NetworkKind, Meter>>
  readonly #identities: Readonly<Record<IdentityKind, Meter>>
  readonly #refusals = new Map<string, number>()
  readonly #places: Places[] = []
  readonly #now: () => number
  /** Networks of identities that count apart, and until when their large bodies are read whatever else comes from there. */
  readonly #vouched = new Map<string, number>()

  constructor(options: { on: boolean; now: () => number; factors: Factors }) {
    this.#on = options.on
    this.#factors = options.factors
    this.#now = options.now
    this.#networks = metersOf(networkLimits, 'network', options.now)
    this.#hosts = metersOf(networkLimits, 'network', options.now)
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

  /** Whom something counts against that stays open. Many honest sign-ins share the address of their host, but not any number. */
  holders({ address, signedIn }: Source): readonly Subject[] {
    const networks = this.#networksOf(address)
    return signedIn === undefined ? networks : [...this.#identity(signedIn), ...asHosts(networks)]
  }

  keeps(places: Places): void {
    this.#places.push(places)
  }

  /** Something else was refused for want of what this limit counts. */
  placeRefused(limit: keyof Rates): void {
    this.#noteRefusal(limit)
  }

  /** Why no signature from this address is checked now: it sent too many bad ones. */
  signaturesObjection(address: string): Refusal | undefined {
    const found = this.#usedUp(this.#networks.bad_signatures, address)
    return found && this.#refused(this.#networks.bad_signatures, found.subject, found.wait)
  }

  /** Whether there is no such objection. */
  checksSignatures(address: string): boolean {
    return this.#usedUp(this.#networks.bad_signatures, address) === undefined
  }

  /**
   * Why a body larger than any post is not read now: its network has sent too many that were no command. To receive and scan it costs
   * as much as if it were good. It takes nothing. Who counts apart is known only when a body was read, so one such write vouches
   * for the network.
   */
  largeBodyObjection(address: string): Refusal | undefined {
    const meter = this.#networks.unsigned_commands
    if ((this.#vouched.get(networkOf(address)) ?? 0) > this.#now()) return undefined
    const found = this.#usedUp(meter, address)
    return found && meter.refusal(found.subject, found.wait)
  }

  /** A write that is new was accepted. */
  writeAccepted(writer: Writer): void {
    if (!this.#isExempt(writer)) return
    if (this.#vouched.size >= vouchedMax) this.#vouched.clear()
    this.#vouched.set(networkOf(writer.address), this.#now() + vouchedMs)
  }

  /** One more did not hold. */
  badSignature(address: string): void {
    this.count('bad_signatures', { address })
  }

  /** One write of `bytes` signed bytes. `isNew`: nothing of this identity was ever accepted. `requestIds`: it has one, or none. */
  write(writer: Writer, bytes: number, isNew: boolean, requestIds: 0 | 1 = 0): Charge {
    const identity = this.#identity(writer.identity)
    const { meters, subjects } = this.#networkOf(writer)
    const charge = new Charge()
    charge.add(this.#identities.writes, identity, 1)
    charge.add(this.#identities.bytes, identity, bytes)
    charge.add(meters.writes, subjects, 1)
    charge.add(meters.bytes, subjects, bytes)
    if (isNew) charge.add(meters.new_identities, subjects, 1)
    if (requestIds > 0) charge.add(this.#networks.request_ids, this.#remembering(writer), requestIds)
    charge.take()
    return charge
  }

  /** The actor refused the write: it leaves no bytes and makes no identity, but its place in the minute is taken. */
  writeRefused(charge: Charge): void {
    const { bytes, new_identities, request_ids } = this.#networks
    const { bytes: hostBytes, new_identities: hostNew } = this.#hosts
    charge.giveBack(this.#identities.bytes, bytes, new_identities, request_ids, hostBytes, hostNew)
  }

  /** Something else of this identity was accepted meanwhile. */
  notNew(charge: Charge): void {
    charge.giveBack(this.#networks.new_identities, this.#hosts.new_identities)
  }

  /** Bytes that come unsigned and are written down. */
  bytes(address: string, bytes: number): Refusal | undefined {
    const charge = new Charge()
    charge.add(this.#networks.bytes, this.#networksOf(address), bytes)
    return this.#taken(charge)
  }

  /** One more of what is counted by the day. Verifications of an identity are counted where they are made. */
  take(kind: 'rooms' | 'conversations' | 'probes' | 'verifications', writer: Writer): Charge {
    const { meters, subjects } = this.#networkOf(writer)
    const charge = new Charge()
    if (kind !== 'verifications') charge.add(this.#identities[kind], this.#identity(writer.identity), 1)
    charge.add(meters[kind], subjects, 1)
    charge.take()
    return charge
  }

  /** Why a charge was not taken. */
  refusalOf({ full }: Charge): Refusal {
    if (full === undefined) throw new Error('an accepted charge is not a refusal')
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
    return subjects.map((subject) => ({
      network: subject.key,
      allowances: allowances(this.#networks, subject),
      places: Object.fromEntries(this.#places.map((places) => [places.limit, places.heldBy(subject)])),
    }))
  }

  /** The network of an address that has nothing left of this, and the seconds to wait; it takes nothing. */
  #usedUp(meter: Meter, address: string): { readonly subject: Subject; readonly wait: number } | undefined {
    for (const subject of this.#networksOf(address)) {
      const wait = meter.peek(subject)
      if (wait > 0) return { subject, wait }
    }
    return undefined
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

  /** Where a writer counts beside their identity. */
  #networkOf(writer: Writer): { meters: Readonly<Record<NetworkKind, Meter>>; subjects: readonly Subject[] } {
    if (this.#isExempt(writer)) return { meters: this.#networks, subjects: [] }
    const networks = this.#networksOf(writer.address)
    if (writer.isHosted === true) return { meters: this.#hosts, subjects: asHosts(networks) }
    return { meters: this.#networks, subjects: networks }
  }

  /**
   * What is remembered fills a memory that all share. Keys are free, and so are sign-ins of them: a host is a network like any other
   * here, and its sign-ins go on without request ids when it has used its own.
   */
  #remembering(writer: Writer): Subject[] {
    return this.#isExempt(writer) ? [] : this.#networksOf(writer.address)
  }

  /** An operator, or someone whom an operator gave more. */
  #isExempt({ identity, isApart, isHosted }: Writer): boolean {
    return this.#factors.ofIdentity(identity) > 1 || (isApart && isHosted !== true)
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

function asHosts(networks: readonly Subject[]): Subject[] {
  return networks.map(({ key, share }) => ({ key, share: share / hostFactor }))
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
