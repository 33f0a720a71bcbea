/** Where each read is answered: by the feed, by one shard, by several shards together, or by the search threads. */

import { internalLimits } from '../../actors/kernel/limits.ts'
import type { AnyReadName } from '../../actors/operations.ts'
import type { Head } from '../../actors/records/answer.ts'
import { shardOf } from '../../actors/shard.ts'
import { subscriptionsOf } from '../../actors/subscriptions/decide.ts'
import type { Clock } from '../clock.ts'
import { type LiveFacts, resolveRequest, withResolved } from '../command/live-facts.ts'
import type { ReadPlan } from '../command/plan.ts'
import type { Actors, Client, NoAnswer, ReadPath } from '../command/ports.ts'
import { headReads, type WitnessesFacts } from '../log/checkpoint.ts'
import {
  type AnswerOf,
  asSuspended,
  dataOf,
  type ReadAnswer,
  type ReadRequest,
  soonest,
  type Take,
} from '../reads/read.ts'
import { readTools } from '../tools/ask-index.ts'
import { readWorks, workReads } from '../works/plans.ts'
import { readPlans } from './plans.ts'
import { Searches } from './searches.ts'

type ReadRouterOptions = {
  readonly actors: Actors
  readonly news: LiveFacts
  /** The log that is being appended to. */
  readonly log: { readonly origin: string; readonly vkey: string }
  /** Reports who else signs a head. */
  readonly heads: { standing(newest: Head): WitnessesFacts }
  /** Whether rates and quotas are enforced. */
  readonly limitsOn: boolean
  readonly clock: Clock
}

type SharePlan = Extract<ReadPlan, { gather: unknown }>

const ownClient: Client = { address: '' }

/** Lists that hide posts of identities that the signed reader has muted. */
const leavesOut: ReadonlySet<AnyReadName> = new Set(['events.list', 'thread.get', 'threads.list'])

/** Reads that show nothing of private rooms: of identities that have not acted in public, a shard shows only the reader's own. */
const ofIdentities: ReadonlySet<AnyReadName> = new Set(['identity.get', 'identity.events'])

export class ReadRouter implements ReadPath {
  readonly #options: ReadRouterOptions
  readonly #searches: Searches

  constructor(options: ReadRouterOptions) {
    this.#options = options
    const queue = options.limitsOn
      ? { ...internalLimits.searchQueue, now: options.clock.monotonicMs, timers: options.clock }
      : undefined
    this.#searches = new Searches({ actors: options.actors, queue })
  }

  /** `client`: who waits for the answer; the board itself by default. */
  read<Name extends AnyReadName>(
    request: ReadRequest<Name>,
    answer: Take<AnswerOf<Name>>,
    client: Client = ownClient,
  ): void {
    const named = resolveRequest(this.#options.news.handles, request)
    if ('code' in named) return answer({ ok: false, refusal: named })
    const { resolved } = named
    const give: Take = answer
    if (resolved === undefined) return this.#read(request, give, client)
    this.#read(named.request, (found) => give(found && withResolved(found, resolved)), client)
  }

  #read(request: ReadRequest, answer: Take, client: Client): void {
    const { actors, heads, log, news, clock } = this.#options
    if (request.reader !== '' && request.muted === undefined && leavesOut.has(request.op))
      return this.#withMuted(request, answer, (asked) => this.#read(asked, answer, client))
    const headRead = headReads[request.op]
    if (headRead !== undefined) return answer(headRead({ log, head: news.head, heads, clock }))
    // Of what is not in a list of their own, the suspended get what everybody gets.
    const [asked, give]: [ReadRequest, Take] =
      request.isSuspended === true && !ofIdentities.has(request.op)
        ? [{ ...request, reader: '' }, asSuspended(answer)]
        : [request, answer]
    if (this.#searches.read(asked, client, give)) return
    if (readTools(actors, request, answer)) return
    if (workReads.has(request.op)) return readWorks(actors, asked, give)
    const plan = readPlans[request.op]
    if (plan !== undefined && 'actor' in plan)
      return actors.readPrivate(shardOf(plan.actor(request), actors.shards), request, answer)
    if (plan !== undefined && plan.isShared?.(request) !== false) return this.#shared(plan, request, answer)
    actors.read(request, (found) => {
      if (found === undefined || found.ok || 'refusal' in found) return answer(found)
      if (request.args.room !== undefined)
        return actors.readPrivate(shardOf(String(request.args.room), actors.shards), asked, settle(found, give))
      this.#readEverywhere(asked, found, give)
    })
  }

  /** A reader's muted identities are stored with the reader's own actor. */
  #withMuted(request: ReadRequest, answer: Take, then: (asked: ReadRequest) => void): void {
    const { actors } = this.#options
    const { reader } = request
    const home = shardOf(subscriptionsOf(reader), actors.shards)
    actors.readPrivate(home, { op: 'subscription.muted', args: {}, reader }, (found) => {
      if (found === undefined || !found.ok) return answer(found)
      then({ ...request, muted: dataOf(found) })
    })
  }

  #shared(plan: SharePlan, request: ReadRequest, answer: Take): void {
    if (plan.ask === undefined) return this.#gather(plan, request, answer)
    plan.ask(
      request,
      (asked, take) => this.read(asked, take),
      (found) => (found !== undefined && 'op' in found ? this.#gather(plan, found, answer) : answer(found)),
    )
  }

  #gather(plan: SharePlan, request: ReadRequest, answer: Take): void {
    const { actors } = this.#options
    const shards = request.isSuspended === true && plan.isForSuspended !== true ? 0 : actors.shards
    const found: (ReadAnswer | NoAnswer)[] = new Array(shards + 1)
    let open = found.length
    const take = (place: number) => (part: ReadAnswer | NoAnswer) => {
      found[place] = part
      if (--open > 0) return
      const shares: Extract<ReadAnswer, { ok: true }>[] = []
      for (const each of found) {
        if (each === undefined || !each.ok) return answer(each)
        shares.push(each)
      }
      answer(plan.gather(shares.map(dataOf), soonest(shares.map(({ until }) => until))))
    }
    actors.read(request, take(0))
    for (let shard = 0; shard < shards; shard++) actors.readPrivate(shard, request, take(shard + 1))
  }

  /** An event id names no room, so every shard is asked, and the one that has the event answers. */
  #readEverywhere(request: ReadRequest, absent: ReadAnswer, answer: Take): void {
    let open = this.#options.actors.shards
    let best: ReadAnswer | NoAnswer = absent
    for (let shard = 0; shard < this.#options.actors.shards; shard++) {
      this.#options.actors.readPrivate(shard, request, (found) => {
        if (found === undefined || found.ok || 'refusal' in found) best = found
        if (--open === 0) settle(absent, answer)(best)
      })
    }
  }
}

/** If no shard has it, the answer is the refusal `absent`. */
function settle(absent: ReadAnswer, answer: Take): (found: ReadAnswer | NoAnswer) => void {
  return (found) => answer(found !== undefined && !found.ok && 'absent' in found ? absent : found)
}
