/**
 * A journal that was put back: parts of a killed board are cut at a clean end of a frame, as an older copy of the files would be. What
 * the other journals prove stops the start, which names both and changes nothing. The mark beside the directory is taken away.
 */
import { createHash } from 'node:crypto'
import { cpSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { FOOTER } from '../../storage/frame.ts'
import { FrameWindow } from '../../storage/frame-window.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { listSegments, readSegmentHeader, SEGMENT_HEADER_BYTES, segmentPath } from '../../storage/segment.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { boardDirectory, refusedBoard, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'
import { damagesOf } from '../support/fsck-damage.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const killed = boardDirectory()

beforeAll(async () => {
  const board = await startBoard({ directory: killed, env: { SHARDS: '2' } })
  const client = await Client.of(board)
  // One after the other: each frame of a shard is written when the log's frame for the post before is durable.
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

/** Cuts a journal of one segment after so many frames of the ones it has, at a clean end; gives the file. */
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

/** What a start says that refuses and changes nothing. */
async function refusal(directory: string): Promise<string> {
  const before = contents(directory)
  const { code, words } = await refusedBoard({ directory, env: { SHARDS: '2' } })
  expect(code).toBe(1)
  expect(contents(directory)).toEqual(before)
  return words
}

const half = (frames: number) => Math.floor(frames / 2)
const allButTwo = (frames: number) => frames - 2
const bothNamed =
  /the log ends at frame \d+ \(byte \d+ of \S+log\/\d{20}\.log\), but frame \d+ of shard \d \(byte \d+ of \S+shard-0\d\/\d{20}\.log\) was written when frame \d+ of the log was durable/

test.each([
  ['half of it', half],
  ['its last two frames', allButTwo],
])('a log that has lost %s is refused by what the shards know, and fsck says so', async (_what, kept) => {
  const directory = copy()
  rmSync(join(directory, 'log', 'durable'), { force: true })
  cut(directory, 'log', kept)
  expect(await refusal(directory)).toMatch(bothNamed)
  expect(JSON.stringify(damagesOf(directory))).toMatch(bothNamed)
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

test('what is known to be lost can be given up: the next log begins, and later starts find nothing', async () => {
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
  expect(damagesOf(directory)).toEqual([])
})
