/**
 * The board's rate limits: who may do how much. Everything counts against both the identity that signed it and the network it came from,
 * because keys are free and addresses are not.
 *
 * In three cases an identity counts only by itself, and not in its network, where many honest users share an address: when signed in at
 * /mcp, where the address is the host's; as an operator of the board; and if an operator has raised its limits. Keys are free there too, so
 * all sign-ins at one address together may do as much as `hostFactor` networks, in addition to what its network does.
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

/** The factor by which an identity or an address may exceed its limits: 1, more by a grant, Infinity if no limits apply. */
export type Factors = {
  ofIdentity(identity: string): number
  ofAddress(address: string): number
}

export type Writer = {
  readonly identity: string
  readonly address: string
  /** Whether it does not count in the network of its address. */
  readonly isApart: boolean
  /** It is a sign-in at the address of its host. */
  readonly isHosted?: boolean
}

/** Limit for all sign-ins at one address together, as a multiple of the limit of one network. */
export const hostFactor = 16
const vouchedMs = 600_000
const vouchedMax = 10_000

type NetworkKind = keyof typeof networkLimits
type IdentityKind = keyof typeof identityLimits

type NetworkAllowances = {
  readonly network: string
  readonly allowances: Readonly<Record<NetworkKind, Allowance>>
  /** What it has open of each kind of places, by the name of the limit. */
  readonly places: Readonly<Record<string, Held>>
}

export class Throttle implements PlaceKeeper {
  readonly #on: boolean
  readonly #factors: Factors
  readonly #networks: Readonly<Record<NetworkKind, Meter>>
  /** The same for networks as hosts of sign-ins. */
  readonly #hosts: Readonly<Record<NetworkKind, Meter>>
  readonly #identities: Readonly<Record<IdentityKind, Meter>>
  readonly #refusals = new Map<string, number>()
  readonly #places: Places[] = []
  readonly #now: () => number
  /** Networks of identities that count separately -> until when their large bodies are accepted, whatever else comes from there. */
  readonly #vouched = new Map<string, number>()

  constructor(options: { on: boolean; now: () => number; factors: Factors }) {
    this.#on = options.on
    this.#factors = options.factors
    this.#now = options.now
    this.#networks = metersOf(networkLimits, 'network', options.now)
    this.#hosts = metersOf(networkLimits, 'network', options.now)
    this.#identities = metersOf(identityLimits, 'identity', options.now)
  }

  /** How often each limit has refused something since the start, by its name in /capabilities. */
  get refusals(): ReadonlyMap<string, number> {
    return this.#refusals
  }

