/** How pins and locks of threads are carried out. */
import type { LockArgs, PinArgs } from '../../actors/threads/decide.ts'
import type { Addressee, Plan } from '../command/plan.ts'

function toThread({ command }: { readonly command: { readonly event_id: string } }): Addressee {
  return { thing: command.event_id, field: 'event_id' }
}

const pin: Plan<'thread.pin'> = {
  to: toThread,
  args: ({ command, data }): PinArgs => ({ event: command.event_id, pinned: data.pinned }),
  show: (_verified, { facts: { id, pinned } }) => ({ values: { thread: Buffer.from(id).toString('hex'), pinned } }),
}

const lock: Plan<'thread.lock'> = {
  to: toThread,
  args: ({ command, data }): LockArgs => ({ event: command.event_id, locked: data.locked }),
  show: (_verified, { facts: { id, locked } }) => ({ values: { thread: Buffer.from(id).toString('hex'), locked } }),
}

export const threadsPlans = { 'thread.pin': pin, 'thread.lock': lock }
