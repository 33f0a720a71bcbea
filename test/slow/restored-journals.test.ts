/**
 * A restored journal: parts of a killed board are cut at a clean end of a frame, as an older copy of the files would be. What the other
 * journals prove stops the start, which names both and changes nothing. The mark beside the directory is removed.
 */
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import { main } from '../../src/cli/main.ts'
import { FOOTER } from '../../storage/frame.ts'
import { FrameWindow } from '../../storage/frame-window.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { listSegments, readSegmentHeader, SEGMENT_HEADER_BYTES, segmentPath } from '../../storage/segment.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'
import { findDamage } from '../support/find-damage.ts'
import { randomPart } from '../support/random-part.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const killed = boardDirectory()

beforeAll(async () => {
  const board = await startBoard({ directory: killed, env: { SHARDS: '2' } })
  const client = await Client.of(board)
  // One after the other: each frame of a shard is written when the log's frame for the previous post is durable.
  for (let n = 0; n < 24; n++)
    expect((await client.post(person('ada'), { room: `room-${n % 5}`, text: `${n}` })).status).toBe(200)
  await board.kill()
  client.close()
  rmSync(`${killed}.mark`, { force: true })
})

function copy(): string {
  const directory = boardDirectory()
  cpSync(killed, directory, { recursive: true })
  return directory
}

/** Cuts a journal of one segment to a number of frames computed from its count, at a clean end; returns the file. */
function cut(directory: string, part: string, kept: (frames: number) => number): string {
  const journal = join(directory, part)
  const path = segmentPath(journal, listSegments(machineDisk, journal, 'log').at(-1)!)
  const file = machineDisk.openFile(path, 'read')
  const ends = [SEGMENT_HEADER_BYTES]
  const window = new FrameWindow(file, { limit: file.size(), seed: readSegmentHeader(file)!.seed })
  for (;;) {
    const frame = window.at(ends.at(-1)!)
    if (frame.frameBytes === undefined || frame.type === FOOTER) break
    ends.push(ends.at(-1)! + frame.frameBytes)
  }
  file.close()
  truncateSync(path, ends[kept(ends.length - 1)])
  return path
}

const contents = (directory: string) =>
  [...filesUnder(directory)]
    .filter(([name]) => name.endsWith('.log'))
    .map(([name, bytes]) => [name, createHash('sha256').update(bytes).digest('hex')])

/** The message of a start that refuses and changes nothing. */
async function refusal(directory: string): Promise<string> {
  const before = contents(directory)
  const { code, output } = await expectStartRefused({ directory, env: { SHARDS: '2' } })
  expect(code).toBe(1)
  expect(contents(directory)).toEqual(before)
  return output
}

const half = (frames: number) => Math.floor(frames / 2)
const allButTwo = (frames: number) => frames - 2
const bothNamed =
  /the log ends at frame \d+ \(byte \d+ of \S+log\/\d{20}\.log\), but frame \d+ of shard \d \(byte \d+ of \S+shard-0\d\/\d{20}\.log\) was written when frame \d+ of the log was durable/

test.each([
  ['half of it', half],
  ['its last two frames', allButTwo],
])('a log that has lost %s is refused because the shards know more, and fsck says so', async (_what, kept) => {
  const directory = copy()
  rmSync(join(directory, 'log', 'durable'), { force: true })
  cut(directory, 'log', kept)
  expect(await refusal(directory)).toMatch(bothNamed)
  expect(JSON.stringify(findDamage(directory))).toMatch(bothNamed)
})

test('journals that are all cut to half of their frames are refused', async () => {
  const directory = copy()
  for (const part of ['log', 'shard-00', 'shard-01']) {
    rmSync(join(directory, part, 'durable'), { force: true })
    cut(directory, part, half)
  }
  expect(await refusal(directory)).toMatch(
    /though the signed log \(frame \d+, byte \d+ of \S+\) holds frame|was durable/,
  )
})

test('known losses can be accepted: the next log begins, and later starts find nothing', async () => {
  const directory = copy()
  rmSync(join(directory, 'log', 'durable'), { force: true })
  cut(directory, 'log', half)
  const terminal = capturedTerminal()
  expect([await main(['restored', '--data', directory], terminal), terminal.said.err]).toEqual([
    1,
    expect.stringMatching(bothNamed),
  ])
  const lost = capturedTerminal()
  expect([await main(['restored', '--lost', '--yes', '--data', directory], lost), lost.said.err]).toEqual([0, ''])
  for (let n = 0; n < 2; n++) {
    const board = await startBoard({ directory, env: { SHARDS: '2' } })
    const client = await Client.of(board)
    expect((await client.post(person('ada'), { room: 'room-1', text: `later ${n}` })).status).toBe(200)
    client.close()
    await board.stop()
  }
  expect(findDamage(directory)).toEqual([])
})

