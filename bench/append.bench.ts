/**
 * One journal per shard or one per room?
 *
 * R rooms are busy: each always has one post of 400 bytes waiting, and the next comes when this one is durable. A shard takes everything
 * that waits (at most 512) as one batch with one sync. A journal per room syncs each room's post separately, on one thread, or on four
 * threads that share the rooms, since a disk may run several syncs at once. The limit is a plain write and fdatasync of one such frame at
 * the end of one file, measured just before and after.
 */
import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { FRAME_HEADER_BYTES } from '../storage/frame.ts'
import type { AppendFound, AppendTask } from './append-thread.ts'
import { withDirectory } from './machine.ts'
import { rawSyncPerSecond } from './raw-limits.ts'
import type { Bench, Row } from './report.ts'

const payloadBytes = 400
const turnMax = 512
type Way = { readonly name: string; readonly threads: number; readonly perRoom: boolean }
const ways: readonly Way[] = [
  { name: 'one per shard', threads: 1, perRoom: false },
  { name: 'one per room', threads: 1, perRoom: true },
  { name: 'one per room, 4 threads', threads: 4, perRoom: true },
]

export const append: Bench = {
  name: 'append',
  question: 'One journal per shard or one per room?',
  run: async ({ isQuick }) => {
    const rows: Row[] = []
    for (const rooms of isQuick ? [1, 16, 256] : [1, 16, 256, 4096]) {
      for (const way of ways) {
        if (way.threads <= rooms)
          rows.push(await withDirectory((directory) => measure(directory, rooms, way, isQuick ? 300 : 700)))
      }
    }
    return [{ title: `durable posts of ${payloadBytes} bytes`, rows }]
  },
}

async function measure(directory: string, rooms: number, way: Way, ms: number): Promise<Row> {
  const share = Math.ceil(rooms / way.threads)
  const threads = Array.from({ length: way.threads }, (_, n) => {
    const task: AppendTask = {
      directory: join(directory, `thread-${n}`),
      journals: way.perRoom ? Math.min(share, rooms - n * share) : 1,
      framesPerTurn: way.perRoom ? 1 : Math.min(rooms, turnMax),
      payloadBytes,
    }
    return new Worker(new URL('./append-thread.ts', import.meta.url), { workerData: task })
  })
  const opened = performance.now()
  await Promise.all(threads.map((thread) => once(thread, 'message')))
  const openMs = performance.now() - opened
  const before = rawSyncPerSecond(directory, FRAME_HEADER_BYTES + payloadBytes)
  const found = await Promise.all(
    threads.map(async (thread) => {
      const answer = once(thread, 'message')
      thread.postMessage(ms)
      return ((await answer) as [AppendFound])[0]
    }),
  )
  const after = rawSyncPerSecond(directory, FRAME_HEADER_BYTES + payloadBytes)
  await Promise.all(threads.map((thread) => thread.terminate()))
  const sum = (pick: (each: AppendFound) => number) => found.reduce((total, each) => total + pick(each), 0)
  const perSecond = sum(({ posts, seconds }) => posts / seconds)
  return {
    'busy rooms': rooms,
    journals: way.name,
    'posts/s': perSecond,
    'syncs/s': sum(({ syncs, seconds }) => syncs / seconds),
    'raw sync/s': (before + after) / 2,
    'posts of raw sync': perSecond / ((before + after) / 2),
    'processor us per post': sum(({ cpuUs }) => cpuUs) / sum(({ posts }) => posts),
    'open ms': openMs,
  }
}
