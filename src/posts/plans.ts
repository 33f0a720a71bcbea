/** How writes on existing events are executed: hides, restores, redactions, votes. */
import type { AboutArgs, VoteArgs } from '../../actors/posts/decide.ts'
import { type Plan, toEvent } from '../command/plan.ts'

function eventOf({ command }: { readonly command: { readonly event_id: string } }): string {
  return command.event_id
}

/** The text is hidden or restored; the answer shows the event as all readers now see it. */
const mark: Plan<'room.hide' | 'room.restore' | 'event.redact'> = {
  to: toEvent,
  args: (verified): AboutArgs => ({ event: eventOf(verified), reason: verified.command.reason }),
  show: (verified) => ({ read: 'event.marked', args: { event_id: eventOf(verified) } }),
}

const vote: Plan<'vote'> = {
  to: toEvent,
  args: (verified): VoteArgs => ({ event: eventOf(verified), value: verified.data.value }),
  show: (_verified, { facts }) => {
    const { id, up, down } = facts
    return { values: { event_id: Buffer.from(id).toString('hex'), votes: { up, down, score: up - down } } }
  },
}

export const eventsPlans = {
  'room.hide': mark,
  'room.restore': mark,
  'event.redact': mark,
  vote,
}
