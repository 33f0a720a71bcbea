/**
 * Tool calls, from an accepted command to the answer that its caller gets.
 *
 *   tools.call is on disk (reserved) -> request -> [402 -> payment on disk -> the same request with it] -> outcome on disk -> answer
 *
 * Nothing is sent before the permission is on disk, and no caller is answered before the outcome is. If the same command arrives while the
 * first is in progress, it waits for that. After a crash its outcome is `unknown`, and the call is not repeated (open-payments.ts handles
 * payments that were in progress).
 */

import { createHmac } from 'node:crypto'
import { networkOf, widerNetworkOf } from '../../actors/kernel/networks.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { CallArgs } from '../../actors/tool-calls/decide.ts'
import { type CallFacts, type CallOrigin, callsActor, originOf } from '../../actors/tool-calls/tool-calls.ts'
import { hostOf } from '../../actors/tools/listing.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { isOperator } from '../command/dispatch.ts'
import { type Decided, type Found, type Give, idOf } from '../command/plan.ts'
import type { CommandSource, Verified } from '../command/verified.ts'
import { refused } from '../format/reply.ts'
import { microsOf } from '../money/price.ts'
import { ownToolById } from '../own-tools/descriptors.ts'
import { BadInput, type Input, type OwnTool, readJson } from '../own-tools/own-tool.ts'
import { inputFault, type OwnTools } from '../own-tools/run.ts'
import { Limiter } from '../rates/meters.ts'
import { type AnswerOf, dataOf, type ReadCall } from '../reads/read.ts'
import { type AllowanceLeft, dayLimits, type FoundCall } from './reads.ts'
import { type Outcome, type Relay, type Relayed, unknownOutcome } from './relay.ts'
import { type CallData, dataFault } from './relayed.ts'

export type CallsOptions = {
  readonly read: ReadCall
  readonly own: OwnTools
  /** Identity ids. */
  readonly operators: ReadonlySet<string>
  readonly relay: Relay
  /** Whether there is a wallet at all. */
  readonly pays: boolean
  readonly secret: Buffer
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly wallSeconds: () => number
  /** Reports a fault of the board: the caller gets no outcome, and the call stays open. */
  readonly report: (error: Error) => void
}

/**
 * Concurrent calls of third-party tools: each may hold an answer of 1 MiB. A tool that never answers holds its slot for half a minute at no
 * cost, so each caller gets only a share of the slots. A site is all networks of an IPv6 /48, or all sign-ins at one address.
 */
const inProgressMax: SlotsMax = { board: 64, site: 32, network: 16, identity: 8 }
const fullBecause: Readonly<Record<Share, string>> = {
  board: `${inProgressMax.board} tool calls are in progress, which is the limit of this board`,
  site: `${inProgressMax.site} tool calls are in progress from your /48 or from sign-ins at your address, which is the limit of either`,
  network: `${inProgressMax.network} tool calls are in progress from your network, which is its limit`,
  identity: `${inProgressMax.identity} tool calls are in progress for you, which is the limit of an identity`,
}
const failuresMax = 5
const restMs = 600_000
const hasFailed = `it failed ${failuresMax} times in a row: it is called again after ${restMs / 60_000} minutes`
/** Calls per minute of one machine's tools from one network: even calls credited back to the allowance were sent. */
const callsPerMinute = 60
const hasManyCalls = `its host has had ${callsPerMinute} calls from your network in a minute: wait a minute`
/** Failures that callers cannot cause by their input: whatever they can make unsendable is refused earlier (`dataFault`). */
const toolsOwnFaults: ReadonlySet<string> = new Set(['refused', 'tls', 'blocked'])

type Source = Pick<CommandSource, 'address' | 'signedIn'>
type FoundListing = AnswerOf<'tools.listing'>

const nowhere = { url: '', method: '', mcp: false, name: '' }

export class Calls {
  readonly #options: CallsOptions
  readonly #breaker: Breaker
  readonly #pace: Limiter
  /** Callers waiting for a call in progress, by its id. */
  readonly #inProgress = new Map<string, Give[]>()
  readonly #slots = new Slots(inProgressMax)

  constructor(options: CallsOptions) {
    this.#options = options
    this.#breaker = new Breaker({ now: options.now, after: failuresMax, restMs, toolsMax: 10_000 })
    this.#pace = new Limiter({ perSecond: callsPerMinute / 60, burst: callsPerMinute }, options.now)
  }

  /** Calls in progress. */
  get open(): number {
    return this.#inProgress.size
  }

