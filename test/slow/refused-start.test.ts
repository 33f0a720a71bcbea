import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import { markedDurable } from '../../storage/durable-mark.ts'
import { journalIdIn } from '../../storage/journal.ts'
import { JournalEnd } from '../../storage/journal-copy.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { randomPart } from '../support/random-part.ts'
import { flipByte } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

/** A stopped board with a few posts. */
const made = boardDirectory()

beforeAll(async () => {
  const board = await startBoard({ directory: made })
  const client = await Client.of(board)
  for (let n = 0; n < 4; n += 1) await client.post(person('ada'), { text: `post ${n}` })
  client.close()
  await board.kill()
})

function copy(): string {
  const directory = boardDirectory()
  cpSync(made, directory, { recursive: true })
  return directory
}

const missing = process.getuid?.() === 0 ? missingProgram('setpriv') : 'another user needs root'
const nobody = 65_534

test.skipIf(skipWithout(missing))(
  `a file that a command left to root is named with its owner and the command that mends it${skipNote(missing)}`,
  async () => {
    const directory = copy()
    spawnSync('chown', ['-R', String(nobody), directory])
    writeFileSync(`${directory}.mark`, 'as root wrote it\n', { mode: 0o600 })
    const under = ['setpriv', '--reuid', String(nobody), '--clear-groups']
    const words = `belongs to root, and this process runs as user ${nobody}. If a command of the board was run as that user, make its files yours again, as root: chown -R ${nobody} DATA_DIR DATA_DIR.mark.`
    const sentence = await sentenceOf({ directory, under })
    expect(sentence).toContain(`${directory}.mark ${words}`)
    expect(sentence).not.toContain('another')
  },
)

const segmentOf = (directory: string, part: string) =>
  join(directory, part, readdirSync(join(directory, part)).find((name) => name.endsWith('.log'))!)

/** The message of a board that must not start: exit code 1, every line JSON, the last one says why. */
async function sentenceOf(options: Parameters<typeof expectStartRefused>[0]): Promise<string> {
  const { code, output } = await expectStartRefused(options)
  const lines = output.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(code).toBe(1)
  expect(lines.filter(({ level }) => level === 'error')).toHaveLength(1)
  expect(lines.at(-1)).toMatchObject({ level: 'error', event: 'not_started', problem: expect.any(String) })
  expect(lines.at(-1)).not.toHaveProperty('stack')
  return lines.at(-1)!.problem as string
}

test.each<[what: string, harm: (directory: string) => void, sentence: RegExp]>(
  randomPart([
    [
      'a changed byte among durable posts',
      (directory) => flipByte(segmentOf(directory, 'shard-00'), 300),
      /shard-00.* is damaged at byte \d+: .*Run broadside fsck.*restore the newest backup/,
    ],
    [
      'a journal that lost posts which the log has signed',
      (directory) => truncateSync(segmentOf(directory, 'shard-00'), 200),
      /shard-00.* is damaged at byte \d+: expected frame \d+, found .*though the signed log .*holds frame \d+/,
    ],
    [
      'posts, but no log',
      (directory) => rmSync(segmentOf(directory, 'log')),
      /The signed log in .*log is missing.*Restore the directory/,
    ],
    [
      'a log of which only the header is left',
      (directory) => {
        truncateSync(segmentOf(directory, 'log'), 64)
        // If the board had lived another second it would have written this file, which leads to a different message about the log.
        rmSync(join(directory, 'log', 'durable'), { force: true })
      },
      /The signed log in .*log is missing/,
    ],
    [
      'a board.json that is cut short',
      (directory) => truncateSync(join(directory, 'board.json'), 20),
      /board\.json is not what was written.*Restore it/,
    ],
    [
      'no board.json beside its journals',
      (directory) => rmSync(join(directory, 'board.json')),
      /board\.json is missing, but the journals of a board are there\. Restore it/,
    ],
    [
      'a board.json of an older release, which has no check, with another number of shards',
      (directory) => {
        const file = join(directory, 'board.json')
        const { check, ...facts } = JSON.parse(readFileSync(file, 'utf8')) as { check: string }
        writeFileSync(file, JSON.stringify({ ...facts, shards: 2 }))
      },
      /board\.json states 2 shards, but the log was written with 1/,
    ],
    [
      'a file where a directory must be',
      (directory) => {
        rmSync(join(directory, 'log'), { recursive: true })
        writeFileSync(join(directory, 'log'), '')
      },
      /DATA_DIR must name a directory/,
    ],
  ]),
)('a board with %s does not start, and says why and what to do in one line', async (_what, harm, sentence) => {
  const directory = copy()
  harm(directory)
  expect(await sentenceOf({ directory })).toMatch(sentence)
})

test('a log that lacks what its shards have seen of it, because it is damaged: fsck is named before the log is given up', async () => {
  const directory = boardDirectory()
  const board = await startBoard({ directory, env: { SHARDS: '2' } })
  const client = await Client.of(board)
  for (let n = 0; n < 8; n++) await client.post(person(`author ${n}`), { room: `room-${n % 4}`, text: `post ${n}` })
  client.close()
  await board.kill()
  flipByte(segmentOf(directory, 'log'), 300)
  expect(await sentenceOf({ directory })).toMatch(
    /the log ends at frame \d+ .* Run broadside fsck --explain, .* Only if nothing newer is left, .*: broadside restored --lost/,
  )
})

