import { expect, test, vi } from 'vitest'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { Heads, logKeyOf } from '../support/judge.ts'
import { chooseSeed, Ledger, load, randomFrom } from '../support/load.ts'

vi.setConfig({ testTimeout: 1_800_000 })

const rounds = 50 // with one shard; ten with three

test.each([
  ['one shard', '1'],
  ['three shards', '3'],
])(
  `with %s, after each kill at random moments under load every acknowledged post is there once, at its place, and proves`,
  async (_name, shards) => {
    const directory = boardDirectory()
    const env = { SEGMENT_BYTES: '65536', SHARDS: shards }
    const random = randomFrom(chooseSeed('kills under load'))
    let ledger: Ledger | undefined
    // What was in flight at a kill can be sent again, whatever became of it, and is then there once.
    const again = async (client: Client) => {
      for (const [id, { signed }] of ledger!.unknown) {
        ledger!.take(signed, await client.send(signed.body))
        ledger!.unknown.delete(id)
      }
    }
    const turns = shards === '1' ? rounds : 10
    for (let round = 0; round < turns; round += 1) {
      const board = await startBoard({ directory, env })
      const client = await Client.of(board)
      const key = await logKeyOf(client)
      ledger ??= new Ledger(new Heads(key), key)
      expect(ledger.heads.take((await client.get('/api/log/checkpoint')).data.checkpoint!)).toBeGreaterThanOrEqual(
        ledger.heads.largest,
      )
      await again(client)
      // Every few rounds all of it is checked, while the next load is not yet on.
      if (round % 10 === 9) await ledger.check(client, 200)
      const end = 1 + random(60)
      const onAcknowledged = (count: number) => {
        if (count === end) setTimeout(() => board.signal('SIGKILL'), random(8))
      }
      await load({ client, ledger, random, posts: 600, inFlight: 12, rooms: ['a', 'b', 'c'], onAcknowledged })
      await board.ended
      client.close()
    }
    const board = await startBoard({ directory, env })
    const client = await Client.of(board)
    await again(client)
    const events = await ledger!.check(client, 100_000)
    console.info(
      `${turns} kills: ${ledger!.acknowledged.size} acknowledged, ${events.length} there, ${ledger!.heads.sizes.length} heads`,
    )
    expect([...ledger!.refused]).toEqual([])
    expect((await board.stop()).code).toBe(0)
  },
)
