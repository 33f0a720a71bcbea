/** What a board publishes for followers, on real NATS servers. */
import { readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { decodeLogFrame } from '../../actors/log/frame.ts'
import { parseHeader } from '../../src/replication/batch.ts'
import { bytesOf, decodeFrame, type FoundFrame } from '../../storage/frame.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { listSegments, readSegmentHeader, seedOf, segmentPath } from '../../storage/segment.ts'
import { walkSegment } from '../../storage/walk.ts'
import { missingNats, missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { fakeClock, missingFakeClock } from '../support/fake-clock.ts'
import { Ledger, load, randomFrom } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { NatsCluster, sealOf } from '../support/nats-cluster.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const missing = missingNats()

async function servers(cluster: NatsCluster) {
  const connection = await cluster.connection()
  return { connection, manager: await jetstreamManager(connection, { checkAPI: false }) }
}

/** A journal as the stream has it: frames from the first one that was published, and the chain up to the last. */
type Carried = { readonly frames: FoundFrame[]; chain: string }

/** Every journal by its id, and the number of messages in the largest batch. `directory`: of the board that sealed them. */
async function published(cluster: NatsCluster, directory: string) {
  const seal = sealOf(directory)
  const { connection, manager } = await servers(cluster)
  const [stream = ''] = await manager.streams.names().next()
  const { last_seq: last } = (await manager.streams.info(stream)).state
  const journals = new Map<string, Carried>()
  let partsMost = 0
  let pieces: Buffer[] = []
  for (let seq = 1; seq <= last; seq++) {
    const message = (await manager.streams.getMessage(stream, { seq }))!
    const header = parseHeader(message.header.get('Broadside'))!
    expect(message.data.length).toBeLessThanOrEqual(900_000)
    // Without the key nothing of a command can be read.
    expect(Buffer.from(message.data).includes('"operation"')).toBe(false)
    const opened = seal.open({ header, bytes: message.data })
    pieces = header.part === 1 ? [opened] : [...pieces, opened]
    expect(pieces.length).toBe(header.part)
    partsMost = Math.max(partsMost, header.parts)
    if (header.part < header.parts) continue
    const payload = Buffer.concat(pieces)
    let at = 0
    for (const [place, { id, first, last: through, bytes, chain }] of header.journals.entries()) {
      const frames = journals.get(id)?.frames ?? []
      journals.set(id, { frames, chain })
      const end = at + bytes
      for (let next = first; next <= through; next++) {
        const frame = decodeFrame(payload, at, end, seedOf(Buffer.from(id, 'hex')))
        if (frame.frameBytes === undefined) throw new Error(`frame ${next} of ${id}: ${frame.fault}`)
        expect(frame.seq).toBe(next)
        if (frames.length > 0) expect(frame.seq).toBe(frames.at(-1)!.seq + 1)
        frames.push(frame)
        // A frame of the log never comes before what it covers.
        const covered = place === header.journals.length - 1 ? decodeLogFrame(frame).ranges : []
        for (const { shard, last: end } of covered) expect(end).toBeLessThanOrEqual(header.journals[shard]!.last)
        at += frame.frameBytes
      }
      expect(at).toBe(end)
    }
    expect(at).toBe(payload.length)
  }
  await connection.close()
  return { journals, partsMost }
}

/** The frames of a journal on disk, by its id. */
function onDisk(directory: string) {
  const frames: Buffer[] = []
  let id = ''
  let chain = ''
  for (const first of listSegments(machineDisk, directory, 'log')) {
    const file = machineDisk.openFile(segmentPath(directory, first), 'read')
    const header = readSegmentHeader(file)!
    id = header.journalId.toString('hex')
    const walk = walkSegment(file, header, file.size())
    const { live } = walk
    chain = walk.chain.toString('hex')
    const bytes = readFileSync(file.path)
    for (let seq = first; seq < live.nextSeq; seq++)
      frames.push(bytes.subarray(live.offsetOf(seq), live.offsetOf(seq + 1)))
    file.close()
  }
  return { id, frames, chain }
}

/** The board knows where its stream ends. */
async function begun(board: Board): Promise<void> {
  await vi.waitFor(() => expect(board.lines.join('\n')).toContain('replication.begun'), patience)
}

const health = async (board: Board) => (await fetch(`${board.address}/healthz`)).text()

describe.skipIf(skipWithout(missing))(`a board that publishes its journals${skipNote(missing)}`, () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await NatsCluster.start(boardDirectory())
  })
  afterAll(() => cluster.stop())

  test('every frame is in the stream once, as it is on disk, over killed servers and a killed board', async () => {
    const directory = boardDirectory()
    const env = { ...cluster.env, SHARDS: '2', SEGMENT_BYTES: '65536' }
    let board = await startBoard({ directory, env })
    let client = await Client.of(board)
    const key = await logKeyOf(client)
    const ledger = new Ledger(new Heads(key), key)
    const write = (posts: number, seed: number) =>
      load({ client, ledger, random: randomFrom(seed), posts, inFlight: 16, rooms: ['a', 'b'], textBytesMax: 8_000 })
    await begun(board)
    await write(60, 1)
    // Without a majority nothing is acknowledged, and the board continues: it accumulates more than one message can hold.
    await Promise.all(['n1', 'n2'].map((name) => cluster.kill(name)))
    await write(300, 2)
    const outOfReach = 'replication: The stream is out of reach'
    await vi.waitFor(async () => expect(await health(board)).toContain(outOfReach), patience)
    expect(await health(board)).toMatch(
      /at least two of the three|The NATS server n\d did not report|The servers of the stream/i,
    )
    const problems = board.lines.flatMap(
      (line) => /"replication.interrupted","problem":"([^"]+)"/.exec(line)?.[1] ?? [],
    )
    for (const problem of problems) expect(problem).toMatch(/^[A-Z].*[.?]$/)
    await Promise.all(['n1', 'n2'].map((name) => cluster.startServer(name)))
    client.close()
    await board.kill()
    board = await startBoard({ directory, env })
    client = await Client.of(board)
    await write(30, 3)
    const parts = ['shard-00', 'shard-01', 'log']
    const segmentsOf = (part: string) => listSegments(machineDisk, join(directory, part), 'log').length
    // How many posts share a frame of the log depends on the machine.
    for (let seed = 4; parts.some((part) => segmentsOf(part) === 1); seed++) await write(20, seed)
    client.close()
    const isCaughtUp = async () => {
      const { journals } = await published(cluster, directory)
      for (const part of parts) {
        const { id, frames } = onDisk(join(directory, part))
        expect(journals.get(id)?.frames.at(-1)?.seq, part).toBe(frames.length)
      }
    }
    await vi.waitFor(isCaughtUp, { ...patience, interval: 1_000 })
    await board.stop()
    const { journals, partsMost } = await published(cluster, directory)
    expect(partsMost).toBeGreaterThan(1)
    for (const part of parts) {
      const { id, frames, chain } = onDisk(join(directory, part))
      const { frames: found, chain: told } = journals.get(id)!
      expect(told, part).toBe(chain)
      const firstSeq = found[0]!.seq
      expect(found.length + firstSeq - 1, part).toBe(frames.length)
      expect(segmentsOf(part), part).toBeGreaterThan(1)
      for (const frame of found) expect(bytesOf(frame).equals(frames[frame.seq - 1]!), part).toBe(true)
    }
  })

  test('it stops publishing, and says why, when somebody else writes to its stream or recreates it', async () => {
    const { connection, manager } = await servers(cluster)
    const directory = boardDirectory()
    const env = { ...cluster.env, SERVICE_ID: 'other.board', COMPACT_SECONDS: '1' }
    let board = await startBoard({ directory, env })
    const client = await Client.of(board)
    await begun(board)
    const first = client.sign(person('one'), { operation: 'post', room: 'a', text: 'first' })
    await client.send(first.body)
    const name = 'broadside-other_board'
    const subject = 'broadside.other_board.frames'
    const newest = async () => {
      const message = await manager.streams.getMessage(name, {
        last_by_subj: subject,
      })
      return parseHeader(message!.header.get('Broadside'))!
    }
    await vi.waitFor(newest, patience)
    // Its text leaves the disk: the segment is sealed for that, and followers are told though no frame follows yet.
    const taken = { operation: 'event.redact', event_id: first.eventId, reason: 'a slip' }
    expect((await client.command(person('one'), taken)).status).toBe(200)
    const isToldSealed = async () => {
      const { last, rolls } = (await newest()).journals[0]!
      expect(rolls).toEqual([last + 1])
    }
    await vi.waitFor(isToldSealed, patience)
    // After an unexpected message of its own it continues from there.
    const own = await manager.streams.getMessage(name, { last_by_subj: subject })
    await connection.request(subject, own!.data, { headers: own!.header, timeout: 5_000 })
    const { last } = (await newest()).journals[0]!
    await client.send(client.sign(person('one'), { operation: 'post', room: 'a', text: 'between' }).body)
    await vi.waitFor(async () => expect((await newest()).journals[0]!.last).toBeGreaterThan(last), patience)
    await vi.waitFor(async () => expect(await health(board)).toBe('ok\n'), patience)
    await connection.request(subject, 'of another')
    await client.send(client.sign(person('one'), { operation: 'post', room: 'a', text: 'second' }).body)
    await vi.waitFor(async () => expect(await health(board)).toContain('replication: Another board writes'), patience)
    client.close()
    await board.stop()
    await manager.streams.delete(name)
    board = await startBoard({ directory, env })
    await vi.waitFor(
      async () => expect(await health(board)).toContain('replication: The stream was recreated'),
      patience,
    )
    await board.stop()
    await connection.close()
  })
})