  /** Prepares the message to the actor: which tool it is, and what it may cost. */
  prepare(verified: Verified<'tools.call'>, pass: (found: Found) => void): void {
    const { command, data, source, signer } = verified
    const { target } = command
    const own = ownToolById.get(target)
    const origin = this.#origin(signer.id, source)
    const common = { limits: dayLimits, wall: this.#options.wallSeconds(), ...origin }
    if (own !== undefined) {
      const fault = ownFault(own, data)
      if (fault !== undefined) return pass({ refusal: fault })
      const args: CallArgs = { ...common, tool: target, subject: '', own: true, micros: 0, address: nowhere }
      return pass({ args })
    }
    const holder = { ...origin, identity: signer.id }
    const full = this.#slots.full(holder)
    // A repetition while the first is in progress waits for that, without its own slot.
    if (full !== undefined && !this.#inProgress.has(verified.sha.toString('hex', 0, 16))) {
      const code = full === 'board' ? 'overloaded' : 'rate_limited'
      return pass({ refusal: refusal(code, `${fullBecause[full]}: send it again when one has ended`, undefined, 1) })
    }
    // Held until the actor has answered: an accepted call takes its own slot at that moment.
    const leave = this.#slots.take(holder)
    const passed = (found: Found): void => {
      if (found !== undefined && 'args' in found) return pass({ ...found, settle: leave })
      leave()
      pass(found)
    }
    this.#options.read({ op: 'tools.listing', args: { target }, reader: '' }, (found) => {
      if (found === undefined) return passed(undefined)
      if (!found.ok && 'refusal' in found) return passed({ refusal: found.refusal })
      const listed = found.ok ? dataOf(found) : undefined
      this.#prepareListed(target, listed, verified, { ...common, tool: target, own: false }, passed)
    })
  }

  #prepareListed(
    target: string,
    found: FoundListing | undefined,
    { data }: Verified<'tools.call'>,
    common: Pick<CallArgs, 'limits' | 'wall' | 'tool' | 'own' | keyof CallOrigin>,
    pass: (found: Found) => void,
  ): void {
    const why = whyNot(target, found)
    // The actor refuses, so that a retry of a call accepted earlier stays a retry.
    if (why !== undefined || found === undefined) {
      const args: CallArgs = {
        ...common,
        subject: '',
        micros: 0,
        address: nowhere,
        barred: ['not_found', why!, 'target'],
      }
      return pass({ args })
    }
    const { listing, subject } = found
    const { url, mcp_url, method, price, name } = listing
    const mcp = listing.kind === 'mcp' && mcp_url !== ''
    const address = { url: mcp ? mcp_url : url, method, mcp, name }
    const fault = dataFault(address, data)
    if (fault !== undefined) return pass({ refusal: refusal('invalid_field', fault.message, `data.${fault.key}`) })
    const listed = microsOf(price)
    const most = microsOf(data.max_price ?? '')
    const isFree = listed === 0 ? ({ isFree: true } as const) : {}
    const args = (micros: number): CallArgs => ({ ...common, subject, micros, ...isFree, address })
    if (!this.#options.pays || listed === undefined || listed === 0 || listed > (most ?? listed))
      return pass({ args: args(0) })
    this.#options.read({ op: 'calls.mark', args: { tool: target }, reader: '' }, (found) => {
      if (found === undefined || !found.ok) return pass(undefined)
      const { mark } = dataOf(found)
      pass({ args: args(mark !== undefined && listed <= mark.micros ? listed : 0) })
    })
  }

  /** Makes the call that the actor accepted, once. `give` receives the answer. */
  finish(verified: Verified<'tools.call'>, decided: Decided<'tools.call'>, isDuplicate: boolean, give: Give): void {
    const id = idOf(verified, decided)
    const { facts } = decided
    if (facts.own) {
      this.#callOwn(verified, facts, decided.at, give).catch((error: Error) => {
        this.#options.report(error)
        give(undefined)
      })
      return
    }
    const waiting = this.#inProgress.get(id)
    if (waiting !== undefined) {
      waiting.push(give)
      return
    }
    const { id: identity } = verified.signer
    if (isDuplicate) return this.#giveKept(id, identity, facts, undefined, [give])
    const all = [give]
    this.#inProgress.set(id, all)
    const leave = this.#slots.take({ ...originOf(facts), identity })
    this.#call(id, verified, facts).then(
      (outcome) => {
        leave()
        this.#inProgress.delete(id)
        if (outcome === undefined) for (const each of all) each(undefined)
        else this.#giveKept(id, identity, facts, outcome, all)
      },
      (error: Error) => {
        this.#options.report(error)
        leave()
        this.#inProgress.delete(id)
        for (const each of all) each(undefined)
      },
    )
  }

  async #call(id: string, { data, signer }: Verified<'tools.call'>, facts: CallFacts): Promise<Outcome | undefined> {
    const { relay, operators } = this.#options
    const isOperators = isOperator(signer, operators)
    const call: Relayed = { id, identity: signer.id, isOperators, data: data, facts }
    const { tool, network, address } = facts
    const here = facts.isHosted === true ? `${tool} ${network} ${signer.id}` : `${tool} ${network}`
    if (this.#breaker.isOpen(tool) || this.#breaker.isOpen(here)) return relay.notMade(call, 'circuit_open', hasFailed)
    if (!this.#isPaced(hostOf({ url: address.url, mcp_url: '' }), signer.id, facts))
      return relay.notMade(call, 'circuit_open', hasManyCalls)
    const outcome = await relay.make(call)
    if (outcome !== undefined) this.#note(tool, here, outcome)
    return outcome
  }

  /** Counts one more call of this machine's tools. Returns false if one of the counters for this caller is exhausted. */
  #isPaced(machine: string, identity: string, { network, wider, isHosted }: CallOrigin): boolean {
    const share = isHosted === true ? 1 / dayLimits.hostTimes : 1
    const counted = [
      [network, share],
      ...(isHosted === true ? [[`${network} ${identity}`, 1] as const] : []),
      ...(wider === undefined ? [] : [[wider, share / dayLimits.widerTimes] as const]),
    ] as const
    if (counted.some(([of, cost]) => this.#pace.peek(`${of} ${machine}`, cost) > 0)) return false
    for (const [of, cost] of counted) this.#pace.take(`${of} ${machine}`, cost)
    return true
  }

  /** A tool that fails because of its input is suspended only for the network (or, at a host, the sign-in) that sent it. */
  #note(tool: string, here: string, { failure, status }: Outcome): void {
    const isGood = failure === undefined && status < 500
    if (isGood || toolsOwnFaults.has(failure ?? '')) this.#breaker.note(tool, isGood)
    if (isGood || !toolsOwnFaults.has(failure ?? '')) this.#breaker.note(here, isGood)
  }

  async #callOwn(
    { data, signer }: Verified<'tools.call'>,
    { tool, ...facts }: CallFacts,
    at: number,
    give: Give,
  ): Promise<void> {
    const started = this.#options.now()
    const result = await this.#options.own.run(tool, inputOf(data), { now: at, from: facts.network })
    if ('fault' in result) return give(refused(refusal('invalid_field', `${tool}: ${result.fault}`, 'data.body')))
    if ('failure' in result && result.failure === 'overloaded')
      return give(
        refused(refusal('overloaded', 'the tools of this board are busy: send the same command again', undefined, 1)),
      )
    const output =
      'json' in result
        ? {
            status: 200,
            output_type: 'application/json',
            output_encoding: 'json' as const,
            output: JSON.parse(result.json),
          }
        : { status: 0, failure: result.failure as 'timeout' | 'too_large' }
    const duration_ms = Math.round(this.#options.now() - started)
    const outcome: Outcome = { tool, ...output, price: '0', paid_by: 'free', duration_ms }
    this.#withAllowance('', signer.id, facts, (found) => give(found === undefined ? undefined : shown(outcome, found)))
  }

  /** Gives the stored outcome of a call, or `known` if it was just made. */
  #giveKept(id: string, identity: string, facts: CallFacts, known: Outcome | undefined, all: readonly Give[]): void {
    this.#withAllowance(id, identity, facts, (found) => {
      const kept = found?.outcome === undefined ? undefined : (JSON.parse(found.outcome) as Outcome)
      const outcome = known ?? kept ?? unknownOutcome(facts.tool, found?.open === true)
      for (const give of all) give(found === undefined ? undefined : shown(outcome, found))
    })
  }

  /** What this identity has left today when calling this way; undefined if no answer came. */
  allowance(identity: string, source: Source, then: (left: AllowanceLeft | undefined) => void): void {
    this.#withAllowance('', identity, this.#origin(identity, source), (found) => then(found?.allowance))
  }

  #withAllowance(call: string, reader: string, from: CallOrigin, then: (found: FoundCall | undefined) => void): void {
    const { isHosted, ...networks } = originOf(from)
    const args = { call, ...networks, hosted: isHosted === true ? 1 : 0 }
    this.#options.read({ op: 'call.outcome', args, reader }, (found) => then(found?.ok ? dataOf(found) : undefined))
  }

  /** What a call counts against. A sign-in at /mcp sends from the address of its host, which many may share. */
  #origin(identity: string, { address, signedIn }: Source): CallOrigin {
    const isHosted = signedIn === identity
    const purpose = isHosted ? 'hosted calls' : 'calls'
    const wider = widerNetworkOf(address)
    return {
      network: this.#mark(purpose, networkOf(address)),
      ...(wider === undefined ? {} : { wider: this.#mark(purpose, wider) }),
      ...(isHosted ? { isHosted } : {}),
    }
  }

  /** An opaque name for a network. */
  #mark(purpose: string, network: string): string {
    const mac = createHmac('sha256', this.#options.secret).update(`${purpose} ${network}`)
    return mac.digest('base64url').slice(0, 22)
  }
}

