/**
 * How long does a change of the number of shards take, and is it the same board afterwards?
 *
 * 100,000 signed posts by 2,000 identities in 200 rooms, a tenth of them private, with works, attachments, documents, votes, webhooks and
 * delegations. The board goes from one shard to three and to two. After each step the whole export and the ledger are compared, and so are
 * a sample of events, rooms and works, and the lists of every identity, as read by their parties, by a stranger and unsigned. A difference
 * ends the bench.
 */
import { join } from 'node:path'
import { type Board, endBoards, startBoard } from '../test/support/board-launch.ts'
import { differences, RecordingClient, viewBoard } from '../test/support/board-view.ts'
import { Client, person } from '../test/support/client.ts'
import { World } from '../test/support/operation-setups.ts'
import { program } from '../test/support/program.ts'
import { runProgram } from '../test/support/run-program.ts'
import { workAt } from '../test/support/work-stages.ts'
import { withDirectory } from './machine.ts'
import type { Bench, Row } from './report.ts'

const operator = person('operator of a bench')
const stranger = person('stranger to a bench')
const asksMax = 500
const inFlight = 64

export const reshardBench: Bench = {
  name: 'reshard',
  question: 'How long does resharding 100,000 events take, and is it the same board afterwards?',
  run: ({ isQuick }) =>
    withDirectory(async (base) => {
      const directory = join(base, 'data')
      const size = isQuick ? { posts: 5_000, people: 200 } : { posts: 100_000, people: 2_000 }
      try {
        const rows = await measured(directory, size)
        const title = `${size.posts.toLocaleString('en')} posts, ${size.people.toLocaleString('en')} identities`
        return [{ title, rows }]
      } finally {
        await endBoards()
      }
    }),
}

type Size = { readonly posts: number; readonly people: number }

async function measured(directory: string, size: Size): Promise<Row[]> {
  const env = { OPERATORS: operator.id, BROADSIDE_LOOPBACK: '1' }
  const start = () => startBoard({ directory, env })
  let board = await start()
  const { serviceId } = await Client.of(board)
  const known = new RecordingClient(board.address, serviceId)
  await fill(known, size)
  known.close()
  // A start does its one-time work.
  await board.stop()
  board = await start()
  const before = await viewOf(board, known)
  const rows: Row[] = []
  for (const shards of [3, 2]) {
    await board.stop()
    const [seconds, output] = await timed(() => reshard(directory, shards))
    const [startSeconds, next] = await timed(start)
    board = next
    const found = differences(before, await viewOf(board, known))
    if (found.length > 0) throw new Error(`with ${shards} shards:\n${found.slice(0, 10).join('\n')}`)
    const made: { readonly records: readonly number[]; readonly bytes: number } = JSON.parse(output)
    const records = made.records.reduce((sum, each) => sum + each, 0)
    rows.push({
      shards,
      records,
      'journals MB': made.bytes / 1e6,
      'reshard s': seconds,
      'records/s': records / seconds,
      'first start s': startSeconds,
      'answers compared': before.size,
      differences: found.length,
    })
  }
  await board.stop()
  return rows
}

async function reshard(directory: string, shards: number): Promise<string> {
  const args = ['reshard', '--shards', String(shards), '--data', directory, '--json']
  const { code, output, errors } = await runProgram(directory, process.execPath, [program, ...args])
  if (code !== 0) throw new Error(errors)
  return output
}

async function timed<Result>(act: () => Promise<Result>): Promise<[seconds: number, result: Result]> {
  const begun = performance.now()
  const result = await act()
  return [(performance.now() - begun) / 1000, result]
}

async function viewOf(board: Board, known: RecordingClient): Promise<Map<string, string>> {
  const client = await Client.of(board)
  try {
    return await viewBoard(client, known, { operator, stranger }, asksMax)
  } finally {
    client.close()
  }
}

async function fill(client: RecordingClient, { posts, people }: Size): Promise<void> {
  const world = new World(client, operator)
  const everybody = Array.from({ length: people }, (_, n) => person(`bench ${n}`))
  const of = (n: number) => everybody[n % people]!
  const rooms = Array.from({ length: 200 }, (_, n) => `room-${n}`)
  await each(rooms.length, async (n) => {
    const visibility = n % 10 === 0 ? 'private' : 'public'
    const members = Array.from({ length: 20 }, (_, at) => of(n * 37 + at).id)
    await world.run(of(n), {
      operation: 'room.create',
      room: rooms[n]!,
      visibility,
      ...(n % 10 === 0 ? { members } : {}),
    })
  })
  // The first post of a thread, and now and then a reply to it.
  const threads = new Map<string, string>()
  await each(posts, async (n) => {
    const at = (n * 7_919) % rooms.length
    const room = rooms[at]!
    const who = at % 10 === 0 ? of(at * 37 + (n % 20)) : of(n)
    const root = n % 3 === 0 ? undefined : threads.get(room)
    const id = await world.post(who, {
      room,
      text: `post ${n} of ${room}`,
      ...(root === undefined ? {} : { reply_to: root }),
    })
    if (root === undefined) threads.set(room, id)
    if (n % 50 === 0 && at % 10 !== 0)
      await world.run(of(n + 1), { operation: 'vote', event_id: id, data: '{"schema":1,"value":1}' })
  })
  await each(Math.ceil(people / 20), async (n) => {
    await workAt(world, (['open', 'claimed', 'submitted', 'disputed', 'accepted'] as const)[n % 5]!)
    const blob = await world.blob(of(n), { filename: `${n}.txt`, data: Buffer.from(`file ${n}`).toString('base64url') })
    await world.post(of(n), { text: `with file ${n}`, attachments: [blob] })
    await world.doc(of(n))
    if (n % 10 === 0) {
      await world.delegate(of(n))
      await world.receiver(of(n))
      await world.conversation(of(n), of(n + 1))
    }
  })
}

async function each(count: number, act: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await act(next++)
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
}
