/** When a follower takes over as leader, which box it takes for the leader, and what it reports meanwhile, on a fake clock. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import type { BatchHeader, Part } from '../../../src/replication/batch.ts'
import { type FollowedStream, Follower, type Standing } from '../../../src/replication/follower.ts'
import type { FrameShares } from '../../../src/replication/journals-out.ts'
import { Leader, OutOfReach } from '../../../src/replication/leader.ts'
import { framesWaitMaxMs } from '../../../src/replication/leader-answers.ts'

const [silentMs, turnMs] = [20_000, 3_000]

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/**
 * A follower whose leader has written one message, and nothing since. `answers`: by the leader. `newest`: of the stream, to a candidate.
 */
function followed(
  more: Partial<BatchHeader>,
  given: {
    answers?: () => Promise<unknown>
    newest?: () => Promise<number>
    frames?: (places: unknown, wait: number) => Promise<FrameShares | undefined>
    isWithoutStream?: boolean
    settings?: Readonly<Record<string, string>> | undefined
  },
) {
  const ways = {
    answers: () =>
      Promise.resolve({ epoch: 1, log: 1, shards: [1], durable: { log: 1, shards: [1] } }) as Promise<unknown>,
    newest: () => Promise.resolve(1),
    openStream: (): Promise<FollowedStream> => Promise.resolve(stream),
    frames: (): Promise<FrameShares | undefined> => Promise.resolve(undefined),
    ...given,
  }
  const header = {
    version: 1,
    epoch: 1,
    leader: 'first',
    journals: [],
    part: 1,
    parts: 2,
    ...more,
  } as unknown as Part['header']
  const stream = {
    last: () => Promise.resolve(1),
    from: async function* () {
      yield { seq: 1, part: { header, bytes: Buffer.alloc(0) } satisfies Part }
      await new Promise(() => {})
    },
    reportCopied: () => {},
    close: async () => {},
  }
  const lines: string[] = []
  const told: Standing[] = []
  const found: number[] = []
  const places = [0, 1].map((id) => ({ id: String(id), last: 1, chain: '' }))
  const known = { facts: {}, readKey: '' }
  const follower = new Follower({
    clock: systemClock,
    leader: {
      address: 'http://leader.example',
      next: () => {},
      select: () => {},
      facts: () => Promise.resolve({ ...known, settings: given.settings }),
      ends: () => ways.answers(),
      frames: (places: unknown, wait: number) => ways.frames(places, wait),
      deliveries: () => Promise.resolve(undefined),
    },
    known,
    settings: { LIMITS: '{}', BOARD_NAME: 'here' },
    attachments: { fetchMissing: async () => {} },
    seal: { isKnown: true, opens: () => true },
    openStream: given.isWithoutStream ? undefined : () => ways.openStream(),
    places: async () => places,
    tell: (standing: Standing) => told.push(standing),
    report: (_level: string, event: string) => lines.push(event),
    vacancy: {
      silentMs,
      turnMs,
      self: 'second',
      newest: () => ways.newest(),
      found: (after: number) => found.push(after),
    },
  } as unknown as ConstructorParameters<typeof Follower>[0])
  void follower.run()
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)
  return { follower, ways, lines, told, found, pass }
}

const gone = () => Promise.reject(new OutOfReach('http://leader.example is out of reach'))
const noMajority = () => Promise.reject(new Error('None of the NATS servers leads the stream now.'))

test('a leader that is silent on a working stream is replaced, though it answers: it cannot reach the servers', async () => {
  const { found, pass, follower } = followed({ ack: 'quorum' }, {})
  await pass(silentMs + turnMs - 2_000)
  expect(found).toEqual([])
  await pass(4_000)
  expect(found).toContain(1)
  await follower.stop()
})

test('a leader that answers is not replaced until servers that lacked a majority have had the full time again', async () => {
  const { found, ways, pass, follower } = followed({ ack: 'quorum' }, { newest: noMajority })
  await pass(60_000)
  ways.newest = () => Promise.resolve(1)
  await pass(silentMs + turnMs - 7_000)
  expect(found).toEqual([])
  await pass(9_000)
  expect(found).toContain(1)
  await follower.stop()
})

