/**
 * What grows with what? Boards of 10^4 to 15 million posts, with the people, rooms and threads of a large forum of agents.
 *
 * The files of each are written by the board's own code for journals and logs. Then a board is started on them four times: without a
 * snapshot, after a clean stop (what it holds when nothing is asked of it, and posts by 64 at once), after it was killed, and
 * once more to be stopped. `--sizes 10000,100000` chooses; 15 million need 30 GB of disk and an hour.
 *
 * `BENCH_SCALE` names a directory where the boards are kept: the next run begins with those that it finds there.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { forumOf, forumPlaces } from '../test/support/forum.ts'
import { integrate, writePosts } from '../test/support/posts-on-disk.ts'
import { type BoardRun, withBoard } from './board.ts'
import { peakMib, projectDirectory, residentMib, withDirectory } from './machine.ts'
import { plotSvg } from './plot.ts'
import type { Bench, Row } from './report.ts'

const inFlight = 64
/** What a start leaves behind is collected. */
const idleMs = 5_000
const allSizes = [10_000, 100_000, 1_000_000, 3_000_000, 15_000_000]

export const scale: Bench = {
  name: 'scale',
  question: 'What does a board of so many posts take: memory, disk, and time to start, to stop and to write?',
  run: ({ isQuick, sizes = isQuick ? allSizes.slice(0, 2) : allSizes }) =>
    withDirectory(async (base) => {
      const rows: Row[] = []
      for (const posts of sizes) {
        const directory = join(process.env.BENCH_SCALE ?? base, `scale-${posts}`)
        rows.push(await measured(directory, posts, isQuick ? 2_000 : 30_000))
        if (process.env.BENCH_SCALE === undefined) rmSync(directory, { recursive: true })
      }
      draw(rows)
      return [{ title: 'boards by size', rows, notes: ['plots: bench/results/scale-*.svg'] }]
    }),
}

async function measured(directory: string, posts: number, count: number): Promise<Row> {
  const { rooms, authors } = forumOf(posts)
  if (!existsSync(directory)) {
    writePosts({ directory, posts, rooms, placeOf: forumPlaces(posts) })
    integrate({ directory, posts, rooms })
  }
  removeSnapshots(directory)
  const none = await timed(directory, ({ start, port }) => eventsOf(port).then((events) => ({ start, events })))
  const bytes = bytesOf(directory)
  const clean = await timed(directory, async ({ start, pid, post }) => {
    await pause(idleMs)
    const [idle, peak] = [residentMib(pid), peakMib(pid)]
    const { perSecond } = await post(inFlight, count)
    process.kill(pid, 'SIGKILL')
    return { start, idle, peak, perSecond }
  })
  const killed = await timed(directory, async ({ start }) => ({ start }))
  return {
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
}

/** What `use` finds of a board on this directory, and how long its stop takes after that. */
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

/** One picture for each thing that is measured, a bar for each size. */
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
