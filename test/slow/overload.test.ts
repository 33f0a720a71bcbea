import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person, type SignedCommand } from '../support/client.ts'
import { Ledger } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'

vi.setConfig({ testTimeout: 900_000 })

const ada = person('ada')

test.each(['uws', 'node'])(
  'on %s a board with tiny queues refuses what it cannot hold, and retries after Retry-After are stored once',
  async (engine) => {
    const directory = boardDirectory()
    const env = { QUEUE_MAX: '2', HTTP_ENGINE: engine }
    const board = await startBoard({ directory, env })
    const client = await Client.of(board)
    const key = await logKeyOf(client)
    const ledger = new Ledger(new Heads(key), key)
    let waiting: SignedCommand[] = Array.from({ length: 80 }, (_, n) => {
      const text = `post ${n}`
      const signed = client.sign(ada, { operation: 'post', room: `r${n % 2}`, text })
      ledger.unknown.set(signed.eventId, { signed, text })
      return signed
    })
    let refused = 0
    while (waiting.length > 0) {
      const again: SignedCommand[] = []
      await Promise.all(
        waiting.map(async (signed) => {
          const answer = await client.send(signed.body)
          ledger.record(signed, answer)
          if (answer.status === 200) return
          expect(answer).toMatchObject({ status: 429, code: 'overloaded', headers: { 'retry-after': '1' } })
          expect(answer.text).toContain('"retry_after":1')
          again.push(signed)
        }),
      )
      refused += again.length
      // Refused clients retry in turns, as clients with jitter do.
      for (const signed of again.splice(16)) ledger.record(signed, await sendUntilTaken(client, signed))
      waiting = again
      if (waiting.length > 0) await sleep(1_000)
    }
    expect(refused).toBeGreaterThan(0)
    expect(ledger.acknowledged.size).toBe(80)
    client.close()
    await board.kill()
    const later = await startBoard({ directory })
    const reader = await Client.of(later)
    expect(await ledger.check(reader, 80)).toHaveLength(80)
    reader.close()
    await later.stop()
  },
)

async function sendUntilTaken(client: Client, signed: SignedCommand) {
  for (;;) {
    const answer = await client.send(signed.body)
    if (answer.status === 200) return answer
    expect(answer).toMatchObject({ status: 429, code: 'overloaded' })
    await sleep(Number(answer.headers['retry-after']) * 1_000)
  }
}

test.each(['uws', 'node'])(
  'on %s reads that find the queue full are refused likewise, and are answered when it is not',
  async (engine) => {
    const board = await startBoard({ directory: boardDirectory(), env: { QUEUE_MAX: '1', HTTP_ENGINE: engine } })
    const client = await Client.of(board)
    // A single letter of the board itself fills such a queue, so even a lone post may need a retry.
    for (let n = 0; n < 10; n += 1)
      await sendUntilTaken(client, client.sign(ada, { operation: 'post', room: 'a', text: `${n}` }))
    const seen = new Map<string, number>()
    const paths = ['/api/events?room=a&limit=', '/v1/export?limit=', '/tail/none?last=', '/api/rooms?limit=']
    const [good, full] = ['200  ', '429 overloaded 1']
    // A machine that is slow to send requests finds the queue empty for a while.
    for (let round = 1; round <= 20 || (round <= 1_000 && !(seen.has(good) && seen.has(full))); round += 1) {
      const answers = await Promise.all(
        paths.flatMap((path) => [1, 2, 3].map((n) => client.get(`${path}${((round * 3) % 180) + n}`))),
      )
      for (const { status, code, headers } of answers) {
        const name = `${status} ${code ?? ''} ${headers['retry-after'] ?? ''}`
        seen.set(name, (seen.get(name) ?? 0) + 1)
      }
    }
    expect([...seen.keys()]).toEqual(expect.arrayContaining([good, full]))
    expect([...seen.keys()].filter((name) => ![good, '400 not_found ', full].includes(name))).toEqual([])
    await expect.poll(async () => (await client.get('/api/stats')).data?.stats?.events).toBe(10)
    client.close()
    await board.stop()
  },
)
