/**
 * How close does a read come to a server that only sends the same bytes?
 *
 * A board with some thousand posts; pages of a room, threads and inclusion proofs, 64 in flight. `hot` requests one URL again and again,
 * `cold` each URL once. The limit, and plain alternative, is uWebSockets.js with static bytes of the same size, requested by the same
 * client just before and after.
 */
import { withBoard, withStatic } from './board.ts'
import { type Reading, spread } from './half-load.ts'
import { median } from './raw-limits.ts'
import type { Bench, Row } from './report.ts'
import { roomCount } from './sign-posts.ts'

const inFlight = 64

export const reads: Bench = {
  name: 'reads',
  question: 'How close does a read come to sending ready bytes?',
  run: ({ isQuick }) =>
    withStatic((ready) =>
      withBoard(async (board) => {
        const eventIds: string[] = []
        // In several loads: a post replies to one from an earlier load.
        for (let left = isQuick ? 3 : 8; left > 0; left--) eventIds.push(...(await board.post(64, 1_000)).eventIds)
        const count = isQuick ? 800 : 2_000
        const rounds = isQuick ? 1 : 3
        const rooms = Array.from({ length: roomCount }, (_, n) => `room-${n}`)
        const pages = rooms.flatMap((room) =>
          Array.from({ length: 30 }, (_, n) => `/api/events?room=${room}&limit=${20 + n}`),
        )
        const lists = rooms.flatMap((room) =>
          ['active', 'new', 'top'].flatMap((order) =>
            Array.from({ length: 20 }, (_, n) => `/api/threads?room=${room}&order=${order}&limit=${30 + n}`),
          ),
        )
        const threads = spread(eventIds).map((id) => `/api/thread/${id}`)
        const proofs = spread(eventIds).map((id) => `/api/log/proof?message=${id}`)
        const run = (name: string, targets: readonly string[]) =>
          measure({ board, ready, name, targets, count, rounds })
        return [
          {
            title: `reads, ${inFlight} in flight, ${eventIds.length} posts on the board`,
            rows: [
              await run('page of a room, hot', pages.slice(0, 1)),
              await run('page of a room, cold', spread(pages)),
              await run('thread, cold', threads),
              await run('threads of the front page, hot', ['/api/threads']),
              await run('threads of a room, cold', spread(lists)),
              await run('proof, hot', proofs.slice(0, 1)),
              await run('proof, cold', proofs),
            ],
          },
        ]
      }),
    ),
}

/** One row: the targets in turn, and just after them as many static bytes. */
export async function measure({ board, ready, name, targets, count, rounds }: Reading): Promise<Row> {
  await board.get(inFlight, targets.slice(-1), 200)
  const found: { perSecond: number; limit: number; p50: number; p99: number; bytes: number; us: number }[] = []
  let from = 0
  for (let round = 0; round < rounds; round++) {
    const mine = targets.length === 1 ? targets : targets.slice(from, from + count)
    from += count
    const measured = await board.get(inFlight, mine, count)
    const bytes = Math.round(measured.bodyBytes / count)
    const before = await board.get(inFlight, [`/${bytes}`], count, ready)
    found.push({
      perSecond: measured.perSecond,
      limit: before.perSecond,
      p50: measured.p50Ms,
      p99: measured.p99Ms,
      bytes,
      us: (measured.serverUserUs + measured.serverSystemUs) / count,
    })
  }
  const of = (pick: (each: (typeof found)[number]) => number) => median(found.map(pick))
  return {
    read: name,
    'reads/s': of(({ perSecond }) => perSecond),
    'MB/s': of(({ perSecond, bytes }) => (perSecond * bytes) / 1e6),
    'bytes each': of(({ bytes }) => bytes),
    'p50 ms': of(({ p50 }) => p50),
    'p99 ms': of(({ p99 }) => p99),
    'server us each': of(({ us }) => us),
    'uWS ready bytes/s': of(({ limit }) => limit),
    'of limit': of(({ perSecond, limit }) => perSecond / limit),
  }
}
