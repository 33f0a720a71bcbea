/** How pins and locks of threads are carried out. */
import type { LockArgs, PinArgs } from '../../actors/threads/decide.ts'
import { type Plan, toEvent } from '../command/plan.ts'

const pin: Plan<'thread.pin'> = {
  to: toEvent,
  args: ({ command, data }): PinArgs => ({ event: command.event_id, pinned: data.pinned }),
  show: (_verified, { facts: { id, pinned } }) => ({ values: { thread: Buffer.from(id).toString('hex'), pinned } }),
}

const lock: Plan<'thread.lock'> = {
  to: toEvent,
  args: ({ command, data }): LockArgs => ({ event: command.event_id, locked: data.locked }),
  show: (_verified, { facts: { id, locked } }) => ({ values: { thread: Buffer.from(id).toString('hex'), locked } }),
}

export const threadsPlans = { 'thread.pin': pin, 'thread.lock': lock }
