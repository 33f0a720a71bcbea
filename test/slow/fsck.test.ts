/** The full check of a stopped board: it reports what differs and where, repairs derived files on request, and nothing else. */

import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { checkBoard } from '../../src/fsck/fsck.ts'
import type { Finding } from '../../src/fsck/log.ts'
import { checkMarks } from '../../src/fsck/start.ts'
import { Witness } from '../../src/log/witness/witness.ts'
import { saveLostActs } from '../../src/lost-acts-file.ts'
import { formatCheckpoint } from '../../storage/checkpoint.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { parseVkey, signNote } from '../../storage/note.ts'
import { createNoteKey } from '../../storage/note-signer.ts'
import { SEGMENT_HEADER_BYTES } from '../../storage/segment.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { BadSectors } from '../support/bad-sectors.ts'
import { boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
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

/** Every file of a board except its lock, with its bytes. */
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
  const env = { SEGMENT_BYTES: '65536', RECENT_EVENTS: '16' }
  const board = await startBoard({ directory: made, env })
  const client = await Client.of(board)
  const ada = person('ada')
  for (let at = 0; at < posts; at += 20) {
    const texts = Array.from({ length: 20 }, (_, n) => `post ${at + n} ${'.'.repeat(300)}`)
    const answers = await Promise.all(texts.map((text) => client.post(ada, { room: 'many', text })))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  }
  const blob = { operation: 'blob.put', room: 'many', data: Buffer.from('bytes').toString('base64url') } as const
  const put = await client.command(ada, { ...blob, filename: 'a.txt', media_type: 'text/plain' })
  expect([put.status, put.text]).toEqual([200, put.text])
  expect((await client.get('/api/events?query=post')).status).toBe(200)
  client.close()
  // A log that was rotated has two files of node hashes.
  await board.stop()
  const rotated = capturedTerminal()
  expect([await main(['log', 'rotate', '--data', made], rotated), rotated.said.err]).toEqual([0, ''])
  await (await startBoard({ directory: made, env, port: board.port })).stop()
  expect((await fsck(made)).out).toContain('Everything agrees.')
})

test('a derived file that differs is reported with its place, repaired only on request, and is then what it was', async () => {
  const directory = copy()
  const right = filesOf(directory)
  const [firstIndex, secondIndex] = named(directory, 'shard-00', '.idx') as [string, string]
  const [snapshot] = named(directory, 'shard-00/snapshots', '.snapshot') as [string]
  const [feedSnapshot] = named(directory, 'log/feed-snapshots', '.snapshot') as [string]
  const [rows, otherRows, moreRows] = named(directory, 'shard-00/snapshots', '.events') as [string, string, string]
  const secondNodes = named(directory, 'log', '.bin').find((name) => name.includes('nodes-'))!
  // Hash 511 is the first after the 511 of a complete chunk of 256 leaves: leaf 256.
  flipByte(join(directory, 'log/nodes.bin'), 511 * 32 + 5)
  rmSync(join(directory, secondNodes))
  flipByte(join(directory, firstIndex), 100)
  rmSync(join(directory, secondIndex))
  flipByte(join(directory, snapshot), 40)
  truncateSync(join(directory, feedSnapshot), 20)
  flipByte(join(directory, rows), statSync(join(directory, rows)).size - 1)
  cpSync(join(directory, moreRows), join(directory, otherRows))
  const wrong = filesOf(directory)

  const said = await fsck(directory)
  expect(said.code).toBe(0)
  const places = [
    `log/nodes.bin at byte ${511 * 32}: node 256 of level 0: expected `,
    `${secondNodes}: missing`,
    `${firstIndex} at byte 100: index: expected the index built from the frames, found different bytes`,
    `${secondIndex} at byte 0: index: expected the index built from the frames, found no file`,
    `${snapshot}: a snapshot that no start can use`,
    `${feedSnapshot}: a snapshot that no start can use`,
    `${rows}: its old events differ from what was written`,
    `${otherRows}: its old events differ from what was written`,
  ]
  for (const place of places) expect(said.out).toContain(`derived  ${directory}/${place}`)
  expect(said.out.match(/^derived/gm)).toHaveLength(places.length)
  expect(said.out).toContain('it is rebuilt when needed, or now with --repair.')
  expect(filesOf(directory)).toEqual(wrong)

  const repaired = await fsck(directory, '--repair')
  expect(repaired.code).toBe(0)
  expect(repaired.out.match(/^repaired /gm)).toHaveLength(places.length)
  expect(repaired.out).toContain('only derived data differs, and it was repaired.')
  const removed = [snapshot, feedSnapshot, rows, otherRows]
  const expected = new Map([...right].filter(([name]) => !removed.includes(name)))
  expect(filesOf(directory)).toEqual(expected)
  expect((await fsck(directory, '--repair')).out).toContain('Everything agrees.')
  const board = await startBoard({ directory })
  expect(board.lines.filter((line) => line.includes('log.tree'))).toEqual([])
  await board.stop()
})

