/** Works and credits: what is paid when, who may do what, and what happens when time passes. */
import { describe, expect, test } from 'vitest'
import { State } from '../../actors/state.ts'
import { balanceOf } from '../../actors/works/market/credits.ts'
import { transitions } from '../../actors/works/market/table.ts'
import { claimSecondsLeft, formerWorkersMax } from '../../actors/works/market/work.ts'
import {
  type Args,
  boundOf,
  day,
  hour,
  inRoom,
  MarketHarness,
  moderator,
  type Person,
  someone,
  terms,
} from '../support/market/market-harness.ts'

const [ada, bob, eve, judge] = ['ada', 'bob', 'eve', 'judge'].map(someone) as [Person, Person, Person, Person]

function harness(): MarketHarness {
  const made = new MarketHarness()
  made.beginEpoch()
  for (const each of [ada, bob, eve]) made.grant(each, 1_000)
  return made
}

/** A work of 100 credits, in a state that a worker brought it to. */
function at(state: 'open' | 'claimed' | 'submitted' | 'revision' | 'rejected' | 'disputed', more = {}) {
  const t = harness()
  const work = t.work(ada, 100, more)
  const to = ['open', 'claimed', 'submitted', 'rejected', 'disputed'].indexOf(
    state === 'revision' ? 'submitted' : state,
  )
  if (to >= 1) t.claim(bob, work)
  if (to >= 2) t.submit(bob, work, 1)
  if (state === 'revision') t.workCommand('work.revise', ada, work, { reason: 'more' })
  if (to >= 3) t.workCommand('work.reject', ada, work, { reason: 'it is not what was asked for' })
  if (to >= 4) t.workCommand('work.dispute', bob, work, { amount: 1, reason: 'it is' })
  expect(t.settledWork(work).state).toBe(state)
  return { t, work, has: (who: Person) => balanceOf(t.market, `user:${who.id}`, t.now) }
}

test('a reward of 100 costs 101 while it is held, and pays 100 and a fee of 1 when the result is accepted', () => {
  const { t, work, has } = at('submitted')
  expect(has(ada)).toMatchObject({ available: 899, held: 101 })
  t.workCommand('work.accept', ada, work)
  expect([has(ada), has(bob)]).toMatchObject([{ available: 899, held: 0 }, { available: 1_100 }])
  expect(t.market.ledger.account('fees').posted).toBe(1)
  expect(t.settledWork(work)).toMatchObject({
    state: 'accepted',
    reward_state: 'paid',
    reward_reason: 'accepted',
    fence: 1,
  })
})

test('a ruling of 33 percent over 100 pays 33, no fee of the 1 that was held, and gives the rest back', () => {
  const { t, work, has } = at('disputed')
  expect(has(bob)).toMatchObject({ available: 990, held: 10 })
  t.workCommand('work.rule', judge, work, { percent: 33, reason: 'a third', standing: moderator })
  expect([has(ada).available, has(bob)]).toEqual([967, { available: 1_033, held: 0, simulated: { held: 0 } }])
  expect(t.settledWork(work)).toMatchObject({ state: 'split', reward_state: 'split', percent: 33 })
})

test('a reward can be raised up to the maximum, in practice works too, and no further', () => {
  const { t, work } = at('open', { simulated: true })
  const most = t.limits.reward
  expect(t.workCommand('work.raise', ada, work, { amount: most - 99 }).refusal).toMatchObject({ code: 'invalid_field' })
  expect(t.workCommand('work.raise', ada, work, { amount: most - 100 }).refusal).toBe(undefined)
  expect(t.workCommand('work.raise', ada, work, { amount: 1 }).refusal).toMatchObject({ code: 'invalid_field' })
  expect(t.settledWork(work).amount).toBe(most)
})

test('the bond of a dispute goes to fees when nothing is won, and is returned otherwise', () => {
  for (const [percent, bond] of [
    [0, 0],
    [1, 10],
    [100, 10],
  ] as const) {
    const { t, work, has } = at('disputed')
    t.workCommand('work.rule', judge, work, { percent, reason: 'so', standing: moderator })
    expect(has(bob).available).toBe(990 + bond + percent)
  }
})

