/**
 * A run may take a random part of many similar cases: BROADSIDE_TEST_SHARE of them, above 0 and at most 1. CI does, so that it ends in
 * time; without the variable all are taken.
 */
import { chooseSeed, randomFrom } from './load.ts'

const share = Number(process.env.BROADSIDE_TEST_SHARE ?? 1)
if (!(share > 0 && share <= 1))
  throw new Error(`BROADSIDE_TEST_SHARE is ${process.env.BROADSIDE_TEST_SHARE}. It has to be above 0 and at most 1.`)
const random = share < 1 ? randomFrom(chooseSeed('drawn')) : () => 0

/** At least one of them, in order. */
export function randomPart<Item>(items: readonly Item[]): readonly Item[] {
  const chosen = [...items]
  while (chosen.length > shareOf(items.length)) chosen.splice(random(chosen.length), 1)
  return chosen
}

/** That share of a count: at least one. */
export function shareOf(count: number): number {
  return Math.max(1, Math.round(count * share))
}