test('an unreadable file or block is reported with its path, and the check continues', () => {
  const directory = copy()
  const only = (part: string, end: string): string => join(directory, named(directory, part, end)[0]!)
  const room = readdirSync(join(directory, 'blobs'))[0]!
  const bad = [
    { path: only('shard-00', '.log'), kind: 'damage' },
    { path: only('log', '.log'), kind: 'damage', place: { from: 5_000, to: 5_001 } },
    { path: only(join('blobs', room), ''), kind: 'damage' },
    { path: only('shard-00', '.idx'), kind: 'derived' },
    { path: only('shard-00/snapshots', '.snapshot'), kind: 'derived' },
    { path: only('log/feed-snapshots', '.snapshot'), kind: 'derived' },
    { path: only('shard-00/snapshots', '.events'), kind: 'derived' },
    { path: join(directory, 'log/nodes.bin'), kind: 'derived' },
    { path: join(directory, 'search/index.db'), kind: 'derived' },
    { path: join(directory, 'keys/cursor.key'), kind: 'start' },
  ]
  const found = ({ disk }: Pick<BadSectors, 'disk'>): Finding[] => {
    const findings: Finding[] = []
    const onFinding = (finding: Finding) => findings.push(finding)
    checkBoard({ disk, path: directory, onFinding, onProgress: () => {}, verify: undefined })
    return findings
  }
  for (const { path, kind, place } of bad) {
    const findings = found(new BadSectors(path, 'readAt', place))
    expect([path, ...findings.map((each) => each.kind)]).toEqual([path, kind])
    expect(`${findings[0]!.where} ${findings[0]!.what}`).toContain(path)
    expect(findings[0]!.what).toMatch(/\bEIO\b/)
  }
  for (const path of [only('shard-00', '.idx'), join(directory, 'log/nodes.bin')]) {
    rmSync(path)
    mkdirSync(path)
  }
  const moved = { kind: 'start', what: expect.stringContaining('not a regular file: move it out of the way') }
  expect(found({ disk: machineDisk })).toMatchObject([moved, moved])
})

test('beside damage nothing is repaired and no byte changes; one changed byte is one damage, and all else is checked', async () => {
  const leavesIn = (out: string): number => Number(/([0-9,]+) leaves checked/.exec(out)![1]!.replaceAll(',', ''))
  const leaves = leavesIn((await fsck(made)).out)
  for (const [part, which, offset] of [
    ['shard-00', 0, 5_000],
    // After the first batches, however many posts were in one.
    ['log', 0, 12_000],
    ['log', -1, 100],
  ] as const) {
    const directory = copy()
    const segment = named(directory, part, '.log').at(which)!
    flipByte(join(directory, segment), offset)
    flipByte(join(directory, 'log/nodes.bin'), 64)
    rmSync(join(directory, named(directory, 'shard-00', '.idx')[0]!))
    const wrong = filesOf(directory)
    const { code, out } = await fsck(directory, '--repair')
    expect(code).toBe(3)
    expect(out).toMatch(new RegExp(`^damage   ${directory}/${segment} at byte [0-9]+: `, 'm'))
    expect(out.match(/^damage/gm)).toHaveLength(1)
    expect(out).toContain('1 damaged place: this board no longer has everything it acknowledged')
    expect(out).toContain('restore the newest backup of the whole data directory.')
    // Every leaf depends on those before it: after a damaged frame of the log no root can be computed. How many posts are in a batch, and
    // so whether the log has a second segment, depends on the machine.
    const isFirstFrame = offset === 100 && named(directory, part, '.log').length === 1
    if (part !== 'log' || isFirstFrame) expect(leavesIn(out)).toBe(isFirstFrame ? 0 : leaves)
    else expect(leavesIn(out)).toBeGreaterThan(0)
    expect(out).not.toContain('repaired')
    expect(filesOf(directory)).toEqual(wrong)
  }
})

