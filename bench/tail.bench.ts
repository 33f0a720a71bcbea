/**
 * How soon do how many readers see a post?
 *
 * A real board, N readers of one room's tail in another process, and signed posts into that room. One by one: the next post waits until
 * every reader has the previous one. In flight: posts arrive as fast as the board accepts them, and the tail may combine several into one
 * write. The limit, and plain alternative, is node:net writing prepared chunks of 500 bytes to as many sockets (fanout.bench.ts), without
 * posts, signatures or disks.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { withBoard } from './board.ts'
import { socketsPerSecond } from './fanout.bench.ts'
import type { Bench, Row } from './report.ts'
import type { TailFound, TailTask } from './tail-readers.ts'

const deliveriesPerRound = 60_000
const measureMsMax = 90_000

export const tail: Bench = {
  name: 'tail',
  question: 'How soon do N readers of a tail receive a post?',
  run: async ({ isQuick }) => {
    const rows: Row[] = []
    for (const readers of isQuick ? [1000] : [1000, 9000]) {
      const before = await socketsPerSecond(readers)
      const found = await follow(readers)
      const limit = (before + (await socketsPerSecond(readers))) / 2
      rows.push(...found.map((each) => rowOf(readers, each, limit)))
    }
    return [{ title: 'deliveries of posts to the readers of a tail', rows }]
  },
}

function rowOf(readers: number, found: TailFound, limit: number): Row {
  return {
    readers,
    posts: found.pace,
    'deliveries/s': found.deliveriesPerSecond,
    'bytes each': found.bytes,
    'post to last reader, p50 ms': found.pace === 'one by one' ? found.p50Ms : '',
    'board us each': found.serverUs,
    'readers us each': found.readersUs,
    'node:net/s': limit,
    'of node:net': found.deliveriesPerSecond / limit,
  }
}

function follow(readers: number): Promise<TailFound[]> {
  return withBoard((board) =>
    followOn({ ...board, readers, posts: Math.max(8, Math.round(deliveriesPerRound / readers)) }),
  )
}

/** Lets the readers, in a separate process, follow a server that streams on the paths of a board. */
export async function followOn(task: TailTask): Promise<TailFound[]> {
  const child = fork(new URL('./tail-readers.ts', import.meta.url))
  try {
    const answer = once(child, 'message', { signal: AbortSignal.timeout(measureMsMax) })
    child.send(task)
    const [{ found, problem }] = (await answer) as [{ found?: TailFound[]; problem?: string }]
    if (found === undefined) throw new Error(`the readers failed: ${problem}`)
    return found
  } finally {
    child.disconnect()
  }
}
