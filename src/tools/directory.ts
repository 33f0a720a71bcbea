/**
 * The directory in memory: receives every public record about tools, in order, and answers searches and lookups. A record marks
 * what it touched; `settle` then reads those listings from the journals and updates the index.
 */

import { sizes } from '../../actors/kernel/limits.ts'
import type { identityProfileSet } from '../../actors/people/operations.ts'
import { suspensions } from '../../actors/people/people.ts'
import {
  ActsOf,
  actIn,
  type BoardRecord,
  commandIn,
  dataIn,
  type FactRecord,
  RecordType,
  registryName,
} from '../../actors/records/record.ts'
import type { RelayFacts } from '../../actors/tool-calls/tool-calls.ts'
import { type Listing, listingFieldsIn, listingOf, siteOf } from '../../actors/tools/listing.ts'
import {
  type Entry,
  type ImportFacts,
  probedActs,
  type Review,
  reviewsRoom,
  Tools,
  toolsActor,
} from '../../actors/tools/tools.ts'
import {
  isOfMarket,
  type MarketFacts,
  movesWork,
  type OpenFacts,
  type RewardFacts,
  type StepFacts,
} from '../../actors/works/market/letters.ts'
import { isUnreadable } from '../../storage/disk.ts'
import type { FoundReviewer } from './asks.ts'
import { CreditTies } from './credit-ties.ts'
import { type Agent, agentId, type Doc, type OwnTool, ofAgent, ofListing, ofOwnTool } from './doc.ts'
import type { ToolIndex } from './index.ts'
import { pathKeyOf } from './path.ts'
import type { Sources } from './quality.ts'
import { standingOf } from './rank.ts'
import type { Callable } from './show.ts'

const imports = new ActsOf<ImportFacts>('tools.import')
const relays = new ActsOf<RelayFacts>('tools.relay')
const transfers = new ActsOf<{ readonly target: string }>('credit.transfer')
const rewards = new ActsOf<RewardFacts>('credit.reward')

type DirectoryOptions = {
  readonly index: ToolIndex
  readonly own: readonly OwnTool[]
  /** The record with this number in the journal of a shard. */
  readonly record: (shard: number, seq: number) => BoardRecord
  /** Unix seconds: when the index was started. */
  readonly now: number
}

type Packed = {
  readonly tools: ReturnType<Tools['pack']>
  readonly agents: readonly Agent[]
  readonly handles: readonly (readonly [identity: string, handle: string])[]
  readonly suspended: readonly string[]
  readonly standings: ReturnType<Standings['pack']>
  readonly ties: ReturnType<CreditTies['pack']>
  readonly relayed: readonly string[]
  readonly rewarded: readonly (readonly [subject: string, reviewers: readonly string[]])[]
  readonly builtAt: number
}

/** The place of a record; `change` does not matter here. */
type Place = { readonly shard: number; readonly seq: number; readonly id: Uint8Array }

/** Rewards for reviews of the board's own tools are counted under this name. */
const ownPublisher = 'broadside'
/** A subject may have thousands of listings. */
const publishersMax = 32

export class Directory {
  readonly tools = new Tools()
  readonly sources: Sources
  readonly #options: DirectoryOptions
  readonly #own: ReadonlyMap<string, OwnTool>
  readonly #agents = new Map<string, Agent>()
  readonly #handles = new Map<string, string>()
  readonly #suspended = new Set<string>()
  readonly #ties = new CreditTies(sizes.credit_review_work_minimum)
  readonly #standings = new Standings(this.#ties)
  /** The id in the path of a page -> the listing id, for everything that has a page, withdrawn listings included. */
  readonly #byPathKey = new Map<string, string>()
  /** Listings that the wallet of the board pays for. */
  readonly #relayed = new Set<string>()
  /** Subject -> who was rewarded for a review of it. */
  readonly #rewarded = new Map<string, Set<string>>()
  /** Listings and agents whose document must be updated. */
  readonly #touched = new Set<string>()
  readonly #unread = new Set<string>()
  /** Unix seconds of the newest record that changed anything. */
  builtAt: number

