/**
 * How soon are webhooks delivered, and what do they cost other clients?
 *
 * A real board with thousands of webhooks to targets in another process on the same cores, and posts at an even pace into a room that some
 * of them follow. What matters is the resulting number of deliveries a second: below the capacity of two cores, a delivery arrives within
 * moments; above it the rest waits in the journals and is drained. Bounds: p99 within 2 s below that rate, everything drained above it, and
 * 10,000 webhooks cost less than 100 MiB.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { withBoard } from './board.ts'
import type { Bench, Row } from './report.ts'
import type { LoadFound, WebhooksFound, WebhooksLoad, WebhooksTask } from './webhooks-target.ts'

const measureMsMax = 300_000

type Case = Pick<WebhooksTask, 'hooks' | 'loads'>

const quick: Case = {
  hooks: 500,
  loads: [
    { followers: 50, posts: 100, postsPerSecond: 10 },
    { followers: 50, posts: 1_000, postsPerSecond: 500 },
  ],
}
const whole: Case = {
  hooks: 10_000,
  loads: [
    { followers: 5, posts: 1_000, postsPerSecond: 100 },
    ...[8, 12, 16, 20].map((postsPerSecond) => ({ followers: 1_000, posts: 5 * postsPerSecond, postsPerSecond })),
    { followers: 1_000, posts: 200, postsPerSecond: 100 },
  ],
}

export const webhooks: Bench = {
  name: 'webhooks',
  question: 'How soon are webhooks delivered, and what do they cost everyone else?',
  run: async ({ isQuick }) => {
    const task = isQuick ? quick : whole
    const { loads, emptyMib, postedMib, hooksMib } = await measure(task)
    const each = ((hooksMib - postedMib) * 1024) / task.hooks
    return [
      {
        title: 'from a post leaving its author to its webhooks having it',
        rows: task.loads.map((load, n) => rowOf(load, loads[n]!)),
      },
      {
        title: 'resident memory of the board',
        rows: [
          {
            webhooks: task.hooks,
            'MiB empty': emptyMib,
            'after as many posts': postedMib,
            'with webhooks': hooksMib,
            'KiB each': each,
          },
        ],
      },
    ]
  },
}

function rowOf({ followers, posts, postsPerSecond }: WebhooksLoad, found: LoadFound): Row {
  return {
    'told of each post': followers,
    posts,
    'posts/s': postsPerSecond,
    'p50 ms': found.p50,
    'p99 ms': found.p99,
    'drain s': found.drain,
    'deliveries/s': found.perSecond,
    'post p99 alone ms': found.aloneMs,
    'and beside ms': found.besideMs,
    'board us each': found.boardUs,
    'its thread': found.threadUs,
    'target us each': found.targetUs,
    'MiB at the end': found.endMib,
  }
}

function measure(task: Case): Promise<WebhooksFound> {
  // The board reads its environment when it starts; the targets are on loopback.
  process.env.BROADSIDE_LOOPBACK = '1'
  return withBoard(async ({ port, pid, serviceId }) => {
    const child = fork(new URL('./webhooks-target.ts', import.meta.url))
    try {
      const answer = once(child, 'message', { signal: AbortSignal.timeout(measureMsMax) })
      child.send({ ...task, port, pid, serviceId } satisfies WebhooksTask)
      const [{ found, problem }] = (await answer) as [{ found?: WebhooksFound; problem?: string }]
      if (found === undefined) throw new Error(`the targets failed: ${problem}`)
      return found
    } finally {
      child.disconnect()
    }
  })
}
