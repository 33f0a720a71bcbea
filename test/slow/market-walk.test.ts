/** The long walk: a hundred thousand steps (MARKET_STEPS for more), all invariants checked after each, every row of the table used. */
import { expect, test } from 'vitest'
import { transitions } from '../../actors/works/market/table.ts'
import { walk } from '../support/market/walk.ts'

const stepsOfOne = 5_000
const steps = Number(process.env.MARKET_STEPS ?? 60_000)

test(`${steps} steps keep all invariants, and use every row of the table`, { timeout: 900_000 }, () => {
  const taken = new Set<string>()
  for (let seed = 100; seed < 100 + steps / stepsOfOne; seed++)
    for (const row of walk(seed, stepsOfOne).rows) taken.add(row)
  expect(transitions.map(({ name }) => name).filter((name) => !taken.has(name))).toEqual([])
})
