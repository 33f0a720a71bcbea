/** Half a minute of backups under load; `npm run backups` takes any number. */
import { expect, test, vi } from 'vitest'
import { runBackups } from '../crashes/backups.ts'
import { boardDirectory } from '../support/board-process.ts'
import { chooseSeed } from '../support/load.ts'

vi.setConfig({ testTimeout: 1_800_000 })

test.each([
  ['one shard beside the log', { placement: 'back', shards: 1 }],
  ['three shards', { placement: 'threads', shards: 3 }],
] as const)(
  'with %s, each backup under load has every write that was acknowledged before it began',
  async (_name, where) => {
    const seed = chooseSeed('backups under load')
    const summary = await runBackups({ ...where, rounds: 200, seconds: 10, seed, directory: boardDirectory() })
    console.info(summary)
    expect(summary).toContain('nothing found')
  },
)
