/** An independent reader, written in Python from storage/README.md alone, opens a board, recomputes it, and finds changes. */
import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { beforeAll, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { State } from '../../actors/state.ts'
import { readFixture, type Said, story, unpackBoard } from '../fixtures/fixture.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { setups, World } from '../support/operation-setups.ts'
import { program } from '../support/program.ts'
import { flipByte, scratchDirectory } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Report = {
  readonly journals: Readonly<
    Record<string, { frames: number; segments: number; sealed: number; indexes: number; stubs: number; end: string }>
  >
  readonly records: Readonly<Record<string, number>>
  readonly extensions: Readonly<Record<string, number>>
  readonly events: readonly { id: string; room: string; text?: string; public: boolean }[]
  readonly attachments: number
  readonly without_signed_bytes: number
  readonly logs: readonly { origin: string; size: number; root: string; heads: number; signed: number }[]
  readonly signatures: number | string
  readonly problems: readonly string[]
}

const page = readFileSync(join(import.meta.dirname, '../../storage/README.md'), 'utf8')
const told = story()
const missing =
  missingProgram('python3') ??
  (spawnSync('python3', ['-c', 'import cryptography']).status === 0
    ? undefined
    : 'python3-cryptography is missing; install it as root with: sh test/peers/install.sh')
const skipped = skipWithout(missing)
const note = skipNote(missing)

function read(directory: string, options: readonly string[] = [], python: readonly string[] = []): Report {
  const args = [...python, join(import.meta.dirname, 'reader.py'), directory, ...options]
  const { status, stdout, stderr } = spawnSync('python3', args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  if (stdout === '') throw new Error(stderr)
  const report = JSON.parse(stdout) as Report
  expect(status).toBe(report.problems.length === 0 ? 0 : 1)
  return report
}

let kept: string

beforeAll(() => {
  kept = boardDirectory()
  unpackBoard(kept)
})

test.skipIf(skipped)(`it reads a resharded board, and finds the same records and logs${note}`, () => {
  const directory = boardDirectory()
  cpSync(kept, directory, { recursive: true })
  const before = read(kept, ['--vkey', told.log.vkey])
  for (const shards of ['5', '3']) {
    const args = [program, 'reshard', '--shards', shards, '--data', directory]
    expect(spawnSync(process.execPath, args, { encoding: 'utf8' }).stderr).toBe('')
    const after = read(directory, ['--vkey', told.log.vkey])
    expect(after.problems).toEqual([])
    expect(Object.keys(after.journals)).toHaveLength(Number(shards) + 1)
    expect(total(after.records)).toBe(total(before.records))
    expect(sorted(after.events)).toEqual(sorted(before.events))
    expect(after.attachments).toBe(before.attachments)
    expect(after.without_signed_bytes).toBe(before.without_signed_bytes)
    const known = ({ logs }: Report) => logs.map(({ origin, size, root }) => ({ origin, size, root }))
    expect(known(after)).toEqual(known(before))
  }
})

const total = (records: Report['records']) => Object.values(records).reduce((sum, each) => sum + each, 0)
const sorted = (events: Report['events']) => events.toSorted((a, b) => (a.id < b.id ? -1 : 1))

test.skipIf(skipped)(`it reads the fixture board, and counts what fsck counted${note}`, () => {
  const report = read(kept, ['--vkey', told.log.vkey])
  expect(report.problems).toEqual([])
  const { fsck } = JSON.parse(readFixture('said.json')) as { fsck: Said }
  const [, frames, , leaves] = /([\d,]+) frames, ([\d,]+) bytes, ([\d,]+) leaves/.exec(fsck.out)!
  expect(Object.values(report.journals).reduce((sum, each) => sum + each.frames, 0)).toBe(Number(frames))
  expect(report.logs.reduce((sum, { size }) => sum + size, 0)).toBe(Number(leaves))
  expect(report.logs.map(({ origin }) => origin)).toEqual(told.log.origins)
  expect(report.logs.map(({ heads }) => heads)).toEqual(report.logs.map(({ signed }) => signed))
  // Sealed segments and their indexes, what compaction left, preallocated room, and the torn write.
  expect(report.journals['shard-00']).toMatchObject({ sealed: 3, indexes: 3, stubs: 1, end: 'zeros' })
  expect(report.journals['shard-01']).toMatchObject({ sealed: 3, indexes: 3, stubs: 1, end: 'a torn write' })
  expect(report.attachments).toBe(2)
  expect(report.without_signed_bytes).toBe(2)
})

test.skipIf(skipped)(`it finds every remaining text, of private rooms too, and none that was removed${note}`, () => {
  const { events } = read(kept)
  const texts = new Map(events.map(({ id, text }) => [id, text]))
  const { post, cellar, compacted, pending, load } = told
  for (const { id, text } of [post, cellar, pending, ...load.acknowledged]) expect(texts.get(id)).toBe(text)
  expect(texts.has(compacted.id)).toBe(true)
  expect(texts.get(compacted.id)).toBeUndefined()
})

test.skipIf(skipped)(
  `it reads a new board on which every operation was used, and the page names every act${note}`,
  async () => {
    const operator = person('the operator')
    const env = { OPERATORS: operator.id, SHARDS: '2', BROADSIDE_LOOPBACK: '1' }
    const board = await startBoard({ directory: boardDirectory(), env })
    const client = await Client.of(board)
    const world = new World(client, operator)
    await world.post()
    for (const operation of operations) {
      const { status, text } = await world.send(operation, await setups[operation.name]!(world))
      expect([operation.name, status, status === 200 ? '' : text]).toEqual([operation.name, 200, ''])
    }
    // The signed bytes contain a secret, so they are not stored whole.
    const secret = JSON.stringify({ schema: 1, hmac_secret: 'a secret of sixteen bytes or more' })
    await world.run(world.someone(), { operation: 'receiver.create', data: secret })
    // Acts of the board itself have no signature.
    const flooder = world.someone()
    const flood = await world.post(flooder)
    const suspension = { operation: 'identity.suspend', target: flooder.id, reason: 'x' }
    await world.run(operator, { ...suspension, data: '{"schema":1,"hide_posts":true}' })
    await expect
      .poll(async () => (await client.get(`/api/events/${flood}`)).data.event?.hidden, { timeout: 60_000 })
      .toBe(true)
    const exported = (await client.get('/v1/export')).text.trimEnd().split('\n')
    const { vkey } = (await client.get('/api/log/checkpoint')).data as { vkey?: string }
    client.close()
    await board.stop()
    const report = read(board.directory, ['--vkey', vkey!])
    expect(report.problems).toEqual([])
    expect(report.signatures).toBeGreaterThan(200)
    expect(report.without_signed_bytes).toBe(1)
    // `undefined`, the one extension that occurs.
    expect(Object.keys(report.extensions)).toEqual(['0:00'])
    const lines = exported.map((line) => JSON.parse(line) as { type: string; event_id: string; text?: string })
    const events = lines.filter(({ type }) => type === 'event')
    const texts = new Map(report.events.map(({ id, text }) => [id, text]))
    expect(events.map(({ event_id }) => texts.get(event_id))).toEqual(events.map(({ text }) => text))

    expect(report.records['author.hide']).toBe(1)
    const acts = Object.values(new State()).flatMap((part: { acts?: object }) => Object.keys(part.acts ?? {}))
    expect(acts.length).toBeGreaterThan(80)
    const records = ['room created', 'event', 'handle claimed']
    const named = [...acts, ...Object.keys(report.records).filter((each) => !records.includes(each))]
    expect([...new Set(named)].filter((op) => !page.includes(`\`${op}\``))).toEqual([])
  },
)

test.skipIf(skipped)(
  `without python3-cryptography it says that signatures were not checked, and checks the rest${note}`,
  () => {
    const report = read(kept, [], ['-S'])
    expect([report.signatures, report.problems]).toEqual(['not checked: python3-cryptography is missing', []])
  },
)

/** The first file of a folder with this ending. */
function first(directory: string, folder: string, ending: string): string {
  return join(
    directory,
    folder,
    readdirSync(join(directory, folder))
      .sort()
      .find((name) => name.endsWith(ending))!,
  )
}

/** Changes a text in a frame of the newest segment, and recomputes its CRC: only hashes reveal the change. */
function rewrite(path: string, from: string, to: string): void {
  const bytes = readFileSync(path)
  const seed = crc32(bytes.subarray(4, 20))
  for (let at = 64; bytes[at] === 0xff; at += 28 + bytes.readUInt32LE(at + 4)) {
    const end = at + 28 + bytes.readUInt32LE(at + 4)
    const found = bytes.subarray(at, end).indexOf(from)
    if (found < 0) continue
    bytes.write(to, at + found)
    bytes.writeUInt32LE(crc32(bytes.subarray(at + 28, end), crc32(bytes.subarray(at, at + 24), seed)), at + 24)
    writeFileSync(path, bytes)
    return
  }
  throw new Error(`${path} has no ${from}`)
}

function newest(directory: string, folder: string): string {
  const names = readdirSync(join(directory, folder)).filter((name) => name.endsWith('.log'))
  return join(directory, folder, names.sort().at(-1)!)
}

test.skipIf(skipped).each<readonly [what: string, change: (directory: string) => void, words: RegExp]>([
  ['a fact of the board', (at) => rewriteText(join(at, 'board.json'), '"shards": 2', '"shards": 1'), /its check/],
  ['a header', (at) => flipByte(first(at, 'shard-00', '.log'), 30), /no header/],
  ['a frame', (at) => flipByte(first(at, 'shard-00', '.log'), 400), /is not sealed/],
  ['an index', (at) => flipByte(first(at, 'shard-01', '.idx'), 300), /is no index/],
  ['two indexes exchanged', swapIndexes, /differ from the segment/],
  ['a segment removed', (at) => rmSync(first(at, 'shard-01', '.log')), /does not begin with frame 1/],
  ['a frame of the log', (at) => flipByte(first(at, 'log', '.log'), 500), /is not sealed/],
  ['a node hash', (at) => flipByte(join(at, 'log/nodes.bin'), 70), /a node hash differs/],
  ['an attachment', (at) => flipByte(first(at, 'blobs/workshop', ''), 5), /other bytes|not the id/],
  [
    'a signed text',
    (at) => rewrite(newest(at, 'shard-00'), '"text":"load', '"text":"lord'),
    /not the id of the signed command/,
  ],
  ['an entry of the log', (at) => rewrite(newest(at, 'log'), 'kind post', 'kind poet'), /its root is not that/],
  ['the root in a checkpoint', (at) => rewrite(newest(at, 'log'), '\n— ', 'A— '), /cannot be read|another head/],
  [
    'the origin of a checkpoint',
    (at) => rewrite(newest(at, 'log'), '2026b\n', '2026c\n'),
    /its checkpoint is of another log/,
  ],
])(`it finds a change: %s${note}`, (_, change, words) => {
  const directory = join(scratchDirectory(), 'board')
  cpSync(kept, directory, { recursive: true })
  cpSync(`${kept}.mark`, `${directory}.mark`)
  change(directory)
  expect(read(directory).problems.join('\n')).toMatch(words)
})

function rewriteText(path: string, from: string, to: string): void {
  const text = readFileSync(path, 'utf8')
  expect(text).toContain(from)
  writeFileSync(path, text.replace(from, to))
}

function swapIndexes(directory: string): void {
  const [one, two] = readdirSync(join(directory, 'shard-00'))
    .filter((name) => name.endsWith('.idx'))
    .sort() as string[]
  renameSync(join(directory, 'shard-00', one!), join(directory, 'shard-00', two!))
}