test('a refused start leaves the directory unchanged', async () => {
  const directory = copy()
  const path = segmentOf(directory, 'shard-00')
  flipByte(path, 300)
  const [before, size] = [readFileSync(path), statSync(segmentOf(directory, 'log')).size]
  await sentenceOf({ directory })
  expect(readFileSync(path).equals(before)).toBe(true)
  expect(statSync(segmentOf(directory, 'log')).size).toBe(size)
})

test.each([
  ['changed', (bytes: Buffer, end: number) => bytes.writeUInt8(bytes[end - 8]! ^ 1, end - 8)],
  ['zeroed', (bytes: Buffer, end: number) => bytes.fill(0, end - 200, end)],
])(
  'what the log proves is never cut: with %s bytes in the newest batch the error names file, offset and proof',
  async (_how, harm) => {
    const directory = copy()
    const path = segmentOf(directory, 'shard-00')
    const bytes = readFileSync(path)
    let end = bytes.length
    while (bytes[end - 1] === 0) end--
    harm(bytes, end)
    writeFileSync(path, bytes)
    expect(await sentenceOf({ directory })).toMatch(
      /shard-00.* is damaged at byte \d+: expected frame \d+, found .*, though the signed log \(frame \d+, byte \d+ of \S+log\/\d{20}\.log\) holds frame \d+/,
    )
    expect(readFileSync(path).equals(bytes)).toBe(true)
    expect(readdirSync(join(directory, 'shard-00'))).not.toContain('lost+tail')
  },
)

test.each(['changed', 'zeroed'])(
  'a final private post is not cut if it is %s: a journal at rest says that it was durable',
  async (how) => {
    const directory = boardDirectory()
    const board = await startBoard({ directory })
    const client = await Client.of(board)
    const ada = person('ada')
    await client.command(ada, { operation: 'room.create', room: 'den', visibility: 'private' })
    for (let n = 0; n < 3; n++) expect((await client.post(ada, { room: 'den', text: `private ${n}` })).status).toBe(200)
    const journal = join(directory, 'shard-00')
    const end = new JournalEnd(machineDisk, journal)
    end.advance()
    end.close()
    const marked = () => markedDurable(machineDisk, journal, journalIdIn(machineDisk, journal)!).seq
    await vi.waitUntil(() => marked() === end.seq, patience)
    await board.kill()
    client.close()
    const path = segmentOf(directory, 'shard-00')
    const bytes = readFileSync(path)
    let last = bytes.length
    while (bytes[last - 1] === 0) last--
    if (how === 'changed') bytes[last - 8]! ^= 1
    else bytes.fill(0, last - 200, last)
    writeFileSync(path, bytes)
    expect(await sentenceOf({ directory })).toMatch(
      /shard-00.* is damaged at byte \d+: expected frame \d+, found .*, though the mark \S+shard-00\/durable holds frame \d+/,
    )
    expect(readFileSync(path).equals(bytes)).toBe(true)
  },
)

test('a data directory that cannot be created, or is a file, is refused in a sentence', async () => {
  expect(await sentenceOf({ directory: '/proc/nowhere/data' })).toContain('DATA_DIR must name a directory')
  expect(await sentenceOf({ directory: join(made, 'board.json') })).toContain('DATA_DIR must name a directory')
})

test.each(['uws', 'node'])('on %s a port that is taken is refused in a sentence', async (engine) => {
  const holder = createServer().listen(0, '127.0.0.1')
  await vi.waitUntil(() => holder.listening, patience)
  const { port } = holder.address() as { port: number }
  const env = { HTTP_ENGINE: engine }
  const directory = boardDirectory()
  expect(await sentenceOf({ directory, port, env })).toMatch(/in use.*Set HOST .* PORT/)
  expect(readdirSync(directory)).toEqual([])
  holder.close()
})

test('a first start that fails after it has created the board says that the board stays', async () => {
  const directory = boardDirectory()
  const { output } = await expectStartRefused({ directory, env: { WITNESS_POLICY: '/' } })
  const stays = output.split('\n').find((line) => line.includes('"board.stays"'))
  expect(JSON.parse(stays!)).toMatchObject({ directory, note: expect.stringContaining('The next start uses it') })
  expect(readdirSync(directory)).toContain('board.json')
})

test.each([
  [{ SHARDS: 'many' }, 'SHARDS must be an integer from 0 to 64, but it is "many"'],
  [{ HTTP_ENGINE: 'iis' }, 'HTTP_ENGINE must be one of auto, uws, node'],
  [{ HOST: 'no host' }, 'Set HOST to'],
  [{ WITNESS_POLICY: '/' }, 'WITNESS_POLICY names /, which cannot be read'],
])('a wrong setting %o is refused in a sentence that names it', async (env, sentence) => {
  expect(await sentenceOf({ directory: boardDirectory(), env })).toContain(sentence)
})
