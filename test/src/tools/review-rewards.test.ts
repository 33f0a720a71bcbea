/** Rewards for reviews: the review is on disk, so a reward that cannot be decided or recorded at first is not forgotten. */

import { expect, test } from 'vitest'
import { refusal } from '../../../actors/kernel/refusals.ts'
import type { ArgsOf } from '../../../actors/records/write.ts'
import type { RewardArgs } from '../../../actors/works/market/letters.ts'
import type { Actors, NoAnswer, TakeReply } from '../../../src/command/ports.ts'
import { type ReadAnswer, type ReadCall, replyWith, type Take } from '../../../src/reads/read.ts'
import { toolsReads } from '../../../src/tools/reads.ts'
import { ReviewRewards } from '../../../src/tools/review-rewards.ts'

const reviewer = 'a'.repeat(64)
const subject = 's1'
const busy = { ok: false, refusal: refusal('overloaded', 'the index is being made', undefined, 5) } as const
const answers: Readonly<Record<string, object>> = {
  'tools.recent_reviews': { reviews: [{ subject, author: reviewer, at: 1_000 }] },
  'tools.subject': { tools: ['t'], isOwner: false, publishers: ['p'] },
  'tools.reviewer': { isTied: false, vouchers: [] },
  'identity.get': { identity: { created_at: 0 } },
  'calls.completed': { completed: true },
}

const immediately = (callback: () => void): void => void setImmediate(callback)

/** Rewards where each query, and the letter, fails with each of `hindrances` in turn before it is answered. */
function rewardsOver(hindrances: readonly (ReadAnswer | NoAnswer)[]) {
  const met = new Map<string, number>()
  const hindrance = (op: string) => {
    const n = met.get(op) ?? 0
    met.set(op, n + 1)
    return n < hindrances.length ? { met: hindrances[n] } : undefined
  }
  const given: string[] = []
  const write: Actors['write'] = ({ op, args }, answer) => {
    const found = hindrance(op)
    if (found !== undefined) return answer(found.met === undefined ? undefined : busy, undefined)
    given.push((args as ArgsOf<'credit.reward'>).reviewer)
    const give: TakeReply = answer
    give({ ok: true, reply: {} }, undefined)
  }
  const read: ReadCall = ({ op }, answer) => {
    const found = hindrance(op)
    const give: Take = answer
    give(found === undefined ? { ok: true, value: answers[op], until: 0 } : found.met)
  }
  const rewards = new ReviewRewards({
    actors: { write } as Actors,
    read,
    noteChange: () => {},
    limitsOn: true,
    secret: Buffer.alloc(32),
    wallSeconds: () => 100 * 86_400,
    later: immediately,
    report: () => {},
  })
  return { rewards, given, met }
}

test.each([
  ['no answer', [undefined, undefined]],
  ['a refusal that passes', [busy, busy]],
])('%s only postpones a reward, at every step of it', async (_what, hindrances) => {
  const { rewards, given } = rewardsOver(hindrances)
  await rewards.consider({ subject, author: reviewer })
  expect(given).toEqual([reviewer])
  const again = rewardsOver(hindrances)
  await again.rewards.resume()
  expect(again.given).toEqual([reviewer])
})

test('data that does not exist, or can never be read, is not requested again', async () => {
  const absent: ReadAnswer = { ok: false, absent: refusal('not_found', 'no such tool') }
  const broken: ReadAnswer = { ok: false, refusal: refusal('internal', 'a fault') }
  for (const each of [absent, broken]) {
    const { rewards, given, met } = rewardsOver([each])
    await rewards.consider({ subject, author: reviewer })
    expect([given, met.get('tools.subject')]).toEqual([[], 1])
  }
})

test('a board that stops requests nothing more', async () => {
  const { rewards, given } = rewardsOver(Array.from({ length: 1_000 }, () => undefined))
  const considered = rewards.consider({ subject, author: reviewer })
  rewards.close()
  await considered
  expect(given).toEqual([])
})

/** Rewards of several reviews, where the index has no answer about the subject `stuck` while `isDamaged` says so. */
function rewardsOf(authors: readonly string[], isDamaged: (tries: number) => boolean) {
  const reviews = authors.map((author) => ({ subject: author === 'stuck' ? 'stuck' : subject, author, at: 1_000 }))
  const waits: number[] = []
  const said: object[] = []
  const given: string[] = []
  let tries = 0
  const rewards = new ReviewRewards({
    actors: {
      write: ({ args }, answer) => {
        given.push((args as ArgsOf<'credit.reward'>).reviewer)
        const give: TakeReply = answer
        give({ ok: true, reply: {} }, undefined)
      },
    } as Actors,
    read: ({ op, args }, answer) => {
      if (op === 'tools.subject' && args.subject === 'stuck' && isDamaged(++tries)) return answer(busy)
      const found = op === 'tools.recent_reviews' ? { reviews } : answers[op]
      answer({ ok: true, reply: replyWith(JSON.stringify(found)), until: 0 })
    },
    noteChange: () => {},
    limitsOn: true,
    secret: Buffer.alloc(32),
    wallSeconds: () => 100 * 86_400,
    later: (callback, ms) => {
      waits.push(ms / 1_000)
      immediately(callback)
    },
    report: (facts) => said.push(facts),
  })
  return { rewards, waits, said, given }
}

