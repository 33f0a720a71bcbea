/**
 * With one shard a post is answered before the log frame that covers it is synced. A power cut may lose all such frames; the board rebuilds
 * them from the journal of the shard, which was synced first, and every head that was given out stays valid.
 */
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { nameOf } from '../../actors/log/book.ts'
import { main } from '../../src/cli/main.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { listSegments, readSegmentHeader, segmentPath } from '../../storage/segment.ts'
import { walkSegment } from '../../storage/walk.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { Ledger, load, randomFrom } from '../support/load.ts'
import { Heads, logKeyOf, recordReceipt } from '../support/log-checks.ts'

vi.setConfig({ testTimeout: 120_000 })

/** Cuts off what no frame says was synced, as the worst power cut would. Returns the number of lost frames. */
function loseUnsynced(directory: string): number {
  const file = machineDisk.openFile(
    segmentPath(directory, listSegments(machineDisk, directory, 'log').at(-1)!),
    'write',
  )
  try {
    const { live, provenSeq } = walkSegment(file, readSegmentHeader(file)!, file.size())
    file.truncate(live.offsetOf(provenSeq + 1))
    return live.nextSeq - 1 - provenSeq
  } finally {
    file.close()
  }
}

const env = (placement: string) => ({ SHARDS: '1', PLACEMENT: placement })

/** A board that is killed under load, and whose log then loses what was not synced; returns what it had acknowledged. */
async function cutUnderLoad(placement: string) {
  const directory = boardDirectory()
  const board = await startBoard({ directory, env: env(placement) })
  const client = await Client.of(board)
  const key = await logKeyOf(client)
  const ledger = new Ledger(new Heads(key), key)
  const onAcknowledged = (count: number): void => {
    if (count === 60) void board.kill()
  }
  const random = randomFrom(16)
  await load({ client, ledger, random, posts: 1_000, inFlight: 16, rooms: ['lobby', 'hall'], onAcknowledged })
  await board.kill()
  client.close()
  expect(loseUnsynced(join(directory, 'log'))).toBeGreaterThan(0)
  return { directory, ledger, key }
}

describe.each(['back', 'threads'])(
  'a board with one shard, placed as %s, whose log lost what was not synced',
  (placement) => {
    test('rebuilds the same leaves: every head and receipt that it gave is valid', async () => {
      const { directory, ledger } = await cutUnderLoad(placement)
      const board = await startBoard({ directory, env: env(placement) })
      const client = await Client.of(board)
      const { heads } = ledger
      const given = heads.sizes
      const size = heads.record((await client.get('/api/log/checkpoint')).data.checkpoint!)
      expect(size).toBeGreaterThanOrEqual(given.at(-1)!)
      for (const from of given) if (from > 0 && from < size) await heads.proveConsistent(client, from, size)
      for (const { signed, receipt } of ledger.acknowledged.values()) {
        const again = (await client.send(signed.body)).data.receipt!
        expect(again).toMatchObject({ duplicate: true, log_index: receipt.log_index, accepted_at: receipt.accepted_at })
        recordReceipt(heads, again)
      }
      client.close()
      await board.stop()
    })

    test('covers them before its log is closed for another', async () => {
      const { directory, ledger, key } = await cutUnderLoad(placement)
      const { heads } = ledger
      const terminal = capturedTerminal()
      expect([await main(['log', 'rotate', '--data', directory], terminal), terminal.said.err]).toEqual([0, ''])
      const board = await startBoard({ directory, env: env(placement) })
      const client = await Client.of(board)
      const given = heads.sizes
      const size = heads.record((await client.get(`/log/${nameOf(key.name)}/checkpoint`)).text)
      expect(size).toBeGreaterThan(given.at(-1)!)
      for (const from of given) if (from > 0) await heads.proveConsistent(client, from, size)
      client.close()
      await board.stop()
    })
  },
)
