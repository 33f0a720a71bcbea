/** Ten thousand changed inputs for each reader of bytes; `npm run fuzz` takes a million. */
import { expect, test } from 'vitest'
import { fuzz } from '../fuzz/fuzz.ts'
import { shareOf } from '../support/drawn.ts'
import { chooseSeed } from '../support/load.ts'

test('what reads bytes takes none that were changed for those that were written, and goes on', async () => {
  const lines: string[] = []
  for await (const line of fuzz({ rounds: shareOf(10_000), seed: chooseSeed('fuzz') })) lines.push(line)
  expect(lines).toHaveLength(9)
})
