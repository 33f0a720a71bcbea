/**
 * MCP Events: the handlers of `events/list`, `events/subscribe` and `events/unsubscribe`, which the endpoint registers
 * unchanged. They take the request's `params` and the caller. They return the result, or throw an McpEventError whose `code`,
 * `message` and `data` are the JSON-RPC error.
 *
 * `events/subscribe`, in order: caller -> name, arguments, address, secret -> room -> quota -> challenge -> position ->
 * durable. The client makes the secret, and the id is derived from who subscribed to what and where, so repeating the request
 * is a refresh.
 */

import { sizes } from '../../actors/kernel/limits.ts'
import { type HookKind, hookKinds, isHookKind, isPrivateKind, privateScope } from '../../actors/webhooks/kind-names.ts'
import type { NoAnswer } from '../command/ports.ts'
import { dataFault, kindOf, shapeOf } from '../format/data-fault.ts'
import { nearest } from '../format/nearest.ts'
import { printable } from '../format/printable.ts'
import { compile } from '../format/schema-check.ts'
import type { Limiter } from '../rates/meters.ts'
import type { ReadAnswer, ReadCall, ReadRequest } from '../reads/read.ts'
import { subscriptionId } from './identity.ts'
import { McpEventError } from './mcp-errors.ts'
import { kindShapes } from './payloads/kinds.ts'
import type { HookView } from './reads.ts'
import type { Trouble } from './retry.ts'
import { type OpenedPlace, openPlace, sealPlace } from './sealed-positions.ts'
import type { VerifyAnswer, WebhookService } from './service.ts'
import { secretKey, secretRule } from './signature.ts'

const eventScope = 'events:subscribe'

/** The caller, according to the token; undefined: anonymous. */
type Caller =
  | {
      readonly identity: string
      readonly scopes: readonly string[]
      /** 32 hex: its subscriptions end with it. */
      readonly delegation: string
    }
  | undefined

type Params = Readonly<Record<string, unknown>>

type McpEventsOptions = {
  readonly webhooks: WebhookService
  readonly read: ReadCall
  readonly isSuspended: (identity: string) => boolean
  /** When a delegation ends, in Unix seconds; 0 if it has ended. */
  readonly endOf: (delegation: string) => number
  /** Limits calls by identity; undefined: unlimited. */
  readonly calls: Limiter | undefined
}

const ttlDefaultMs = 86_400_000
const ttlMaxMs = 7 * 86_400_000
const ttlMinMs = 60_000

type Wanted = {
  readonly kind: HookKind
  readonly args: Readonly<Record<string, string | number>>
  readonly url: string
  readonly id: string
}

export class McpEvents {
  readonly #options: McpEventsOptions

  constructor(options: McpEventsOptions) {
    this.#options = options
  }

  list(params: Params = {}) {
    if (params.cursor !== undefined && params.cursor !== null)
      throw invalid('the list of events has one page: ask without a cursor')
    const events = hookKinds.map((name) => {
      const { description, input, payload } = kindShapes[name]
      return { name, description, delivery: ['webhook'], inputSchema: input, payloadSchema: payload }
    })
    return { events }
  }

  async subscribe(params: Params, caller: Caller) {
    const { identity, delegation, scopes } = this.#callerOf(caller)
    const publicOnly = !scopes.includes(privateScope)
    const wanted = this.#wantedOf(params, identity)
    if (publicOnly && isPrivateKind(wanted.kind))
      throw new McpEventError('forbidden', { reason: `${wanted.kind} needs the scope ${privateScope} too` })
    const { secret, ttlMs, cursor, maxAgeMs } = agreedOf(params)
    const fault = this.#options.webhooks.addressFault(wanted.url)
    if (fault !== undefined) throw invalid(`delivery.url: ${fault}`)
    const asked = this.#openedOf(identity, cursor)
    await this.#mayRead(wanted, publicOnly ? '' : identity)
    const { webhooks } = this.#options
    const live = answered(await webhooks.of(identity))
    const known = live.find(({ hook }) => hook === wanted.id)
    if (known === undefined && live.length >= sizes.hooks_per_identity)
      throw new McpEventError('exhausted', { limit: 'subscriptions', max: sizes.hooks_per_identity })
    verified(await webhooks.verify({ owner: identity, url: wanted.url, hook: wanted.id, secret }))
    const before = (await webhooks.status([wanted.id]))[0] ?? undefined
    const place = await this.#placeOf(known, asked, maxAgeMs)
    const end = this.#options.endOf(delegation)
    if (end === 0) throw new McpEventError('forbidden', { reason: 'the sign-in has ended' })
    const expires = Math.min(end, webhooks.wallSeconds() + Math.floor(ttlMs / 1000))
    const { args: filter, url, id: hook } = wanted
    const said = answered(
      await webhooks.say('hook.subscribe', identity, {
        ...{ hook, form: 'mcp', url, kinds: [wanted.kind], filter, expires, delegation, marks: place.marks },
        ...(publicOnly ? { publicOnly } : {}),
        ...webhooks.sealed(identity, secret),
        limit: sizes.hooks_per_identity,
      }),
    )
    if ('code' in said) throw refusedBy(String(said.code))
    await webhooks.changed(identity)
    const status = known === undefined ? undefined : before?.status
    return {
      id: hook,
      refreshBefore: new Date(expires * 1000).toISOString(),
      cursor: sealPlace(
        webhooks.cursors,
        identity,
        webhooks.epoch,
        known === undefined ? place.marks : (before?.marks ?? place.marks),
      ),
      truncated: place.truncated,
      deliveryStatus:
        status === undefined
          ? { active: true, lastDeliveryAt: null, lastError: null }
          : { ...status, lastError: status.lastError === null ? null : knownTrouble(status.lastError) },
    }
  }

