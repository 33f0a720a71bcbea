/** The main thread's work for the tools directory besides reads and writes: probes, and rewards for reviews. */

import { allowances } from '../../actors/kernel/limits.ts'
import type { AnyReadName } from '../../actors/operations.ts'
import { internalLetter } from '../../actors/records/internal-operations.ts'
import type { RoundArgs } from '../../actors/tools/decide.ts'
import type { Listing } from '../../actors/tools/listing.ts'
import { type ProbedFacts, toolsActor } from '../../actors/tools/tools.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { isOperator } from '../command/dispatch.ts'
import { type Decided, type Give, idOf } from '../command/plan.ts'
import type { Actors } from '../command/ports.ts'
import type { Verified } from '../command/verified.ts'
import { refused } from '../format/reply.ts'
import type { Outgoing } from '../outgoing/request.ts'
import { type AnswerOf, dataOf, type ReadCall, type ReadRequest } from '../reads/read.ts'
import { isAt, type Permission, probeTool } from './probe.ts'
import type { DueTool, FoundListing } from './reads.ts'
import { ReviewRewards, type ReviewRewardsOptions } from './review-rewards.ts'

type ToolProberOptions = {
  readonly actors: Actors
  readonly read: ReadCall
  readonly outgoing: Outgoing
  /** What is shown of the directory has changed. */
  readonly noteChange: (actor: string, change: number) => void
  /** Waits between two requests to one host. */
  readonly pause: () => Promise<void>
}

type ProbeRequest = {
  /** 32 hex. */
  readonly id: string
  readonly tool: string
  readonly host: string
  /** Who requested it; in a daily round, the owner. */
  readonly identity: string
  readonly permission: (found: FoundListing) => Permission
}

/** A result on disk. A retry after a restart is answered from the record, so the first answer has its time too. */
type Recorded = { readonly facts: ProbedFacts; readonly at: number }

/** Makes one probe: reads the listing, sends the requests, and records the result. The request is already on disk. */
class ToolProber {
  readonly #options: ToolProberOptions

  constructor(options: ToolProberOptions) {
    this.#options = options
  }

  /** The result and when it was recorded; undefined if the tool could not be probed, or the result not be recorded. */
  async take({ id, tool, host, identity, permission }: ProbeRequest): Promise<Recorded | undefined> {
    const { outgoing, pause } = this.#options
    const found = await this.ask('tools.listing', { target: tool })
    const kept = await this.ask('tools.get', { target: tool })
    if (found === undefined || kept === undefined) return undefined
    const granted = permission(found)
    if (granted === 'standing' && !(kept.index.listed && mayBeTried(found.listing) && isAt(found.listing, host)))
      return undefined
    const payeeBefore = kept.probe?.saw?.tool?.offers?.[0]?.pay_to ?? ''
    const subject = { listing: found.listing, identity, permission: granted, payeeBefore }
    const seen = await probeTool({ request: (request) => outgoing.request(request), pause }, subject)
    const facts: ProbedFacts = { probe: id, tool, host, identity, ...seen }
    const at = await this.#write(facts)
    return at === undefined ? undefined : { facts, at }
  }

  ask<Name extends AnyReadName>(op: Name, args: ReadRequest['args']): Promise<AnswerOf<Name> | undefined> {
    return new Promise((resolve) =>
      this.#options.read({ op, args, reader: '' }, (found) => resolve(found?.ok ? dataOf(found) : undefined)),
    )
  }

  /** Returns when it was recorded, in seconds. */
  #write(facts: ProbedFacts): Promise<number | undefined> {
    return new Promise((resolve) =>
      this.#options.actors.write(internalLetter('tools.probed', toolsActor, facts.identity, facts), (answered) => {
        if (answered?.ok && answered.change !== undefined) this.#options.noteChange(toolsActor, answered.change)
        resolve(answered?.ok ? answered.reply.at : undefined)
      }),
    )
  }
}

/** Methods that change or remove something are not tried without a request. */
function mayBeTried({ method, kind }: Listing): boolean {
  return kind === 'mcp' || ['', 'GET', 'HEAD', 'POST'].includes(method)
}

type ProbeRoundOptions = {
  readonly prober: ToolProber
  readonly actors: Pick<Actors, 'write'>
  /** A secret that keeps the times of probes unpredictable. */
  readonly seed: string
  /** Between two probes of one host. */
  readonly gapSeconds: number
  /** Calls back later; does not keep the process alive. */
  readonly later: (callback: () => void, ms: number) => void
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

/** Wait between checks for due listings, when none was. */
const checkEveryMs = 2_000
/** Hosts probed concurrently. */
const hostsMax = 4

/**
 * The daily round: probes, without a request, listings whose hosts name their owners (actors/tools/tools.ts says which, and
 * when). Each probe is recorded on disk before it is made, so a restart cannot cause a second one on the same day.
 *
 * It probes a few hosts at a time, each at intervals. What was missed while the board was down is caught up at the same rate.
 */
class ProbeRound {
  readonly #options: ProbeRoundOptions
  #closed = false

  constructor(options: ProbeRoundOptions) {
    this.#options = options
  }

  begin(): void {
    this.#after(checkEveryMs)
  }

  close(): void {
    this.#closed = true
  }

  #after(ms: number): void {
    const { later, report } = this.#options
    later(() => {
      if (this.#closed) return
      this.#step().then(
        (probed) => this.#after(probed ? 0 : checkEveryMs),
        (error: unknown) => {
          report({ round: 'failed', problem: String(error) })
          this.#after(checkEveryMs)
        },
      )
    }, ms)
  }

  /** Returns whether anything was due, and probed. */
  async #step(): Promise<boolean> {
    const { prober, seed, gapSeconds } = this.#options
    const due = await prober.ask('tools.due', { seed, gap: gapSeconds, most: hostsMax })
    const probed = await Promise.allSettled((due ?? []).map((each) => this.#probe(each)))
    for (const each of probed) if (each.status === 'rejected') throw each.reason
    return probed.some((each) => each.status === 'fulfilled' && each.value)
  }

  async #probe({ tool, host, owner }: DueTool): Promise<boolean> {
    const id = await this.#begun(tool, owner)
    if (id === undefined || this.#closed) return false
    await this.#options.prober.take({ id, tool, host, identity: owner, permission: () => 'standing' })
    return true
  }

  /** The id of a probe that is on disk now; undefined if it must not be made. */
  #begun(target: string, owner: string): Promise<string | undefined> {
    const { actors, gapSeconds } = this.#options
    const args: RoundArgs = { target, gapSeconds, looksMax: allowances.tool_looks_per_board_per_day }
    return new Promise((resolve) =>
      actors.write(internalLetter('tools.round', toolsActor, owner, args), (answered) =>
        resolve(answered?.ok === true ? answered.reply.id : undefined),
      ),
    )
  }
}

