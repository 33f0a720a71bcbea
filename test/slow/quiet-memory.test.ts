/** Memory that a busy time has taken is given back when the board is quiet (src/runtime/quiet-collector.ts). */
import { expect, test, vi } from 'vitest'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000 })

test('after a busy time every actor thread gives back what was garbage', async () => {
  const board = await startBoard({ directory: boardDirectory(), env: { BROADSIDE_LIMITS: 'off' } })
  const client = await Client.of(board)
  const author = person('busy')
  const heaps = async (): Promise<Record<string, number>> => {
    const { text } = await client.get('/metrics')
    const found = text.matchAll(/^broadside_heap_bytes\{thread="([^"]+)"\} (\d+)$/gm)
    return Object.fromEntries(Array.from(found, ([, thread, bytes]) => [thread!, Number(bytes)]))
  }
  const atMost: Record<string, number> = {}
  for (let round = 0; round < 12; round++) {
    const posts = Array.from({ length: 100 }, (_, n) =>
      client.post(author, { room: 'busy', text: `${round} ${n} ${'word '.repeat(1_000)}` }),
    )
    for (const { status } of await Promise.all(posts)) expect(status).toBe(200)
    for (const [thread, bytes] of Object.entries(await heaps())) atMost[thread] = Math.max(bytes, atMost[thread] ?? 0)
  }
  await vi.waitFor(
    async () => {
      for (const [thread, bytes] of Object.entries(await heaps())) expect(bytes, thread).toBeLessThan(atMost[thread]!)
      const sum = (all: Record<string, number>) => Object.values(all).reduce((total, each) => total + each, 0)
      expect(sum(await heaps())).toBeLessThan(0.8 * sum(atMost))
    },
    { ...patience, interval: 2_000 },
  )
  client.close()
})