  async unsubscribe(params: Params, caller: Caller): Promise<Record<string, never>> {
    const { identity } = this.#callerOf(caller)
    const { id } = this.#wantedOf(params, identity)
    const said = answered(await this.#options.webhooks.say('hook.end', identity, { hook: id }))
    if ('code' in said) throw refusedBy(String(said.code))
    // Also for one that did not exist: the caller wants there to be none.
    if (said.ended === true) await this.#options.webhooks.changed(identity)
    return {}
  }

  /** A sign-in was ended by its client, or because one of its tokens was used twice: its subscriptions end with it. */
  async signedOut(identity: string, delegation: string): Promise<void> {
    const { webhooks } = this.#options
    const own = answered(await webhooks.of(identity)).filter((each) => each.delegation === delegation)
    try {
      for (const { hook, epoch } of own) {
        const said = answered(await webhooks.say('hook.end', identity, { hook, epoch }))
        if ('code' in said) throw refusedBy(String(said.code))
      }
    } finally {
      // Also if another one failed to end: some may have ended.
      if (own.length > 0) await webhooks.changed(identity)
    }
  }

  #callerOf(caller: Caller): NonNullable<Caller> {
    if (caller === undefined)
      throw new McpEventError('forbidden', { reason: 'sign in first: subscriptions belong to an identity' })
    if (!caller.scopes.includes(eventScope))
      throw new McpEventError('forbidden', { reason: `this token lacks the scope ${eventScope}` })
    if (this.#options.isSuspended(caller.identity))
      throw new McpEventError('forbidden', { reason: 'the operator of this board has suspended this identity' })
    const wait = this.#options.calls?.take(caller.identity) ?? 0
    if (wait > 0) throw new McpEventError('exhausted', { limit: 'calls', retryAfterMs: wait * 1000 })
    return caller
  }

  #wantedOf(params: Params, identity: string): Wanted {
    const { name, arguments: given, delivery } = params
    refuseUnknown(params, '', parameters)
    if (typeof name !== 'string') throw invalid('name must be a string')
    if (!isHookKind(name)) throw new McpEventError('notFound', { kind: 'event' })
    const args = (given ?? {}) as Wanted['args']
    const fault = argumentFault(name, args)
    if (fault !== undefined) throw invalid(fault)
    if (typeof delivery !== 'object' || delivery === null) throw invalid('delivery must be an object with mode and url')
    refuseUnknown(delivery, 'delivery.', deliveryParameters)
    const { mode = 'webhook', url } = delivery as Params
    if (mode !== 'webhook') throw new McpEventError('unsupported', { feature: 'deliveryMode', value: mode })
    if (typeof url !== 'string') throw invalid('delivery.url must be a string')
    return { kind: name, args, url, id: subscriptionId(identity, url, name, args) }
  }

  /** A named room must exist and be readable by the reader; `''`: by everyone. */
  async #mayRead({ args }: Wanted, reader: string): Promise<void> {
    if (args.room === undefined) return
    const request: ReadRequest = { op: 'room.get', args: { room: args.room }, reader }
    const found = answered(await new Promise<ReadAnswer | NoAnswer>((resolve) => this.#options.read(request, resolve)))
    if (found.ok) return
    const { code, message } = 'refusal' in found ? found.refusal : found.absent
    if (code !== 'private_room') throw invalid(message)
    const needed = reader === '' ? `; following it needs the scope ${privateScope} too` : ''
    throw new McpEventError('forbidden', { reason: `${message}${needed}` })
  }

  #openedOf(identity: string, cursor: string | null): OpenedPlace {
    const { webhooks } = this.#options
    if (cursor === null) return { marks: [] }
    const opened = openPlace(webhooks.cursors, identity, webhooks.epoch, webhooks.sources, cursor)
    if (opened === undefined) throw invalid('this cursor was not issued to this identity: subscribe without one')
    return opened
  }

  /** Where it begins. A live subscription keeps its own position, whatever cursor was sent. */
  async #placeOf(known: HookView | undefined, asked: OpenedPlace, maxAgeMs: number | undefined) {
    const { webhooks } = this.#options
    if (known !== undefined) return { marks: known.marks, truncated: false }
    if ('expired' in asked) return { ...answered(await webhooks.places([])), truncated: true }
    const since = maxAgeMs === undefined ? 0 : Math.ceil(webhooks.wallSeconds() - maxAgeMs / 1000)
    return answered(await webhooks.places(asked.marks, Math.max(0, since)))
  }
}