describe.skipIf(skipWithout(missing))(`what stops nothing yet${skipNote(missing)}`, () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await NatsCluster.start(boardDirectory())
  })
  afterAll(() => cluster.stop())

  test('a server that stays away is reported until it is back', async () => {
    const board = await startBoard({ directory: boardDirectory(), env: cluster.env })
    await begun(board)
    await cluster.kill('n3')
    const sentence = 'replication: The NATS server n3 is away or lacks messages: see its log. If another one fails too:'
    await vi.waitFor(async () => expect(await health(board)).toContain(sentence), patience)
    expect(await health(board)).toMatch(/^ok\n/)
    await cluster.startServer('n3')
    await vi.waitFor(async () => expect(await health(board)).toBe('ok\n'), patience)
    await vi.waitFor(() => expect(board.lines.join('\n')).toContain('"replication.whole"'), patience)
    await board.stop()
  })

  test.skipIf(skipWithout(missingFakeClock))(
    `a clock that differs from that of the servers${skipNote(missingFakeClock)}`,
    async () => {
      const clockFile = join(boardDirectory(), 'clock')
      writeFileSync(clockFile, '+90\n')
      const board = await startBoard({
        directory: boardDirectory(),
        env: { ...cluster.env, ...fakeClock(clockFile) },
      })
      const sentence = 'replication: The clock of this machine is more than a minute ahead of that of the NATS server n'
      await vi.waitFor(async () => expect(await health(board)).toContain(sentence), patience)
      writeFileSync(clockFile, '+0\n')
      await vi.waitFor(async () => expect(await health(board)).toBe('ok\n'), patience)
      await board.stop()
    },
  )
})