test('a box that may lead tells why it cannot read the stream, until it can', async () => {
  const { told, ways, pass, follower } = followed({ ack: 'quorum' }, { newest: noMajority })
  await pass(10_000)
  expect(told.at(-1)).toMatchObject({ behindMs: 0, withoutStream: expect.stringContaining('None of the NATS servers') })
  ways.newest = () => Promise.resolve(1)
  await pass(10_000)
  expect(told.at(-1)).toMatchObject({ withoutStream: undefined })
  await follower.stop()
  const next = followed({ ack: 'quorum' }, {})
  const stream = await next.ways.openStream()
  next.ways.openStream = () => Promise.reject(new Error('refused'))
  await next.pass(5_000)
  expect(next.told.at(-1)).toMatchObject({ withoutStream: 'refused' })
  next.ways.openStream = () => Promise.resolve(stream)
  await next.pass(10_000)
  expect(next.told.at(-1)).toMatchObject({ withoutStream: undefined })
  await next.follower.stop()
})

test('a dead leader is replaced as soon as the servers have a majority again', async () => {
  const { found, ways, pass, follower } = followed({ ack: 'quorum' }, { newest: noMajority, answers: gone })
  await pass(60_000)
  expect(found).toEqual([])
  ways.newest = () => Promise.resolve(1)
  await pass(2_000)
  expect(found).toContain(1)
  await follower.stop()
})

test('after a hand-over each waits only for its turn, and not if another has begun to lead', async () => {
  const { found, ways, pass, follower } = followed({ handedOver: true }, { answers: gone })
  await pass(turnMs - 1_000)
  expect(found).toEqual([])
  ways.newest = () => Promise.resolve(2)
  await pass(3_000)
  expect(found).toEqual([])
  await follower.stop()
  const next = followed({ handedOver: true }, { answers: gone })
  await next.pass(turnMs + 1_000)
  expect(next.found).toContain(1)
  await next.follower.stop()
})

test('a stream that has less than this follower has read is another one, which says nothing about the leader yet', async () => {
  const { found, lines, pass, follower } = followed({ ack: 'quorum' }, { newest: () => Promise.resolve(0) })
  await pass(60_000)
  expect([found, lines.includes('following.interrupted')]).toEqual([[], true])
  await follower.stop()
})

test('the log says once who leads, once that nobody answers, and once that the stream does not', async () => {
  const { lines, ways, pass, follower } = followed({}, { answers: gone })
  await pass(30_000)
  expect(lines).toEqual(['following.begun', 'following.without_leader'])
  ways.answers = () => Promise.resolve({ epoch: 1, log: 1, shards: [1], durable: { log: 1, shards: [1] } })
  await pass(30_000)
  expect(lines.slice(2)).toEqual(['following.leader'])
  await follower.stop()
})

test('servers that never deliver what they say they have are one line in the log', async () => {
  const { lines, ways, pass, follower } = followed({}, {})
  const stream = await ways.openStream()
  ways.openStream = async () => ({
    ...stream,
    // biome-ignore lint/correctness/useYield: nothing comes.
    from: async function* () {
      throw new Error('timeout')
    },
  })
  await pass(60_000)
  expect(lines.filter((event) => event !== 'following.leader')).toEqual(['following.without_stream'])
  await follower.stop()
})

test('it logs each second how far it is behind, while the leader it asks says nothing', async () => {
  const { told, ways, pass, follower } = followed({}, {})
  await pass(2_000)
  ways.answers = () => new Promise(() => {})
  await pass(10_000)
  expect(told.at(-1)!.behindMs).toBeGreaterThan(8_500)
  await follower.stop()
})

test('a leader of an older release sends no settings, and none are compared; a setting that it does not know is not either', async () => {
  for (const [settings, count] of [
    [undefined, 0],
    [{ BOARD_NAME: 'here' }, 0],
    [{ LIMITS: '{}', BOARD_NAME: 'there' }, 1],
  ] as const) {
    const { lines, pass, follower } = followed({}, { isWithoutStream: true, settings })
    await pass(10_000)
    expect(lines.filter((event) => event === 'following.other_settings').length).toBe(count)
    await follower.stop()
  }
})

