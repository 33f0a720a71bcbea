/**
 * On a board where everything possible was done, one byte changes, in one record after the other: whatever that record is, every list is
 * answered, and the board starts.
 */
import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { fromFrame } from '../../actors/records/record.ts'
import { shardDirectory } from '../../src/board-directory.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { FRAME_HEADER_BYTES } from '../../storage/frame.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { listSegments } from '../../storage/segment.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { RecordingClient } from '../support/board-view.ts'
import { Client, type Fields, person } from '../support/client.ts'
import { chooseSeed, randomFrom } from '../support/load.ts'
import { setups, World } from '../support/operation-setups.ts'
import { shareOf } from '../support/random-part.ts'
import { type FrameLocation, sealedFrames } from '../support/sealed-frames.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const random = randomFrom(chooseSeed('damage everywhere'))
const directory = boardDirectory()
const operator = person('operator of everything')
const env = { SEGMENT_BYTES: '65536', RECENT_EVENTS: '16', OPERATORS: operator.id, BROADSIDE_LOOPBACK: '1' }
let board: Board
let client: Client
let known: RecordingClient

/** A record of a sealed segment. */
type Place = FrameLocation & {
  /** Public key that signed it, or ''. */
  readonly by: string
  readonly text: string
}

function sealedRecords(): Place[] {
  return Array.from(sealedFrames(shardDirectory(directory, 0)), ({ frame, ...place }) => {
    const key = fromFrame(frame).by?.key
    const by = key === undefined ? '' : Buffer.from(key).toString('base64url')
    return { ...place, by, text: frame.payload.toString('latin1') }
  })
}

/** Changes one byte of a frame's content, or changes it back. */
function flip({ path, offset, bytes }: Place, at: number): void {
  const place = offset + FRAME_HEADER_BYTES + (at % (bytes - FRAME_HEADER_BYTES))
  const file = openSync(path, 'r+')
  const byte = Buffer.alloc(1)
  readSync(file, byte, 0, 1, place)
  byte[0]! ^= 0x10
  writeSync(file, byte, 0, 1, place)
  closeSync(file)
}

beforeAll(async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
  known = new RecordingClient(board.address, client.serviceId)
  const world = new World(known, operator)
  for (const operation of operations.filter(({ kind }) => kind !== 'read')) {
    const { status, text } = await world.send(operation, await setups[operation.name]!(world))
    expect([operation.name, status, text]).toEqual([operation.name, 200, text])
  }
  const filler = person('filler')
  const newest = listSegments(machineDisk, shardDirectory(directory, 0), 'log').at(-1)!
  while (listSegments(machineDisk, shardDirectory(directory, 0), 'log').at(-1) === newest)
    await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        client.post(filler, { room: 'filled', text: `${n} ${'filler '.repeat(200)}` }),
      ),
    )
})

afterAll(async () => {
  client.close()
  known.close()
  await board.stop()
})

const byRoom = [
  ...['room.get', 'room.members', 'room.policy.get', 'room.bans', 'room.modlog', 'room.pages', 'docs.list'],
  ...['events.list', 'work.list', 'threads.list'],
]
const byReader = operations
  .filter(({ kind, name }) => kind === 'read' && /\.(list|get|history|items|log|summary|balance)$/.test(name))
  .map(({ name }) => name)
const pages = ['/', '/rooms', '/works', '/tools']
const paths = [...operations.flatMap(({ get }) => get?.path ?? []).filter((path) => !path.includes('{')), ...pages]

/** Reads that this record may be in, by everybody it may concern, which fail with an internal error. */
async function faultsBeside({ by, text }: Place): Promise<string[]> {
  const asks: (() => Promise<readonly [string, number]>)[] = paths.map((path) => async () => [
    path,
    (await client.get(path)).status,
  ])
  const ask = (fields: Fields, who: Signer) =>
    asks.push(async () => [JSON.stringify(fields), (await client.command(who, fields)).status])
  for (const [room, keys] of known.rooms) {
    const who = known.people.get([...keys][0]!)
    if (who === undefined || !text.includes(room)) continue
    for (const operation of byRoom) ask({ operation, room }, who)
  }
  const concerned = [...known.people].filter(([key]) => key === by || text.includes(key)).map(([, who]) => who)
  for (const who of [...concerned, operator]) for (const operation of byReader) ask({ operation }, who)
  const answers = await Promise.all(asks.map((each) => each()))
  return answers.filter(([, status]) => status >= 500).map(([what]) => what)
}

/** This many of the records that are not posts. */
function someActs(count: number): Place[] {
  const acts = sealedRecords().filter(({ text }) => !text.includes('"operation":"post"'))
  return Array.from({ length: count }, () => acts.splice(random(acts.length), 1)).flat()
}

test('a changed byte in any record: every list is answered, and no thread dies', async () => {
  for (const place of someActs(shareOf(60))) {
    const at = random(100_000)
    flip(place, at)
    expect(await faultsBeside(place), `byte ${at} of the record at ${place.offset} of ${place.path}`).toEqual([])
    flip(place, at)
  }
  expect(board.lines.filter((line) => line.includes('"thread.died"'))).toEqual([])
})

test('a changed byte in any record, found at a start: the board runs', async () => {
  client.close()
  for (const place of someActs(shareOf(8))) {
    expect((await board.stop()).code).toBe(0)
    const at = random(100_000)
    flip(place, at)
    board = await startBoard({ directory, env })
    client = await Client.of(board)
    expect(await faultsBeside(place), `byte ${at} of the record at ${place.offset} of ${place.path}`).toEqual([])
    client.close()
    flip(place, at)
  }
  client = await Client.of(board)
})