describe.skipIf(skipWithout(missing))(`servers that a board refuses${skipNote(missing)}`, () => {
  test('one of release 2.9', async () => {
    const cluster = await NatsCluster.start(boardDirectory(), { release: 'bookworm', isSingle: true })
    const board = await startBoard({ directory: boardDirectory(), env: cluster.env })
    const sentence = 'replication: The NATS server n1 is 2.9.10. A board needs at least 2.10.23.'
    await vi.waitFor(async () => expect(await health(board)).toContain(sentence), patience)
    await board.stop()
    await cluster.stop()
  })

  test('one alone, which cannot keep three copies', async () => {
    const cluster = await NatsCluster.start(boardDirectory(), { isSingle: true })
    const board = await startBoard({ directory: boardDirectory(), env: cluster.env })
    const sentence = 'replication: The NATS servers did not create a stream with 3 copies: '
    await vi.waitFor(async () => expect(await health(board)).toContain(sentence), patience)
    await board.stop()
    await cluster.stop()
  })

  test('one of three that does not sync every message, until it does', async () => {
    const cluster = await NatsCluster.start(boardDirectory(), { unsynced: 'n3' })
    const board = await startBoard({ directory: boardDirectory(), env: cluster.env })
    const sentence = 'replication: The NATS server n3 does not sync every message. Set sync_interval: always'
    await vi.waitFor(async () => expect(await health(board)).toContain(sentence), patience)
    await cluster.kill('n3')
    await cluster.startServer('n3', 'always')
    await vi.waitFor(async () => expect(await health(board)).toBe('ok\n'), patience)
    await board.stop()
    await cluster.stop()
  })

  test('one that was away when the board began, though nothing is written', async () => {
    const cluster = await NatsCluster.start(boardDirectory(), { unsynced: 'n3' })
    await cluster.kill('n3')
    await cluster.startServer('n3', 'always')
    const directory = boardDirectory()
    const first = await startBoard({ directory, env: cluster.env })
    await vi.waitFor(async () => expect(await health(first)).toBe('ok\n'), patience)
    await first.stop()
    await cluster.kill('n3')
    const board = await startBoard({ directory, env: cluster.env })
    await vi.waitFor(() => expect(board.lines.join('\n')).toContain('"replication.begun"'), patience)
    await cluster.startServer('n3')
    const sentence = 'replication: The NATS server n3 does not sync every message.'
    await vi.waitFor(async () => expect(await health(board)).toContain(sentence), patience)
    await board.stop()
    await cluster.stop()
  })
})

const withoutTools = missing ?? missingProgram('strace')

test.skipIf(skipWithout(withoutTools))(
  `without REPLICATE nothing of it is loaded${skipNote(withoutTools)}`,
  async () => {
    const directory = boardDirectory()
    const opened = async (env: Readonly<Record<string, string>>): Promise<string> => {
      const output = join(directory, 'opened')
      const under = ['strace', '-f', '--seccomp-bpf', '-qq', '-e', 'trace=openat', '-o', output]
      const board = await startBoard({ directory: join(directory, 'board'), env, under })
      const client = await Client.of(board)
      await client.send(client.sign(person('one'), { operation: 'post', room: 'a', text: 'a text' }).body)
      client.close()
      await board.stop()
      return readFile(output, 'utf8')
    }
    const key = join(directory, 'none.nk')
    const env = { REPLICATE: 'nats://127.0.0.1:9', REPLICATE_KEY_FILE: key, REPLICATE_SYSTEM_KEY_FILE: key }
    const ofIt = /@nats-io|replication/
    expect(await opened({})).not.toMatch(ofIt)
    expect(await opened(env)).toMatch(ofIt)
  },
)
