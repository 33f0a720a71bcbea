/** A killed board with damaged files: derived files are rebuilt, and damaged journals stop the start or cost only the damaged posts. */
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
import { Board, boardDirectory, expectStartRefused, startBoard, tryStartBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { chooseSeed, Ledger, load, randomFrom } from '../support/load.ts'
import { fetchVerifiedExport, Heads, logKeyOf, proveEvent } from '../support/log-checks.ts'
import { patience } from '../support/patience.ts'
import { randomPart, shareOf } from '../support/random-part.ts'
import { flipByte } from '../support/scratch.ts'
import { StreamReader } from '../support/stream-reader.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const env = { SEGMENT_BYTES: '65536', RECENT_EVENTS: '16' }
const killed = boardDirectory()
const random = randomFrom(chooseSeed('damaged files'))
let ledger: Ledger
let exportHash = ''
let exportedCount = 0

/** A copy of the killed board, to be damaged. */
function copy(): string {
  const directory = boardDirectory()
  cpSync(killed, directory, { recursive: true })
  return directory
}

const logsOf = (directory: string) =>
  readdirSync(directory)
    .filter((name) => name.endsWith('.log'))
    .sort()

beforeAll(async () => {
  const board = await startBoard({ directory: killed, env })
  const client = await Client.of(board)
  const key = await logKeyOf(client)
  ledger = new Ledger(new Heads(key), key)
  // The more posts wait for one sync, the fewer heads are signed, and the smaller the log is.
  const isLarge = () => ['shard-00', 'log'].every((part) => logsOf(join(killed, part)).length > 2)
  for (let posts = 400; !isLarge(); posts = 50)
    await load({ client, ledger, random, posts, inFlight: 4, rooms: ['a', 'b', 'c'], textBytesMax: 400 })
  await ledger.check(client, 0)
  const { sha256, events } = await fetchVerifiedExport(client, key)
  exportHash = sha256
  exportedCount = events.length
  client.close()
  // Killed, not stopped, so that there is no snapshot of the newest state.
  await board.kill()
})

/** Starts the board, which must have the same posts, proofs and export as before. */
async function expectIntact(directory: string): Promise<void> {
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  await ledger.check(client, 100_000)
  expect((await fetchVerifiedExport(client, ledger.key)).sha256).toBe(exportHash)
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
  ])('a start rebuilds %s if deleted, with the same export and proofs', async (_what, damage) => {
    const directory = copy()
    damage(directory)
    await expectIntact(directory)
  })

  test('changed or truncated indexes are rebuilt, with the same export and proofs', async () => {
    const directory = copy()
    for (const part of ['shard-00', 'log']) {
      for (const name of readdirSync(join(directory, part)).filter((each) => each.endsWith('.idx'))) {
        const path = join(directory, part, name)
        if (random(2) === 0) truncateSync(path, random(statSync(path).size))
        else flipByte(path, random(statSync(path).size))
      }
    }
    await expectIntact(directory)
  })

  test('a shard restarts and rebuilds its damaged files of old events, and old posts accept replies as before', async () => {
    const directory = copy()
    // A stop writes a snapshot, which names the files.
    await expectIntact(directory)
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
    const rebuilt = eventFiles()
    expect(rebuilt.length).toBeGreaterThanOrEqual(before.length)
    expect(rebuilt).not.toContain(before[0])
  })

  test('a nodes.bin that is truncated anywhere is rebuilt', async () => {
    for (const share of randomPart([0, 0.3, 0.99])) {
      const directory = copy()
      const path = join(directory, 'log', 'nodes.bin')
      truncateSync(path, Math.floor(statSync(path).size * share))
      await expectIntact(directory)
    }
  })

  test('a changed byte anywhere in nodes.bin invalidates no proof, and one where the log continues is repaired at start', async () => {
    const size = statSync(join(killed, 'log', 'nodes.bin')).size
    for (const offset of randomPart([0, 40, size >> 1, size - 1])) {
      const directory = copy()
      const path = join(directory, 'log', 'nodes.bin')
      const intact = readFileSync(path)
      flipByte(path, offset)
      await expectIntact(directory)
      if (offset === size - 1) expect(readFileSync(path).equals(intact)).toBe(true)
    }
  })

  const damages: readonly (readonly [what: string, damage: (path: string, size: number) => void])[] = [
    ['has its first leaf changed', (path) => flipByte(path, 0)],
    ['has a byte in its middle changed', (path, size) => flipByte(path, size >> 1)],
    ['has its last byte changed', (path, size) => flipByte(path, size - 1)],
    ['is truncated', (path, size) => truncateSync(path, size >> 1)],
    ['is overwritten with zeros', (path, size) => writeFileSync(path, Buffer.alloc(size))],
  ]
  test.each(randomPart(damages))(
    'nodes.bin %s while the board runs: it is repaired, every proof is valid, and the board continues',
    async (_what, damage) => {
      const directory = copy()
      const path = join(directory, 'log', 'nodes.bin')
      const board = await startBoard({ directory, env })
      const client = await Client.of(board)
      const intact = readFileSync(path)
      damage(path, intact.length)
      await Promise.all([...ledger.acknowledged.keys()].map((id) => proveEvent(client, ledger.key, id)))
      expect((await fetchVerifiedExport(client, ledger.key)).sha256).toBe(exportHash)
      expect(readFileSync(path).equals(intact)).toBe(true)
      const leaves = ledger.heads.largest
      expect((await client.post(person('ada'), { room: 'a', text: 'after the damage' })).status).toBe(200)
      client.close()
      expect((await board.stop()).code).toBe(0)
      const lines = board.lines.map((line) => JSON.parse(line) as Record<string, unknown>)
      const repairs = lines.filter(({ event }) => event === 'log.tree.mended')
      expect(repairs).toMatchObject([{ level: 'warn', path, leaves }])
    },
  )

  test('snapshots with changed bytes are discarded', async () => {
    const directory = copy()
    await (await startBoard({ directory, env })).stop()
    for (const part of ['shard-00/snapshots', 'log/feed-snapshots']) {
      const folder = join(directory, part)
      if (!existsSync(folder)) continue
      for (const name of readdirSync(folder)) flipByte(join(folder, name), random(statSync(join(folder, name)).size))
    }
    await expectIntact(directory)
  })
})