test('a start that has to read a damaged record again is refused, though the snapshot is fine, and fsck says so', async () => {
  const directory = copy()
  const env = { SEGMENT_BYTES: '65536', RECENT_EVENTS: '16' }
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  const texts = Array.from({ length: 200 }, (_, n) => `later ${n} ${'.'.repeat(300)}`)
  for (const text of texts) expect((await client.post(person('ada'), { room: 'many', text })).status).toBe(200)
  client.close()
  await board.kill()
  const segment = named(directory, 'shard-00', '.log').find((name) =>
    readFileSync(join(directory, name)).includes('later 3 '),
  )!
  flipByte(join(directory, segment), readFileSync(join(directory, segment)).indexOf('later 3 ') + 8)
  const { code, out } = await fsck(directory)
  expect(code).toBe(3)
  for (const snapshots of ['shard-00/snapshots', 'log/feed-snapshots'])
    expect(out).toMatch(
      new RegExp(`^start .*${snapshots}: no complete snapshot in it is newer than the damaged records: `, 'm'),
    )
  const { code: refused, output } = await expectStartRefused({ directory, env })
  expect([refused, output]).toEqual([1, expect.stringContaining(`${segment} is damaged at byte`)])
})

test('if a snapshot knows more than its journal the end of the journal is damage, and both stay', async () => {
  const directory = copy()
  const [segment] = named(directory, 'shard-00', '.log').slice(-1) as [string]
  truncateSync(join(directory, segment), 64)
  const wrong = filesOf(directory)
  const { code, out } = await fsck(directory, '--repair')
  expect(code).toBe(3)
  expect(out).toContain(`${segment} at byte 64: damage: expected frame `)
  expect(out).toMatch(/though (a snapshot|the signed log|the mark) .*holds frame /)
  expect(out.match(/^damage/gm)).toHaveLength(1)
  expect(filesOf(directory)).toEqual(wrong)
})

/** A copy with its mark, and the key file of the active log. */
function markedCopy(): { directory: string; mark: string; logKey: string } {
  const directory = copy()
  const mark = `${directory}.mark`
  cpSync(`${made}.mark`, mark)
  const logKey = join(directory, named(directory, 'keys', '.key').find((name) => name.startsWith('keys/log'))!)
  return { directory, mark, logKey }
}

test.each<[what: string, harm: (made: ReturnType<typeof markedCopy>) => string, words: string]>([
  [
    'board.key is cut',
    ({ directory }) => shortened(join(directory, 'keys/board.key')),
    'does not contain 32 bytes in hex',
  ],
  ['cursor.key is missing', ({ directory }) => removed(join(directory, 'keys/cursor.key')), 'is missing'],
  ['the log’s key is missing', ({ logKey }) => removed(logKey), 'is missing'],
  ['the log’s key can be read by others', ({ logKey }) => opened(logKey), 'chmod 600'],
  ['the log’s key is another', ({ logKey }) => written(logKey, `${'11'.repeat(32)}\n`), 'do not belong together'],
  ['the mark is cut', ({ mark }) => shortened(mark), 'cannot be parsed'],
  [
    'the list of acts to repeat has another byte',
    ({ directory }) => {
      const acts = { at: 1, redacted: ['0'.repeat(32)], moved: [], takenDown: [] }
      saveLostActs(machineDisk, directory, acts)
      const file = join(directory, 'lost-acts.json')
      return written(file, readFileSync(file, 'utf8').replace('000"', '001"'))
    },
    'is damaged, or was not written by "broadside restored --lost --apply-from"',
  ],
  [
    'the file about the stream is cut',
    ({ directory }) => written(join(directory, 'replication.json'), '{'),
    'is damaged, or was not written by this board',
  ],
  [
    'a hand-over was begun',
    ({ directory }) =>
      written(
        join(directory, 'replication.json'),
        JSON.stringify({ leader: '0'.repeat(32), epoch: 1, handsOver: true }),
      ),
    'A hand-over of this board was started but not completed',
  ],
  [
    'a key of the sign-ins looks like one of a newer release',
    ({ directory }) => written(join(directory, 'sign-in.keys'), 'BSK3'.padEnd(64, '\0')),
    'key 1 of the sign-ins is damaged, or of a newer release',
  ],
])('if %s it says so, reads everything else, and reports a problem', async (_what, harm, words) => {
  const marked = markedCopy()
  const harmed = harm(marked)
  const { code, out } = await fsck(marked.directory)
  expect(code).toBe(1)
  expect(out).toMatch(new RegExp(`^start    ${harmed}: .*${words}`, 'm'))
  expect(out.match(/^start/gm)).toHaveLength(1)
  expect(out).not.toMatch(/^damage/m)
  expect(Number(/(\d+) leaves checked/.exec(out)?.[1])).toBeGreaterThan(posts)
  expect(out).toContain('the board cannot start here until this is repaired')
})