test('the end of each interruption is logged once, and says what is over', async () => {
  const failure = (problem: string) => () => Promise.reject(new OutOfReach(problem))
  const { lines, told, ways, pass, follower } = followed({}, { isWithoutStream: true, frames: failure('one') })
  await pass(3_000)
  ways.frames = failure('two')
  await pass(3_000)
  ways.answers = gone
  await pass(3_000)
  expect(told.at(-1)!.obstacle).toBe('http://leader.example is out of reach')
  ways.answers = () => Promise.resolve({ epoch: 1, log: 1, shards: [1], durable: { log: 1, shards: [1] } })
  await pass(2_000)
  expect(told.at(-1)!.obstacle).toBe('two')
  ways.frames = () => Promise.resolve(undefined)
  await pass(10_000)
  expect(told.at(-1)!.obstacle).toBe(undefined)
  const interruptions = ['following.interrupted', 'following.interrupted', 'following.resumed']
  expect(lines.filter((event) => event !== 'following.leader')).toEqual(interruptions)
  ways.frames = failure('two')
  await pass(3_000)
  expect(lines.at(-1)).toBe('following.interrupted')
  await follower.stop()
})

test('addresses that fail in turn are one line each in the log', async () => {
  const problems = ['first', 'second', 'third'].map((name) => `http://${name}.example is out of reach`)
  let asked = 0
  const frames = () => Promise.reject(new OutOfReach(problems[asked++ % problems.length]!))
  const { lines, ways, pass, follower } = followed({}, { isWithoutStream: true, frames })
  await pass(60_000)
  const interruptions = problems.map(() => 'following.interrupted')
  expect(lines.filter((event) => event !== 'following.leader')).toEqual(interruptions)
  ways.frames = () => Promise.resolve(undefined)
  await pass(10_000)
  expect(lines.slice(-1)).toEqual(['following.resumed'])
  await follower.stop()
})

/** What a box answers its followers; `away`: nothing. */
type Box = { epoch: number; last: number } | 'follows' | 'away'

const [first, second] = ['http://first.example', 'http://second.example']

/**
 * A follower that has five frames of each journal when it starts, with boxes at two addresses. `stream`: epochs of its messages; omitted:
 * it is away.
 */
function restarted(boxes: Record<string, Box>, stream?: readonly number[]) {
  const facts = {
    facts: { service_id: 's', generation: 'g', shards: 1 },
    identity: { id: 'i', publicKey: 'p' },
    log: { origin: 'o', vkey: 'v' },
    readKey: '0'.repeat(64),
  }
  const leader = new Leader([first, second], '', async (address, path) => {
    const box = boxes[address]!
    if (box === 'away') throw new OutOfReach(`${address} is out of reach`, address)
    if (box === 'follows') return { status: 404, bytes: Buffer.alloc(0) }
    const { epoch, last } = box
    const ends = { log: last, shards: [last] }
    if (path === 'frames') return { status: last < 5 ? 503 : 204, bytes: Buffer.from('{}') }
    const known: Readonly<Record<string, object>> = { board: facts, ends: { ...ends, durable: ends, epoch } }
    return { status: 200, bytes: Buffer.from(JSON.stringify(known[path] ?? null)) }
  })
  const messages = (stream ?? []).map((epoch, index) => ({
    seq: index + 1,
    part: { header: { epoch, part: 1, parts: 2, journals: [], seal: {} }, bytes: Buffer.alloc(0) },
  }))
  const opened = {
    last: () => Promise.resolve(messages.length),
    from: async function* (from: number) {
      for (const message of messages.slice(from - 1)) {
        // Reading the data takes a while.
        await new Promise((resolve) => systemClock.later(() => resolve(undefined), 1_000))
        yield message
      }
      await new Promise(() => {})
    },
    reportCopied: () => {},
    close: async () => {},
  }
  const told: Standing[] = []
  const follower = new Follower({
    clock: systemClock,
    leader,
    known: facts,
    settings: {},
    attachments: { fetchMissing: async () => {} },
    seal: { isKnown: true, opens: () => true },
    openStream: stream === undefined ? undefined : () => Promise.resolve(opened),
    places: async () => [0, 1].map((id) => ({ id: String(id), last: 5, chain: '' })),
    tell: (standing: Standing) => told.push(standing),
    report: () => {},
  } as unknown as ConstructorParameters<typeof Follower>[0])
  void follower.run()
  const pass = async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms)
    return told.at(-1)!
  }
  return { follower, pass }
}