test('of a hundred identities that race for a work one gets it, and only with its fence', () => {
  const { t, work } = at('open')
  const racers = Array.from({ length: 100 }, (_, n) => someone(`racer ${n}`))
  const outcomes = racers.map((racer) => t.claim(racer, work).refusal?.code)
  expect(outcomes.filter((code) => code === undefined)).toHaveLength(1)
  expect(outcomes.filter((code) => code === 'wrong_state')).toHaveLength(99)
  expect(t.settledWork(work)).toMatchObject({ worker: racers[0]!.id, fence: 1 })
  const before = JSON.stringify(t.settledWork(work))
  for (const op of ['work.renew', 'work.release', 'work.dispute', 'work.concede'])
    for (const amount of [1, 2, 99])
      expect(t.workCommand(op, racers[1]!, work, { amount }).refusal?.code).toBe(
        amount === 1 ? 'forbidden' : 'stale_fence',
      )
  expect(t.submit(racers[1]!, work, 1).refusal?.code).toBe('forbidden')
  expect(JSON.stringify(t.settledWork(work))).toBe(before)
})

test('a stale fence is named as an ended claim only if there was such a claim', () => {
  const { t, work } = at('claimed')
  t.now += day + 1
  const messageFor = (amount: number) => t.workCommand('work.renew', bob, work, { amount }).refusal?.message
  expect(messageFor(1)).toBe('nobody holds this work now: claim 1 has ended; make a new one with work.claim')
  expect(messageFor(2)).toBe('nobody holds this work now, and it has had no claim 2: make one with work.claim')
})

test('a worker whose claim has expired changes nothing with any operation, even with the newest fence', () => {
  const { t, work } = at('claimed')
  t.now += day + 1
  t.claim(eve, work)
  const before = JSON.stringify(t.settledWork(work))
  const ops = ['work.renew', 'work.release', 'work.submit', 'work.dispute', 'work.concede']
  for (const op of ops) {
    const said = { amount: 1, bound: boundOf(bob, work, 'late'), reason: 'mine' }
    expect(t.workCommand(op, bob, work, said).refusal?.code).toBe('stale_fence')
    expect(t.workCommand(op, bob, work, { ...said, amount: 2 }).refusal?.code).toBe('forbidden')
  }
  for (const op of [
    'work.accept',
    'work.revise',
    'work.reject',
    'work.cancel',
    'work.raise',
    'work.reopen',
    'work.edit',
  ])
    expect(t.workCommand(op, bob, work, { amount: 1 }).refusal?.code).toMatch(/^(forbidden|not_the_reviewer)$/)
  expect(t.claim(bob, work).refusal?.code).toBe('wrong_state')
  expect(JSON.stringify(t.settledWork(work))).toBe(before)
  expect(t.settledWork(work)).toMatchObject({ worker: eve.id, fence: 2 })
})

