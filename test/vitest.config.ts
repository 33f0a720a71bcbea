import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    // Many of the tests wait for a board: on two cores three workers end in 215 s, two in 260.
    maxWorkers: 3,
    globalSetup: 'test/support/build.ts',
    expect: { poll: { timeout: 120_000 } },
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})