const found = { behindMs: 0, problem: undefined, leader: second }
const diverged = { problem: expect.stringContaining('the leader has less than this follower') }

for (const [name, stream] of [
  ['while the stream is away', undefined],
  ['while it reads old messages', [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]],
] as const)
  test(`restarted next to a deposed board that still answers, it finds the leader, ${name}`, async () => {
    const boxes: Record<string, Box> = { [first]: { epoch: 1, last: 1 }, [second]: { epoch: 2, last: 5 } }
    const { follower, pass } = restarted(boxes, stream)
    expect(await pass(5_000)).toMatchObject(found)
    await follower.stop()
  })

test('it waits for an unreachable box, though another has less than this follower', async () => {
  const boxes: Record<string, Box> = { [first]: { epoch: 1, last: 1 }, [second]: 'away' }
  const { follower, pass } = restarted(boxes)
  const standing = await pass(60_000)
  expect(standing.problem).toBe(undefined)
  expect(standing.behindMs).toBeGreaterThan(50_000)
  boxes[second] = { epoch: 2, last: 5 }
  expect(await pass(5_000)).toMatchObject(found)
  await follower.stop()
})

test('if no other box leads, one that has less is an old copy', async () => {
  const { follower, pass } = restarted({ [first]: { epoch: 1, last: 1 }, [second]: 'follows' })
  expect(await pass(20_000)).toMatchObject(diverged)
  await follower.stop()
})

test('if all leaders have less, they are old copies', async () => {
  const { follower, pass } = restarted({ [first]: { epoch: 1, last: 1 }, [second]: { epoch: 2, last: 1 } })
  expect(await pass(20_000)).toMatchObject(diverged)
  await follower.stop()
})

test('if the latest leader has less, and the others are older, it is an old copy', async () => {
  const boxes: Record<string, Box> = { [first]: { epoch: 2, last: 5 }, [second]: { epoch: 1, last: 1 } }
  const { follower, pass } = restarted(boxes)
  expect(await pass(5_000)).toMatchObject({ ...found, leader: first })
  boxes[first] = { epoch: 2, last: 1 }
  expect(await pass(20_000)).toMatchObject(diverged)
  await follower.stop()
})

test('if the stream says that a box leads which has less, it is an old copy, though another is unreachable', async () => {
  const { follower, pass } = restarted({ [first]: { epoch: 1, last: 1 }, [second]: 'away' }, [1])
  expect(await pass(20_000)).toMatchObject(diverged)
  await follower.stop()
})

test('without a stream it waits at the leader for frames, and asks once a second if that one does not wait', async () => {
  const waits: number[] = []
  const answerAfter = (ms: number) => (_places: unknown, wait: number) => {
    waits.push(wait)
    return new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), ms))
  }
  const { ways, pass, follower } = followed({}, { isWithoutStream: true, frames: answerAfter(framesWaitMaxMs) })
  await pass(10 * framesWaitMaxMs)
  expect(new Set(waits)).toEqual(new Set([framesWaitMaxMs]))
  expect(waits.length).toBeLessThanOrEqual(11)
  expect(waits.length).toBeGreaterThanOrEqual(9)
  ways.frames = answerAfter(0)
  await pass(framesWaitMaxMs)
  waits.length = 0
  await pass(10_000)
  expect(waits.length).toBeLessThanOrEqual(11)
  expect(waits.length).toBeGreaterThanOrEqual(9)
  await follower.stop()
})
