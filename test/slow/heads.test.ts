import { expect, test, vi } from 'vitest'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { chooseSeed, Ledger, load, randomFrom } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'

vi.setConfig({ testTimeout: 900_000 })

test('over restarts and kills heads never shrink, and each size has one root forever', async () => {
  const directory = boardDirectory()
  let heads: Heads | undefined
  let ledger: Ledger | undefined
  const random = randomFrom(chooseSeed('heads'))
  for (const end of ['SIGTERM', 'SIGKILL', 'SIGKILL', 'SIGTERM'] as const) {
    const board = await startBoard({ directory })
    const client = await Client.of(board)
    const key = await logKeyOf(client)
    heads ??= new Heads(key)
    ledger ??= new Ledger(heads, key)
    expect(heads.record((await client.get('/api/log/checkpoint')).data.checkpoint!)).toBeGreaterThanOrEqual(
      heads.largest,
    )
    const onAcknowledged = (count: number) => {
      if (count === 60) board.signal(end)
    }
    await load({ client, ledger, random, posts: 400, inFlight: 8, rooms: ['a', 'b'], onAcknowledged })
    await board.ended
    client.close()
  }
  const last = await startBoard({ directory })
  const client = await Client.of(last)
  await ledger!.check(client, 500)
  const [someone] = ledger!.acknowledged.keys()
  for (const size of heads!.sizes.slice(1)) {
    const { data, status } = await client.get(`/api/log/proof?message=${someone}&tree_size=${size}`)
    if (status === 200) heads!.record(data.checkpoint!)
    else expect(size).toBeLessThanOrEqual(ledger!.acknowledged.get(someone!)!.receipt.log_index!)
  }
  client.close()
})