/** The protocol keeps `_meta` for itself. */
const parameters = ['name', 'arguments', 'delivery', 'cursor', 'maxAgeMs', 'ttlMs', '_meta']
const deliveryParameters = ['mode', 'url', 'secret']

/** A misplaced or misspelled parameter would change what is agreed without a word. Many clients send null for one that they omit. */
function refuseUnknown(given: object, place: string, taken: readonly string[]): void {
  const strange = Object.entries(given).find(([name, value]) => !taken.includes(name) && value !== null)
  if (strange === undefined) return
  const [name] = strange
  const shown = printable(name)
  if (place !== '' && parameters.includes(name))
    throw invalid(`${place}${shown} is not a parameter: send ${shown} beside delivery, not inside it`)
  const meant = nearest(name, taken)
  const known = taken.filter((each) => each !== '_meta').map((each) => `${place}${each}`)
  const hint = meant === undefined ? `there are ${known.join(', ')}` : `did you mean ${place}${meant}?`
  throw invalid(`${place}${shown} is not a parameter; ${hint}`)
}

const checks = new Map<HookKind, ReturnType<typeof compile>>()

function argumentFault(kind: HookKind, args: unknown): string | undefined {
  if (typeof args !== 'object' || args === null || Array.isArray(args))
    return `arguments must be an object; ${kindOf(args)} was sent`
  const { input } = kindShapes[kind]
  const check = checks.get(kind) ?? compile(input)
  checks.set(kind, check)
  if (check(args)) return undefined
  const shape = { name: kind, shape: shapeOf(input), example: '{}', isFlat: true }
  const { field, message } = dataFault(shape, args, check.errors ?? [])
  return `arguments.${field}: ${message}`
}

/** The parameters of the delivery, apart from the subscription itself. */
function agreedOf({ delivery, ttlMs, cursor = null, maxAgeMs }: Params) {
  const { secret } = delivery as Params
  if (typeof secret !== 'string' || secretKey(secret) === undefined)
    throw invalid(`delivery.secret must be ${secretRule}`)
  if (cursor !== null && typeof cursor !== 'string') throw invalid('cursor must be a string or null')
  const isAge = maxAgeMs === undefined || maxAgeMs === null || (Number.isSafeInteger(maxAgeMs) && Number(maxAgeMs) >= 0)
  if (!isAge) throw invalid('maxAgeMs must be an integer of at least 0')
  const isTtl = ttlMs === undefined || ttlMs === null || (Number.isSafeInteger(ttlMs) && Number(ttlMs) > 0)
  if (!isTtl) throw invalid('ttlMs must be an integer above 0, or null')
  // Nothing is granted forever: a caller who asks for that gets the longest time there is.
  const asked = ttlMs === undefined ? ttlDefaultMs : ttlMs === null ? ttlMaxMs : Number(ttlMs)
  return {
    secret,
    cursor,
    maxAgeMs: maxAgeMs === undefined || maxAgeMs === null ? undefined : Number(maxAgeMs),
    ttlMs: Math.min(ttlMaxMs, Math.max(ttlMinMs, asked)),
  }
}

function verified(answer: VerifyAnswer | undefined): void {
  const found = answered(answer)
  if (found.ok) return
  if ('full' in found) throw new McpEventError('exhausted', { limit: 'board_subscriptions', max: sizes.hooks })
  if ('wait' in found) throw new McpEventError('exhausted', { limit: 'verifications', retryAfterMs: found.wait * 1000 })
  if (found.trouble === 'address_blocked') throw invalid('delivery.url: its host is not on the public Internet')
  const [reason, detail] = [knownTrouble(found.trouble), found.trouble]
  throw new McpEventError('callback', { reason, ...(detail === reason ? {} : { detail }) })
}

/** The protocol has a closed list of words: what each of ours is there. */
function knownTrouble(trouble: Trouble): string {
  return inWordsOfProtocol[trouble] ?? trouble
}

const inWordsOfProtocol: Partial<Record<Trouble, string>> = {
  http_3xx: 'http_4xx',
  access_revoked: 'http_4xx',
  connection_lost: 'connection_refused',
  no_address: 'connection_refused',
  address_blocked: 'connection_refused',
}

function refusedBy(code: string): McpEventError {
  if (code === 'wrong_state')
    return new McpEventError('exhausted', { limit: 'subscriptions', max: sizes.hooks_per_identity })
  return new McpEventError('exhausted', { limit: code })
}

function invalid(reason: string): McpEventError {
  return new McpEventError('invalidParams', { reason })
}

/** No answer came, so it is unknown whether anything was done: repeating the request is safe. */
function answered<Answer>(answer: Answer | undefined): Answer {
  if (answer === undefined) throw new Error('this board could not answer: try again')
  return answer
}
