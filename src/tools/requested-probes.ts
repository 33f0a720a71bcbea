/**
 * Requested probes: from a command that is on disk to the result of the probe, on disk too, and then to the answer.
 *
 * The command is recorded before anything is sent, so a board that dies in between never probes twice for it: a client that sends it
 * again is answered that the result is unknown, and sends a new command.
 */

import type { ProbedFacts } from '../../actors/tools/tools.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { isOperator } from '../command/dispatch.ts'
import { type Decided, type Give, idOf } from '../command/plan.ts'
import type { Verified } from '../command/verified.ts'
import { dataOf } from '../reads/read.ts'
import type { LooksOptions, ToolProber } from './probe.ts'
import type { FoundListing } from './reads.ts'

export type ProbesOptions = Pick<LooksOptions, 'read'> & {
  readonly looks: ToolProber
  readonly operators: ReadonlySet<string>
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

type ProbeJson = Readonly<Record<string, unknown>>

/** Ids of probes whose answer is known, the newest last: a retry is shown what the first was. */
const answersKept = 1_000

export class RequestedProbes {
  readonly #options: ProbesOptions
  readonly #underWay = new Map<string, Give[]>()
  readonly #known = new BoundedMap<string, ProbeJson>(answersKept)

  constructor(options: ProbesOptions) {
    this.#options = options
  }

  /** ToolProber, records what was seen, and answers. */
  answer(verified: Verified<'tools.probe'>, decided: Decided<'tools.probe'>, isDuplicate: boolean, give: Give): void {
    const id = idOf(verified, decided)
    const { tool, host } = decided.facts
    const known = this.#known.get(id)
    if (known !== undefined) return give({ values: { probe: known }, receipt: {} })
    const waiting = this.#underWay.get(id)
    if (waiting !== undefined) {
      waiting.push(give)
      return
    }
    if (isDuplicate) return this.#recall(id, tool, host, decided.at, verified.signer.id, give)
    this.#underWay.set(id, [give])
    const { signer } = verified
    const isOperators = isOperator(signer, this.#options.operators)
    const leave = ({ owner }: FoundListing) => (isOperators || owner === signer.id ? 'given' : 'asked')
    this.#options.looks.take({ id, tool, host, identity: signer.id, leave }).then(
      (facts) => this.#finish(id, facts && probeJson(facts, decided.at)),
      (error: unknown) => {
        this.#options.report({ probe: id, problem: String(error) })
        this.#finish(id, undefined)
      },
    )
  }

  /** A command of an earlier run: its outcome is in the directory, if there ever was one. */
  #recall(id: string, tool: string, host: string, at: number, identity: string, give: Give): void {
    this.#options.read({ op: 'tools.get', args: { target: tool }, reader: '' }, (found) => {
      if (found === undefined) return give(undefined)
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
    const waiting = this.#underWay.get(id) ?? []
    this.#underWay.delete(id)
    if (probe !== undefined) this.#known.set(id, probe)
    for (const give of waiting) give(probe === undefined ? undefined : { values: { probe }, receipt: {} })
  }
}

function probeJson(facts: ProbedFacts, at: number): ProbeJson {
  const { probe: id, tool, host, verdict, mismatch, isOwner, optOut, saw } = facts
  return { id, tool, host, at, verdict, mismatch, verified: isOwner === true, opt_out: optOut === true, saw }
}
