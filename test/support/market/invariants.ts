/** Invariants of a market after every step, whatever happened: checked on the state alone, and on the log. */
import { expect } from 'vitest'
import { codes } from '../../../actors/works/market/ledger.ts'
import { finalStates, type Work } from '../../../actors/works/market/work.ts'
import type { MarketHarness } from './market-harness.ts'

export function works({ market }: MarketHarness): Work[] {
  return [...market.all]
}

/** Reports a broken law. Not `expect`, because these are checked a million times. */
function must(isSo: boolean, law: () => string): void {
  if (!isSo) throw new Error(law())
}

/** Sums of one ledger: nothing is created or lost except at the mint, nobody has a negative balance, escrow is empty between batches. */
function checkSums({ market: { ledger } }: MarketHarness): void {
  for (const number of [1, 2] as const) {
    let sum = 0
    for (const [name, { posted, held }] of ledger.accounts(number)) {
      sum += posted
      const problem = () => `${name} of ledger ${number} has ${posted}, ${held} held`
      must(held >= 0 && (name === 'mint' || posted - held >= 0), problem)
      if (number === 2 && name.startsWith('user:')) must(posted === held, problem)
      if (name === 'escrow') must(posted === 0 && held === 0, problem)
      if (number === 2 && name === 'fees') must(posted === 0, problem)
    }
    must(sum === 0, () => `ledger ${number} sums up to ${sum}`)
  }
}

/** Every hold belongs to one live work, reservation or bond, and each of those has its own. */
function checkHolds(harness: MarketHarness, live: readonly Work[]): void {
  const { ledger } = harness.market
  const sums = new Map<string, number>()
  let wanted = 0
  const want = (id: string, identity: string, amount: number, simulated: boolean): void => {
    wanted++
    const hold = ledger.hold(id)
    const number = simulated ? 2 : 1
    const account = `user:${identity}`
    const isRight = hold?.account === account && hold.amount === amount && hold.ledger === number
    must(isRight, () => `hold ${id} must be ${amount} of ${account}, and is ${JSON.stringify(hold)}`)
    sums.set(`${number} ${account}`, (sums.get(`${number} ${account}`) ?? 0) + amount)
  }
  for (const work of live) {
    want(work.hold, work.requester, work.amount + work.fee, work.simulated)
    if (work.state === 'disputed' && work.bond !== '') want(work.bond, work.worker, work.bond_amount, work.simulated)
  }
  for (const { fixed, begun } of harness.market.reservations)
    want(begun.hold, fixed.requester, begun.amount + begun.fee, fixed.simulated)
  must(ledger.holds.size === wanted, () => `${ledger.holds.size} holds, and ${wanted} are accounted for`)
  for (const number of [1, 2] as const)
    for (const [name, { held }] of ledger.accounts(number))
      must(held === (sums.get(`${number} ${name}`) ?? 0), () => `${name} holds ${held}, not what its works do`)
}

const held: ReadonlySet<string> = new Set(['claimed', 'submitted', 'revision', 'rejected', 'disputed'])

/** Each field is there in the states that the interface names, and in no other. */
function checkShape(stored: Work, work: Work): void {
  const problem = () => `${work.state}: ${JSON.stringify(work)}`
  must(work.deadline - work.created_at === 604_800 && work.fence <= work.fence_counter, problem)
  if (work.state === 'open')
    must(
      work.fence + work.claim_expires_at + work.submitted_at === 0 && work.worker === '' && work.result === null,
      problem,
    )
  if (held.has(work.state)) {
    must(work.fence === work.fence_counter && work.worker !== '' && work.reward_state === 'held', problem)
    must(work.worker !== work.requester && work.worker !== work.reviewer, problem)
  }
  if (['submitted', 'accepted', 'split'].includes(work.state)) must(work.result !== null, problem)
  must(finalStates.has(work.state) === work.settled_at > 0, problem)
  must(work.fence_counter >= stored.fence_counter, problem)
}

/** Credits and fences after every step, and that a work that has ended stays unchanged. */
export class Invariants {
  readonly #ended = new Map<string, string>()
  readonly #fences = new Map<string, number>()

  check(harness: MarketHarness): void {
    checkSums(harness)
    const live: Work[] = []
    for (const id of harness.live) {
      const work = harness.market.find(id)!
      checkShape(work, harness.settledWork(id))
      must(work.fence_counter >= (this.#fences.get(id) ?? 0), () => `the fence of ${id} went down`)
      this.#fences.set(id, work.fence_counter)
      if (!finalStates.has(work.state)) {
        live.push(work)
        continue
      }
      harness.live.delete(id)
      this.#ended.set(id, endOf(work))
    }
    checkHolds(harness, live)
  }

  /** Everything that ever ended. */
  checkEnded({ market }: MarketHarness): void {
    for (const [id, end] of this.#ended) must(endOf(market.find(id)!) === end, () => `${id} changed after it had ended`)
  }
}

/** Later events about its texts are no change of the work. */
function endOf({ observed, result, version, versions, editing, steps, updated_at, places, ...kept }: Work): string {
  return JSON.stringify(Object.entries(kept).sort())
}

/** The log alone, as anybody can check it: numbers without gaps, each hold resolved once and in full, and the use of each. */
export function expectLog(harness: MarketHarness): void {
  const { log, market } = harness
  expect(log.map(({ seq }) => seq)).toEqual(log.map((_, n) => n + 1))
  expect(new Set(log.map(({ transfer }) => transfer)).size).toBe(log.length)
  const held = new Map<string, number>()
  let escrow = 0
  let minted = 0
  for (const { type, code, event, debit, credit, amount } of log) {
    const key = `${event} ${debit}`
    if (type === 'hold') held.set(key, (held.get(key) ?? 0) + amount)
    else if (type === 'void') {
      expect(held.get(key), `${event}: ${code}`).toBeGreaterThanOrEqual(amount)
      held.set(key, held.get(key)! - amount)
    } else if (type === 'post') {
      escrow += amount
      // The part of a hold that is not posted is free again.
      held.set(key, Number(code) === codes.bondTaken ? held.get(key)! - amount : 0)
    } else if (debit === 'escrow') escrow -= amount
    if (debit === 'mint') minted += amount
    expect(credit).not.toBe(debit)
  }
  expect(escrow).toBe(0)
  const live = works(harness).filter((work) => work.is_public && !work.simulated && !finalStates.has(work.state))
  const inLog = [...held.values()].reduce((sum, amount) => sum + amount, 0)
  expect(inLog).toBe(
    live.reduce(
      (sum, { amount, fee, bond_amount, state }) => sum + amount + fee + (state === 'disputed' ? bond_amount : 0),
      0,
    ),
  )
  expect(minted).toBe(-market.ledger.account('mint').posted)
}
