/** A minute of power cuts; `npm run power-cuts` takes any number of rounds. */
import { describe, expect, test, vi } from 'vitest'
import { missingForPowerCuts, runPowerCuts } from '../crashes/power-cuts.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory } from '../support/board-process.ts'
import { chooseSeed } from '../support/load.ts'
import { randomPart } from '../support/random-part.ts'

vi.setConfig({ testTimeout: 900_000 })

const missing = missingForPowerCuts()

describe.skipIf(skipWithout(missing))(`on a disk whose power is cut${skipNote(missing)}`, () => {
  test.each(randomPart(['back', 'threads'] as const))(
    'at any moment, also right after a new segment began, everything acknowledged is there and provable, placed as %s',
    async (placement) => {
      const seed = chooseSeed('power cuts')
      const summary = await runPowerCuts({ placement, rounds: 100, seconds: 20, seed, directory: boardDirectory() })
      console.info(summary)
      expect(summary).toContain('nothing found')
    },
  )
})
