/** The scripts that pages load. */
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { assets } from '../../../src/pages/assets.ts'

test('all scripts together are at most 60 KB of gzip', () => {
  const bytes = assets.reduce((sum, { body }) => sum + gzipSync(body, { level: 9 }).length, 0)
  expect(bytes).toBeGreaterThan(0)
  expect(bytes).toBeLessThanOrEqual(60_000)
})

test('scripts are served without their comments', () => {
  for (const { path, body } of assets) expect(String(body), path).not.toMatch(/^\s*(\/\*|\*|\/\/)/m)
})