test('a reward that cannot be decided is retried less and less often, and that is logged once', async () => {
  const { rewards, waits, said, given } = rewardsOf([], (tries) => tries <= 12)
  await rewards.consider({ subject: 'stuck', author: reviewer })
  expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300])
  expect(said).toEqual([{ review_of: 'stuck', no_answer_to: 'tools.subject', again_in_seconds: 64 }])
  expect(given).toEqual([reviewer])
})

test('at a start, one that cannot be decided now holds up none of the others', async () => {
  const { rewards, given } = rewardsOf(['stuck', 'b', 'c'], () => !given.includes('c'))
  await rewards.resume()
  expect(given).toEqual(['b', 'c', 'stuck'])
})

test('one that a bug keeps from being decided is reported, and the others continue', async () => {
  const { rewards, said, given } = rewardsOf(['stuck', 'b'], () => {
    throw new Error('a fault')
  })
  await rewards.resume()
  expect(said).toEqual([{ review_of: 'stuck', problem: 'Error: a fault' }])
  expect(given).toEqual(['b'])
})

/** Authors of the reviews that a start resumes: of three days, the last two within 24 hours; `rewarded` for their subject already. */
function takenUp(rewarded: readonly string[]): string[] {
  const times = [100, 100_000, 186_000]
  const events = { newestAt: times.at(-1) }
  const all = () => times.map((at, n) => ({ subject, author: String(n), at }))
  const given = { rewarded: new Map(rewarded.length === 0 ? [] : [[subject, rewarded]]) }
  const context = { state: { tools: { reviews: { all } }, market: { given } }, board: { events } } as never
  const found = toolsReads['tools.recent_reviews'](context, {
    op: 'tools.recent_reviews',
    args: { seconds: 86_400, most: 3 },
    reader: '',
  })
  if (!found.ok) throw new Error('no reviews')
  return found.value.reviews.map(({ author }) => author)
}

test('a start resumes reviews of the last day before the newest post, however long the board was down', () => {
  expect(takenUp([])).toEqual(['1', '2'])
})

test('rewards that the market has decided are not resumed, and the index of the directory is not built for them', () => {
  expect(takenUp(['2', 'x'])).toEqual(['1'])
  expect(takenUp(['x', 'y', 'z'])).toEqual([])
})

/** What a board knows of a reviewer and a subject, and whether the market is asked for a reward; its caps by name. */
async function asked(more: Readonly<Record<string, object>>, address?: string) {
  let caps: ReadonlyMap<string, number> | undefined
  const rewards = new ReviewRewards({
    actors: {
      write: ({ args }, answer) => {
        caps = new Map((args as unknown as RewardArgs).caps.map(({ name, most }) => [name, most]))
        const give: TakeReply = answer
        give({ ok: true, reply: {} }, undefined)
      },
    } as Actors,
    read: ({ op, args }, answer) => {
      const found = more[op === 'identity.get' ? `identity.get ${args.target}` : op] ?? answers[op]
      answer({ ok: true, reply: replyWith(JSON.stringify(found)), until: 0 })
    },
    noteChange: () => {},
    limitsOn: true,
    secret: Buffer.alloc(32),
    wallSeconds: () => 100 * day,
    later: immediately,
    report: () => {},
  })
  await rewards.consider({ subject, author: reviewer, ...(address === undefined ? {} : { address }) })
  return caps
}

const day = 86_400
const since = (target: string, at: number) => ({ [`identity.get ${target}`]: { identity: { created_at: at } } })
const young = since(reviewer, 99 * day)
const vouchedFor = { 'tools.reviewer': { isTied: false, vouchers: [{ requester: 'r', at: 98 * day }] } }

test.each([
  ['one of 30 days', {}, true],
  ['one of yesterday', young, false],
  [
    'one of yesterday, of whom somebody of a week accepted a work',
    { ...young, ...vouchedFor, ...since('r', 91 * day) },
    true,
  ],
  [
    'one of yesterday, of whom somebody accepted a work a week before',
    { ...young, ...vouchedFor, ...since('r', 91 * day + 1) },
    false,
  ],
  ['one of 30 days to whom credits of the publisher went', { 'tools.reviewer': { isTied: true, vouchers: [] } }, false],
  ['one of 30 days who owns it', { 'tools.subject': { tools: ['t'], isOwner: true, publishers: ['p'] } }, false],
  [
    'one of 30 days, of a listing that no host confirms',
    { 'tools.subject': { tools: ['t'], isOwner: false, publishers: [] } },
    false,
  ],
  ['one of 30 days who never called it', { 'calls.completed': { completed: false } }, false],
] as const)('a review by %s is rewarded: %s', async (_who, more, isRewarded) => {
  expect((await asked(more)) !== undefined).toBe(isRewarded)
})

test('a reward counts for the board, the reviewer, each publisher, the network and the wider network, all hashed', async () => {
  const names = async (address?: string) => [...(await asked({}, address))!]
  const ipv6 = await names('2001:db8:1:2::3')
  expect(ipv6.map(([, most]) => most)).toEqual([20, 2, 5, 10, 40])
  expect(ipv6.slice(0, 3).map(([name]) => name)).toEqual(['board', `reviewer ${reviewer}`, 'publisher p'])
  for (const [name] of ipv6.slice(3)) expect(name).toMatch(/^network [\w-]{16}$/)
  const near = await names('2001:db8:1:9::3')
  expect([near[3]![0] === ipv6[3]![0], near[4]![0] === ipv6[4]![0]]).toEqual([false, true])
  expect((await names('192.0.2.1')).slice(3)).toHaveLength(1)
  expect((await names()).slice(3)).toEqual([['network ', 10]])
})
