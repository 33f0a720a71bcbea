/**
 * What remains of a board that is sent four times what it can process?
 *
 * Each sync takes 5 ms more here, so that the disk is the bottleneck and the client uses less than a fifth of a core; all commands are
 * signed beforehand. Goodput is what is accepted, as a share of what the same board accepts in a closed loop. The bounds: a goodput of at
 * least 0.9, and a refusal within 50 ms.
 */
import type { Placement } from '../src/config.ts'
import { findProgram } from '../test/peers/peers.ts'
import { withBoard } from './board.ts'
import { projectDirectory } from './machine.ts'
import { median } from './raw-limits.ts'
import type { Bench, Row } from './report.ts'

const slowSync = [
  'strace',
  '-f',
  '-qq',
  '--seccomp-bpf',
  '-o',
  '/dev/null',
  '-e',
  'trace=fdatasync',
  '-e',
  'inject=fdatasync:delay_enter=5000',
]
const times = 4
const connections = 1_024
/** The queue of a shard is an eighth of the default, so that it is full before all connections wait. */
const queueMax = 128
const placements = ['back', 'threads', 'clerks'] as const
/** As many as it can hold without a refusal. */
const closedLoop = 96

export const overload: Bench = {
  name: 'overload',
  question: 'How much does a board still do at four times its capacity?',
  run: async ({ isQuick, rounds = isQuick ? 1 : 3 }) => {
    if (findProgram('strace') === undefined)
      throw new Error('strace is missing: install it with apt-get install strace')
    const seconds = isQuick ? 4 : 10
    const rows: Row[] = []
    for (const placement of placements) rows.push(await flooded({ placement, isQuick, rounds, seconds }))
    const title = `${times} times what it takes, over ${connections} connections (medians of ${rounds} rounds of ${seconds} s)`
    return [{ title, rows }]
  },
}

type Flood = {
  readonly placement: Placement
  readonly isQuick: boolean
  readonly rounds: number
  readonly seconds: number
}

async function flooded({ placement, isQuick, rounds, seconds }: Flood): Promise<Row> {
  const found = await withBoard(
    async (board) => {
      await board.post(closedLoop, isQuick ? 5_000 : 20_000)
      const each: (readonly [capacity: number, sent: Awaited<ReturnType<typeof board.postSteadily>>])[] = []
      for (let round = 0; round < rounds; round++) {
        const { perSecond } = await board.post(closedLoop, 4_000)
        const rate = times * perSecond
        each.push([perSecond, await board.postSteadily(rate, connections, Math.round(rate * seconds))])
      }
      return each
    },
    { QUEUE_MAX: String(queueMax), PLACEMENT: placement },
    projectDirectory,
    slowSync,
  )
  const of = (pick: (capacity: number, sent: (typeof found)[number][1]) => number): number =>
    median(found.map(([capacity, sent]) => pick(capacity, sent)))
  const others = ({ statuses }: (typeof found)[number][1]): number =>
    Object.entries(statuses).reduce((sum, [status, n]) => sum + (status === '200' || status === '429' ? 0 : n), 0)
  return {
    placement,
    'posts/s it takes': of((capacity) => capacity),
    'posts/s sent': of((capacity) => capacity * times),
    'posts/s accepted': of((_, { statuses, seconds: took }) => (statuses[200] ?? 0) / took),
    goodput: of((capacity, { statuses, seconds: took }) => (statuses[200] ?? 0) / took / capacity),
    'p99 ms of refusals': of((_, { refusedP99Ms }) => refusedP99Ms),
    'p99 ms of all': of((_, { p99Ms }) => p99Ms),
    'client, of a core': of((_, { clientUs, seconds: took }) => clientUs / 1e6 / took),
    'other answers': of((_, sent) => others(sent)),
  }
}
