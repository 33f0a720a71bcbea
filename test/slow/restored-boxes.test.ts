/**
 * A box of several that comes back with less than it had, emptied or as an old copy, and one that is misconfigured: what it may do then.
 */
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createNatsKeyFile } from '../../src/cli/key-file.ts'
import { missingNats, skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, expectStartRefused, startBoard, tryStartBoard } from '../support/board-process.ts'
import { type Box, makeBoxes } from '../support/boxes.ts'
import { Client, person } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'
import { NatsCluster } from '../support/nats-cluster.ts'
import { patience } from '../support/patience.ts'
import { waitUntilCaughtUp } from '../support/replicas.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const missing = missingNats()
const ada = person('ada of boxes')

async function post(board: Board, ...texts: string[]): Promise<void> {
  const client = await Client.of(board)
  for (const text of texts) expect((await client.post(ada, { room: 'a', text })).status).toBe(200)
  client.close()
}

function empty({ directory }: Box): void {
  rmSync(directory, { recursive: true })
  mkdirSync(directory)
}

/** It answers, and not as a follower. */
const leads = (board: Board) =>
  vi.waitFor(
    async () => expect((await fetch(`${board.address}/healthz`)).headers.has('broadside-behind')).toBe(false),
    { ...patience, interval: 200 },
  )

/** The reason in `/healthz` why this box does not replace a dead leader. */
const cannotLead = (board: Board) =>
  vi.waitFor(
    async () => {
      const [line] = /^lead: .*$/m.exec(await (await fetch(`${board.address}/healthz`)).text()) ?? []
      expect(line).toBeDefined()
      return line!
    },
    { ...patience, interval: 200 },
  )

const events = (board: Board) => board.lines.flatMap((line) => /"event":"(lead\.\w+)"/.exec(line)?.[1] ?? [])

