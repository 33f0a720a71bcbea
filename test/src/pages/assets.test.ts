/** The scripts that pages load. */
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { assets } from '../../../src/pages/assets.ts'

test('all scripts together are at most 60 KB of gzip', () => {
  const bytes = assets.reduce((sum, { body }) => sum + gzipSync(body, { level: 9 }).length, 0)
  expect(bytes).toBeGreaterThan(0)
  expect(bytes).toBeLessThanOrEqual(60_000)
})

test('scripts are served without their comments, indentation and most line ends, which changes no text and no statement', () => {
  for (const { path, body } of assets) {
    const lines = String(body).split('\n')
    for (const line of lines) expect(line, path).not.toMatch(/^(\s|\/\*|\*|\/\/)/)
    // The next line would become part of a comment after a statement.
    for (const line of lines) expect(line, path).not.toMatch(/\s\/\/\s/)
    // After a quotation mark, a backtick is not the beginning of a text, but in a regular expression.
    for (const line of lines) expect((line.match(/(?<!')`/g) ?? []).length % 2, `${path}: ${line}`).toBe(0)
  }
})