describe('timeouts take effect when they are due, whoever notices them and when', () => {
  const other = { reviewer: judge.id, reviewer_key: 'k' }
  const missing = { event: 'result', change: 'redacted', by: 'author', n: 1 }
  const cases: readonly [
    row: string,
    state: Parameters<typeof at>[0],
    after: number,
    becomes: string,
    more?: Args,
    said?: Args,
  ][] = [
    ['expire', 'open', 7 * day, 'expired'],
    ['lapse', 'claimed', day, 'open'],
    ['silence', 'submitted', 3 * day, 'accepted'],
    ['silence_disputed', 'submitted', 3 * day, 'disputed', {}, missing],
    ['revision_lapse', 'revision', day, 'rejected'],
    ['undisputed', 'rejected', 2 * day, 'refunded'],
    ['unruled_split', 'disputed', 7 * day, 'split'],
    ['unruled', 'disputed', 7 * day, 'refunded', other],
  ]
  test.each(cases)('%s', (row, state, after, becomes, more = {}, said) => {
    const reviewed = Object.keys(more).length > 0
    const made = reviewed ? undefined : at(state)
    const t = made?.t ?? harness()
    const work = made?.work ?? t.work(ada, 100, more)
    if (reviewed) {
      t.claim(bob, work)
      t.submit(bob, work, 1)
      t.workCommand('work.reject', judge, work, { reason: 'it is not what was asked for' })
      t.workCommand('work.dispute', bob, work, { amount: 1, reason: 'it is' })
    }
    if (said !== undefined) t.boardLetter('work.observe', { work, ...said })
    const begun = t.now
    t.now = begun + after - 1
    expect(t.settledWork(work).state).toBe(state)
    expect(t.tick().reply).toMatchObject({ written: 0, next: begun + after })
    t.now = begun + after + 12_345
    expect([t.market.find(work)!.state, t.settledWork(work).state, t.settledWork(work).updated_at]).toEqual([
      state,
      becomes,
      begun + after,
    ])
    expect(t.tick().reply).toMatchObject({ written: 1 })
    const written = t.market.find(work)!
    expect([written.state, written.updated_at]).toEqual([becomes, begun + after])
    const row_ = transitions.find(({ name }) => name === row)!
    expect([row_.on, row_.to]).toEqual(['timeout', becomes])
  })

  test('if no reviewer has rejected anything, a dispute that nobody rules on is split, whoever reviews', () => {
    const silent = at('submitted', other)
    silent.t.boardLetter('work.observe', { work: silent.work, ...missing })
    silent.t.now += 3 * day
    const restored = at('submitted', other)
    restored.t.generation = '2'.repeat(32)
    restored.t.beginEpoch()
    restored.t.now += 3 * day
    for (const { t, work, has } of [silent, restored]) {
      expect(t.settledWork(work)).toMatchObject({ state: 'disputed', bond: '' })
      t.now += 7 * day
      t.tick()
      expect(t.settledWork(work)).toMatchObject({ state: 'split', percent: 50 })
      expect([has(ada).available, has(bob).available]).toEqual([950, 1_050])
    }
  })

  test('a reopened rejected work keeps its hold, and expires at its deadline', () => {
    const { t, work, has } = at('rejected')
    t.workCommand('work.reopen', ada, work)
    t.now += 2 * day
    expect(t.settledWork(work)).toMatchObject({ state: 'open', fence: 0, worker: '', reward_state: 'held' })
    expect(has(ada).held).toBe(101)
    // Two timeouts one after the other, noticed together.
    t.now += 30 * day
    expect(t.settledWork(work)).toMatchObject({ state: 'expired', updated_at: t.settledWork(work).deadline })
    t.tick()
    expect(t.market.find(work)!.places).toHaveLength(7)
    expect(has(ada)).toMatchObject({ available: 1_000, held: 0 })
  })

  test('a command finds its signer’s works with timeouts applied: refunded credits can be spent', () => {
    const t = harness()
    const first = t.work(ada, 900)
    expect(t.reserve(ada, 900).refusal?.code).toBe('insufficient_credits')
    t.now += 7 * day
    expect(t.reserve(ada, 900).refusal).toBeUndefined()
    expect(t.market.find(first)!.state).toBe('expired')
  })
})

