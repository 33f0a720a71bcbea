/** How writes on events that stand are carried out: hides, restores, redactions, votes. */
import type { AboutArgs, VoteArgs } from '../../actors/posts/decide.ts'
import type { VoteFacts } from '../../actors/posts/marks.ts'
import type { Value } from '../../actors/posts/votes.ts'
import type { Addressee, Plan, Plans } from '../command/plan.ts'
import type { Verified } from '../command/reply.ts'

function eventOf({ command }: Verified): string {
  return command.event_id as string
}

function toEvent(verified: Verified): Addressee {
  return { thing: eventOf(verified), field: 'event_id' }
}

/** Its text goes, or comes back: the answer shows the event as everybody reads it now. */
const mark: Plan = {
  to: toEvent,
  args: (verified): AboutArgs => ({ event: eventOf(verified), reason: verified.command.reason as string }),
  show: (verified) => ({ read: 'event.get', args: { event_id: eventOf(verified) } }),
}

const vote: Plan = {
  to: toEvent,
  args: (verified): VoteArgs => ({ event: eventOf(verified), value: verified.data.value as Value }),
  show: (_verified, { facts }) => {
    const { id, up, down } = facts as VoteFacts
    return { values: { event_id: Buffer.from(id).toString('hex'), votes: { up, down, score: up - down } } }
  },
}

export const eventsPlans = {
  'room.hide': mark,
  'room.restore': mark,
  'event.redact': mark,
  vote,
} satisfies Plans
