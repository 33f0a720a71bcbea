/** What a new follower says if it cannot copy the beginning of its board from the leader. */
import { expect, test } from 'vitest'
import { UnusableDirectory } from '../../../src/board-directory.ts'
import { machine } from '../../../src/platform.ts'
import { openFollower } from '../../../src/replication/follower-directory.ts'
import { Leader, OutOfReach, RefusedFollower } from '../../../src/replication/leader.ts'
import { MemoryDisk } from '../../support/memory-disk.ts'

const address = 'http://leader.example'
const facts = {
  facts: { service_id: 'board.example', generation: 'g', shards: 1 },
  identity: { id: 'i', publicKey: 'p' },
  log: { origin: 'o', vkey: 'v' },
  logs: [],
  readKey: '0'.repeat(64),
}
const fix = 'A new follower begins with a copy from its leader: start the leader, or correct FOLLOW.'

/** `answers`: by path. */
function opened(answers: Readonly<Record<string, () => unknown>>): Promise<unknown> {
  const leader = new Leader([address], '7'.repeat(64), async (_address, path) => ({
    status: 200,
    bytes: Buffer.from(JSON.stringify(answers[path]!())),
  }))
  const disk = new MemoryDisk({ soon: (callback) => callback(), randomBelow: () => 0 })
  disk.makeDirectory('/board')
  const wanted = { disk, path: '/board', random: machine.random, segmentBytesMax: 1 << 20, leader }
  return openFollower(wanted).catch((error: unknown) => error)
}

function fail(error: Error): () => never {
  return () => {
    throw error
  }
}

test('whenever the leader is out of reach, the refusal names the fix', async () => {
  const away = fail(new OutOfReach(`${address} is out of reach`))
  for (const answers of [{ board: away }, { board: () => facts, frames: away }]) {
    const found = await opened(answers)
    expect(found).toBeInstanceOf(UnusableDirectory)
    expect(found).toMatchObject({ message: `${address} is out of reach. ${fix}`, cause: expect.any(OutOfReach) })
  }
})

test('a leader that refuses the follower names another fix', async () => {
  const refused = fail(new RefusedFollower(`${address} accepts no followers: set REPLICA_KEY_FILE`))
  expect(await opened({ board: refused })).toMatchObject({
    message: `${address} accepts no followers: set REPLICA_KEY_FILE. A new follower begins with a copy from its leader.`,
  })
})