/** The message of a start that refuses; the log is unchanged. */
async function refusedAsForeign(directory: string, shards: string): Promise<string> {
  const logOf = () => contents(directory).filter(([name]) => String(name).startsWith('log/'))
  const before = logOf()
  const { code, output: words } = await expectStartRefused({ directory, env: { SHARDS: shards } })
  expect(code).toBe(1)
  expect(logOf().map(([name]) => name)).toEqual(before.map(([name]) => name))
  return words
}

test('the journal of another shard is refused, and the board starts with its own restored', async () => {
  for (const [shard, other] of [
    ['shard-00', 'shard-01'],
    ['shard-01', 'shard-00'],
  ] as const) {
    const directory = copy()
    rmSync(join(directory, shard), { recursive: true })
    cpSync(join(killed, other), join(directory, shard), { recursive: true })
    expect(await refusedAsForeign(directory, '2')).toMatch(
      /The journal of shard \d is not the one that the signed log was made from: frame \d+ of the log has different entries for its frames \d+ to \d+|is damaged at byte/,
    )
    rmSync(join(directory, shard), { recursive: true })
    cpSync(join(killed, shard), join(directory, shard), { recursive: true })
    const board = await startBoard({ directory, env: { SHARDS: '2' } })
    await board.stop()
    expect(findDamage(directory)).toEqual([])
  }
})

/** A board of one shard with this many posts. */
async function boardOf(posts: number): Promise<string> {
  const directory = boardDirectory()
  const board = await startBoard({ directory })
  const client = await Client.of(board)
  for (let n = 0; n < posts; n++) await client.post(person('ada'), { text: `${n} of ${posts}` })
  client.close()
  await board.stop()
  return directory
}

test('with one shard, the journal of another board or of a diverged copy is refused', async () => {
  const one = await boardOf(3)
  const foreign = await boardOf(9)
  const fork = boardDirectory()
  cpSync(one, fork, { recursive: true })
  for (const [directory, words] of [
    [one, 'here'],
    [fork, 'there, and then there again'],
  ] as const) {
    const board = await startBoard({ directory })
    const client = await Client.of(board)
    for (const word of words.split(' ')) await client.post(person('bob'), { text: word })
    client.close()
    await board.stop()
  }
  for (const other of [foreign, fork]) {
    const directory = boardDirectory()
    cpSync(one, directory, { recursive: true })
    rmSync(join(directory, 'shard-00'), { recursive: true })
    cpSync(join(other, 'shard-00'), join(directory, 'shard-00'), { recursive: true })
    expect(await refusedAsForeign(directory, '1')).toContain('is not the one that the signed log was made from')
  }
})

test('with several shards, a diverged copy is refused, even if private records follow the difference', async () => {
  const env = { SHARDS: '2' }
  const inShard = (shard: number, name: string): string =>
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `${name}-${n}`).find((room) => shardOf(room, 2) === shard)!
  const [open, quiet, last] = [inShard(0, 'open'), inShard(0, 'quiet'), inShard(1, 'last')]
  const [one, fork] = [boardDirectory(), boardDirectory()]
  const ada = person('ada')
  const write = async (directory: string, fields: readonly Readonly<Record<string, unknown>>[]): Promise<void> => {
    const board = await startBoard({ directory, env })
    const client = await Client.of(board)
    for (const each of fields) expect((await client.command(ada, { operation: 'post', ...each })).status).toBe(200)
    client.close()
    await board.stop()
  }
  await write(one, [
    { operation: 'room.create', room: quiet, visibility: 'private' },
    { room: open, text: 'in both' },
  ])
  cpSync(one, fork, { recursive: true })
  await write(one, [
    { room: open, text: 'here' },
    { room: quiet, text: 'here too' },
    { room: last, text: 'in the other shard' },
  ])
  await write(fork, [
    { room: open, text: 'there' },
    { room: quiet, text: 'there too' },
    { room: quiet, text: 'and again' },
  ])
  rmSync(join(one, 'shard-00'), { recursive: true })
  cpSync(join(fork, 'shard-00'), join(one, 'shard-00'), { recursive: true })
  expect(await refusedAsForeign(one, '2')).toContain('is not the one that the signed log was made from')
})

test.each(randomPart(['1', '2']))(
  'a missing journal is refused before another begins in its place, on a board of %s shards',
  async (shards) => {
    const made = shards === '2' ? killed : await boardOf(1)
    for (const isEmpty of [false, true]) {
      const directory = boardDirectory()
      cpSync(made, directory, { recursive: true })
      rmSync(join(directory, 'shard-00'), { recursive: true })
      if (isEmpty) mkdirSync(join(directory, 'shard-00'))
      const before = contents(directory)
      const { code, output: words } = await expectStartRefused({ directory, env: { SHARDS: shards } })
      expect(code).toBe(1)
      expect(words).toMatch(
        /shard-00 has no journal, but the signed log \(frame \d+, byte \d+ of \S+\) covers frame \d+/,
      )
      expect(contents(directory)).toEqual(before)
    }
  },
)