test.each(['its segments', 'its directory'])('a signed log that has lost %s is damaged', async (what) => {
  const directory = copy()
  const segments = named(directory, 'log', '.log')
  for (const path of what === 'its directory' ? ['log'] : segments) removed(join(directory, path))
  const { code, out } = await fsck(directory)
  expect(code).toBe(3)
  expect(out.match(/^damage .*$/gm)).toEqual([
    expect.stringMatching(/signed log in .* is missing, though this board has/),
  ])
})

test.each([
  ['a restored backup', 'restored.json', 'run broadside restored.'],
  ['an interrupted import', 'import.json', 'Run the same broadside import --as-it-was again'],
])('of %s it says which command a start waits for', async (_what, file, words) => {
  const directory = copy()
  writeFileSync(join(directory, file), '{}')
  const { code, out } = await fsck(directory)
  expect([code, out]).toEqual([0, expect.stringContaining('Everything agrees.\nIt does not start yet: ')])
  expect(out).toContain(words)
})

test('an old copy is recognized by the mark, whose head it has never signed', async () => {
  const { directory, mark, logKey } = markedCopy()
  expect((await fsck(directory)).out).toContain('Everything agrees.')
  const lines = readFileSync(mark, 'utf8').split('\n')
  const told: Finding[] = []
  const place = { dataDirectory: directory, markFile: mark }
  checkMarks(machineDisk, place, [{ origin: lines.at(-6)!, vkey: lines[0]! }], 0, (finding) => told.push(finding))
  expect(told).toMatchObject([{ kind: 'damage', what: expect.stringContaining('this log has 0 entries, but a head') }])
  const [origin, size] = lines.slice(-6) as [string, string]
  const { signer } = createNoteKey(origin, Buffer.from(readFileSync(logKey, 'latin1').trim(), 'hex'))
  const marks = [
    [Number(size) + 1, `this log has ${size} entries, but a head of ${Number(size) + 1} was signed and published`],
    [Number(size), `the first ${size} entries of this log are not those that were signed and published`],
  ] as const
  for (const [seen, words] of marks) {
    const head = signNote(formatCheckpoint({ origin, size: seen, root: Buffer.alloc(32, 1) }), signer)
    writeFileSync(mark, `${lines.slice(0, -6).join('\n')}\n${head}`)
    const { code, out } = await fsck(directory)
    expect(code).toBe(3)
    expect(out).toContain(`damage   ${mark}: ${words}`)
  }
})

function shortened(file: string): string {
  truncateSync(file, 40)
  return file
}

function written(file: string, text: string): string {
  writeFileSync(file, text)
  return file
}

function removed(file: string): string {
  rmSync(file, { recursive: true })
  return file
}

function opened(file: string): string {
  chmodSync(file, 0o644)
  return file
}

test.each([
  ['stream-seal.json', '{"chain":"0123456789abcde', 'the board begins new keys of the stream'],
  ['clock-accepted.json', '{"at":"now"}', 'nothing was accepted'],
  ['deliveries.json', '{"tails":[]}', 'it is saved again when the leader answers'],
  ['missing-attachments.json', '["lobby/a', 'does not know which attachments'],
  [
    'sign-in.keys',
    'ASK1'.padEnd(64, '\0'),
    'key 1 of the sign-ins is damaged: the one who uses it has to sign in again',
  ],
  ['log/durable', 'BSD\x01'.padEnd(32, '\0'), 'damage to the newest record could look like a torn write'],
])('a damaged %s is a finding that loses nothing else, and that --repair removes', async (name, text, words) => {
  const { directory } = markedCopy()
  writeFileSync(join(directory, name), text)
  const { code, out } = await fsck(directory, '--explain')
  expect([code, out.match(/^derived .*/gm)]).toEqual([0, [expect.stringMatching(`/${name}: .*${words}`)]])
  expect(out).toMatch(/^ +(No post is lost|This is derived)/m)
  expect((await fsck(directory, '--repair')).out).toContain(`repaired ${directory}/${name}`)
  expect(await fsck(directory)).toMatchObject({ code: 0, out: expect.stringContaining('Everything agrees.') })
})

