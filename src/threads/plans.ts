/** How pins, locks and moves of threads are executed. */
import type { LockArgs, MoveArgs, PinArgs } from '../../actors/threads/decide.ts'
import { type Plan, toEvent } from '../command/plan.ts'
import { dataOf } from '../reads/read.ts'

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

const move: Plan<'thread.move'> = {
  to: toEvent,
  // Another shard may hold the destination room. The thread's own room refuses, so that a retry stays a retry.
  ask: ({ command, data: { to }, signer }, { read }, pass) => {
    const args = { event: command.event_id, to, reason: command.reason ?? '' }
    read(
      { op: 'thread.destination', args: { event_id: command.event_id, room: to }, reader: signer.id },
      (found): void => {
        if (found === undefined) return pass(undefined)
        if (found.ok) return pass({ args: { ...args, ...dataOf(found) } satisfies MoveArgs })
        const isPrivate = 'refusal' in found && found.refusal.code === 'private_room'
        const destination = { isPublic: false, isClosed: false, moderates: false }
        pass({ args: { ...args, moderatesList: '', ...(isPrivate ? { destination } : {}) } })
      },
    )
  },
  onAccepted: (_verified, { facts: { from, to } }, { news }) => {
    for (const room of [from, to]) news.noteChange(room, news.change)
  },
  show: (_verified, { facts: { id, to } }, room) => ({
    values: { thread: Buffer.from(id).toString('hex'), room, listed_in: to },
  }),
}

export const threadsPlans = { 'thread.pin': pin, 'thread.lock': lock, 'thread.move': move }
