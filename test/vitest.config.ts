import { basename } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The slowest files, about a minute or more each: one that started last would run alone at the end. The first of them mostly wait. */
const longest = [
  'restored-boxes',
  'take-over',
  'take-overs',
  'pages',
  'syscalls',
  'http-timeouts',
  'stream',
  'stream-reader',
  'quorum',
  'replication',
  'follower',
  'cli-hostile',
  'docs-examples',
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
    const place = ({ moduleId }: TestSpecification) => {
      const found = longest.indexOf(basename(moduleId))
      return found === -1 ? longest.length : found
    }
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other))
  }
}

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    // Many of the tests wait for a board: on two cores three workers end in 215 s, two in 260.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Commands that run in the process of a test keep what they are told there, and not in the home of who runs it.
    env: { XDG_CONFIG_HOME: new URL('../node_modules/.test-config', import.meta.url).pathname },
    globalSetup: 'test/support/build.ts',
    // A worker runs files one after another and loads shared modules once, so no test may replace a module.
    isolate: false,
    setupFiles: ['test/support/each-file.ts'],
    expect: { poll: { timeout: 120_000 } },
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})
