/** A minute of take-overs; `npm run take-overs` takes any number of rounds. */
import { expect, test, vi } from 'vitest'
import { runTakeOvers } from '../crashes/take-overs.ts'
import { missingNats, skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory } from '../support/board-process.ts'
import { chooseSeed } from '../support/load.ts'

vi.setConfig({ testTimeout: 1_800_000 })

const missing = missingNats()

test.skipIf(skipWithout(missing))(
  `after each fault at random moments under load a box leads, with every acknowledged post at its place${skipNote(missing)}`,
  async () => {
    const seed = chooseSeed('take-overs')
    const where = { placement: 'back', shards: 1, ack: seed % 2 === 0 ? 'quorum' : 'copy' } as const
    const summary = await runTakeOvers({ ...where, rounds: 300, seconds: 60, seed, directory: boardDirectory() })
    console.info(summary)
    expect(summary).toContain('nothing found')
  },
)
