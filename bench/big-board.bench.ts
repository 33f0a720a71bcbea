/**
 * How fast are a list of threads, a thread's page and the front page on a board of a million posts?
 *
 * The goal: a p99 under 5 ms at half load, which is half the highest rate of that read in a closed loop of 16. The posts are written as
 * files, and the log over them by its own code: 250 rooms, threads of four, and one thread with a tenth of all. Each list and thread is
 * requested once; the front page is one address. Static bytes of the same size at the same rate, by the same client just after, show what
 * the machine adds: on a busy machine the difference is what the board takes.
 *
 * `BENCH_BIG_BOARD` names a directory where the board is kept: the next run starts with the one it finds there.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { idOf, integrate, writePosts } from '../test/support/posts-on-disk.ts'
import { withBoard, withStatic } from './board.ts'
import { halfLoad, readsInFlight, spread } from './half-load.ts'
import { withDirectory } from './machine.ts'
import type { Bench, Row } from './report.ts'

const rooms = 250

export const bigBoard: Bench = {
  name: 'big-board',
  question: 'Is the p99 of lists, threads and the front page under 5 ms at half load on 10^6 posts?',
  run: ({ isQuick }) =>
    withDirectory(async (base) => {
      const posts = isQuick ? 100_000 : 1_000_000
      const directory = join(process.env.BENCH_BIG_BOARD ?? base, `data-${posts}`)
      const data = { DATA_DIR: directory, SHARDS: '1' }
      if (!existsSync(directory)) {
        writePosts({ directory, posts, rooms })
        integrate({ directory, posts, rooms })
        // Its stop leaves snapshots: the measured board starts like one that has run before.
        await withBoard(async () => undefined, data)
      }
      return withStatic((ready) =>
        withBoard(async (board) => {
          const count = isQuick ? 1_500 : 3_000
          const rounds = isQuick ? 1 : 3
          const reading = { board, ready, count, rounds }
          const reads = targetsOf(board.serviceId, posts, 2 * count * rounds + count)
          const rows: Row[] = []
          for (const [name, targets] of Object.entries(reads)) rows.push(await halfLoad({ ...reading, name, targets }))
          return [{ title: `${posts.toLocaleString('en')} posts, ${readsInFlight} connections`, rows }]
        }, data),
      )
    }),
}

/** Addresses of each read, at least `most` if there are that many. */
function targetsOf(serviceId: string, posts: number, most: number): Readonly<Record<string, readonly string[]>> {
  const threads = posts / 4
  const lists = ['active', 'new', 'top'].flatMap((order) =>
    Array.from({ length: rooms }, (_, room) => room).flatMap((room) =>
      Array.from({ length: 50 }, (_, n) => `/api/threads?room=many-${room}&order=${order}&limit=${n + 1}`),
    ),
  )
  return {
    'threads.list of a room, cold': spread(lists),
    'threads.list of the board, hot': ['/api/threads'],
    'page of a thread, cold': Array.from(
      { length: Math.min(most, threads - 1) },
      (_, n) => `/e/${idOf(serviceId, 4 * (1 + ((n * 7_919) % (threads - 1))), { rooms })}`,
    ),
    'longest thread, hot': [`/e/${idOf(serviceId, 0, { rooms })}`],
    'front page, hot': ['/'],
  }
}