describe('after a backup was restored', () => {
  function restored(state: 'claimed' | 'submitted' | 'revision') {
    const made = at(state)
    made.t.generation = '2'.repeat(32)
    made.t.beginEpoch()
    return made
  }

  test('work in progress waits for its worker, and no other timeout runs', () => {
    const { t, work } = restored('submitted')
    t.now += 2 * day
    const early = t.workCommand('work.reject', ada, work, { reason: 'it is not what was asked for' })
    expect(early.refusal).toMatchObject({ code: 'wrong_state', message: expect.stringContaining('recovery_required') })
    const other = boundOf(bob, work, 'another')
    expect(t.workCommand('work.submit', bob, work, { amount: 1, bound: other }).refusal?.code).toBe('conflict')
    expect(t.submit(bob, work, 1).refusal).toBeUndefined()
    expect(t.settledWork(work)).toMatchObject({
      state: 'submitted',
      generation: t.generation,
      review_due: t.now + 3 * day,
    })
  })

  test.each([
    ['claimed', 'open'],
    ['revision', 'rejected'],
    ['submitted', 'disputed'],
  ] as const)('%s becomes %s if nobody confirms it for 72 hours', (state, becomes) => {
    const { t, work } = restored(state)
    t.now += 3 * day - 1
    expect(t.market.find(work)!.state).toBe(state)
    expect(t.market.settled(t.market.find(work)!, t.now).steps).toEqual([])
    t.now += 1
    expect(t.settledWork(work).state).toBe(becomes)
  })

  test('a claim is confirmed by renewing it, under the same fence', () => {
    const { t, work } = restored('claimed')
    t.now += hour
    expect(t.workCommand('work.renew', bob, work, { amount: 1, ttl: hour }).refusal).toBeUndefined()
    expect(t.settledWork(work)).toMatchObject({
      state: 'claimed',
      fence: 1,
      claim_expires_at: t.now + hour,
      renewals: 0,
    })
  })
})

test('a result removed by a moderator counts as submitted: silence still pays, and the requester may accept', () => {
  const { t, work } = at('submitted')
  t.boardLetter('work.observe', { work, n: 1, event: 'result', change: 'hidden', by: 'other' })
  t.boardLetter('work.observe', { work, n: 2, event: 'result', change: 'redacted', by: 'other' })
  expect(t.settledWork(work).result).toMatchObject({ available: false, missing: false })
  t.now += 3 * day
  expect(t.settledWork(work)).toMatchObject({ state: 'accepted', reward_reason: 'reviewer_silent' })
})

test('a result that its worker hides as a moderator is missing, as if redacted, until it is restored', () => {
  const said = { event: 'result', by: 'author' } as const
  const { t, work } = at('submitted')
  t.boardLetter('work.observe', { work, n: 1, ...said, change: 'hidden' })
  expect(t.settledWork(work).result).toMatchObject({ available: false, missing: true })
  expect(t.workCommand('work.accept', ada, work).refusal?.code).toBe('not_found')
  // A second removal by somebody else does not make up for it.
  const hidden = at('submitted')
  hidden.t.boardLetter('work.observe', { work: hidden.work, n: 1, ...said, change: 'hidden' })
  hidden.t.boardLetter('work.observe', { work: hidden.work, n: 2, ...said, by: 'other', change: 'redacted' })
  hidden.t.now += 3 * day
  expect(hidden.t.settledWork(hidden.work).state).toBe('disputed')
  t.boardLetter('work.observe', { work, n: 2, ...said, by: 'other', change: 'restored' })
  expect(t.settledWork(work).result).toMatchObject({ available: true, missing: false })
  t.now += 3 * day
  expect(t.settledWork(work)).toMatchObject({ state: 'accepted', reward_reason: 'reviewer_silent' })
})

test('events about a former worker’s result do not affect the one submitted since', () => {
  const { t, work } = at('rejected')
  const former = t.settledWork(work).result!.id
  t.workCommand('work.reopen', ada, work)
  t.workCommand('work.concede', bob, work, { amount: 1 })
  t.claim(eve, work)
  t.submit(eve, work, 2, 'of eve')
  const said = { event: 'result', by: 'author', change: 'redacted' } as const
  t.boardLetter('work.observe', { work, n: 1, ...said, result: former })
  expect(t.settledWork(work)).toMatchObject({ observed: 1, result: { available: true, missing: false } })
  t.boardLetter('work.observe', { work, n: 2, ...said, result: t.settledWork(work).result!.id })
  expect(t.settledWork(work).result).toMatchObject({ available: false, missing: true })
})

test('a result that its worker changed is accepted only with its current hash', () => {
  const { t, work } = at('submitted')
  const { sha256 } = boundOf(bob, work, 'other')
  t.boardLetter('work.observe', { work, n: 1, event: 'result', change: 'edited', by: 'author', sha256 })
  expect(t.workCommand('work.accept', ada, work).refusal?.code).toBe('conflict')
  expect(t.workCommand('work.accept', ada, work, { accept_changed: true }).refusal?.code).toBe('conflict')
  expect(
    t.workCommand('work.accept', ada, work, { accept_changed: true, result_sha256: sha256 }).refusal,
  ).toBeUndefined()
})