test('a changed byte in what a witness has signed is damage', async () => {
  const { directory } = markedCopy()
  const key = createNoteKey('other.example/log/2026a', Buffer.alloc(32, 7))
  const known = parseVkey(key.vkey)
  if (!known.ok) throw new Error(known.problem)
  const seed = Buffer.alloc(32, 8)
  writeFileSync(join(directory, 'keys/witness.key'), seed.toString('hex'), { mode: 0o600 })
  const witness = new Witness({
    disk: machineDisk,
    directory: join(directory, 'witness'),
    name: 'board.example/witness',
    seed,
    logs: [{ key: known.value, url: undefined }],
    now: () => 1,
  })
  const head = signNote(formatCheckpoint({ origin: key.signer.name, size: 3, root: Buffer.alloc(32, 9) }), key.signer)
  expect(witness.addCheckpoint(`old 0\n\n${head}`).status).toBe(200)
  expect(await fsck(directory)).toMatchObject({ code: 0, out: expect.stringContaining('Everything agrees.') })
  const [name] = readdirSync(join(directory, 'witness')) as [string]
  const file = join(directory, 'witness', name)
  writeFileSync(file, readFileSync(file, 'utf8').replace('\n3\n', '\n2\n'))
  const { code, out } = await fsck(directory)
  expect([code, out]).toEqual([
    3,
    expect.stringMatching(`damage +${file}: .* signature of board.example/witness is not`),
  ])
})

test.each<[what: string, harm: (directory: string) => void, meaning: RegExp]>([
  [
    'a changed record',
    (directory) => flipByte(join(directory, named(directory, 'shard-00', '.log')[0]!), 3_000),
    /^ +Records of the board are damaged\. .* restore the newest backup/m,
  ],
  [
    'a changed log frame',
    (directory) => flipByte(join(directory, named(directory, 'log', '.log')[0]!), 3_000),
    /^ +The public log is damaged\. Restore the file of this name from a backup/m,
  ],
  [
    'a changed record in the newest segment',
    (directory) => flipByte(join(directory, named(directory, 'shard-00', '.log').at(-1)!), 300),
    /^ +Records of the board are damaged\. .* If the newest segment is damaged, every start is refused/m,
  ],
  [
    'a shard that is missing',
    (directory) => rmSync(join(directory, 'shard-00'), { recursive: true }),
    /^damage +\S+shard-00: \S+ has no journal, but .* mount that volume\. .*\n +All records of a shard are missing/m,
  ],
  [
    'a segment that is missing',
    (directory) => rmSync(join(directory, named(directory, 'shard-00', '.log')[0]!)),
    /^ +A file of a journal is missing, or another one is in its place\. .* Restore the file of this name/m,
  ],
  [
    'a journal that was put back',
    (directory) => {
      const path = join(directory, named(directory, 'shard-00', '.log').at(-1)!)
      truncateSync(path, SEGMENT_HEADER_BYTES)
    },
    /^ +The newest records of a shard are missing, or an older copy/m,
  ],
  [
    'a changed record that no snapshot passes',
    (directory) => {
      flipByte(join(directory, named(directory, 'shard-00', '.log')[0]!), 3_000)
      for (const snapshot of named(directory, 'shard-00/snapshots', '.snapshot')) rmSync(join(directory, snapshot))
    },
    /^start .*shard-00\/snapshots: no complete snapshot in it is newer than the damaged records: .*\n +A start is refused/m,
  ],
  [
    'a lost index',
    (directory) => rmSync(join(directory, named(directory, 'shard-00', '.idx')[0]!)),
    /^ +This is derived from other files, so nothing is lost\. .*--repair/m,
  ],
  [
    'the end of a write',
    (directory) => {
      const path = join(directory, named(directory, 'log', '.log').at(-1)!)
      const bytes = readFileSync(path)
      let end = bytes.length
      while (bytes[end - 1] === 0) end--
      writeFileSync(path, Buffer.concat([bytes.subarray(0, end), Buffer.from('half a frame')]))
    },
    /^ +The end of a write that was never acknowledged\. Nothing is lost/m,
  ],
])('--explain says of %s what it costs and what to do', async (_what, harm, meaning) => {
  const directory = copy()
  harm(directory)
  expect((await fsck(directory)).out).not.toMatch(meaning)
  expect((await fsck(directory, '--explain')).out).toMatch(meaning)
})

