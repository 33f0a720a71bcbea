/**
 * How soon do all waiting readers have a post?
 *
 * A real board, N long polls of /api/updates on one room, N readers of its tail, or both, in another process, and one signed post after
 * another into that room, each when all are waiting again. Bounds: 5,000 long polls have it within 500 ms (p99).
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { withBoard } from './board.ts'
import type { Bench, Row } from './report.ts'
import type { Spread, UpdatesFound, UpdatesTask } from './updates-readers.ts'

const posts = 10
const measureMsMax = 120_000

export const updates: Bench = {
  name: 'updates',
  question: 'How soon do all waiting long polls receive a post?',
  run: async ({ isQuick }) => {
    const rows: Row[] = []
    for (const count of isQuick ? [1000] : [1000, 5000]) {
      for (const [polls, tails] of [
        [count, 0],
        [0, count],
        [count, count],
      ] as const)
        rows.push(rowOf(polls, tails, await follow(polls, tails)))
    }
    return [{ title: 'from a post leaving its author to its followers having it, ms', rows }]
  },
}

function rowOf(polls: number, tails: number, found: UpdatesFound): Row {
  return {
    'long polls': polls,
    tails,
    ...spreadOf('polls', polls, found.polls),
    ...spreadOf('tails', tails, found.tails),
    'board us each': found.serverUs,
    'readers us each': found.readersUs,
  }
}

function spreadOf(name: string, count: number, { p50, p99, worst }: Spread): Row {
  if (count === 0) return { [`${name} p50`]: '', [`${name} p99`]: '', [`${name} worst`]: '' }
  return { [`${name} p50`]: p50, [`${name} p99`]: p99, [`${name} worst`]: worst }
}

function follow(polls: number, tails: number): Promise<UpdatesFound> {
  return withBoard(async ({ port, pid, serviceId }) => {
    const child = fork(new URL('./updates-readers.ts', import.meta.url))
    try {
      const answer = once(child, 'message', { signal: AbortSignal.timeout(measureMsMax) })
      child.send({ port, pid, serviceId, polls, tails, posts } satisfies UpdatesTask)
      const [{ found, problem }] = (await answer) as [{ found?: UpdatesFound; problem?: string }]
      if (found === undefined) throw new Error(`the followers failed: ${problem}`)
      return found
    } finally {
      child.disconnect()
    }
  })
}