test('an open work whose request a moderator redacted is cancelled; a claimed one continues', () => {
  for (const [state, becomes] of [
    ['open', 'cancelled'],
    ['claimed', 'claimed'],
  ] as const) {
    const { t, work } = at(state)
    t.boardLetter('work.observe', { work, n: 1, event: 'request', change: 'redacted', by: 'other' })
    expect(t.settledWork(work).state).toBe(becomes)
  }
})

test('practice costs nothing: its credits are created for it and disappear after it, and it counts for nobody', () => {
  const poor = someone('poor')
  const t = harness()
  const work = t.work(poor, 5_000, { simulated: true })
  expect(balanceOf(t.market, `user:${poor.id}`, t.now)).toEqual({ available: 0, held: 0, simulated: { held: 5_050 } })
  t.claim(bob, work)
  t.submit(bob, work, 1)
  t.workCommand('work.accept', poor, work)
  expect(t.availableTo(bob)).toBe(1_000)
  for (const each of [poor, bob]) expect(t.availableTo(each, 2)).toBe(0)
  expect(t.market.isNewcomer(bob.id)).toBe(true)
  expect(t.log.some(({ event }) => event === work)).toBe(false)
})

test('a work for newcomers is for identities without an accepted result, one at a time', () => {
  const t = harness()
  const works = [0, 1, 2].map(() => t.work(ada, 10, { eligibility: 'first_work' })) as [string, string, string]
  t.claim(bob, works[0])
  expect(t.claim(bob, works[1]).refusal?.code).toBe('not_eligible')
  t.submit(bob, works[0], 1)
  t.workCommand('work.accept', ada, works[0])
  expect(t.claim(bob, works[2]).refusal?.code).toBe('not_eligible')
  expect(t.claim(eve, works[2]).refusal).toBeUndefined()
})

test('an identity that lets claims expire waits an hour, and after two of one work cannot claim that one', () => {
  const { t, work } = at('claimed')
  t.now += day
  expect(t.claim(bob, work).refusal).toMatchObject({ code: 'rate_limited', retryAfter: hour })
  t.now += hour
  expect(t.claim(bob, work).refusal).toBeUndefined()
  t.now += day + hour
  expect(t.claim(bob, work).refusal?.code).toBe('not_eligible')
})

test('claims of any number of keys hold a work for four days without a result; then a claim needs one in hand', () => {
  const { t, work } = at('open')
  const keys = Array.from({ length: 9 }, (_, n) => someone(`free key ${n}`))
  const opened = t.now
  let held = 0
  for (const each of keys) {
    const begun = t.now
    if (t.claim(each, work, { ttl: 2 * day }).refusal !== undefined) break
    const { fence } = t.settledWork(work)
    for (let n = 0; n < 3; n++) {
      t.now = t.settledWork(work).claim_expires_at - 1
      t.workCommand('work.renew', each, work, { amount: fence, ttl: 2 * day })
    }
    t.now = t.settledWork(work).claim_expires_at
    expect(t.settledWork(work)).toMatchObject({ state: 'open', claim_expires_at: 0 })
    held += t.now - begun
  }
  expect([held, t.now - opened]).toEqual([4 * day, 4 * day])
  const refused = t.claim(eve, work)
  expect(refused.refusal).toMatchObject({
    code: 'wrong_state',
    message: expect.stringContaining('claim with it as target'),
  })
  expect(t.claim(eve, work, { bound: boundOf(eve, work, 'ready') }).refusal).toBeUndefined()
  expect(t.settledWork(work)).toMatchObject({ state: 'submitted', worker: eve.id, claim_expires_at: t.now + day })
})

