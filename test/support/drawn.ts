/**
 * Of many that are alike, a run may take a part, drawn anew each time: BROADSIDE_TEST_SHARE of them, above 0 and at most 1. CI does, so that
 * it ends in time; without the variable all are taken.
 */
import { randomInt } from 'node:crypto'

const share = Number(process.env.BROADSIDE_TEST_SHARE ?? 1)

/** At least one of them, in their order. */
export function drawn<Item>(items: readonly Item[]): readonly Item[] {
  const left = [...items]
  while (left.length > shareOf(items.length)) left.splice(randomInt(left.length), 1)
  return left
}

/** As many of so many: at least one. */
export function shareOf(count: number): number {
  return Math.max(1, Math.round(count * share))
}
