/** A minute of takeovers; `npm run take-overs` runs any number of rounds. */
import { expect, test, vi } from 'vitest'
import { runTakeOvers } from '../crashes/take-overs.ts'
import { missingNats, skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory } from '../support/board-process.ts'
import { chooseSeed } from '../support/load.ts'

vi.setConfig({ testTimeout: 1_800_000 })

const missing = missingNats()

test.skipIf(skipWithout(missing))(
  `after each fault at a random moment under load one box leads and has every acknowledged post at its place${skipNote(missing)}`,
  async () => {
    const seed = chooseSeed('take-overs')
    const setup = { placement: 'back', shards: 1, ack: seed % 2 === 0 ? 'quorum' : 'copy' } as const
    const summary = await runTakeOvers({ ...setup, rounds: 300, seconds: 60, seed, directory: boardDirectory() })
    console.info(summary)
    expect(summary).toContain('nothing found')
  },
)
