/**
 * A busy afternoon: 200 people in 30 rooms, ten of them private, send every kind of command concurrently and follow the rooms by long polls
 * and tails. Meanwhile the board is stopped once and killed twice, and restarted from its files. At the end every reader's view is compared
 * with a model of what was acknowledged: nothing is lost, duplicated, reordered or leaked.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { checkDocuments, checkReceivers } from '../support/afternoon/check-documents.ts'
import { checkPoller, checkTails } from '../support/afternoon/check-followers.ts'
import { checkPublic, checkSearch, checkSecrecy } from '../support/afternoon/check-public.ts'
import { checkRooms, takeLogs } from '../support/afternoon/check-rooms.ts'
import { Poller, Tail } from '../support/afternoon/followers.ts'
import { History } from '../support/afternoon/history.ts'
import { Model } from '../support/afternoon/model.ts'
import { otherActs } from '../support/afternoon/other-acts.ts'
import {
  canary,
  operator,
  people,
  privateRooms,
  publicRooms,
  receiverRoom,
  rooms,
  stranger,
} from '../support/afternoon/people-and-rooms.ts'
import { RestartingBoard } from '../support/afternoon/restarting-board.ts'
import { roomActs } from '../support/afternoon/room-acts.ts'
import { setUp } from '../support/afternoon/setup.ts'
import { World } from '../support/afternoon/world.ts'
import { type Board, boardDirectory } from '../support/board-process.ts'
import { filesUnder } from '../support/files-under.ts'
import { chooseSeed, randomFrom } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { patience } from '../support/patience.ts'
import { program } from '../support/program.ts'
import { randomPart } from '../support/random-part.ts'

vi.setConfig({ testTimeout: 900_000 })

const steps = 3_000
const workers = 24
const env = {
  SHARDS: '2',
  COMPACT_SECONDS: '1',
  SEGMENT_BYTES: '65536',
  RECENT_EVENTS: '16',
  OPERATORS: people[operator]!.id,
}

/** Each worker does one random act after another until all steps are done; `onStep` is called before each step. */
async function runActs(world: World, seed: number, onStep: (step: number) => void): Promise<void> {
  const acts = [...roomActs, ...otherActs]
  const total = acts.reduce((sum, [weight]) => sum + weight, 0)
  let step = 0
  const worker = async (number: number): Promise<void> => {
    const random = randomFrom(seed + 1 + number)
    while (step < steps) {
      onStep(++step)
      let at = random(total)
      const [, act] = acts.find(([weight]) => {
        at -= weight
        return at < 0
      })!
      await act(world, random)
    }
  }
  await Promise.all(Array.from({ length: workers }, (_, n) => worker(n)))
}

function followersOf(stage: RestartingBoard, world: World, seed: number): { pollers: Poller[]; tails: Tail[] } {
  const [ada, den] = [privateRooms[0]!, privateRooms[1]!]
  const pollers = [
    {},
    { rooms: publicRooms.slice(0, 3), limit: 3 },
    { kinds: ['event.posted', 'event.redacted'], limit: 200 },
    { who: ada.owner! },
    { who: den.core[0]!, limit: 2 },
    { who: publicRooms[0]!.owner!, kinds: ['reply', 'mention', 'receiver.item', 'document.written'] },
    { who: ada.core[2]!, rooms: [ada, publicRooms[1]!], limit: 1 },
    { who: stranger },
  ].map((options) => new Poller(stage, options))
  const first = (name: string) => world.history.byRoom.get(name)![0]!.id
  const [one, two, three, four] = publicRooms
  const tails = (
    [
      [one!, 'sse'],
      [one!, 'block'],
      [two!, 'line'],
      [three!, 'sse'],
      [four!, 'block'],
      [ada, 'sse', ada.core[0]!],
      [ada, 'block', ada.owner!],
      [den, 'line', den.core[2]!],
    ] as const
  ).map(([room, format, who], n) => new Tail(stage, randomFrom(seed + 1000 + n), room, format, first(room.name), who))
  return { pollers, tails }
}

/** Files of the data directory that contain one of these words. */
function filesWith(directory: string, words: readonly string[]): string[] {
  return [...filesUnder(directory)].flatMap(([name, bytes]) =>
    words.filter((word) => bytes.includes(word)).map((word) => `${name} contains ${word}`),
  )
}

