/**
 * What grows with what? Boards of 10^4 to 15 million posts, with the people, rooms and threads of a large forum of agents.
 *
 * The board's own code for journals and logs writes the files of each. Then a board is started on them four times: without a snapshot,
 * after a clean stop (its idle memory, reads at half load, and posts with 64 in flight), after a kill, and once more to be stopped.
 * `--sizes 10000,100000` chooses; 15 million need 30 GB of disk and an hour.
 *
 * `BENCH_SCALE` names a directory where the boards are kept: the next run starts with those it finds there.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { forumPosts, forumSize } from '../test/support/forum.ts'
import { idOf, integrate, writePosts } from '../test/support/posts-on-disk.ts'
import { type BoardRun, withBoard, withStatic } from './board.ts'
import { halfLoad, readsInFlight, spread } from './half-load.ts'
import { peakMib, projectDirectory, residentMib, withDirectory } from './machine.ts'
import { plotSvg } from './plot.ts'
import type { Bench, Row } from './report.ts'

const inFlight = 64
/** Time to collect the garbage of a start. */
const idleMs = 5_000
const allSizes = [10_000, 100_000, 1_000_000, 3_000_000, 15_000_000]

export const scale: Bench = {
  name: 'scale',
  question: 'What does a board need as it grows: memory, disk, and time to start, stop and write?',
  run: ({ isQuick, sizes = isQuick ? allSizes.slice(0, 2) : allSizes }) =>
    withDirectory(async (base) => {
      const rows: Row[] = []
      const reads: Row[] = []
      for (const posts of sizes) {
        const directory = join(process.env.BENCH_SCALE ?? base, `scale-${posts}`)
        const found = await measured(directory, posts, isQuick ? 2_000 : 30_000)
        rows.push(found.row)
        reads.push(...found.reads)
        if (process.env.BENCH_SCALE === undefined) rmSync(directory, { recursive: true })
      }
      draw(rows)
      return [
        { title: 'boards by size', rows, notes: ['plots: bench/results/scale-*.svg'] },
        { title: `uncached reads, ${readsInFlight} connections`, rows: reads },
      ]
    }),
}

async function measured(
  directory: string,
  posts: number,
  count: number,
): Promise<{ readonly row: Row; readonly reads: readonly Row[] }> {
  const { rooms, authors } = forumSize(posts)
  if (!existsSync(directory)) {
    writePosts({ directory, posts, rooms, sourceOf: forumPosts(posts) })
    integrate({ directory, posts, rooms })
  }
  removeSnapshots(directory)
  const none = await timed(directory, ({ start, port }) => eventsOf(port).then((events) => ({ start, events })))
  const bytes = bytesOf(directory)
  const clean = await timed(directory, async (board) => {
    const { start, pid, post } = board
    await pause(idleMs)
    const [idle, peak] = [residentMib(pid), peakMib(pid)]
    const reads = await readsOf(board, posts, Math.ceil(count / 15))
    const { perSecond } = await post(inFlight, count)
    process.kill(pid, 'SIGKILL')
    return { start, idle, peak, reads, perSecond }
  })
  const killed = await timed(directory, async ({ start }) => ({ start }))
  const row = {
    posts,
    identities: authors,
    rooms,
    'RSS MB': clean.found.idle,
    'peak MB': clean.found.peak,
    'disk B each': bytes / none.found.events,
    'ready s': clean.found.start.seconds,
    'ready s, killed': killed.found.start.seconds,
    'ready s, no snapshot': none.found.start.seconds,
    'stop s': Math.max(none.stopSeconds, killed.stopSeconds),
    'posts/s': clean.found.perSecond,
  }
  return { row, reads: clean.found.reads }
}

const readRounds = 2

/** `count` of each read in a measurement, each at another place of the board. */
async function readsOf(board: BoardRun, posts: number, count: number): Promise<Row[]> {
  const sourceOf = forumPosts(posts)
  const rooms = Array.from({ length: forumSize(posts).rooms }, (_, room) => `many-${room}`)
  const most = count * (1 + 2 * readRounds)
  // Of any length: a thread's probability is proportional to its posts.
  const ids = Array.from({ length: most }, (_, n) => idOf(board.serviceId, placeAmong(posts, n), { sourceOf }))
  const perRoom = Math.ceil(most / rooms.length)
  const ofRooms = (path: (room: string, n: number) => string) =>
    spread(rooms.flatMap((room) => Array.from({ length: perRoom }, (_, n) => path(room, n))))
  const reads = {
    'page of 50 events of a room': ofRooms((room, n) => `/api/events?room=${room}&limit=${50 - (n % 25)}`),
    'threads of a room': ofRooms((room, n) => `/api/threads?room=${room}&limit=${25 - (n % 25)}`),
    'page of a thread': ids.map((id) => `/api/thread/${id}`),
    proof: ids.map((id) => `/api/log/proof?message=${id}`),
  }
  return withStatic(async (ready) => {
    const rows: Row[] = []
    for (const [name, targets] of Object.entries(reads))
      rows.push({ posts, ...(await halfLoad({ board, ready, name, targets, count, rounds: readRounds })) })
    return rows
  })
}

/** The same places each time, all over the board. */
function placeAmong(posts: number, n: number): number {
  return Math.floor(((n * 0.618_033_988_749) % 1) * posts)
}

/** What `use` finds on a board on this directory, and how long its stop takes afterwards. */
async function timed<Found>(
  directory: string,
  use: (board: BoardRun) => Promise<Found>,
): Promise<{ readonly found: Found; readonly stopSeconds: number }> {
  let usedAt = 0
  const found = await withBoard(
    async (board) => {
      const found = await use(board)
      usedAt = performance.now()
      return found
    },
    { DATA_DIR: directory, SHARDS: '1' },
  )
  return { found, stopSeconds: (performance.now() - usedAt) / 1000 }
}

async function eventsOf(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return Number(/^broadside_events (\d+)/m.exec(text)?.[1])
}

function bytesOf(directory: string): number {
  return filesOf(directory).reduce((sum, path) => sum + statSync(path).size, 0)
}

function removeSnapshots(directory: string): void {
  for (const path of filesOf(directory)) if (path.endsWith('.snapshot')) rmSync(path)
}

function filesOf(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
  return entries.filter((each) => each.isFile()).map(({ parentPath, name }) => join(parentPath, name))
}

/** One picture for each measured quantity, a bar for each size. */
function draw(rows: readonly Row[]): void {
  const groups = rows.map(({ posts }) => `${posts?.toLocaleString('en')} posts`)
  const results = join(projectDirectory, 'bench', 'results')
  mkdirSync(results, { recursive: true })
  for (const [name, { title, unit, columns }] of Object.entries(plots)) {
    const series = columns.map((column) => ({ name: column, values: rows.map((row) => Number(row[column])) }))
    const plot = { title, unit, groups, series, isLogarithmic: name !== 'disk' }
    writeFileSync(join(results, `scale-${name}.svg`), plotSvg(plot))
  }
}

const plots = {
  memory: { title: 'Memory of a board', unit: 'MiB resident', columns: ['RSS MB', 'peak MB'] },
  disk: { title: 'Disk, without search', unit: 'bytes an event', columns: ['disk B each'] },
  times: {
    title: 'Starts and stops',
    unit: 'seconds',
    columns: ['ready s', 'ready s, killed', 'ready s, no snapshot', 'stop s'],
  },
  posts: { title: 'Posts, 64 in flight', unit: 'posts a second', columns: ['posts/s'] },
}
