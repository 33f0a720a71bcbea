/**
 * Where each read is answered: by the feed, by a shard, by several of them together, or by the threads that search.
 */

import { inside } from '../../actors/kernel/limits.ts'
import type { Head } from '../../actors/records/answer.ts'
import { shardOf } from '../../actors/shard.ts'
import type { Clock } from '../clock.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import type { Client, ReadPath } from '../command/paths.ts'
import type { Actors, NoAnswer } from '../command/ports.ts'
import { resolveRequest, withResolved } from '../command/resolved.ts'
import { checkpointAnswer } from '../log/checkpoint.ts'
import { type WitnessesFacts, witnessesAnswer } from '../log/witnesses.ts'
import { dataOf, ok, type ReadAnswer, type ReadRequest, soonest } from '../reads/read.ts'
import { readTools } from '../tools/ask-index.ts'
import { readWorks, workReads } from '../works/ask-room-and-market.ts'
import { type Gather, gatherOf, homes } from './gather.ts'
import { Searches } from './searches.ts'

export type ReadRouterOptions = {
  readonly actors: Actors
  readonly news: LiveFacts
  /** The log that grows. */
  readonly log: { readonly origin: string; readonly vkey: string }
  /** Tells who else signs a head. */
  readonly heads: { standing(newest: Head): WitnessesFacts }
  /** Rates and quotas hold. */
  readonly limitsOn: boolean
  readonly clock: Clock
}

const ownClient: Client = { address: '' }

export class ReadRouter implements ReadPath {
  readonly #options: ReadRouterOptions
  readonly #searches: Searches

  constructor(options: ReadRouterOptions) {
    this.#options = options
    const queue = options.limitsOn
      ? { ...inside.searchQueue, now: options.clock.monotonicMs, timers: options.clock }
      : undefined
    this.#searches = new Searches({ actors: options.actors, queue })
  }

  /** `client`: who waits for it; by default the board itself does. */
  read(request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void, client: Client = ownClient): void {
    const named = resolveRequest(this.#options.news.handles, request)
    if ('code' in named) return answer({ ok: false, refusal: named })
    const { resolved } = named
    if (resolved === undefined) return this.#read(request, answer, client)
    this.#read(named.request, (found) => answer(found && withResolved(found, resolved)), client)
  }

  #read(request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void, client: Client): void {
    const { actors, heads, log, news, clock } = this.#options
    if (request.op === 'log.checkpoint') return answer(checkpointAnswer(log, news.head))
    if (request.op === 'log.witnesses') return answer(witnessesAnswer(heads.standing(news.head), clock.wallSeconds()))
    if (this.#searches.read(request, client, answer)) return
    if (readTools(actors, request, answer)) return
    if (workReads.has(request.op)) return readWorks(actors, request, answer)
    const home = homes[request.op]
    if (home !== undefined) return actors.readPrivate(shardOf(home(request), actors.shards), request, answer)
    if (request.op === 'inbox.get' && request.reader !== '') return this.#inbox(request, answer)
    const gather = gatherOf(request)
    if (gather !== undefined) return this.#gather(gather, request, answer)
    actors.read(request, (found) => {
      if (found === undefined || found.ok || 'refusal' in found) return answer(found)
      if (request.args.room !== undefined)
        return actors.readPrivate(shardOf(String(request.args.room), actors.shards), request, settle(found, answer))
      this.#readEverywhere(request, found, answer)
    })
  }

  /** Whom the reader has blocked is known where his conversations lie; what they wrote anywhere is left out of every share. */
  #inbox(request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void): void {
    const asked: ReadRequest = { ...request, op: 'inbox.blocked' }
    this.#gather(gatherOf(asked)!, asked, (found: ReadAnswer<{ blocked: readonly string[] }> | NoAnswer) => {
      if (found === undefined || !found.ok) return answer(found)
      const { blocked } = dataOf(found)
      this.#gather(gatherOf(request)!, { ...request, args: { ...request.args, blocked: blocked.join(',') } }, answer)
    })
  }

  #gather(gather: Gather, request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void): void {
    const { actors } = this.#options
    const found: (ReadAnswer | NoAnswer)[] = new Array(actors.shards + 1)
    let open = found.length
    const take = (place: number) => (part: ReadAnswer | NoAnswer) => {
      found[place] = part
      if (--open > 0) return
      const shares: Extract<ReadAnswer, { ok: true }>[] = []
      for (const each of found) {
        if (each === undefined || !each.ok) return answer(each)
        shares.push(each)
      }
      const parts = shares.map(({ json }) => JSON.parse(json) as unknown)
      answer(ok(gather(parts), { until: soonest(shares.map(({ until }) => until)) }))
    }
    actors.read(request, take(0))
    for (let shard = 0; shard < actors.shards; shard++) actors.readPrivate(shard, request, take(shard + 1))
  }

  /** An event id names no room: every shard is asked, and the one that has it answers. */
  #readEverywhere(request: ReadRequest, absent: ReadAnswer, answer: (answer: ReadAnswer | NoAnswer) => void): void {
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

/** `absent` everywhere is a refusal. */
function settle(
  absent: ReadAnswer,
  answer: (answer: ReadAnswer | NoAnswer) => void,
): (found: ReadAnswer | NoAnswer) => void {
  return (found) => answer(found !== undefined && !found.ok && 'absent' in found ? absent : found)
}
