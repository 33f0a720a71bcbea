/** What a follower tells its clients and its host when its leader refuses it, is another board, or was away. */
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { sizes } from '../../actors/kernel/limits.ts'
import { createReplicaKeyFile } from '../../src/cli/key-file.ts'
import { summaryOf } from '../support/answers.ts'
import { blobOf, putFields } from '../support/blobs.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { Replicas, waitUntilCaughtUp } from '../support/replicas.ts'

const ada = person('ada of obstacles')

/** The lines of the log with this event, parsed. */
function linesOf({ lines }: Board, event: string): { readonly problem?: string }[] {
  return lines
    .map((line) => JSON.parse(line) as { readonly event: string; readonly problem?: string })
    .filter((line) => line.event === event)
}

async function health({ address }: Board): Promise<string> {
  return (await fetch(`${address}/healthz`)).text()
}

test('while the leader refuses its key, a follower refuses writes and says why, and continues once the keys are the same', async () => {
  const limits = { BROADSIDE_LIMITS: 'on', LIMITS: '{"unsigned_commands_per_address_per_minute":5}' }
  const replicas = Replicas.create({ SHARDS: '1', ...limits })
  let leader = await replicas.leader()
  const { port } = leader
  const follower = await replicas.follower(leader.address, boardDirectory())
  const client = await Client.of(follower)
  await waitUntilCaughtUp(leader, follower)
  await leader.stop()
  const otherKey = join(boardDirectory(), 'other.key')
  createReplicaKeyFile(otherKey)
  leader = await startBoard({ directory: leader.directory, port, env: { ...limits, REPLICA_KEY_FILE: otherKey } })
  const post = () => client.post(ada, { room: 'lobby', text: 'by way of the follower' })
  const refusedKey = `${leader.address} does not accept the key of this follower: give both the same REPLICA_KEY_FILE`
  await vi.waitFor(async () => expect(await health(follower)).toContain(`s behind the leader. ${refusedKey}`), patience)
  // Soon the leader refuses with rate_limited instead.
  for (let n = 0; n < 10; n++) {
    const refused = await post()
    expect(summaryOf(refused)).toBe('429 overloaded')
    expect(refused.text).toContain('refuses this follower, so nothing was done')
  }
  const statusOfLeader = await fetch(`${leader.address}/replica/board`)
  expect(statusOfLeader.status).toBe(429)
  await vi.waitFor(() => expect(linesOf(follower, 'following.without_leader').length).toBe(1), patience)
  const interrupted = linesOf(follower, 'following.interrupted')
  expect(interrupted.at(-1)!.problem).toContain(refusedKey)
  expect(await health(follower)).toContain(refusedKey)

  await leader.stop()
  leader = await replicas.leader(port)
  await waitUntilCaughtUp(leader, follower)
  expect((await post()).status).toBe(200)
  client.close()
  await follower.stop()
  await leader.stop()
})

test('the end of an interruption is in the log, however short it was', async () => {
  const replicas = Replicas.create({ SHARDS: '1' })
  let leader = await replicas.leader()
  const { port } = leader
  const follower = await replicas.follower(leader.address, boardDirectory())
  await waitUntilCaughtUp(leader, follower)
  await leader.stop()
  await vi.waitFor(() => expect(linesOf(follower, 'following.interrupted').length).toBeGreaterThan(0), patience)
  leader = await replicas.leader(port)
  await vi.waitFor(() => {
    const last = linesOf(follower, 'following.interrupted').at(-1)!
    expect(linesOf(follower, 'following.resumed').at(-1)).toMatchObject({ problem: last.problem })
  }, patience)
  await follower.stop()
  await leader.stop()
})

test('a follower whose FOLLOW names another board asks to correct FOLLOW, and continues where it was once that is done', async () => {
  const replicas = Replicas.create({ SHARDS: '1' })
  const leader = await replicas.leader()
  const directory = boardDirectory()
  let follower = await replicas.follower(leader.address, directory)
  await waitUntilCaughtUp(leader, follower)
  await follower.stop()
  const { REPLICA_KEY_FILE = '' } = replicas.settings(leader.address)
  const other = await startBoard({ directory: boardDirectory(), env: { REPLICA_KEY_FILE } })
  follower = await replicas.follower(other.address, directory)
  await vi.waitFor(() => expect(linesOf(follower, 'following.halted').length).toBe(1), patience)
  const [{ problem } = {}] = linesOf(follower, 'following.halted')
  const serviceId = async (board: Board) => (await Client.of(board)).serviceId
  expect(problem).toContain(
    `the board at ${other.address} is ${await serviceId(other)}, and this follower is of ${await serviceId(leader)}: correct FOLLOW`,
  )
  expect(await health(follower)).toContain('correct FOLLOW')
  await follower.stop()
  await other.stop()
  follower = await replicas.follower(leader.address, directory)
  const client = await Client.of(leader)
  const posted = await client.post(ada, { room: 'lobby', text: 'after the correction' })
  client.close()
  await waitUntilCaughtUp(leader, follower)
  expect((await fetch(`${follower.address}/api/events/${posted.data.event_id}`)).status).toBe(200)
  await follower.stop()
  await leader.stop()
})

test('the largest attachment is accepted by way of a follower', async () => {
  const replicas = Replicas.create({ SHARDS: '1' })
  const leader = await replicas.leader()
  const follower = await replicas.follower(leader.address, boardDirectory())
  await waitUntilCaughtUp(leader, follower)
  const client = await Client.of(follower)
  const bytes = Buffer.alloc(sizes.blob_bytes, 'x')
  const { id } = blobOf(await client.command(ada, putFields(bytes, { room: 'lobby', filename: 'large.txt' })))
  client.close()
  const found = await fetch(`${leader.address}/a/${id}`)
  expect([found.status, (await found.arrayBuffer()).byteLength]).toEqual([200, bytes.length])
  await follower.stop()
  await leader.stop()
})

test('a follower names the settings that its leader has otherwise, once, and not those that mean the same', async () => {
  const [one, two] = [person('an operator').id, person('another operator').id]
  const shared = { SHARDS: '1', BOARD_NAME: 'The board' }
  const limits = '{"text_bytes":16384,"networks":{"192.0.2.0/24":10,"198.51.100.0/24":20}}'
  const replicas = Replicas.create({ ...shared, OPERATORS: `${one},${two}`, LIMITS: limits })
  const leader = await replicas.leader()
  const directory = boardDirectory()
  const follow = (more: Readonly<Record<string, string>>) =>
    startBoard({ directory, command: 'follow', env: { ...replicas.settings(leader.address), ...more } })
  const same = '{"networks":{"198.51.100.0/24":20,"192.0.2.0/24":10},"text_bytes":16384}'
  let follower = await follow({ OPERATORS: `${two}, ${one}`, LIMITS: same })
  await waitUntilCaughtUp(leader, follower)
  expect(linesOf(follower, 'following.other_settings')).toEqual([])
  await follower.stop()
  follower = await follow({ OPERATORS: one, LIMITS: '', BASE_URL: 'https://other.example', BOARD_NAME: 'Another' })
  await vi.waitFor(() => expect(linesOf(follower, 'following.other_settings').length).toBe(1), patience)
  expect(linesOf(follower, 'following.other_settings')).toMatchObject([
    {
      level: 'warn',
      settings: 'OPERATORS, LIMITS, BASE_URL, BOARD_NAME',
      note: expect.stringContaining('Set them here'),
    },
  ])
  await follower.stop()
  await leader.stop()
})