  /** Counts one against the network of an address; for a read by a sign-in, against its identity. */
  count(kind: NetworkKind, { address, signedIn }: Source): Refusal | undefined {
    const isByIdentity = signedIn !== undefined && kind === 'reads'
    const charge = new Charge()
    if (isByIdentity) charge.add(this.#identities.reads, this.#identity(signedIn), 1)
    else charge.add(this.#networks[kind], this.#networksOf(address), 1)
    return this.#taken(charge)
  }

  /** Counts one more read. Returns 0, or the seconds to wait, for callers with their own messages. */
  reads(address: string, signedIn?: string): number {
    return this.count('reads', { address, ...(signedIn === undefined ? {} : { signedIn }) })?.retryAfter ?? 0
  }

  /** Whom an open thing counts against. Many honest sign-ins share the address of their host, but not an unlimited number. */
  holders({ address, signedIn }: Source): readonly Subject[] {
    const networks = this.#networksOf(address)
    return signedIn === undefined ? networks : [...this.#identity(signedIn), ...asHosts(networks)]
  }

  keeps(places: Places): void {
    this.#places.push(places)
  }

  /** Something else was refused because this limit was reached. */
  placeRefused(limit: keyof Rates): void {
    this.#noteRefusal(limit)
  }

  /** Why no signature from this address is checked now: it has sent too many bad ones. */
  signaturesObjection(address: string): Refusal | undefined {
    const found = this.#usedUp(this.#networks.bad_signatures, address)
    return found && this.#refused(this.#networks.bad_signatures, found.subject, found.wait)
  }

  /** Whether there is no such objection. */
  checksSignatures(address: string): boolean {
    return this.#usedUp(this.#networks.bad_signatures, address) === undefined
  }

  /**
   * Why a body larger than any post is not read now: its network has sent too many invalid ones, and receiving and scanning it costs as
   * much as if it were valid. Takes nothing. Which identities count separately is known only after a body has been read, so one such write
   * vouches for its network.
   */
  largeBodyObjection(address: string): Refusal | undefined {
    const meter = this.#networks.unsigned_commands
    if ((this.#vouched.get(networkOf(address)) ?? 0) > this.#now()) return undefined
    const found = this.#usedUp(meter, address)
    return found && meter.refusal(found.subject, found.wait)
  }

  /** Call when a new write was accepted. */
  writeAccepted(writer: Writer): void {
    if (!this.#isExempt(writer)) return
    if (this.#vouched.size >= vouchedMax) this.#vouched.clear()
    this.#vouched.set(networkOf(writer.address), this.#now() + vouchedMs)
  }

  /** Counts one more bad signature. */
  badSignature(address: string): void {
    this.count('bad_signatures', { address })
  }

  /** Charges one write of `bytes` signed bytes. `isNew`: nothing of this identity was ever accepted. `requestIds`: whether it has one. */
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

  /** The actor refused the write: it stores no bytes and creates no identity, but still counts as a write. */
  writeRefused(charge: Charge): void {
    const { bytes, new_identities, request_ids } = this.#networks
    const { bytes: hostBytes, new_identities: hostNew } = this.#hosts
    charge.giveBack(this.#identities.bytes, bytes, new_identities, request_ids, hostBytes, hostNew)
  }

  /** Something else of this identity was accepted in the meantime. */
  notNew(charge: Charge): void {
    charge.giveBack(this.#networks.new_identities, this.#hosts.new_identities)
  }

  /** Charges unsigned bytes that are stored. */
  bytes(address: string, bytes: number): Refusal | undefined {
    const charge = new Charge()
    charge.add(this.#networks.bytes, this.#networksOf(address), bytes)
    return this.#taken(charge)
  }

  /** Charges one more of something counted per day. Verifications of an identity are counted where they are made. */
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

  /** Whether nothing of this identity is counted in the network of its address. */
  countsApart({ identity, isApart }: Writer): boolean {
    return isApart || this.#factors.ofIdentity(identity) > 1
  }

  /** What an identity has left. */
  allowancesOf(identity: string): Readonly<Record<IdentityKind, Allowance>> {
    const [subject = { key: identity, share: 0 }] = this.#identity(identity)
    return allowances(this.#identities, subject)
  }

  /** What is left to the network of an address, and to its enclosing network. */
  networkAllowances(address: string): readonly NetworkAllowances[] {
    const found = this.#networksOf(address)
    const subjects = found.length > 0 ? found : [{ key: networkOf(address), share: 0 }]
    return subjects.map((subject) => ({
      network: subject.key,
      allowances: allowances(this.#networks, subject),
      places: Object.fromEntries(this.#places.map((places) => [places.limit, places.heldBy(subject)])),
    }))
  }

  /** The network of an address that has used this up, and the seconds to wait; takes nothing. */
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

  /** What a writer counts against, besides their identity. */
  #networkOf(writer: Writer): { meters: Readonly<Record<NetworkKind, Meter>>; subjects: readonly Subject[] } {
    if (this.#isExempt(writer)) return { meters: this.#networks, subjects: [] }
    const networks = this.#networksOf(writer.address)
    if (writer.isHosted === true) return { meters: this.#hosts, subjects: asHosts(networks) }
    return { meters: this.#networks, subjects: networks }
  }

  /**
   * Request ids take memory that everyone shares. Keys are free, and so are their sign-ins: here a host counts as an ordinary network, and
   * its sign-ins continue without request ids when it has used up its share.
   */
  #remembering(writer: Writer): Subject[] {
    return this.#isExempt(writer) ? [] : this.#networksOf(writer.address)
  }

  /** An operator, or someone whose limits an operator has raised. */
  #isExempt({ identity, isApart, isHosted }: Writer): boolean {
    return this.#factors.ofIdentity(identity) > 1 || (isApart && isHosted !== true)
  }

  /** The factor by which this identity may exceed its limits. */
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