test('a released claim counts for as long as it held the work, and one that led to a result does not', () => {
  const { t, work } = at('rejected')
  t.workCommand('work.reopen', ada, work)
  t.workCommand('work.concede', bob, work, { amount: 1 })
  t.claim(eve, work, { ttl: day })
  t.now += 6 * hour
  t.workCommand('work.release', eve, work, { amount: 2 })
  expect(claimSecondsLeft(t.settledWork(work))).toBe(4 * day - 6 * hour)
  expect(State.unpack(t.state.pack(null))!.state.market.find(work)!.left).toEqual(t.settledWork(work).left)
})

test('a work remembers a bounded number of releases, and never forgets how long claims held it', () => {
  const { t, work } = at('open')
  const keys = Array.from({ length: 80 }, (_, n) => someone(`passing key ${n}`))
  const [lapsing] = keys as [Person]
  t.claim(lapsing, work, { ttl: 900 })
  t.now += 900
  expect(t.settledWork(work).state).toBe('open')
  const begun = t.now
  for (const each of keys.slice(1)) {
    expect(t.claim(each, work).refusal).toBeUndefined()
    t.now += 60
    t.workCommand('work.release', each, work, { amount: t.settledWork(work).fence })
  }
  const { left } = t.settledWork(work)
  expect(Object.keys(left)).toHaveLength(formerWorkersMax + 1)
  expect(claimSecondsLeft(t.settledWork(work))).toBe(4 * day - 900 - (t.now - begun))
  // An expired claim is remembered, and so are the latest releases; the first identity to release may come back.
  expect(left[lapsing.id]).toMatchObject({ lapses: 1 })
  expect(t.claim(keys.at(-1)!, work).refusal?.code).toBe('rate_limited')
  expect(State.unpack(t.state.pack(null))!.state.market.find(work)!.left).toEqual(left)
  expect(t.claim(keys[1]!, work).refusal).toBeUndefined()
})

test('a claim confirmed after a recovery stays within the total that all claims may hold the work', () => {
  const { t, work } = at('open')
  t.claim(eve, work, { ttl: 2 * day })
  t.now += 2 * day - 1
  t.workCommand('work.release', eve, work, { amount: 1 })
  t.claim(bob, work, { ttl: day })
  const ends = t.now + 2 * day + 1
  t.now += 12 * hour
  t.generation = '2'.repeat(32)
  t.beginEpoch()
  const confirm = () => t.workCommand('work.renew', bob, work, { amount: 2, ttl: 2 * day })
  expect(confirm().refusal).toBeUndefined()
  expect(t.settledWork(work)).toMatchObject({ state: 'claimed', claim_expires_at: ends })
  t.generation = '3'.repeat(32)
  t.beginEpoch()
  t.now = ends
  expect(confirm().refusal).toMatchObject({ code: 'wrong_state', field: 'event_id' })
  expect(confirm().refusal?.message).toContain(`${4 * day} s without a result`)
})

test('a work of a release without such a bound is claimed and renewed as before', () => {
  const t = harness()
  const { claim_total: _, ...older } = terms
  const work = t.work(ada, 10, { terms: older })
  t.claim(bob, work, { ttl: 2 * day })
  for (let n = 0; n < 3; n++) {
    t.now += 2 * day - 1
    t.workCommand('work.renew', bob, work, { amount: 1, ttl: 2 * day })
  }
  expect(t.settledWork(work)).toMatchObject({ state: 'claimed', claim_expires_at: t.settledWork(work).deadline })
})

test('a welcome is given once, ten a day to one network, and a bounded number a day on a board', () => {
  const t = harness()
  const give = (n: number, network: string, board_max = 1_000) =>
    t.boardLetter('credit.welcome', {
      identity: someone(`new ${n}`).id,
      network,
      amount: 100,
      network_max: 10,
      board_max,
    }).reply
  for (let n = 0; n < 10; n++) expect(give(n, 'a')).toEqual({ given: 100, why: '' })
  expect([give(0, 'b'), give(10, 'a')]).toEqual([
    { given: 0, why: 'already' },
    { given: 0, why: 'network' },
  ])
  t.now += day
  expect([give(10, 'a'), give(11, 'a', 1)]).toEqual([
    { given: 100, why: '' },
    { given: 0, why: 'board' },
  ])
})

