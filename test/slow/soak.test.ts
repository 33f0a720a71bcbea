/** Half a minute of a soak test; `npm run soak` takes twenty. */
import { expect, test, vi } from 'vitest'
import { runSoak } from '../crashes/soak.ts'
import { boardDirectory } from '../support/board-process.ts'
import { chooseSeed } from '../support/load.ts'

vi.setConfig({ testTimeout: 1_800_000 })

test('over two lives, one on a slow disk, a board under attack loses nothing, and its memory and descriptors stay flat', async () => {
  const seed = chooseSeed('soak')
  const summary = await runSoak({ placement: 'back', rounds: 2, seconds: 16, seed, directory: boardDirectory() })
  console.info(summary)
  expect(summary).toContain('nothing found')
})