describe.skipIf(skipWithout(missing))(`boxes of one board${skipNote(missing)}`, () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await NatsCluster.start(boardDirectory())
  })
  afterAll(() => cluster.stop())

  async function pair(more: Readonly<Record<string, string>>): Promise<[Box, Box]> {
    return (await makeBoxes(boardDirectory(), 2, cluster, more)) as [Box, Box]
  }

  test('an emptied follower starts again next to its mark, without a warning', async () => {
    const [first, second] = await pair({ SERVICE_ID: 'emptied', SHARDS: '1' })
    const leader = await first.serve()
    // More than the first batch that a new follower gets.
    await post(leader, ...Array.from({ length: 170 }, (_, n) => `${n} ${'x'.repeat(30_000)}`))
    for (let times = 0; times < 2; times++) {
      empty(second)
      const follower = await second.follow()
      await waitUntilCaughtUp(leader, follower)
      await follower.stop()
      const warnings = follower.lines.filter((line) => /"level":"(warn|error)"/.test(line))
      // The boards of tests have no limits.
      expect(warnings.filter((line) => !line.includes('"setting.unprotected"'))).toEqual([])
    }
    await leader.stop()
  })

  test('a box whose mark knows more than the stream does not lead', async () => {
    const [first, second] = await pair({ SERVICE_ID: 'marked', SHARDS: '1' })
    let leader = await first.serve()
    await post(leader, 'kept')
    await leader.stop()
    const copy = `${first.directory}.copy`
    cpSync(first.directory, copy, { recursive: true })
    leader = await first.serve()
    await post(leader, 'lost')
    await leader.stop()
    copyFileSync(`${first.directory}.mark`, `${second.directory}.mark`)
    // The old copy is restored, and the stream recreated: both by mistake.
    rmSync(first.directory, { recursive: true })
    cpSync(copy, first.directory, { recursive: true })
    for (const file of [`${first.directory}.mark`, join(first.directory, 'replication.json')]) rmSync(file)
    const connection = await cluster.connection()
    await (await jetstreamManager(connection, { checkAPI: false })).streams.delete('broadside-marked')
    await connection.close()
    leader = await first.serve()
    const follower = await second.follow()
    await waitUntilCaughtUp(leader, follower)
    await follower.stop()
    await leader.stop()
    second.copyKeysFrom(first)
    expect(await first.run('hand-over')).toMatchObject({ code: 0, errors: '' })
    const { env, ...options } = second.options('follow', true)
    const waiting = await startBoard({ ...options, env: { ...env, REPLICATE_ACK: 'quorum' } })
    expect(await cannotLead(waiting)).toContain('This box may not lead')
    await waiting.stop()
    expect(waiting.lines.join('\n')).not.toContain('lead.begun')
    expect(await second.run('lead')).toMatchObject({
      code: 1,
      errors: expect.stringContaining(`you accept the loss, remove ${second.directory}.mark`),
    })
    rmSync(`${second.directory}.mark`)
    expect(await second.run('lead')).toMatchObject({ code: 0 })
  })

  test('an old copy of a box with quorum changes nothing, and says that another box has the rest', async () => {
    const [first, second] = await pair({ SERVICE_ID: 'copied-back', SHARDS: '1', REPLICATE_ACK: 'quorum' })
    let leader = await first.serve()
    await post(leader, 'before')
    second.copyKeysFrom(first)
    const follower = await second.join()
    await waitUntilCaughtUp(leader, follower)
    await follower.stop()
    await leader.stop()
    const markedSize = () => Number(readFileSync(`${first.directory}.mark`, 'utf8').split('\n')[2])
    const before = markedSize()
    const copy = `${first.directory}.copy`
    cpSync(first.directory, copy, { recursive: true })
    leader = await first.serve()
    await post(leader, 'after', 'after that')
    await vi.waitFor(() => expect(markedSize()).toBe(before + 2), patience)
    await leader.kill()
    rmSync(first.directory, { recursive: true })
    cpSync(copy, first.directory, { recursive: true })

    const { output } = await expectStartRefused(first.options('follow', true))
    expect(output).toContain(`a head of ${before + 2} was signed and published. This board has answered by quorum`)
    expect(output).toContain('Empty this directory')
    expect(output).not.toContain('restored --lost')
    for (const command of ['restored', 'restored --lost --yes', 'reshard --shards 2', 'rekey', 'log rotate']) {
      const { code, errors } = await first.run(...command.split(' '))
      expect([command, code, errors]).toEqual([
        command,
        1,
        expect.stringContaining('This board has answered by quorum'),
      ])
    }
    rmSync(`${first.directory}.mark`)
    const ended = await tryStartBoard(first.options('serve'))
    expect(ended).toMatchObject({ output: expect.stringContaining('more than the journals of this board') })
    expect(ended).toMatchObject({ output: expect.stringContaining('another box has the rest. Empty this directory') })

    const next = await second.join()
    await leads(next)
    const outdone = await expectStartRefused(first.options('follow', true))
    expect(outdone.output).toContain('was an old copy restored? Empty this directory')
    empty(first)
    first.copyKeysFrom(second)
    const again = await first.join()
    await waitUntilCaughtUp(next, again)
    await again.stop()
    await next.stop()
  })

  test('a copy from before the board used quorum is not told to delete the stream', async () => {
    const [box] = await pair({ SERVICE_ID: 'older-copy', SHARDS: '1' })
    const { env, ...options } = box.options('serve')
    const quorum = { ...options, env: { ...env, REPLICATE_ACK: 'quorum' } }
    let board = await box.serve()
    await post(board, 'before')
    await board.stop()
    const copy = `${box.directory}.copy`
    cpSync(box.directory, copy, { recursive: true })
    board = await startBoard(quorum)
    await post(board, 'after', 'after that')
    await board.kill()
    rmSync(box.directory, { recursive: true })
    cpSync(copy, box.directory, { recursive: true })
    rmSync(`${box.directory}.mark`)
    const ended = await tryStartBoard(quorum)
    expect(ended).toMatchObject({ output: expect.stringContaining('more than the journals of this board') })
    expect(ended).toMatchObject({ output: expect.stringContaining('another box has the rest. Empty this directory') })
    expect(ended).not.toMatchObject({ output: expect.stringContaining('Then stop the board, delete the stream') })
  })

  test('a redacted text is in no tail of a box that was deposed while it wrote it', async () => {
    const more = { SERVICE_ID: 'tails', SHARDS: '1', REPLICATE_ACK: 'quorum', COMPACT_SECONDS: '1' }
    const [first, second] = await pair(more)
    const leader = await first.serve()
    await post(leader, 'before')
    second.copyKeysFrom(first)
    const next = await second.join()
    await waitUntilCaughtUp(leader, next)
    const client = await Client.of(leader)
    const { body, eventId } = client.sign(ada, { operation: 'post', room: 'a', text: 'a slip of the pen 4711' })
    const holders = ({ directory }: Box) =>
      [...filesUnder(directory)].filter(([, bytes]) => bytes.includes('a slip of the pen 4711')).map(([name]) => name)
    // All of them: a remaining one may have the message, and bring it into the stream when the others are back.
    const servers = ['n1', 'n2', 'n3']
    await Promise.all(servers.map((name) => cluster.kill(name)))
    const unanswered = client.send(body).catch(() => {})
    await vi.waitFor(() => expect(holders(first)).not.toEqual([]), patience)
    await leader.kill()
    await unanswered
    client.close()
    await Promise.all(servers.map((name) => cluster.startServer(name)))
    await leads(next)
    const there = await Client.of(next)
    expect((await there.send(body)).status).toBe(200)
    const taken = { operation: 'event.redact', event_id: eventId, reason: 'a slip' }
    expect((await there.command(ada, taken)).status).toBe(200)
    there.close()
    await vi.waitFor(() => expect(holders(second)).toEqual([]), { ...patience, interval: 500 })
    const back = await first.join()
    expect(back.lines.join('\n')).toContain('replication.stood_down')
    expect(readdirSync(join(first.directory, 'shard-00'))).toContain('lost+tail')
    await waitUntilCaughtUp(next, back)
    await vi.waitFor(() => expect(holders(first)).toEqual([]), { ...patience, interval: 500 })
    await back.stop()
    await next.stop()
  })

  test('a box that may lead does not follow until it has the keys of the board', async () => {
    const [first, second] = await pair({ SERVICE_ID: 'keyless', SHARDS: '1', REPLICATE_ACK: 'quorum' })
    const leader = await first.serve()
    for (let times = 0; times < 2; times++)
      expect((await expectStartRefused(second.options('follow', true))).output).toContain(
        `Copy the keys directory of the leader to ${join(second.directory, 'keys')}`,
      )
    second.copyKeysFrom(first)
    const logKey = join(second.directory, 'keys', 'log.key')
    const key = readFileSync(logKey, 'utf8')
    for (const wrong of [undefined, `${'7'.repeat(64)}\n`]) {
      rmSync(logKey)
      if (wrong !== undefined) writeFileSync(logKey, wrong, { mode: 0o600 })
      const { output: words } = await expectStartRefused(second.options('follow', true))
      expect(words).toContain(`${logKey} is missing, or is not the key of the log`)
      writeFileSync(logKey, key, { mode: 0o600 })
    }
    const follower = await second.join()
    await waitUntilCaughtUp(leader, follower)
    await follower.stop()
    await leader.stop()
  })

  test('after the servers lost the stream, serve publishes to a new one, and the other box follows', async () => {
    const [first, second] = await pair({ SERVICE_ID: 'streamless', SHARDS: '1', REPLICATE_ACK: 'quorum' })
    let leader = await first.serve()
    second.copyKeysFrom(first)
    let follower = await second.join()
    await post(leader, 'before')
    await waitUntilCaughtUp(leader, follower)
    await follower.stop()
    await leader.stop()
    const connection = await cluster.connection()
    await (await jetstreamManager(connection, { checkAPI: false })).streams.delete('broadside-streamless')
    await connection.close()
    const { output: recreated } = await expectStartRefused(first.options('serve'))
    expect(recreated).toContain('replication.json, and start the board with broadside serve')
    rmSync(join(first.directory, 'replication.json'))
    const { output: unknown } = await expectStartRefused(first.options('follow', true))
    expect(unknown).toContain('Only if no other box leads this board, start it with broadside serve')
    leader = await first.serve()
    await post(leader, 'after')
    follower = await second.join()
    await waitUntilCaughtUp(leader, follower)
    expect(follower.lines.join('\n')).not.toContain('lead.begun')
    await follower.stop()
    await leader.stop()
  })

  test('a box that cannot lead says so once and keeps answering, until it can', async () => {
    const [first, second] = await pair({ SERVICE_ID: 'unable', SHARDS: '1', REPLICATE_ACK: 'quorum' })
    const leader = await first.serve()
    await post(leader, 'before')
    second.copyKeysFrom(first)
    const follower = await second.join()
    await waitUntilCaughtUp(leader, follower)
    const [key, aside] = ['log.key', 'aside.key'].map((name) => join(second.directory, 'keys', name))
    renameSync(key!, aside!)
    await leader.kill()
    expect(await cannotLead(follower)).toContain(`${key} is missing`)
    // It checks several times.
    for (const until = Date.now() + 20_000; Date.now() < until; await sleep(200))
      expect((await fetch(`${follower.address}/api/rooms`)).status).toBe(200)
    expect(events(follower)).toEqual(['lead.not_taken'])
    renameSync(aside!, key!)
    await leads(follower)
    expect(await (await fetch(`${follower.address}/healthz`)).text()).not.toContain('lead:')
    await follower.stop()
  })

  test('a box that could not lead does not release its port only to take it again', async () => {
    const [first, second] = await pair({ SERVICE_ID: 'lacking', SHARDS: '1', REPLICATE_ACK: 'quorum' })
    const leader = await first.serve()
    await post(leader, 'before')
    second.copyKeysFrom(first)
    let follower = await second.join()
    await waitUntilCaughtUp(leader, follower)
    await follower.stop()
    await leader.kill()
    const lacked = join(second.directory, 'missing-attachments.json')
    writeFileSync(lacked, JSON.stringify([`a/${'7'.repeat(64)}`]))
    follower = await second.join()
    expect(await cannotLead(follower)).toContain('lacks 1 attachments')
    for (const until = Date.now() + 15_000; Date.now() < until; await sleep(200))
      expect((await fetch(`${follower.address}/api/rooms`)).status).toBe(200)
    expect(events(follower)).toEqual(['lead.begun', 'lead.not_taken'])
    await follower.stop()
    rmSync(lacked)
    follower = await second.join()
    await leads(follower)
    await follower.stop()
  })

  test('a key that the servers do not know is reported by its setting', async () => {
    const directory = boardDirectory()
    const unknown = join(directory, 'unknown.nk')
    await createNatsKeyFile(unknown)
    for (const setting of ['REPLICATE_KEY_FILE', 'REPLICATE_SYSTEM_KEY_FILE']) {
      const board = await startBoard({
        directory: join(directory, setting),
        env: { ...cluster.env, [setting]: unknown },
      })
      const said = `: they have no user with the key in ${setting}`
      await vi.waitFor(() => expect(board.lines.join('\n')).toContain(said), patience)
      await board.stop()
    }
  })

  test('serve continues as this directory’s leader, whatever FOLLOW says, and creates no second board', async () => {
    const [first, second] = await pair({ SERVICE_ID: 'shared-settings', SHARDS: '1' })
    const shared = (box: Box) => {
      const { env, ...options } = box.options('serve')
      return { ...options, env: { ...env, FOLLOW: `${first.address},${second.address}` } }
    }
    for (const box of [first, second])
      expect((await expectStartRefused(shared(box))).output).toContain('Only the first start of the first box')
    let leader = await first.serve()
    await post(leader, 'before')
    const follower = await second.follow()
    await waitUntilCaughtUp(leader, follower)
    await follower.stop()
    await leader.stop()
    expect((await expectStartRefused(shared(second))).output).toContain('start it with broadside follow')
    leader = await startBoard(shared(first))
    expect(leader.lines.join('\n')).toContain('follow.ignored')
    await post(leader, 'after')
    await leader.stop()
    second.copyKeysFrom(first)
    expect(await first.run('hand-over')).toMatchObject({ code: 0, errors: '' })
    expect(await second.run('lead')).toMatchObject({ code: 0, errors: '' })
    const led = await startBoard(shared(second))
    await post(led, 'led')
    await led.stop()
    expect((await expectStartRefused(shared(first))).output).toContain('start it with broadside follow')
  })
})
