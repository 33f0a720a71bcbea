/** Ten thousand mutated inputs for each parser; `npm run fuzz` takes a million. */
import { expect, test } from 'vitest'
import { fuzz } from '../fuzz/fuzz.ts'
import { chooseSeed } from '../support/load.ts'
import { shareOf } from '../support/random-part.ts'

test('no parser accepts mutated input as the original, and none crashes', async () => {
  const lines: string[] = []
  for await (const line of fuzz({ rounds: shareOf(10_000), seed: chooseSeed('fuzz') })) lines.push(line)
  expect(lines).toHaveLength(9)
})
