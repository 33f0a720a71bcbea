/** A follower answers every read as its leader does, from its own files. */

import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { listSegments, readFrameAt, readSegmentHeader, segmentPath } from '../../storage/segment.ts'
import { walkSegment } from '../../storage/walk.ts'
import { missingNats, skipNote, skipWithout } from '../peers/peers.ts'
import { summaryOf } from '../support/answers.ts'
import { blobOf, putFields } from '../support/blobs.ts'
import { type Board, boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { differences, RecordingClient, viewBoard } from '../support/board-view.ts'
import { Client, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'
import { filesUnder } from '../support/files-under.ts'
import { HookTarget } from '../support/hook-target.ts'
import { Ledger, load, randomFrom } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { NatsCluster } from '../support/nats-cluster.ts'
import { setups, World } from '../support/operation-setups.ts'
import { patience } from '../support/patience.ts'
import { program } from '../support/program.ts'
import { randomPart } from '../support/random-part.ts'
import { Replicas, waitUntilCaughtUp } from '../support/replicas.ts'
import { runProgram } from '../support/run-program.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const operator = person('operator of followers')
const stranger = person('stranger to followers')
const ownRooms = { operation: 'rooms.list', data: '{"schema":1,"own":true}' }

/** How many ids and accepted commands are queried. */
const queriedMax = 30

const variants = [
  { shards: '1', engine: 'uws' },
  { shards: '2', engine: 'node' },
]

describe.each(randomPart(variants))('without a stream, $shards shards, engine $engine', ({ shards, engine }) => {
  const directory = boardDirectory()
  let replicas: Replicas
  let leader: Board
  let follower: Board
  let known: RecordingClient

  beforeAll(async () => {
    const base = { OPERATORS: operator.id, SHARDS: shards, HTTP_ENGINE: engine }
    const env = { ...base, BROADSIDE_LOOPBACK: '1', SEGMENT_BYTES: '65536' }
    replicas = Replicas.create({ ...env, COMPACT_SECONDS: '1' })
    leader = await replicas.leader()
    const { serviceId } = await Client.of(leader)
    known = new RecordingClient(leader.address, serviceId)
    const world = new World(known, operator)
    for (const operation of operations.filter(({ kind }) => kind !== 'read')) {
      const answer = await world.send(operation, await setups[operation.name]!(world))
      expect([operation.name, answer.status]).toEqual([operation.name, 200])
    }
    follower = await replicas.follower(leader.address, directory)
  })
  afterAll(async () => {
    await follower.stop()
    await leader.stop()
  })

  async function viewOf(board: Board) {
    const client = await Client.of(board)
    const view = await viewBoard(client, known, { operator, stranger }, queriedMax)
    client.close()
    return new Map([...view].map(([name, text]) => [name, text.replaceAll(board.address, '')]))
  }

  test('a follower answers every read as its leader does', async () => {
    await waitUntilCaughtUp(leader, follower)
    const leaderView = await viewOf(leader)
    await waitUntilCaughtUp(leader, follower)
    expect(differences(leaderView, await viewOf(follower))).toEqual([])
    const answered = await fetch(`${follower.address}/api/rooms`)
    expect(answered.headers.get('broadside-behind')).toMatch(/^0\.\d{3}$/)
  })

  test('a follower forwards reads that only its leader can answer, and refuses sign-ins', async () => {
    const followerClient = await Client.of(follower)
    const target = await HookTarget.open()
    const webhook = { schema: 1, url: target.url('/hook'), kinds: ['room.post'], room: 'lobby' }
    const created = await followerClient.command(operator, {
      operation: 'webhook.create',
      data: JSON.stringify(webhook),
    })
    expect([created.status, created.text]).toEqual([200, created.text])
    await followerClient.post(operator, { room: 'lobby', text: 'delivered by the leader' })
    await target.waitUntil(() => target.receivedAt('/hook').length > 0)
    const { id } = (created.data as { webhook: { id: string } }).webhook
    const reads = [{ operation: 'webhook.deliveries', target: id }, { operation: 'webhook.list' }] as const
    for (const fields of reads) {
      // The leader records an answer shortly after the target has sent it.
      await expect.poll(async () => (await known.command(operator, fields)).text).toMatch(/delivered|"delivery":\{/)
      expect((await followerClient.command(operator, fields)).text).toBe((await known.command(operator, fields)).text)
    }
    await target.close()
    expect((await followerClient.command(operator, { operation: 'quota.get' })).status).toBe(200)
    followerClient.close()
    const registered = await fetch(`${follower.address}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: ['https://client.example/back'] }),
    })
    expect([registered.status, await registered.json()]).toMatchObject([
      403,
      { error_description: expect.stringContaining(leader.address) },
    ])
  })
})

const missing = missingNats()

/** The frames of a journal on disk, without what depends on the segment file, and the number of the first frame of each segment. */
function journalIn(directory: string) {
  const frames: string[] = []
  const firsts = listSegments(machineDisk, directory, 'log')
  for (const first of firsts) {
    const file = machineDisk.openFile(segmentPath(directory, first), 'read')
    const header = readSegmentHeader(file)!
    const { live } = walkSegment(file, header, file.size())
    for (let seq = first; seq < live.nextSeq; seq++) {
      const [offset, end] = [live.offsetOf(seq), live.offsetOf(seq + 1)]
      const { type, flags, payload } = readFrameAt(file, { offset, end, seq, seed: header.seed })
      frames.push(`${header.journalId.toString('hex')} ${seq} ${type} ${flags} ${payload.toString('latin1')}`)
    }
    file.close()
  }
  return { firsts, frames }
}

/** Facts about a follower, wherever it gets the leader's frames. */
function describeFollower({ isStreamed }: { readonly isStreamed: boolean }): void {
  const directory = boardDirectory()
  const ada = person('ada of followers')
  const ben = person('ben of followers')
  let cluster: NatsCluster | undefined
  let replicas: Replicas
  let leader: Board
  let follower: Board
  let client: Client
  let followerClient: Client

  beforeAll(async () => {
    if (isStreamed) cluster = await NatsCluster.start(boardDirectory())
    // With clerks, threads pass on answers as bytes.
    const placement = { SHARDS: '2', PLACEMENT: 'clerks' }
    const env = { ...placement, SEGMENT_BYTES: '65536', COMPACT_SECONDS: '1', OPERATORS: operator.id }
    replicas = Replicas.create(env, cluster && { leader: cluster.env, follower: cluster.readEnv })
    leader = await replicas.leader()
    follower = await replicas.follower(leader.address, directory)
    client = await Client.of(leader)
    followerClient = await Client.of(follower)
    const begun = isStreamed ? 'following.begun' : 'following.leader'
    await vi.waitFor(() => expect(follower.lines.join('\n')).toContain(begun), patience)
    for (const fields of [{ room: 'live' }, { room: 'cellar', visibility: 'private' }])
      expect((await client.command(ada, { operation: 'room.create', ...fields })).status).toBe(200)
  })
  afterAll(async () => {
    client.close()
    followerClient.close()
    await follower.stop()
    await leader.stop()
    await cluster?.stop()
  })

  test('a follower that is killed at any moment resumes, and has the same journals as its leader', async () => {
    const key = await logKeyOf(client)
    const ledger = new Ledger(new Heads(key), key)
    const random = randomFrom(7)
    const rooms = ['a', 'b', 'c']
    for (let round = 0; round < 3; round++) {
      const loading = load({ client, ledger, random, posts: 200, inFlight: 16, rooms, textBytesMax: 4_000 })
      await sleep(random(400))
      await follower.kill()
      await loading
      follower = await replicas.follower(leader.address, directory)
    }
    followerClient = await Client.of(follower)
    await waitUntilCaughtUp(leader, follower)
    // The follower has everything that the leader acknowledged, with proofs.
    await ledger.check(followerClient, 20)
    await waitUntilCaughtUp(leader, follower)
    await follower.stop()
    const check = await runProgram(directory, process.execPath, [program, 'fsck', '--signatures', '--data', directory])
    expect([check.code, check.output]).toEqual([0, expect.stringContaining('Everything agrees.')])
    for (const part of ['shard-00', 'shard-01', 'log']) {
      const [followerJournal, leaderJournal] = [
        journalIn(join(directory, part)),
        journalIn(join(leader.directory, part)),
      ]
      expect(followerJournal.firsts).toEqual(leaderJournal.firsts)
      expect(followerJournal.frames.length).toBe(leaderJournal.frames.length)
      expect(
        followerJournal.frames.every((frame, index) => frame === leaderJournal.frames[index]),
        part,
      ).toBe(true)
    }
    follower = await replicas.follower(leader.address, directory)
    followerClient = await Client.of(follower)
  })

  test('a tail of a follower shows new posts, and its answers say how far behind the follower is', async () => {
    const posted = await client.post(ada, { room: 'live', text: 'the first' })
    await vi.waitFor(
      async () => expect((await followerClient.get(`/api/events/${posted.data.event_id}`)).status).toBe(200),
      patience,
    )
    // A follower knows how far behind it is from its last query to the leader.
    const tail = await vi.waitFor(async () => {
      const answer = await fetch(`${follower.address}/tail/live?last=0`)
      const behind = answer.headers.get('broadside-behind')
      if (behind !== '0.000') await answer.body!.cancel()
      expect(behind).toBe('0.000')
      return answer
    }, patience)
    const reader = tail.body!.pipeThrough(new TextDecoderStream()).getReader()
    await client.post(ada, { room: 'live', text: 'a text for the tail' })
    for (let text = ''; !text.includes('a text for the tail'); ) text += (await reader.read()).value ?? ''
    await reader.cancel()
    const metrics = await (await fetch(`${follower.address}/metrics`)).text()
    expect(metrics).toMatch(/^broadside_behind_seconds 0(\.\d+)?$/m)
  })

  test('a follower forwards writes, and shows each once it is answered', async () => {
    const posted = await followerClient.post(ada, { room: 'live', text: 'by way of the follower' })
    expect(posted.status).toBe(200)
    expect((await followerClient.get(`/api/events/${posted.data.event_id}`)).data.event?.text).toBe(
      'by way of the follower',
    )
    expect((await client.get(`/api/events/${posted.data.event_id}`)).data.event?.text).toBe('by way of the follower')
    const newRoom = { operation: 'room.create', room: 'attic', visibility: 'private', members: [ben.id] }
    expect((await followerClient.command(ada, newRoom)).status).toBe(200)
    expect((await followerClient.command(ben, { operation: 'room.get', room: 'attic' })).status).toBe(200)
    expect((await followerClient.command(ben, ownRooms)).text).toContain('"attic"')
    expect(summaryOf(await followerClient.command(stranger, { operation: 'room.get', room: 'attic' }))).toMatch(
      /^40[03]/,
    )
    const refused = await followerClient.post(ada, { room: 'live', text: '' })
    expect(summaryOf(refused)).toBe(summaryOf(await client.post(ada, { room: 'live', text: '' })))
  })

  test('a follower shows each of many concurrent writes once it is answered', async () => {
    const postAndRead = async (index: number) => {
      const room = index % 4 === 0 ? 'cellar' : 'live'
      const text = `by way of the follower, ${index}`
      const posted = await followerClient.post(ada, { room, text })
      const read = { operation: 'event.get', event_id: posted.data.event_id! }
      const [found, page] = await Promise.all([
        followerClient.command(ada, read),
        followerClient.command(ada, { operation: 'events.list', room, limit: 100 }),
      ])
      return [posted.status, found.data.event?.text === text, page.text.includes(`${text}"`)]
    }
    for (let round = 0; round < 20; round++) {
      const indexes = Array.from({ length: 16 }, (_, index) => round * 16 + index)
      expect(await Promise.all(indexes.map(postAndRead))).toEqual(indexes.map(() => [200, true, true]))
    }
  })

  test('attachments and revocations of delegations reach a follower', async () => {
    const bytes = Buffer.from('a file for the follower')
    const { id } = blobOf(await client.command(ada, putFields(bytes, { room: 'live', filename: 'x.txt' })))
    await vi.waitFor(async () => {
      const answer = await fetch(`${follower.address}/a/${id}`)
      expect([answer.status, await answer.text()]).toEqual([200, bytes.toString()])
    }, patience)
    const delegate = person('helper of followers')
    const delegation = await createDelegation(client, ada, delegate, { scopes: ['board:read', 'board:post'] })
    const read = () => followerClient.command(delegate, { operation: 'room.get', room: 'cellar' })
    await vi.waitFor(async () => expect((await read()).status).toBe(200), patience)
    expect((await client.command(ada, { operation: 'delegation.revoke', target: delegation })).status).toBe(200)
    await vi.waitFor(async () => expect((await read()).status).not.toBe(200), patience)
  })

  test('a redacted text leaves the files of a follower too', async () => {
    const posted = await client.post(ada, { room: 'live', text: 'a slip of the pen 4711' })
    await waitUntilCaughtUp(leader, follower)
    const filesWithText = () =>
      [...filesUnder(directory)].filter(([, bytes]) => bytes.includes('a slip of the pen 4711'))
    expect(filesWithText().length).toBeGreaterThan(0)
    const redaction = { operation: 'event.redact', event_id: posted.data.event_id!, reason: 'a slip' }
    expect((await client.command(ada, redaction)).status).toBe(200)
    await vi.waitFor(() => expect(filesWithText().map(([name]) => name)).toEqual([]), { ...patience, interval: 500 })
  })
}

for (const isStreamed of randomPart([true, false])) {
  if (isStreamed)
    describe.skipIf(skipWithout(missing))(`a follower that reads a stream${skipNote(missing)}`, () => {
      describeFollower({ isStreamed })
    })
  else describe('a follower that gets everything from its leader', () => describeFollower({ isStreamed }))
}

describe('a follower and its leader', () => {
  const directory = boardDirectory()
  const ada = person('ada of leaders')

  test('without its leader a follower serves only public reads; from a leader restored from an older copy it applies nothing', async () => {
    const replicas = Replicas.create({ SHARDS: '1', OPERATORS: operator.id })
    let leader = await replicas.leader()
    const port = Number(new URL(leader.address).port)
    let client = await Client.of(leader)
    const newRoom = { operation: 'room.create', room: 'cellar', visibility: 'private' }
    expect((await client.command(ada, newRoom)).status).toBe(200)
    const posted = await client.post(ada, { room: 'live', text: 'here to stay' })
    const follower = await replicas.follower(leader.address, directory)
    const followerClient = await Client.of(follower)
    await waitUntilCaughtUp(leader, follower)
    const readPrivate = () => followerClient.command(ada, { operation: 'room.get', room: 'cellar' })
    expect((await readPrivate()).status).toBe(200)
    await leader.stop()
    const copy = boardDirectory()
    cpSync(leader.directory, copy, { recursive: true })
    expect(summaryOf(await followerClient.post(ada, { room: 'live', text: 'lost' }))).toBe('429 overloaded')
    await vi.waitFor(async () => expect(summaryOf(await readPrivate())).toBe('429 overloaded'), patience)
    expect((await readPrivate()).text).toContain(leader.address)
    expect(summaryOf(await followerClient.command(ada, ownRooms))).toBe('429 overloaded')
    expect((await followerClient.get(`/api/events/${posted.data.event_id}`)).status).toBe(200)
    expect(await (await fetch(`${follower.address}/healthz`)).text()).toMatch(/^following: \d+ s behind/m)
    client.close()

    leader = await replicas.leader(port)
    client = await Client.of(leader)
    const second = await client.post(ada, { room: 'live', text: 'the second' })
    await waitUntilCaughtUp(leader, follower)
    expect((await readPrivate()).status).toBe(200)
    expect((await followerClient.get(`/api/events/${second.data.event_id}`)).status).toBe(200)
    client.close()
    await leader.stop()

    rmSync(leader.directory, { recursive: true })
    rmSync(`${leader.directory}.mark`)
    cpSync(copy, leader.directory, { recursive: true })
    leader = await replicas.leader(port)
    client = await Client.of(leader)
    await client.post(ada, { room: 'live', text: 'another second' })
    await vi.waitFor(
      async () =>
        expect(await (await fetch(`${follower.address}/healthz`)).text()).toContain(
          'This follower applies no new writes',
        ),
      patience,
    )
    expect((await followerClient.get(`/api/events/${second.data.event_id}`)).status).toBe(200)
    client.close()
    followerClient.close()
    await follower.stop()
    await leader.stop()
  })

  test('a follower that refuses a request names the current leader, not the one at its start', async () => {
    const replicas = Replicas.create({ SHARDS: '1' })
    let leader = await replicas.leader()
    const port = Number(new URL(leader.address).port)
    const client = await Client.of(leader)
    const made = await client.command(ada, { operation: 'receiver.create', data: '{"schema":1}' })
    const { url } = (made.data as { receiver: { url: string } }).receiver
    client.close()
    const followerDirectory = boardDirectory()
    let follower = await replicas.follower(leader.address, followerDirectory)
    await waitUntilCaughtUp(leader, follower)
    const deliver = async () => {
      const answer = await fetch(`${follower.address}${url}`, { method: 'POST', body: 'x' })
      return [answer.status, await answer.json()]
    }
    const refusal = { error: { code: 'forbidden', details: { leader: leader.address } } }
    await follower.stop()
    await leader.stop()
    follower = await replicas.follower(leader.address, followerDirectory)
    const withoutLeader = await deliver()
    expect(withoutLeader).toMatchObject([403, { error: { message: expect.stringContaining('cannot reach now') } }])
    leader = await replicas.leader(port)
    await waitUntilCaughtUp(leader, follower)
    expect(await deliver()).toMatchObject([403, refusal])
    await follower.stop()
    await leader.stop()
  })

  test('after log rotate a follower exits, and follows the next log once it is restarted', async () => {
    const replicas = Replicas.create({ SHARDS: '1', OPERATORS: operator.id })
    let leader = await replicas.leader()
    const port = Number(new URL(leader.address).port)
    const followerDirectory = boardDirectory()
    let follower = await replicas.follower(leader.address, followerDirectory)
    // More than a follower fetches with one request.
    const writer = await Client.of(leader)
    const text = 'x'.repeat(30_000)
    for (let n = 0; n < 200; n++) expect((await writer.post(ada, { room: 'live', text })).status).toBe(200)
    writer.close()
    await waitUntilCaughtUp(leader, follower)
    await leader.stop()
    const args = [program, 'log', 'rotate', '--data', leader.directory]
    expect((await runProgram(leader.directory, process.execPath, args)).code).toBe(0)
    leader = await replicas.leader(port)
    expect((await follower.ended).code).toBe(70)
    expect(follower.lines.join('\n')).toContain('closed its log and began another')
    follower = await replicas.follower(leader.address, followerDirectory)
    const client = await Client.of(leader)
    const posted = await client.post(ada, { room: 'live', text: 'in the next log' })
    await waitUntilCaughtUp(leader, follower)
    const proofOf = async ({ address }: Board) =>
      (await fetch(`${address}/api/log/proof?message=${posted.data.event_id}`)).text()
    expect(await proofOf(follower)).toBe(await proofOf(leader))
    client.close()
    await follower.stop()
    // A new follower also begins with the closed log and exits where the next one begins.
    const newDirectory = boardDirectory()
    follower = await replicas.follower(leader.address, newDirectory)
    expect((await follower.ended).code).toBe(70)
    follower = await replicas.follower(leader.address, newDirectory)
    await waitUntilCaughtUp(leader, follower)
    expect(await proofOf(follower)).toBe(await proofOf(leader))
    await follower.stop()
    await leader.stop()
  })

  test('a follower below DISK_RESERVE_BYTES applies nothing and says so, and continues once there is space', async () => {
    const replicas = Replicas.create({ SHARDS: '1' })
    const leader = await replicas.leader()
    const followerDirectory = boardDirectory()
    const settings = { directory: followerDirectory, command: 'follow' } as const
    const env = replicas.settings(leader.address)
    const full = await startBoard({ ...settings, env: { ...env, DISK_RESERVE_BYTES: String(2 ** 52) } })
    const client = await Client.of(leader)
    const { data } = await client.post(ada, { room: 'live', text: 'for a full disk' })
    client.close()
    await vi.waitFor(() => expect(full.lines.join('\n')).toContain('The disk of this follower is full'), patience)
    const url = `${full.address}/api/events/${data.event_id}`
    expect((await fetch(url)).status).toBe(400)
    await vi.waitFor(
      async () => expect(await (await fetch(`${full.address}/healthz`)).text()).toContain('behind'),
      patience,
    )
    await full.stop()
    const follower = await startBoard({ ...settings, env })
    await waitUntilCaughtUp(leader, follower)
    expect((await fetch(`${follower.address}/api/events/${data.event_id}`)).status).toBe(200)
    await follower.stop()
    await leader.stop()
  })

  test('serve and follow refuse unsuitable settings and directories, with the reason', async () => {
    const env = { FOLLOW: 'http://127.0.0.1:9', REPLICA_KEY_FILE: '/nowhere' }
    const reasonOf = async (options: Parameters<typeof expectStartRefused>[0]) =>
      (await expectStartRefused(options)).output
    expect(await reasonOf({ directory: boardDirectory(), env })).toContain('start it with broadside follow')
    expect(await reasonOf({ directory: boardDirectory(), command: 'follow' })).toContain('needs FOLLOW')
    expect(await reasonOf({ directory: boardDirectory(), command: 'follow', env })).toContain(
      'names /nowhere, but there is no such file',
    )
    const replicas = Replicas.create({ SHARDS: '1' })
    const leader = await replicas.leader()
    expect((await fetch(`${leader.address}/replica/board`)).status).toBe(403)
    const own = { directory: leader.directory, env: {} }
    await leader.stop()
    await expect(replicas.follower(leader.address, own.directory)).rejects.toThrow('contains a board of its own')
    // No board signs in the directory of a follower.
    expect(await reasonOf({ directory })).toContain('the directory of a follower')
  })
})
