import {
  copyFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { Board, boardDirectory, refusedBoard, startBoard, tryBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { drawn, shareOf } from '../support/drawn.ts'
import { Heads, logKeyOf, proveEvent, takeExport } from '../support/judge.ts'
import { chooseSeed, Ledger, load, randomFrom } from '../support/load.ts'
import { patience } from '../support/patience.ts'
import { flipByte } from '../support/scratch.ts'
import { StreamReader } from '../support/stream-reader.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const env = { SEGMENT_BYTES: '65536', RECENT_EVENTS: '16' }
const made = boardDirectory()
const random = randomFrom(chooseSeed('damaged files'))
let ledger: Ledger
let exported = ''
let exportedEvents = 0

/** A copy of the stopped board, to be damaged. */
function copy(): string {
  const directory = boardDirectory()
  cpSync(made, directory, { recursive: true })
  return directory
}

const logsOf = (directory: string) =>
  readdirSync(directory)
    .filter((name) => name.endsWith('.log'))
    .sort()

beforeAll(async () => {
  const board = await startBoard({ directory: made, env })
  const client = await Client.of(board)
  const key = await logKeyOf(client)
  ledger = new Ledger(new Heads(key), key)
  // The more posts wait for one sync, the fewer heads are signed, and the smaller is the log.
  const isLarge = () => ['shard-00', 'log'].every((part) => logsOf(join(made, part)).length > 2)
  for (let posts = 400; !isLarge(); posts = 50)
    await load({ client, ledger, random, posts, inFlight: 4, rooms: ['a', 'b', 'c'], textBytesMax: 400 })
  await ledger.check(client, 0)
  const { sha256, events } = await takeExport(client, key)
  exported = sha256
  exportedEvents = events.length
  client.close()
  // Killed, not stopped: no snapshot of the newest state helps.
  await board.kill()
})

/** Starts the board and wants the export, the proofs and the head it had. */
async function expectUnharmed(directory: string): Promise<void> {
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  await ledger.check(client, 100_000)
  expect((await takeExport(client, ledger.key)).sha256).toBe(exported)
  client.close()
  await board.stop()
}

describe('derived files', () => {
  test.each([
    [
      'the indexes of sealed segments',
      (directory: string) => {
        for (const part of ['shard-00', 'log']) {
          for (const name of readdirSync(join(directory, part)))
            if (name.endsWith('.idx')) rmSync(join(directory, part, name))
        }
      },
    ],
    ['nodes.bin', (directory: string) => rmSync(join(directory, 'log', 'nodes.bin'))],
    [
      'the snapshots',
      (directory: string) => {
        for (const name of ['shard-00/snapshots', 'log/feed-snapshots'])
          rmSync(join(directory, name), { recursive: true, force: true })
      },
    ],
  ])('%s are deleted: rebuilt, with the same export and proofs', async (_what, harm) => {
    const directory = copy()
    harm(directory)
    await expectUnharmed(directory)
  })

  test('indexes with changed or cut bytes are rebuilt, with the same export and proofs', async () => {
    const directory = copy()
    for (const part of ['shard-00', 'log']) {
      for (const name of readdirSync(join(directory, part)).filter((each) => each.endsWith('.idx'))) {
        const path = join(directory, part, name)
        if (random(2) === 0) truncateSync(path, random(statSync(path).size))
        else flipByte(path, random(statSync(path).size))
      }
    }
    await expectUnharmed(directory)
  })

  test('a damaged file of old events costs a restart of its thread: it is made again, and every old post is as it was', async () => {
    const directory = copy()
    // A stop keeps a snapshot, which names the files.
    await expectUnharmed(directory)
    const snapshots = join(directory, 'shard-00', 'snapshots')
    const eventFiles = () => readdirSync(snapshots).filter((name) => name.endsWith('.events'))
    const before = eventFiles()
    expect(before.length).toBeGreaterThan(10)
    for (const name of before) flipByte(join(snapshots, name), statSync(join(snapshots, name)).size - 1 - random(900))
    const board = await startBoard({ directory, env })
    const client = await Client.of(board)
    const replier = person('replier')
    const old = [...ledger.acknowledged.values()].slice(0, 5)
    for (const [n, { event }] of old.entries()) {
      const reply = { room: event.room, text: `to an old post ${n}`, reply_to: event.event_id }
      const answered = async () => {
        const { status, data } = await client.post(replier, reply)
        expect([status, data.event?.reply_to, data.event?.thread]).toEqual([200, event.event_id, event.thread])
      }
      await vi.waitFor(answered, { ...patience, interval: 500 })
    }
    client.close()
    await board.stop()
    const again = eventFiles()
    expect(again.length).toBeGreaterThanOrEqual(before.length)
    expect(again).not.toContain(before[0])
  })

  test('a nodes.bin that is cut short anywhere is rebuilt', async () => {
    for (const share of drawn([0, 0.3, 0.99])) {
      const directory = copy()
      const path = join(directory, 'log', 'nodes.bin')
      truncateSync(path, Math.floor(statSync(path).size * share))
      await expectUnharmed(directory)
    }
  })

  test('a nodes.bin with a changed byte anywhere costs no proof; where the log goes on from, it is rebuilt at start', async () => {
    const size = statSync(join(made, 'log', 'nodes.bin')).size
    for (const offset of drawn([0, 40, size >> 1, size - 1])) {
      const directory = copy()
      const path = join(directory, 'log', 'nodes.bin')
      const right = readFileSync(path)
      flipByte(path, offset)
      await expectUnharmed(directory)
      if (offset === size - 1) expect(readFileSync(path).equals(right)).toBe(true)
    }
  })

  const harms: readonly (readonly [what: string, harm: (path: string, size: number) => void])[] = [
    ['has its first leaf changed', (path) => flipByte(path, 0)],
    ['has a byte in its middle changed', (path, size) => flipByte(path, size >> 1)],
    ['has its last byte changed', (path, size) => flipByte(path, size - 1)],
    ['is cut short', (path, size) => truncateSync(path, size >> 1)],
    ['becomes zeros', (path, size) => writeFileSync(path, Buffer.alloc(size))],
  ]
  test.each(drawn(harms))(
    'nodes.bin %s while the board runs: it costs no proof and no process, and is mended',
    async (_what, harm) => {
      const directory = copy()
      const path = join(directory, 'log', 'nodes.bin')
      const board = await startBoard({ directory, env })
      const client = await Client.of(board)
      const right = readFileSync(path)
      harm(path, right.length)
      await Promise.all([...ledger.acknowledged.keys()].map((id) => proveEvent(client, ledger.key, id)))
      expect((await takeExport(client, ledger.key)).sha256).toBe(exported)
      expect(readFileSync(path).equals(right)).toBe(true)
      const leaves = ledger.heads.largest
      expect((await client.post(person('ada'), { room: 'a', text: 'it goes on' })).status).toBe(200)
      client.close()
      expect((await board.stop()).code).toBe(0)
      const said = board.lines.map((line) => JSON.parse(line) as Record<string, unknown>)
      const mended = said.filter(({ event }) => event === 'log.tree.mended')
      expect(mended).toMatchObject([{ level: 'warn', path, leaves }])
    },
  )

  test('snapshots with changed bytes are thrown away', async () => {
    const directory = copy()
    await (await startBoard({ directory, env })).stop()
    for (const part of ['shard-00/snapshots', 'log/feed-snapshots']) {
      const folder = join(directory, part)
      if (!existsSync(folder)) continue
      for (const name of readdirSync(folder)) flipByte(join(folder, name), random(statSync(join(folder, name)).size))
    }
    await expectUnharmed(directory)
  })
})

describe('segments', () => {
  test('a byte that changes in an older segment while the board runs costs the posts it belongs to and nothing else', async () => {
    const directory = copy()
    const keeper = person('keeper')
    const board = await startBoard({ directory, env: { ...env, OPERATORS: keeper.id } })
    const client = await Client.of(board)
    const ids = [...ledger.acknowledged.keys()]
    const name = logsOf(join(directory, 'shard-00'))[0]!
    const path = join(directory, 'shard-00', name)
    // In the text of some post, well behind the header of the file.
    flipByte(path, readFileSync(path).indexOf('lorem', 20_000))
    const faults: string[] = []
    let damaged = ''
    for (const id of ids) {
      const { status, code, text } = await client.get(`/api/events/${id}`)
      if (status === 200) continue
      expect([status, code]).toEqual([500, 'internal'])
      faults.push(/[0-9a-f-]{36}/.exec(text)![0])
      damaged = id
    }
    expect(faults).toHaveLength(1)
    // Whoever follows the rooms is told of everything else.
    const tails = ['a', 'b', 'c'].map((room) => new StreamReader(client.address, `/tail/${room}`))
    await Promise.all(tails.map((tail) => tail.until((text) => text !== '')))
    for (const operation of ['room.hide', 'room.restore'])
      expect((await client.command(keeper, { operation, event_id: damaged, reason: 'a test' })).status).toBe(200)
    for (const [index, room] of ['a', 'b', 'c'].entries()) {
      expect((await client.post(person('ada'), { room, text: 'told behind it' })).status).toBe(200)
      expect(await tails[index]!.until((text) => text.includes('told behind it'))).toContain('told behind it')
      tails[index]!.close()
    }
    // So is who comes later: the damaged post is a tombstone in its place.
    const past = await Promise.all(
      ['a', 'b', 'c'].map(async (room) => {
        const tail = new StreamReader(client.address, `/tail/${room}?last=200&format=line`)
        const text = await tail.until((seen) => seen.includes('told behind it'))
        tail.close()
        return text
      }),
    )
    expect(
      past
        .join('')
        .split('\n')
        .filter((line) => line.startsWith(`[${damaged}]`)),
    ).toMatchObject([expect.stringContaining('(bytes on the disk of this board are not what was written')])
    // The archive has everything else, with all leaves and the signed head, and says what is missing.
    await expect(takeExport(client, ledger.key)).rejects.toThrow()
    const file = join(directory, 'export.jsonl')
    const terminal = capturedTerminal()
    expect(await main(['export', '--url', client.address, '--out', file], terminal)).toBe(3)
    expect(terminal.said.err).toContain('Incomplete: 1 of these records are damaged on the board’s disk')
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const types = lines.map((line) => (JSON.parse(line) as { type: string }).type)
    expect(types.filter((type) => type === 'unreadable')).toHaveLength(1)
    expect(types.filter((type) => type === 'event')).toHaveLength(exportedEvents + 2)
    expect(types.at(-1)).toBe('end')
    const checked = capturedTerminal()
    expect(await main(['verify', file, '--unpinned'], checked)).toBe(3)
    expect(checked.said.err).toMatch(/the board could not read [0-9a-f]{32} \(bytes on the disk of this board/)
    expect(checked.said.err).not.toContain('more')
    // Search and the directory of tools, which read everything once they are asked, leave it out.
    const search = await client.get('/api/events?query=lorem&limit=100')
    expect(search).toMatchObject({ status: 200, data: { total: expect.any(Number) } })
    expect((await client.get('/api/tools?query=hash')).status).toBe(200)
    for (const event of ['search.left_out', 'tools.left_out'])
      expect(board.lines.filter((line) => line.includes(`"event":"${event}"`))).toMatchObject([
        expect.stringContaining(path),
      ])
    expect((await client.post(person('ada'), { room: 'a', text: 'it goes on' })).status).toBe(200)
    client.close()
    expect((await board.stop()).code).toBe(0)
    expect(board.lines.filter((line) => line.includes(faults[0]!))).toMatchObject([
      expect.stringContaining(`"event":"fault"`),
    ])
  })

  test.each(['shard-00', 'log'])(
    'an older segment of %s with one changed byte: the start is refused with path and offset',
    async (part) => {
      const names = logsOf(join(made, part)).slice(0, -1)
      for (let round = 0; round < shareOf(6); round += 1) {
        const directory = copy()
        const path = join(directory, part, names[random(names.length)]!)
        const offset = random(statSync(path).size)
        flipByte(path, offset)
        // An index that fits its segment is believed at start, so the byte may be found only when it is read.
        for (const name of readdirSync(join(directory, part)))
          if (name.endsWith('.idx')) rmSync(join(directory, part, name))
        const refused = await refusedBoard({ directory, env })
        expect(refused.code, `offset ${offset} of ${path}`).not.toBe(0)
        expect(refused.words).toContain(path)
        expect(refused.words).toMatch(/offset \d+|at byte \d+|:\d+/)
        rmSync(directory, { recursive: true })
      }
    },
  )

  test.each(['shard-00', 'log'])(
    'the newest segment of %s cut anywhere: it starts with what is whole, or refuses because acknowledged posts are missing',
    async (part) => {
      const name = logsOf(join(made, part)).at(-1)!
      const { size } = statSync(join(made, part, name))
      let started = 0
      const ends = [0, 1, 40, 64, 100, size - 1, size - 5, size - 60]
      const cuts = drawn([...ends, ...Array.from({ length: 5 }, () => random(size))])
      for (const cut of cuts) {
        const directory = copy()
        truncateSync(join(directory, part, name), cut)
        const found = await tryBoard({ directory, env })
        if (found instanceof Board) {
          started += 1
          const client = await Client.of(found)
          // A log that lost its tail signs again what the shards hold; a shard that lost its tail cannot have started.
          await ledger.check(client, 20)
          client.close()
          await found.kill()
        } else {
          expect(found.code).not.toBe(0)
          expect(found.words, `cut at ${cut}`).toMatch(/acknowledged posts are missing|expected|Damage/)
        }
        rmSync(directory, { recursive: true })
      }
      console.info(`${part}: ${started} of ${cuts.length} cuts started`)
    },
  )

  test('bytes of a batch that never ended are cut off behind the newest frame and kept aside, zeros are cut off', async () => {
    for (const tail of drawn([Buffer.alloc(4096), Buffer.from('half a frame')])) {
      for (const part of ['shard-00', 'log']) {
        const directory = copy()
        const path = join(directory, part, logsOf(join(directory, part)).at(-1)!)
        const whole = readFileSync(path)
        writeFileSync(path, Buffer.concat([whole, tail]))
        await expectUnharmed(directory)
        const kept = join(directory, part, 'lost+tail')
        expect(existsSync(kept) ? readdirSync(kept) : []).toHaveLength(tail[0] === 0 ? 0 : 1)
      }
    }
  })

  test('a shard’s journal put back from an older copy is refused: the signed log knows more', async () => {
    const directory = copy()
    const part = join(directory, 'shard-00')
    const names = logsOf(part)
    const last = names.at(-1)!
    rmSync(join(part, last))
    const before = names.at(-2)!
    const older = readFileSync(join(part, before))
    truncateSync(join(part, before), Math.floor(older.length / 2))
    for (const name of readdirSync(part))
      if (name.endsWith('.idx') && name.startsWith(before.slice(0, 20))) rmSync(join(part, name))
    rmSync(join(part, 'snapshots'), { recursive: true, force: true })
    const refused = await refusedBoard({ directory, env })
    expect(refused.code).not.toBe(0)
    expect(refused.words).toMatch(/acknowledged posts are missing|expected/)
    copyFileSync(join(made, 'shard-00', last), join(part, last))
  })
})
