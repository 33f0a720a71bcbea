/** Three quarters of a minute of kills; `npm run kills` takes any number of rounds. */
import { expect, test, vi } from 'vitest'
import { runKills } from '../crashes/kills.ts'
import { boardDirectory } from '../support/board-process.ts'
import { chooseSeed } from '../support/load.ts'
import { randomPart } from '../support/random-part.ts'

vi.setConfig({ testTimeout: 1_800_000 })

test.each(
  randomPart([
    ['one shard beside the log', { placement: 'back', shards: 1 }],
    ['one shard in a thread of its own', { placement: 'threads', shards: 1, engine: 'node' }],
    ['three shards beside clerks', { placement: 'clerks', shards: 3 }],
  ] as const),
)(
  'with %s, after each kill at random moments under load every acknowledged post is there once, at its place, and provable',
  async (_name, where) => {
    const seed = chooseSeed('kills under load')
    const summary = await runKills({ ...where, rounds: 300, seconds: 14, seed, directory: boardDirectory() })
    console.info(summary)
    expect(summary).toContain('nothing found')
  },
)