type RequestedProbesOptions = Pick<ToolProberOptions, 'read'> & {
  readonly prober: ToolProber
  readonly operators: ReadonlySet<string>
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

type ProbeJson = Readonly<Record<string, unknown>>

/** Probes whose results are remembered, newest last: a retry is shown the first answer. */
const answersKept = 1_000

/**
 * Requested probes: from a command that is on disk to the result of the probe, on disk too, and then to the answer.
 *
 * The command is recorded before anything is sent, so a board that dies in between never probes twice for it. If the client
 * sends it again, the answer is that the result is unknown; the client can then send a new command.
 */
class RequestedProbes {
  readonly #options: RequestedProbesOptions
  readonly #inProgress = new Map<string, Give[]>()
  readonly #known = new BoundedMap<string, ProbeJson>(answersKept)

  constructor(options: RequestedProbesOptions) {
    this.#options = options
  }

  /** Probes the tool, records what was seen, and answers. */
  answer(verified: Verified<'tools.probe'>, decided: Decided<'tools.probe'>, isDuplicate: boolean, give: Give): void {
    const id = idOf(verified, decided)
    const { tool, host } = decided.facts
    const known = this.#known.get(id)
    if (known !== undefined) return give({ values: { probe: known }, receipt: {} })
    const waiting = this.#inProgress.get(id)
    if (waiting !== undefined) {
      waiting.push(give)
      return
    }
    if (isDuplicate) return this.#recall(id, tool, host, decided.at, verified.signer.id, give)
    this.#inProgress.set(id, [give])
    const { signer } = verified
    const isOperators = isOperator(signer, this.#options.operators)
    const permission = ({ owner }: FoundListing) => (isOperators || owner === signer.id ? 'given' : 'asked')
    this.#options.prober.take({ id, tool, host, identity: signer.id, permission }).then(
      (recorded) => this.#finish(id, recorded && probeJson(recorded.facts, recorded.at)),
      (error: unknown) => {
        this.#options.report({ probe: id, problem: String(error) })
        this.#finish(id, undefined)
      },
    )
  }

  /**
   * Answers a command from an earlier run: its outcome is in the directory, if there ever was one. While that is being built,
   * the directory's refusal is the answer.
   */
  #recall(id: string, tool: string, host: string, at: number, identity: string, give: Give): void {
    this.#options.read({ op: 'tools.get', args: { target: tool }, reader: '' }, (found) => {
      if (found === undefined) return give(undefined)
      if ('refusal' in found) return give(refused(found.refusal))
      const { probe } = found.ok ? dataOf(found) : {}
      const nothing: ProbedFacts = {
        ...{ probe: id, tool, host, identity, isOwner: undefined, optOut: undefined },
        ...{ verdict: 'not_probed', isGood: false, mismatch: [] },
        saw: { tool: 'this probe is no longer known: request another' },
      }
      give({ values: { probe: probe?.id === id ? probe : probeJson(nothing, at) }, receipt: {} })
    })
  }

  #finish(id: string, probe: ProbeJson | undefined): void {
    const waiting = this.#inProgress.get(id) ?? []
    this.#inProgress.delete(id)
    if (probe !== undefined) this.#known.set(id, probe)
    for (const give of waiting) give(probe === undefined ? undefined : { values: { probe }, receipt: {} })
  }
}

function probeJson(facts: ProbedFacts, at: number): ProbeJson {
  const { probe: id, tool, host, verdict, mismatch, isOwner, optOut, saw } = facts
  return { id, tool, host, at, verdict, mismatch, verified: isOwner === true, opt_out: optOut === true, saw }
}

type ToolProbesOptions = ToolProberOptions &
  ReviewRewardsOptions &
  Omit<RequestedProbesOptions, 'prober'> &
  Omit<ProbeRoundOptions, 'prober'>

export class ToolProbes extends RequestedProbes {
  readonly #rewards: ReviewRewards
  readonly #round: ProbeRound
  readonly #report: RequestedProbesOptions['report']

  constructor(options: ToolProbesOptions) {
    const prober = new ToolProber(options)
    super({ ...options, prober })
    this.#rewards = new ReviewRewards(options)
    this.#round = new ProbeRound({ ...options, prober })
    this.#report = options.report
  }

  /** A review was accepted. */
  reviewed(subject: string, author: string, address: string): void {
    void this.#rewards.consider({ subject, author, address })
  }

  /** Considers reviews that an earlier run may not have got to, and starts the daily round. */
  resume(): void {
    this.#round.begin()
    this.#rewards.resume().catch((error: unknown) => this.#report({ problem: String(error) }))
  }

  close(): void {
    this.#rewards.close()
    this.#round.close()
  }
}
