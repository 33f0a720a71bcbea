/** The full check of a stopped board: it names what differs and where, repairs what is derived when asked, and nothing else. */
import { cpSync, readdirSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { flipByte } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const made = boardDirectory()
const posts = 300

async function fsck(directory: string, ...options: string[]): Promise<{ code: number; out: string }> {
  const terminal = capturedTerminal()
  const code = await main(['fsck', '--data', directory, ...options], terminal)
  return { code, out: terminal.said.out }
}

function copy(): string {
  const directory = boardDirectory()
  cpSync(made, directory, { recursive: true })
  return directory
}

/** Every file of a board but its lock, with its bytes. */
function filesOf(directory: string): Map<string, string> {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => name !== 'lock' && statSync(join(directory, name)).isFile())
  return new Map(files.sort().map((name) => [name, readFileSync(join(directory, name), 'hex')]))
}

const named = (directory: string, part: string, end: string): string[] =>
  readdirSync(join(directory, part))
    .filter((name) => name.endsWith(end))
    .map((name) => join(part, name))

beforeAll(async () => {
  const env = { SEGMENT_BYTES: '65536' }
  const board = await startBoard({ directory: made, env })
  const client = await Client.of(board)
  const ada = person('ada')
  for (let at = 0; at < posts; at += 20) {
    const texts = Array.from({ length: 20 }, (_, n) => `post ${at + n} ${'.'.repeat(300)}`)
    const answers = await Promise.all(texts.map((text) => client.post(ada, { room: 'many', text })))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  }
  client.close()
  // A log that was rotated has two files of node hashes.
  await board.stop()
  expect(await main(['log', 'rotate', '--data', made], capturedTerminal())).toBe(0)
  await (await startBoard({ directory: made, env, port: board.port })).stop()
  expect((await fsck(made)).out).toContain('Everything agrees.')
})

test('what is derived and differs is named by its place, changed only when that is asked, and is then what it was', async () => {
  const directory = copy()
  const right = filesOf(directory)
  const [firstIndex, secondIndex] = named(directory, 'shard-00', '.idx') as [string, string]
  const [snapshot] = named(directory, 'shard-00/snapshots', '.snapshot') as [string]
  const [feedSnapshot] = named(directory, 'log/feed-snapshots', '.snapshot') as [string]
  const secondNodes = named(directory, 'log', '.bin').find((name) => name.includes('nodes-'))!
  // Hash 511 is the first behind the 511 of a complete chunk of 256 leaves: leaf 256.
  flipByte(join(directory, 'log/nodes.bin'), 511 * 32 + 5)
  rmSync(join(directory, secondNodes))
  flipByte(join(directory, firstIndex), 100)
  rmSync(join(directory, secondIndex))
  flipByte(join(directory, snapshot), 40)
  truncateSync(join(directory, feedSnapshot), 20)
  const wrong = filesOf(directory)

  const said = await fsck(directory)
  expect(said.code).toBe(0)
  const places = [
    `log/nodes.bin at byte ${511 * 32}: node 256 of level 0: expected `,
    `${secondNodes}: missing`,
    `${firstIndex} at byte 100: index: expected the index of the frames, found other bytes`,
    `${secondIndex} at byte 0: index: expected the index of the frames, found no file`,
    `${snapshot}: a snapshot that no start takes`,
    `${feedSnapshot}: a snapshot that no start takes`,
  ]
  for (const place of places) expect(said.out).toContain(`derived  ${directory}/${place}`)
  expect(said.out.match(/^derived/gm)).toHaveLength(places.length)
  expect(said.out).toContain('it is made again when it is needed, or now with --repair.')
  expect(filesOf(directory)).toEqual(wrong)

  const repaired = await fsck(directory, '--repair')
  expect(repaired.code).toBe(0)
  expect(repaired.out.match(/^repaired /gm)).toHaveLength(places.length)
  expect(repaired.out).toContain('what differs is derived and was repaired.')
  const expected = new Map([...right].filter(([name]) => name !== snapshot && name !== feedSnapshot))
  expect(filesOf(directory)).toEqual(expected)
  expect((await fsck(directory, '--repair')).out).toContain('Everything agrees.')
  const board = await startBoard({ directory })
  expect(board.lines.filter((line) => line.includes('log.tree'))).toEqual([])
  await board.stop()
})

test('beside damage nothing is repaired, every byte stays as it was found; one changed byte is one damage and all else is read again', async () => {
  const leavesIn = (out: string): number => Number(/([0-9,]+) leaves read again/.exec(out)![1]!.replaceAll(',', ''))
  const leaves = leavesIn((await fsck(made)).out)
  for (const part of ['shard-00', 'log']) {
    const directory = copy()
    const [segment] = named(directory, part, '.log') as [string]
    flipByte(join(directory, segment), 5_000)
    flipByte(join(directory, 'log/nodes.bin'), 64)
    rmSync(join(directory, named(directory, 'shard-00', '.idx')[0]!))
    const wrong = filesOf(directory)
    const { code, out } = await fsck(directory, '--repair')
    expect(code).toBe(3)
    expect(out).toMatch(new RegExp(`^damage   ${directory}/${segment} at byte [0-9]+: `, 'm'))
    expect(out.match(/^damage/gm)).toHaveLength(1)
    expect(out).toContain('1 damage: this board no longer holds all it promised')
    expect(out).toContain('restore the newest backup of the whole data directory.')
    // Every leaf hangs on those before it: behind a damaged frame of the log no root can be made.
    if (part === 'log') expect(leavesIn(out)).toBeGreaterThan(0)
    else expect(leavesIn(out)).toBe(leaves)
    expect(out).not.toContain('repaired')
    expect(filesOf(directory)).toEqual(wrong)
  }
})

test('a snapshot that knows more than its journal is damage, and stays', async () => {
  const directory = copy()
  const [segment] = named(directory, 'shard-00', '.log').slice(-1) as [string]
  const [snapshot] = named(directory, 'shard-00/snapshots', '.snapshot') as [string]
  truncateSync(join(directory, segment), 64)
  const wrong = filesOf(directory)
  const { code, out } = await fsck(directory, '--repair')
  expect(code).toBe(3)
  expect(out).toContain(`${snapshot}: it holds frame `)
  expect(filesOf(directory)).toEqual(wrong)
})
