/** One probe: what is known of a listing, what the host answers, and the record of it. Each probe is recorded on disk before it starts. */

import type { AnyReadName } from '../../actors/operations.ts'
import { internalLetter } from '../../actors/records/internal-letter.ts'
import type { Listing } from '../../actors/tools/listing.ts'
import { type ProbedFacts, toolsActor } from '../../actors/tools/tools.ts'
import type { Actors } from '../command/ports.ts'
import type { Outgoing } from '../outgoing/request.ts'
import { type AnswerOf, dataOf, type ReadCall, type ReadRequest } from '../reads/read.ts'
import { isAt, lookAtTool, type Permission } from './lab.ts'
import type { FoundListing } from './reads.ts'

export type LooksOptions = {
  readonly actors: Actors
  readonly read: ReadCall
  readonly outgoing: Outgoing
  /** What is shown of the directory is no longer what it was. */
  readonly noteChange: (actor: string, change: number) => void
  /** Waits between two requests to one machine. */
  readonly pause: () => Promise<void>
}

type Look = {
  /** 32 hex. */
  readonly id: string
  readonly tool: string
  readonly host: string
  /** Who asked, or in a daily round the owner. */
  readonly identity: string
  readonly leave: (found: FoundListing) => Permission
}

export class ToolProber {
  readonly #options: LooksOptions

  constructor(options: LooksOptions) {
    this.#options = options
  }

  /** Undefined: it could not be probed, or not be recorded. */
  async take({ id, tool, host, identity, leave }: Look): Promise<ProbedFacts | undefined> {
    const { outgoing, pause } = this.#options
    const found = await this.ask('tools.listing', { target: tool })
    const kept = await this.ask('tools.get', { target: tool })
    if (found === undefined || kept === undefined) return undefined
    const granted = leave(found)
    if (granted === 'standing' && !(kept.index.listed && mayBeTried(found.listing) && isAt(found.listing, host)))
      return undefined
    const payeeBefore = kept.probe?.saw?.tool?.offers?.[0]?.pay_to ?? ''
    const subject = { listing: found.listing, identity, leave: granted, payeeBefore }
    const seen = await lookAtTool({ request: (request) => outgoing.request(request), pause }, subject)
    const facts: ProbedFacts = { probe: id, tool, host, identity, ...seen }
    return (await this.#write(facts)) ? facts : undefined
  }

  ask<Name extends AnyReadName>(op: Name, args: ReadRequest['args']): Promise<AnswerOf<Name> | undefined> {
    return new Promise((resolve) =>
      this.#options.read({ op, args, reader: '' }, (found) => resolve(found?.ok ? dataOf(found) : undefined)),
    )
  }

  #write(facts: ProbedFacts): Promise<boolean> {
    return new Promise((resolve) =>
      this.#options.actors.write(internalLetter('tools.probed', toolsActor, facts.identity, facts), (answered) => {
        if (answered?.ok && answered.change !== undefined) this.#options.noteChange(toolsActor, answered.change)
        resolve(answered?.ok === true)
      }),
    )
  }
}

/** What changes or removes something is not sent without being asked for. */
function mayBeTried({ method, kind }: Listing): boolean {
  return kind === 'mcp' || ['', 'GET', 'HEAD', 'POST'].includes(method)
}
