/** When a change of a work is answered: after its room has answered, where it is asked, and knows how the work stands. */

import type { Head } from '../../actors/shard.ts'
import { marketName, type StepFacts } from '../../actors/works/market/letters.ts'
import type { Doors } from '../command/plan.ts'
import { fromActor, type Respond } from '../command/reply.ts'

/** Operations that the room of the work has to answer. */
const asked: ReadonlySet<string> = new Set(['work.create', 'work.edit'])

type Changed = {
  readonly operation: string
  readonly actor: string
  /** 32 hex of the command that was accepted. */
  readonly command: string
  /** Absent where the answer has other words than facts. */
  readonly facts: Readonly<Record<string, unknown>> | undefined
}

/** `then`: with the leaf of the post that the command made, where it made one. */
export function whenSettled(
  { courier }: Pick<Doors, 'courier'>,
  { operation, actor, command, facts }: Changed,
  respond: Respond,
  then: (leaf?: number, head?: Head) => void,
): void {
  if (actor !== marketName) return then()
  const { work, steps } = (facts ?? {}) as Partial<StepFacts>
  if (work === undefined) return then()
  if (asked.has(operation))
    return courier.outcome(command, (outcome) => {
      if (!outcome.ok) return respond(fromActor(outcome.refusal))
      courier.whenTold(work, () => then(outcome.leaf, outcome.head))
    })
  if ((steps?.length ?? 0) === 0) return then()
  courier.whenTold(work, then)
}
