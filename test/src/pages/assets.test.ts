/** The scripts that pages load, as they are built. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { program } from '../../support/program.ts'

const folder = join(dirname(program), '../pages/assets')
/** The embed script is for other sites. */
const scripts = globSync('*.js', { cwd: folder, exclude: ['embed-v1.js'] }).map((name) =>
  readFileSync(join(folder, name)),
)

test('all scripts together are at most 60 KB of gzip', () => {
  const bytes = scripts.reduce((sum, script) => sum + gzipSync(script, { level: 9 }).length, 0)
  expect(bytes).toBeGreaterThan(0)
  expect(bytes).toBeLessThanOrEqual(60_000)
})

test('scripts have no comments, no indentation, and the names of their source', () => {
  for (const script of scripts.map(String)) expect(script.slice(0, 200), script).not.toMatch(/\/\*\*|\n\s/)
  expect(scripts.some((script) => script.includes('isByModerator=event=>'))).toBe(true)
})