/** The actor of all calls. */
export const toCalls = { actor: callsActor } as const

function shown({ paid, ...outcome }: Outcome, { allowance }: FoundCall): NonNullable<Parameters<Give>[0]> {
  const { tool, status, failure, reason, ...rest } = outcome
  const why = { ...(failure === undefined ? {} : { failure }), ...(reason === undefined ? {} : { reason }) }
  return { values: { tool, status, ...why, ...rest, output_is_untrusted: true, allowance }, receipt: paid ?? {} }
}

function whyNot(target: string, found: FoundListing | undefined): string | undefined {
  if (found === undefined || !found.listed) return `there is no tool ${target}: tools.search finds tools`
  const { kind, url, mcp_url } = found.listing
  if (kind === 'agent' || kind === 'site' || kind === 'builtin' || (url === '' && mcp_url === ''))
    return `${target} cannot be called: it is listed as ${kind}`
  return undefined
}

/** The input of one of the board's tools: `query` and `body` combined; if `body` is a text, it is parsed as JSON. */
function inputOf({ query = {}, body = {} }: CallData): Input {
  const given = typeof body === 'string' ? readJson(body, '"body" in data') : body
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new BadInput('"body" in data must be an object: the input of the tool')
  return { ...query, ...given }
}

/** Why one of the board's tools does not accept its input. */
function ownFault(own: OwnTool, data: CallData): Refusal | undefined {
  try {
    const fault = inputFault(own, inputOf(data))
    if (fault === undefined) return undefined
    const isInQuery = Object.hasOwn(data.query ?? {}, fault.key)
    return refusal('invalid_field', fault.message, isInQuery ? 'data.query' : 'data.body')
  } catch (error) {
    if (error instanceof BadInput) return refusal('invalid_field', error.message, 'data.body')
    throw error
  }
}

