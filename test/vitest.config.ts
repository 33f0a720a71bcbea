import { basename } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that take longest, about 90 s and more: one that began last would run alone at the end. */
const longest = [
  'pages',
  'cli-hostile',
  'docs-examples',
  'syscalls',
  'damaged-files',
  'reshard',
  'package',
  'busy-afternoon',
  'stream-hostile',
  'works-kill',
  'container',
  'thread-moves',
  'power-cut',
  'kill-under-load',
  'wiring',
].map((name) => `${name}.test.ts`)

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => longest.includes(basename(moduleId))
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    // Many of the tests wait for a board: on two cores three workers end in 215 s, two in 260.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    globalSetup: 'test/support/build.ts',
    expect: { poll: { timeout: 120_000 } },
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})