describe('segments', () => {
  test('a byte that changes in an older segment while the board runs costs only the post that it belongs to', async () => {
    const directory = copy()
    const operator = person('keeper')
    const board = await startBoard({ directory, env: { ...env, OPERATORS: operator.id } })
    const client = await Client.of(board)
    const ids = [...ledger.acknowledged.keys()]
    // The last text of the segment before the newest: recent enough for a tail opened with the last 200 posts of its room.
    const name = logsOf(join(directory, 'shard-00')).at(-2)!
    const path = join(directory, 'shard-00', name)
    flipByte(path, readFileSync(path).lastIndexOf('lorem'))
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
    // Tails of the rooms show everything else.
    const tails = ['a', 'b', 'c'].map((room) => new StreamReader(client.address, `/tail/${room}`))
    await Promise.all(tails.map((tail) => tail.until((text) => text !== '')))
    for (const operation of ['room.hide', 'room.restore'])
      expect((await client.command(operator, { operation, event_id: damaged, reason: 'a test' })).status).toBe(200)
    for (const [index, room] of ['a', 'b', 'c'].entries()) {
      expect((await client.post(person('ada'), { room, text: 'a later post' })).status).toBe(200)
      expect(await tails[index]!.until((text) => text.includes('a later post'))).toContain('a later post')
      tails[index]!.close()
    }
    // So do tails that are opened later, with a tombstone in place of the damaged post.
    const reopened = await Promise.all(
      ['a', 'b', 'c'].map(async (room) => {
        const tail = new StreamReader(client.address, `/tail/${room}?last=200&format=line`)
        const text = await tail.until((seen) => seen.includes('a later post'))
        tail.close()
        return text
      }),
    )
    expect(
      reopened
        .join('')
        .split('\n')
        .filter((line) => line.startsWith(`[${damaged}]`)),
    ).toMatchObject([expect.stringContaining('(bytes on the disk of this board are not what was written')])
    // The export has everything else, with all leaves and the signed head, and says what is missing.
    await expect(fetchVerifiedExport(client, ledger.key)).rejects.toThrow()
    const file = join(directory, 'export.jsonl')
    const terminal = capturedTerminal()
    expect(await main(['export', '--url', client.address, '--out', file], terminal)).toBe(3)
    expect(terminal.said.err).toContain('Incomplete: 1 of these records are damaged on the board’s disk')
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const types = lines.map((line) => (JSON.parse(line) as { type: string }).type)
    expect(types.filter((type) => type === 'unreadable')).toHaveLength(1)
    expect(types.filter((type) => type === 'event')).toHaveLength(exportedCount + 2)
    expect(types.at(-1)).toBe('end')
    const checked = capturedTerminal()
    expect(await main(['verify', file, '--unpinned'], checked)).toBe(3)
    expect(checked.said.err).toMatch(/the board could not read [0-9a-f]{32} \(bytes on the disk of this board/)
    expect(checked.said.err).not.toContain('more')
    // Search and the directory of tools, which read everything at the first query, leave the damaged post out.
    const search = await client.get('/api/events?query=lorem&limit=100')
    expect(search).toMatchObject({ status: 200, data: { total: expect.any(Number) } })
    expect((await client.get('/api/tools?query=hash')).status).toBe(200)
    for (const event of ['search.left_out', 'tools.left_out'])
      expect(board.lines.filter((line) => line.includes(`"event":"${event}"`))).toMatchObject([
        expect.stringContaining(path),
      ])
    expect((await client.post(person('ada'), { room: 'a', text: 'after the damage' })).status).toBe(200)
    client.close()
    expect((await board.stop()).code).toBe(0)
    expect(board.lines.filter((line) => line.includes(faults[0]!))).toMatchObject([
      expect.stringContaining(`"event":"fault"`),
    ])
  })

  test.each(['shard-00', 'log'])(
    'an older segment of %s with one changed byte stops the start, which names path and offset',
    async (part) => {
      const names = logsOf(join(killed, part)).slice(0, -1)
      for (let round = 0; round < shareOf(6); round += 1) {
        const directory = copy()
        const path = join(directory, part, names[random(names.length)]!)
        const offset = random(statSync(path).size)
        flipByte(path, offset)
        // A start trusts an index that matches its segment, so the changed byte may be found only when it is read.
        for (const name of readdirSync(join(directory, part)))
          if (name.endsWith('.idx')) rmSync(join(directory, part, name))
        const refused = await expectStartRefused({ directory, env })
        expect(refused.code, `offset ${offset} of ${path}`).not.toBe(0)
        expect(refused.output).toContain(path)
        expect(refused.output).toMatch(/offset \d+|at byte \d+|:\d+/)
        rmSync(directory, { recursive: true })
      }
    },
  )

  test.each(['shard-00', 'log'])(
    'with the newest segment of %s truncated anywhere, a board has everything acknowledged or does not start',
    async (part) => {
      const name = logsOf(join(killed, part)).at(-1)!
      const { size } = statSync(join(killed, part, name))
      let started = 0
      const fixedCuts = [0, 1, 40, 64, 100, size - 1, size - 5, size - 60]
      const cuts = randomPart([...fixedCuts, ...Array.from({ length: 5 }, () => random(size))])
      for (const cut of cuts) {
        const directory = copy()
        truncateSync(join(directory, part, name), cut)
        const result = await tryStartBoard({ directory, env })
        if (result instanceof Board) {
          started += 1
          const client = await Client.of(result)
          // A truncated log is completed from the shards; with a truncated shard the board cannot have started.
          await ledger.check(client, 20)
          client.close()
          await result.kill()
        } else {
          expect(result.code).not.toBe(0)
          expect(result.output, `cut at ${cut}`).toMatch(/acknowledged posts are missing|expected|Damage/)
        }
        rmSync(directory, { recursive: true })
      }
      console.info(`${part}: ${started} of ${cuts.length} cuts started`)
    },
  )

  test('after the newest frame, bytes of an incomplete batch are moved to lost+tail, and zeros are removed', async () => {
    for (const tail of randomPart([Buffer.alloc(4096), Buffer.from('half a frame')])) {
      for (const part of ['shard-00', 'log']) {
        const directory = copy()
        const path = join(directory, part, logsOf(join(directory, part)).at(-1)!)
        const intact = readFileSync(path)
        writeFileSync(path, Buffer.concat([intact, tail]))
        await expectIntact(directory)
        const saved = join(directory, part, 'lost+tail')
        expect(existsSync(saved) ? readdirSync(saved) : []).toHaveLength(tail[0] === 0 ? 0 : 1)
      }
    }
  })

  test('a shard’s journal restored from an older copy is refused because the signed log has more', async () => {
    const directory = copy()
    const part = join(directory, 'shard-00')
    const names = logsOf(part)
    const last = names.at(-1)!
    rmSync(join(part, last))
    const previous = names.at(-2)!
    const older = readFileSync(join(part, previous))
    truncateSync(join(part, previous), Math.floor(older.length / 2))
    for (const name of readdirSync(part))
      if (name.endsWith('.idx') && name.startsWith(previous.slice(0, 20))) rmSync(join(part, name))
    rmSync(join(part, 'snapshots'), { recursive: true, force: true })
    const refused = await expectStartRefused({ directory, env })
    expect(refused.code).not.toBe(0)
    expect(refused.output).toMatch(/acknowledged posts are missing|expected/)
    copyFileSync(join(killed, 'shard-00', last), join(part, last))
  })
})
