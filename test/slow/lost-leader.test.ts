/** A leader without a stream is lost with its disk, and rebuilt from a follower's backup and its own keys. */
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { HookTarget } from '../support/hook-target.ts'
import { logKeyOf, proveEvent } from '../support/log-checks.ts'
import { patience } from '../support/patience.ts'
import { program } from '../support/program.ts'
import { Replicas, waitUntilCaughtUp } from '../support/replicas.ts'
import { runProgram } from '../support/run-program.ts'

vi.setConfig({ testTimeout: 300_000 })

const ada = person('ada of a lost leader')

test('a follower’s backup and the leader’s keys make the same board again, which continues log, webhooks and followers', async () => {
  const replicas = Replicas.create({ SHARDS: '1', BROADSIDE_LOOPBACK: '1' })
  const leader = await replicas.leader()
  const { port, address } = leader
  const directory = boardDirectory()
  const follower = await replicas.follower(address, directory)
  const target = await HookTarget.open()
  const client = await Client.of(leader)
  const webhook = { schema: 1, url: target.url('/hook'), kinds: ['room.post'], room: 'lobby' }
  expect((await client.command(ada, { operation: 'webhook.create', data: JSON.stringify(webhook) })).status).toBe(200)
  const post = async (by: Client, text: string) => {
    const { data } = await by.post(ada, { room: 'lobby', text })
    await target.waitUntil(() => target.receivedAt('/hook').some((each) => each.text.includes(data.event_id!)))
    return data.event_id!
  }
  const first = await post(client, 'before the loss')
  const key = await logKeyOf(client)
  // The follower asks for the positions of deliveries every 10 s.
  const { REPLICA_KEY_FILE = '' } = replicas.settings(address)
  const authorization = `Bearer ${readFileSync(REPLICA_KEY_FILE, 'latin1').trim()}`
  const positions = join(directory, 'deliveries.json')
  await vi.waitFor(async () => {
    const found = await (await fetch(`${address}/replica/deliveries`, { headers: { authorization } })).text()
    expect(JSON.parse(found)).toMatchObject({ tails: [expect.any(Number), expect.any(Number)] })
    expect(existsSync(positions) && readFileSync(positions, 'utf8')).toBe(found)
  }, patience)
  await waitUntilCaughtUp(leader, follower)
  client.close()
  const keys = boardDirectory()
  cpSync(join(leader.directory, 'keys'), keys, { recursive: true })
  await leader.kill()
  rmSync(leader.directory, { recursive: true })
  rmSync(`${leader.directory}.mark`)

  const run = async (...args: string[]) => {
    const done = await runProgram(directory, process.execPath, [program, ...args])
    expect([done.code, done.output]).toEqual([0, done.output])
  }
  const backup = join(boardDirectory(), 'backup')
  await run('backup', backup, '--data', directory)
  await follower.stop()
  await run('restore', backup, '--data', leader.directory, '--keys', keys)
  await run('restored', '--data', leader.directory)
  const rebuilt: Board = await replicas.leader(port)
  const again = await Client.of(rebuilt)
  await proveEvent(again, key, first)
  const second = await post(again, 'after the loss')
  const delivered = target.receivedAt('/hook').map(({ text }) => [first, second].find((id) => text.includes(id)))
  expect(delivered).toEqual([first, second])
  rmSync(directory, { recursive: true })
  rmSync(`${directory}.mark`)
  const next = await startBoard({ directory, command: 'follow', env: replicas.settings(address) })
  await waitUntilCaughtUp(rebuilt, next)
  again.close()
  await target.close()
  await next.stop()
  await rebuilt.stop()
})