const newestOfLog = (directory: string): string => join(directory, named(directory, 'log', '.log').at(-1)!)

const logHarms: readonly (readonly [what: string, harm: (directory: string) => void])[] = [
  ['its newest file', (directory) => rmSync(newestOfLog(directory))],
  ['the bytes of its newest file', (directory) => truncateSync(newestOfLog(directory), 0)],
  [
    'the end of its newest frame',
    (directory) => truncateSync(newestOfLog(directory), endOf(newestOfLog(directory)) - 9),
  ],
]

/** The end of the bytes in this file before the zeros that are reserved space. */
function endOf(file: string): number {
  const bytes = readFileSync(file)
  return bytes.findLastIndex((byte) => byte !== 0) + 1
}

test.each([
  ['one shard', 1],
  ['two shards', 2],
])('with %s, a log that lost its newest part continues as --explain says, with every post', async (_name, shards) => {
  const whole = boardDirectory()
  const env = { SEGMENT_BYTES: '65536', SHARDS: String(shards) }
  const ids: string[] = []
  const writer = await startBoard({ directory: whole, env })
  const poster = await Client.of(writer)
  // More than one file of the log.
  for (let n = 0; n < 300; n++) {
    const { status, data } = await poster.post(person('ada'), { room: `room-${n % 5}`, text: `post ${n}` })
    expect(status).toBe(200)
    ids.push(data.event_id!)
  }
  poster.close()
  await writer.stop()
  for (const [what, harm] of logHarms) {
    const directory = boardDirectory()
    cpSync(whole, directory, { recursive: true })
    cpSync(`${whole}.mark`, `${directory}.mark`)
    harm(directory)
    const { code, out } = await fsck(directory, '--explain')
    expect([what, code]).toEqual([what, 3])
    expect([what, out]).toEqual([what, expect.stringContaining('The newest part of the public log is missing.')])
    for (const derived of ['log/feed-snapshots', 'log/durable', 'search', 'tools'])
      rmSync(join(directory, derived), { recursive: true, force: true })
    if (shards > 1) {
      expect((await expectStartRefused({ directory, env })).output).toContain('broadside restored --lost')
      const lost = capturedTerminal()
      expect([await main(['restored', '--lost', '--yes', '--data', directory], lost), lost.said.err]).toEqual([0, ''])
    }
    const board = await startBoard({ directory, env })
    const client = await Client.of(board)
    for (const id of ids) expect([what, (await client.get(`/api/events/${id}`)).status]).toEqual([what, 200])
    client.close()
    await board.stop()
    expect([what, (await fsck(directory)).out]).toEqual([what, expect.stringContaining('Everything agrees.')])
  }
})

test('a log of which nothing is left is not ended: the sentence does not say that nothing was published', async () => {
  const directory = copy()
  rmSync(join(directory, 'log'), { recursive: true })
  const terminal = capturedTerminal()
  expect(await main(['restored', '--lost', '--yes', '--data', directory], terminal)).toBe(1)
  expect(terminal.said.err).toMatch(/is missing, though this board has \d+ records: .* Restore the directory/)
})

test('a missing shard and a missing log are one finding each, and nothing is said of what depends on them', async () => {
  for (const part of ['shard-00', 'log']) {
    const directory = copy()
    rmSync(join(directory, part), { recursive: true })
    const { out } = await fsck(directory)
    expect([part, out.match(/^(damage|start) .*/gm)]).toEqual([part, [expect.stringContaining(join(directory, part))]])
  }
})

test('so is the newest file of a shard that is gone or cut to nothing', async () => {
  for (const harm of [rmSync, (path: string) => truncateSync(path, 0)]) {
    const directory = copy()
    const path = join(directory, named(directory, 'shard-00', '.log').at(-1)!)
    harm(path)
    const { code, out } = await fsck(directory, '--explain')
    expect(code).toBe(3)
    expect(out.match(/^damage .*/gm)).toEqual([expect.stringMatching(/though .* holds frame \d+$/)])
    expect(out).toContain('The newest records of a shard are missing')
    expect(out).not.toContain('Nothing is lost')
  }
})