test('after a busy afternoon with two kills every reader sees what was acknowledged, once, in order, and nothing else', async () => {
  const seed = chooseSeed('a busy afternoon')
  const random = randomFrom(seed)
  const directory = boardDirectory()
  const stage = await RestartingBoard.open(directory, env)
  const key = await logKeyOf(stage.client)
  const book = new History()
  const heads = new Heads(key)
  const world = new World(stage, book, heads)
  await setUp(world)

  const { pollers, tails } = followersOf(stage, world, seed)
  await Promise.all(pollers.map((poller) => poller.begin()))
  let resolveLast: (ids: ReadonlyMap<string, string>) => void = () => {}
  const last = new Promise<ReadonlyMap<string, string>>((done) => {
    resolveLast = done
  })
  const following = [
    ...pollers.map((poller) => poller.follow()),
    ...tails.map((tail) => tail.follow(last.then((ids) => ids.get(tail.room.name)!))),
  ]
  const allFollowed = Promise.all(following)

  // A clean stop first, so that the kills find snapshots, and journals with newer frames.
  const stopStep = 500 + random(500)
  const killSteps = [1_200 + random(600), 2_100 + random(600)]
  const restarts: Promise<void>[] = []
  const restart = async (end: (board: Board) => Promise<unknown>): Promise<void> => {
    await new Promise((done) => setTimeout(done, random(8)))
    await stage.restart(end)
  }
  const startedAt = performance.now()
  await Promise.race([
    allFollowed,
    runActs(world, seed, (step) => {
      if (killSteps.includes(step)) restarts.push(restart((board) => board.kill()))
      if (step === stopStep) restarts.push(restart((board) => board.stop()))
    }),
  ])
  await Promise.all(restarts)
  const actsDoneAt = performance.now()

  // A last post in every room: a reader that has received it has received everything.
  const lastPosts = rooms
    .filter((room) => room !== receiverRoom)
    .map(async (room): Promise<[string, string]> => {
      const text = `${room.isPrivate ? canary : 'open'} last word`
      return [room.name, (await world.post(room.owner ?? operator, room, { text }))!.id]
    })
  resolveLast(new Map(await Promise.all(lastPosts)))
  for (const poller of pollers) poller.finish()
  await allFollowed

  const model = new Model(book)
  await takeLogs(stage, model)
  const check = async (): Promise<void> => {
    await checkRooms(stage, model)
    await checkReceivers(stage, book)
    await checkSearch(stage, model)
    const texts = await checkPublic(stage, model, key)
    await checkSecrecy(stage, model, texts)
  }
  await check()
  const merges = await checkDocuments(stage, book)
  checkTails(tails, model)
  for (const poller of pollers) checkPoller(poller, model)
  const checkedAt = performance.now()

  // Segments were sealed during the run, so there was something to compact; redacted texts leave every file.
  for (const shard of ['shard-00', 'shard-01']) {
    const segments = readdirSync(join(directory, shard)).filter((name) => name.endsWith('.log'))
    expect(segments.length).toBeGreaterThan(3)
  }
  const redacted = [...book.events.values()].filter((said) => model.isRedacted(said))
  const markers = redacted.flatMap(({ text }) => /mk[0-9]+q/.exec(text) ?? [])
  await vi.waitFor(() => expect(filesWith(directory, markers)).toEqual([]), { ...patience, interval: 500 })

  expect((await stage.board.stop()).code).toBe(0)
  const fsck = spawnSync(process.execPath, [program, 'fsck', '--data', directory], { encoding: 'utf8' })
  expect([fsck.status, fsck.stdout]).toEqual([0, expect.stringContaining('Everything agrees.')])

  // The same from snapshots, in a new process.
  await stage.restart(async () => {})
  await check()
  await stage.board.stop()

  // And with other numbers of shards: a reshard rewrites in one order what was written concurrently.
  for (const shards of randomPart(['3', '1'])) {
    const args = [program, 'reshard', '--shards', shards, '--data', directory]
    const reshard = spawnSync(process.execPath, args, { encoding: 'utf8' })
    expect([reshard.status, reshard.stderr]).toEqual([0, expect.not.stringContaining('NOT VERIFIED')])
    await stage.restart(async () => {})
    await check()
    expect((await stage.board.stop()).code).toBe(0)
  }
  const lines = [...stage.logLines, ...stage.board.lines]
  expect(lines.filter((line) => line.includes(canary))).toEqual([])
  expect(lines.filter((line) => line.includes('"level":"error"'))).toEqual([])
  // Compactions ran meanwhile; otherwise this would not test them.
  const compactions = lines.filter((line) => line.includes('"journal.compacted"')).length
  expect(compactions).toBeGreaterThan(3)
  stage.client.close()

  const count = (of: readonly { readonly polls?: number; readonly opened?: number }[], what: 'polls' | 'opened') =>
    of.reduce((sum, each) => sum + (each[what] ?? 0), 0)
  console.info(
    [
      `${book.acknowledged} acknowledged (${book.events.size} events, ${book.moderation.length} deeds, ${markers.length} redacted texts, ${merges} merges)`,
      `${book.retried} answered only after a restart, ${book.repeated} repeated, ${stage.dropped} dropped`,
      `${compactions} compactions, ${heads.sizes.length} heads, ${count(pollers, 'polls')} polls, ${count(tails, 'opened')} tails opened`,
      `acts took ${Math.round(actsDoneAt - startedAt)} ms, checks ${Math.round(checkedAt - actsDoneAt)} ms`,
      `refused: ${[...book.refused].map(([name, n]) => `${name} ${n}`).join(', ')}`,
    ].join('\n'),
  )
})