test('reviews are rewarded once per author, five per subject, while the pool lasts', () => {
  const t = new MarketHarness()
  t.beginEpoch(600)
  const review = (subject: string, n: number) =>
    t.boardLetter('credit.reward', { subject, reviewer: someone(`critic ${n}`).id, amount: 100, subject_max: 5 }).reply
      .why
  expect([review('s', 0), review('s', 0)]).toEqual(['', 'already'])
  expect([1, 2, 3, 4, 5].map((n) => review('s', n))).toEqual(['', '', '', '', 'subject'])
  expect([review('t', 0), review('t', 1)]).toEqual(['', 'empty'])
})

test('while a request is being edited nobody claims the work, and a claim names the version that was read', () => {
  const { t, work } = at('open')
  t.workCommand('work.edit', ada, work)
  expect(t.claim(bob, work).refusal?.code).toBe('conflict')
  const { editing } = t.market.find(work)!
  t.boardLetter('work.edited', { work, generation: t.generation, edit: editing, taken: true })
  expect(t.claim(bob, work, { version_id: work }).refusal?.code).toBe('conflict')
  expect(t.claim(bob, work, { version_id: editing, standing: inRoom }).refusal).toBeUndefined()
  expect(t.settledWork(work)).toMatchObject({ version: editing, versions: 2, pinned: editing })
})

test('a welcome counts for the wider network too, and its limits reset with the day', () => {
  const t = harness()
  const give = (n: number, wider: string) => {
    const counts = { network: `of ${n}`, wider, network_max: 1, wider_max: 4, board_max: 100 }
    return t.boardLetter('credit.welcome', { identity: someone(`new ${n}`).id, amount: 100, ...counts }).reply.why
  }
  expect([0, 1, 2, 3, 4].map((n) => give(n, 'a'))).toEqual(['', '', '', '', 'network'])
  expect([give(5, 'b'), give(6, '')]).toEqual(['', ''])
  t.state = State.unpack(t.state.pack(null))!.state
  expect(give(4, 'a')).toBe('network')
  t.now += day
  expect(give(4, 'a')).toBe('')
})

test('rewards of a day end with the first of their caps that is reached', () => {
  const t = new MarketHarness()
  t.beginEpoch(5_000)
  const review = (n: number, names: readonly string[]) => {
    const caps = names.map((name) => ({ name, most: name === 'board' ? 4 : 2, why: name.split(' ')[0] }))
    return t.boardLetter('credit.reward', { subject: `s${n}`, reviewer: ada.id, amount: 100, subject_max: 5, caps })
      .reply.why
  }
  expect([1, 2, 3].map((n) => review(n, ['board', 'reviewer a', 'network x']))).toEqual(['', '', 'reviewer'])
  expect(review(4, ['board', 'reviewer b', 'network x'])).toBe('network')
  expect(review(5, ['board', 'reviewer b', 'publisher p', 'network y'])).toBe('')
  t.state = State.unpack(t.state.pack(null))!.state
  expect([6, 7].map((n) => review(n, ['board', `reviewer ${n}`, 'publisher p', 'network z']))).toEqual(['', 'board'])
  t.now += day
  expect(review(7, ['board', 'reviewer a', 'network x'])).toBe('')
})

test('work done before the market learns of a recovery is lost to no timeout: its worker can confirm it later', () => {
  const { t, work } = at('claimed')
  t.now += 5 * hour
  // Longer ago than a recovery may take to be confirmed.
  t.state.market.epoch = { ...t.state.market.epoch, at: t.now - 4 * day }
  t.generation = '2'.repeat(32)
  expect(t.submit(bob, work, 1).refusal).toBeUndefined()
  expect(t.settledWork(work).state).toBe('submitted')
  t.tick()
  t.beginEpoch()
  t.now += 2 * day
  expect(t.submit(bob, work, 1).refusal).toBeUndefined()
  expect(t.workCommand('work.accept', ada, work).refusal).toBeUndefined()
  expect(t.settledWork(work)).toMatchObject({ state: 'accepted', reward_state: 'paid' })
})
