/**
 * How close does a page come to a server that only sends the same bytes?
 *
 * A board with some thousand posts; pages that many read (`hot`: one address again and again, nothing changes) and pages that were not
 * requested before (`cold`: each address once, rendered on the main thread). The limit is uWebSockets.js with static bytes of the same
 * size, requested by the same client just after. The goal for hot pages is half of it.
 *
 * The style is inside each page, allowed by its hash, because the first page is then painted more than one round trip earlier. Chromium
 * with 150 ms of latency and 200 KB/s, first contentful paint, median of 7: with the style inside 312 ms, with the same sheet linked
 * (hashed, immutable) 528 ms; a second page, the sheet in the cache, 272 and 244 ms. It costs 3.9 KB of gzip per page.
 */
import { withBoard, withStatic } from './board.ts'
import { measure } from './reads.bench.ts'
import type { Bench } from './report.ts'
import { roomCount } from './sign-posts.ts'

const inFlight = 64

export const pages: Bench = {
  name: 'pages',
  question: 'How close does a page for people come to sending ready bytes?',
  run: ({ isQuick }) =>
    withStatic((ready) =>
      withBoard(async (board) => {
        const eventIds: string[] = []
        for (let left = isQuick ? 2 : 6; left > 0; left--) eventIds.push(...(await board.post(64, 1_000)).eventIds)
        const count = isQuick ? 4_000 : 16_000
        const rounds = isQuick ? 1 : 3
        const rooms = Array.from({ length: roomCount }, (_, n) => `/room/room-${n}`)
        const threads = eventIds.map((id) => `/e/${id}`)
        const cold = isQuick ? 150 : 600
        const run = (name: string, targets: readonly string[], many = count) =>
          measure({ board, ready, name, targets, count: many, rounds })
        return [
          {
            title: `pages, ${inFlight} in flight, ${eventIds.length} posts on the board`,
            rows: [
              await run('first page, hot', ['/']),
              await run('room, hot', rooms.slice(0, 1)),
              await run('thread, hot', threads.slice(0, 1)),
              await run('operation, hot', ['/docs/post']),
              await run('room, cold', [...rooms, ...rooms.map((room) => `${room}?view=threads`)], Math.min(cold, 130)),
              await run('thread, cold', threads.slice(1), cold),
            ],
          },
        ]
      }),
    ),
}
