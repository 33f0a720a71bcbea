/**
 * Does the archive leave the board as fast as bytes can?
 *
 * One reader fetches /v1/export, every post with its signature and leaf, once uncompressed and once compressed. The limit is uWebSockets.js
 * sending static bytes in 1 MiB pieces to the same reader.
 */
import { connect } from 'node:net'
import { type Target, withBoard, withStatic } from './board.ts'
import { processTime } from './machine.ts'
import { median } from './raw-limits.ts'
import type { Bench, Row } from './report.ts'

export const exportBench: Bench = {
  name: 'export',
  question: 'Does the archive leave the board as fast as bytes can?',
  run: ({ isQuick }) =>
    withStatic((ready) =>
      withBoard(async (board) => {
        const posts = isQuick ? 4_000 : 12_000
        for (let left = posts; left > 0; left -= 2_000) await board.post(64, 2_000)
        const rows: Row[] = []
        for (const coding of ['identity', 'gzip']) {
          const rounds: { rate: number; limit: number; bytes: number; us: number }[] = []
          for (let round = 0; round < (isQuick ? 1 : 3); round++) {
            const limit = await board.get(4, ['/1048576'], 300, ready)
            rounds.push({ ...(await takeExport(board, coding)), limit: (limit.perSecond * 1_048_576) / 1e6 })
          }
          const of = (pick: (each: (typeof rounds)[number]) => number) => median(rounds.map(pick))
          rows.push({
            coding,
            'MB/s on the wire': of(({ rate }) => rate),
            'events/s': of(({ rate, bytes }) => posts / (bytes / 1e6 / rate)),
            'bytes an event': of(({ bytes }) => bytes) / posts,
            'server us an event': of(({ us }) => us) / posts,
            'uWS ready MB/s': of(({ limit }) => limit),
            'of limit': of(({ rate, limit }) => rate / limit),
          })
        }
        return [{ title: `export of ${posts} posts to one reader`, rows }]
      }),
    ),
}

const last = Buffer.from('\r\n0\r\n\r\n')

/** Bytes until the last chunk of the answer, the rate in megabytes a second, and the board's processor time. */
export async function takeExport(board: Target, coding: string): Promise<{ rate: number; bytes: number; us: number }> {
  const before = processTime(board.pid)
  const start = performance.now()
  const bytes = await new Promise<number>((resolve, reject) => {
    let size = 0
    const socket = connect(board.port, '127.0.0.1')
    socket.write(`GET /v1/export HTTP/1.1\r\nHost: bench\r\nAccept-Encoding: ${coding}\r\n\r\n`)
    socket.on('data', (chunk) => {
      if (size === 0 && !chunk.toString('latin1', 0, 12).endsWith('200')) reject(new Error(String(chunk)))
      size += chunk.length
      if (!chunk.subarray(-last.length).equals(last)) return
      socket.destroy()
      resolve(size)
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the export broke off')))
  })
  const seconds = (performance.now() - start) / 1000
  const after = processTime(board.pid)
  const us = after.userUs + after.systemUs - before.userUs - before.systemUs
  return { rate: bytes / 1e6 / seconds, bytes, us }
}