  constructor(options: DirectoryOptions) {
    this.#options = options
    this.#own = new Map(options.own.map((tool) => [tool.id, tool]))
    this.builtAt = options.now
    for (const tool of options.own) {
      options.index.put((number) => ofOwnTool(number, tool, options.now))
      this.#byPathKey.set(pathKeyOf(tool.id), tool.id)
    }
    this.sources = {
      entry: (id) => this.tools.find(id),
      reviews: (subject) => this.tools.reviews.of(subject),
      standing: (identity) => (this.#suspended.has(identity) ? -1 : this.#standings.of(identity)),
    }
  }

  /** Number of rewarded reviews of a subject. */
  rewarded(subject: string): number {
    return this.#rewarded.get(subject)?.size ?? 0
  }

  /**
   * The publishers of a subject, as far as its hosts confirm them: the names under which rewards for its reviews are counted,
   * which are identities and sites. Empty if no host confirms any. For its own tools, the board confirms itself.
   */
  publishers(subject: string): readonly string[] {
    const names = new Set<string>()
    for (const id of this.#options.index.ofSubject(subject)) {
      const entry = this.tools.find(id)
      if (this.#own.has(id)) names.add(ownPublisher)
      else if (entry !== undefined && entry.owner !== '' && this.tools.isOwnerOf(entry.host, entry.owner))
        names.add(entry.owner).add(siteOf(entry.host))
      if (names.size >= publishersMax) break
    }
    return [...names]
  }

  /** What is known about a reviewer of this subject. */
  reviewer(subject: string, identity: string): FoundReviewer {
    const publishers = this.publishers(subject)
    const isTied = publishers.some((each) => this.#ties.areTied(each, identity))
    const isBarred = (requester: string) => publishers.includes(requester) || this.tools.shareHost(requester, identity)
    return { isTied, vouchers: isTied ? [] : this.#ties.vouchers(identity, isBarred) }
  }

  /** Whether tools.call can call it from here. */
  callable({ id, isOwn, isReached, protocols, price }: Doc): Callable {
    if (isOwn) return 'callable'
    if (!isReached) return 'listed only'
    if (this.#relayed.has(id)) return 'relayed'
    return protocols.length === 0 || price === '0' ? 'callable' : 'listed only'
  }

  /** The id for a request by id, or by the name in the path of a page. */
  idOf(asked: string): string {
    return this.#byPathKey.get(asked) ?? asked
  }

  own(id: string): OwnTool | undefined {
    return this.#own.get(id)
  }

  agent(id: string): Agent | undefined {
    return this.#agents.get(id)
  }

  /** The latest content of the listing. */
  listing({ id, shard, seq, row }: Entry): Listing {
    const record = actIn(this.#options.record(shard, seq))
    return listingOf(id, listingFieldsIn(record)[row]!, record.at)
  }

  /** Why the index does not have a listing, or ''. */
  absence(entry: Entry): string {
    if (entry.withdrawn === 'owner') return 'its owner withdrew it'
    if (entry.withdrawn === 'operator') return 'the operator of this board withdrew it'
    if (this.tools.hasOptedOut(entry.host))
      return `${entry.host} has "opt_out": true in /.well-known/broadside.json: remove that, then call tools.probe`
    if (entry.owner !== '' && this.#suspended.has(entry.owner)) return 'the identity that published it is suspended'
    return ''
  }

  /** Applies a public record; cheap for those not about tools. */
  apply(record: BoardRecord, place: Place): void {
    if (record.type === RecordType.event) {
      if (record.room !== reviewsRoom) return
      this.tools.onEvent(record, 0, { ...place, change: 0, leaf: 0 })
      this.builtAt = Math.max(this.builtAt, record.at)
    } else if (record.type === RecordType.handleClaimed) {
      this.#named(Buffer.from(record.author).toString('hex'), record.handle)
    } else if (record.type === RecordType.act) this.#act(record, place)
  }

  /**
   * Updates up to `most` of the touched documents; returns false if there are more. `spare`: called with each error that leaves
   * listings out of the index.
   */
  settle(most: number, spare: (error: unknown) => void): boolean {
    const { index } = this.#options
    const byRecord = new Map<string, Entry[]>()
    let taken = 0
    for (const id of this.#touched) {
      if (taken++ === most) break
      this.#touched.delete(id)
      this.#byPathKey.set(pathKeyOf(id), id)
      const entry = this.tools.find(id)
      if (entry === undefined) {
        this.#settleAgent(id)
        continue
      }
      if (this.absence(entry) !== '') index.drop(id)
      else group(byRecord, `${entry.shard}:${entry.seq}`, entry)
    }
    for (const entries of byRecord.values()) {
      try {
        this.#update(entries)
      } catch (error) {
        if (isUnreadable(error)) for (const { id } of entries) this.#unread.add(id)
        spare(error)
      }
    }
    return this.#touched.size === 0
  }

  /** Whether the disk has failed to read some listings. A later read may succeed. */
  get hasUnread(): boolean {
    return this.#unread.size > 0
  }

  /** Has the next `settle` read them again. */
  retry(): void {
    for (const id of this.#unread) this.#touched.add(id)
    this.#unread.clear()
  }

  pack(): Packed {
    return {
      tools: this.tools.pack(),
      agents: [...this.#agents.values()],
      handles: [...this.#handles],
      suspended: [...this.#suspended],
      standings: this.#standings.pack(),
      ties: this.#ties.pack(),
      relayed: [...this.#relayed],
      rewarded: [...this.#rewarded].map(([subject, reviewers]) => [subject, [...reviewers]] as const),
      builtAt: this.builtAt,
    }
  }

  restore({ tools, agents, handles, suspended, standings, ties, relayed, rewarded, builtAt }: Packed): void {
    this.tools.restore(tools)
    for (const agent of agents) this.#agents.set(agentId(agent.identity), agent)
    for (const [identity, handle] of handles) this.#handles.set(identity, handle)
    for (const identity of suspended) this.#suspended.add(identity)
    this.#standings.restore(standings)
    this.#ties.restore(ties)
    for (const id of relayed) this.#relayed.add(id)
    for (const [subject, reviewers] of rewarded) this.#rewarded.set(subject, new Set(reviewers))
    this.builtAt = builtAt
    for (const { id } of this.tools.entries()) this.#touched.add(id)
    for (const id of this.#agents.keys()) this.#touched.add(id)
  }

  /** Whether the identity owns this document. */
  isOwner(doc: Doc, identity: string): boolean {
    return doc.identity === identity || (doc.host !== '' && this.tools.isOwnerOf(doc.host, identity))
  }

  #act(act: FactRecord, place: Place): void {
    const from = { ...place, change: 0, leaf: 0 }
    if (act.room === toolsActor) {
      this.tools.acts[act.op]?.(act as FactRecord<never>, from)
      this.#touch(act)
    } else if (act.room === reviewsRoom) this.tools.onAct(act)
    else if (act.room === registryName) this.#person(act)
    else if (isOfMarket(act)) this.#market(act)
    else if (relays.is(act)) this.#marked(act)
    else return
    this.builtAt = Math.max(this.builtAt, act.at)
  }

  #touch(act: FactRecord): void {
    if (imports.is(act)) {
      const rows = listingFieldsIn(act)
      for (const row of act.facts.applied) this.#touched.add(rows[row]!.id!)
    } else if (probedActs.is(act)) {
      const { host, tool, isGood, verdict } = act.facts
      const subject = this.tools.find(tool)?.subject
      if (subject !== undefined && verdict !== 'not_probed')
        this.#standings.looked(this.tools.reviews.of(subject), isGood)
      this.#touched.add(tool)
      this.#touchHost(host)
    } else if (typeof act.facts.id === 'string') this.#touched.add(act.facts.id)
  }

  #marked({ facts }: FactRecord<RelayFacts>): void {
    const { tool, relay } = facts
    if (relay) this.#relayed.add(tool)
    else this.#relayed.delete(tool)
  }

  #market(act: FactRecord<MarketFacts>): void {
    const by = Buffer.from(act.author).toString('hex')
    if (transfers.is(act)) this.#ties.gave(by, act.facts.target)
    else if (rewards.is(act)) {
      const { subject, reviewer } = act.facts
      this.#rewarded.set(subject, (this.#rewarded.get(subject) ?? new Set()).add(reviewer))
    } else if (movesWork(act)) this.#standings.moved(by, act.facts)
  }

  #touchHost(host: string): void {
    const isOut = this.tools.hasOptedOut(host)
    for (const { id, host: each } of this.tools.entries())
      if (each === host && isOut === (this.#options.index.find(id) !== undefined)) this.#touched.add(id)
  }

  #person(act: FactRecord): void {
    const { op, author, by, at } = act
    const identity = Buffer.from(author).toString('hex')
    if (op === 'identity.profile.set' && by !== undefined) {
      const command = commandIn(by.signed)
      const { description = '', capabilities = [] } = dataIn<typeof identityProfileSet>(command)
      const id = agentId(identity)
      if (capabilities.length === 0) this.#agents.delete(id)
      else this.#agents.set(id, { identity, handle: this.#handles.get(identity), description, capabilities, at })
      this.#touched.add(id)
    } else if (suspensions.is(act)) {
      const { target } = act.facts
      if (op === 'identity.unsuspend') this.#suspended.delete(target)
      else this.#suspended.add(target)
      if (op === 'identity.erase') {
        this.#agents.delete(agentId(target))
        this.#handles.delete(target)
      }
      this.#touched.add(agentId(target))
      for (const { id, owner } of this.tools.entries()) if (owner === target) this.#touched.add(id)
    }
  }

  #named(identity: string, handle: string): void {
    this.#handles.set(identity, handle)
    const id = agentId(identity)
    const agent = this.#agents.get(id)
    if (agent === undefined) return
    this.#agents.set(id, { ...agent, handle })
    this.#touched.add(id)
  }

  /** All of one record. */
  #update(entries: readonly Entry[]): void {
    const { index, record } = this.#options
    const { shard, seq } = entries[0]!
    const act = actIn(record(shard, seq))
    const said = listingFieldsIn(act)
    for (const { id, row, owner } of entries) {
      const listing = listingOf(id, said[row]!, act.at)
      index.put((number) => ofListing(number, listing, owner))
    }
  }

  #settleAgent(id: string): void {
    const agent = this.#agents.get(id)
    if (agent === undefined || this.#suspended.has(agent.identity)) this.#options.index.drop(id)
    else this.#options.index.put((number) => ofAgent(number, agent))
  }
}

function group<Value>(table: Map<string, Value[]>, key: string, value: Value): void {
  const known = table.get(key)
  if (known === undefined) table.set(key, [value])
  else known.push(value)
}

type Count = { confirmed: number; upheld: number }

/** A review confirmed by a probe is worth half a work, and reviews count up to ten. */
const confirmedWorth = 0.5
const confirmedMax = 10

/**
 * The standing of an identity: how many requesters accepted a work of it, reviews that a probe confirmed later, and lost
 * disputes. A user with any number of keys can produce any number of works and reviews. So a requester counts once, and only
 * under the rules of credit-ties.ts, and reviews are capped.
 */
class Standings {
  readonly #ties: CreditTies
  readonly #counts = new Map<string, Count>()
  /** Reviews that were confirmed. */
  readonly #confirmed = new Set<string>()

  constructor(ties: CreditTies) {
    this.#ties = ties
  }

  /** In [-1, 1]. */
  of(identity: string): number {
    const { confirmed, upheld } = this.#counts.get(identity) ?? nothing
    const works = this.#ties.requesters(identity)
    return standingOf(works + confirmedWorth * Math.min(confirmed, confirmedMax), upheld)
  }

  /** Applies a change of a work by `author`. */
  moved(author: string, facts: StepFacts | OpenFacts): void {
    const loser = this.#ties.moved(author, facts)
    if (loser !== '') this.#of(loser).upheld++
  }

  /** The subjects of these reviews were probed. */
  looked(reviews: readonly Review[], isGood: boolean): void {
    for (const { id, author, kind } of reviews) {
      if (kind !== (isGood ? 'works' : 'down') || this.#confirmed.has(id)) continue
      this.#confirmed.add(id)
      this.#of(author).confirmed++
    }
  }

  pack() {
    return {
      counts: [...this.#counts].map(([identity, count]) => [identity, { ...count }] as const),
      confirmed: [...this.#confirmed],
    }
  }

  restore({ counts, confirmed }: ReturnType<Standings['pack']>): void {
    for (const [identity, count] of counts) this.#counts.set(identity, { ...count })
    for (const id of confirmed) this.#confirmed.add(id)
  }

  #of(identity: string): Count {
    const known = this.#counts.get(identity)
    if (known !== undefined) return known
    const made = { confirmed: 0, upheld: 0 }
    this.#counts.set(identity, made)
    return made
  }
}

const nothing: Count = { confirmed: 0, upheld: 0 }