/** A circuit breaker for each tool: after consecutive failures it is not called for a while, then tried once. */
class Breaker {
  readonly #now: () => number
  readonly #after: number
  readonly #restMs: number
  /** The oldest failure is evicted first. */
  readonly #tools: BoundedMap<string, { failures: number; until: number }>

  /** `now`: monotonic milliseconds. Opens for `restMs` after `after` consecutive failures. */
  constructor({
    now,
    after,
    restMs,
    toolsMax,
  }: { now: () => number; after: number; restMs: number; toolsMax: number }) {
    this.#now = now
    this.#after = after
    this.#restMs = restMs
    this.#tools = new BoundedMap(toolsMax)
  }

  /** After the breaker has rested, the next failure opens it again. */
  isOpen(tool: string): boolean {
    return (this.#tools.get(tool)?.until ?? 0) > this.#now()
  }

  note(tool: string, isGood: boolean): void {
    if (isGood) {
      this.#tools.delete(tool)
      return
    }
    const failures = (this.#tools.get(tool)?.failures ?? 0) + 1
    this.#tools.set(tool, { failures, until: failures >= this.#after ? this.#now() + this.#restMs : 0 })
  }
}

/** The share that is used up. */
type Share = 'board' | 'site' | 'network' | 'identity'
type SlotsMax = Readonly<Record<Share, number>>
export type Holder = CallOrigin & { readonly identity: string }

/** Slots for concurrent calls: a maximum in total, fewer for one site or network, fewer still for one identity. */
export class Slots {
  readonly #max: SlotsMax
  readonly #held = new Map<string, number>()
  #all = 0

  constructor(max: SlotsMax) {
    this.#max = max
  }

  /** The widest share that has no free slot for this holder. */
  full(holder: Holder): Share | undefined {
    if (this.#all >= this.#max.board) return 'board'
    return sharesOf(holder).find(([share, key]) => this.#heldBy(key) >= this.#max[share])?.[0]
  }

  /** Takes a slot, whether or not one is free. The returned function releases it, once. */
  take(holder: Holder): () => void {
    const keys = sharesOf(holder).map(([, key]) => key)
    let isHeld = true
    this.#add(keys, 1)
    return () => {
      if (isHeld) this.#add(keys, -1)
      isHeld = false
    }
  }

  #add(keys: readonly string[], places: 1 | -1): void {
    this.#all += places
    for (const key of keys) {
      const held = this.#heldBy(key) + places
      if (held === 0) this.#held.delete(key)
      else this.#held.set(key, held)
    }
  }

  #heldBy(key: string): number {
    return this.#held.get(key) ?? 0
  }
}

/** The shares that a slot counts against, widest first. */
function sharesOf({ network, wider, isHosted, identity }: Holder): readonly (readonly [Share, string])[] {
  return [
    ...(wider === undefined ? [] : [['site', wider] as const]),
    [isHosted === true ? 'site' : 'network', network],
    ['identity', `identity ${identity}`],
  ]
}
