/** Tests in a checkout without real data: those that need some are skipped by name, and no test file fails for lack of it. */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { expect, test, vi } from 'vitest'
import { scratchDirectory } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 900_000 })

const root = resolve(import.meta.dirname, '../..')

test('a copy of the project alone passes the fast tests that read real data, and says which it skips', () => {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
    .toString()
    .split('\0')
    .filter((file) => file !== '')
  const copy = join(scratchDirectory(), 'project')
  for (const file of files) {
    mkdirSync(dirname(join(copy, file)), { recursive: true })
    cpSync(join(root, file), join(copy, file))
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  const readers = files.filter(
    (file) =>
      file.endsWith('.test.ts') &&
      !file.startsWith('test/slow/') &&
      /support\/(?:corpus|vectors|real-data)\.ts'/.test(readFileSync(join(root, file), 'utf8')),
  )
  expect(readers.length).toBeGreaterThan(4)
  const run = spawnSync(
    process.execPath,
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--config',
      'test/vitest.config.ts',
      '--reporter=json',
      '--outputFile=report.json',
      ...readers,
    ],
    { cwd: copy, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  )
  expect(run.error).toBeUndefined()
  const report = JSON.parse(readFileSync(join(copy, 'report.json'), 'utf8')) as {
    readonly testResults: readonly {
      readonly name: string
      readonly status: string
      readonly message: string
      readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
    }[]
  }
  const failed = report.testResults.filter(({ status }) => status !== 'passed')
  expect(failed.map(({ name, message }) => [name, message])).toEqual([])
  const skipped = report.testResults.flatMap(({ assertionResults }) =>
    assertionResults.flatMap(({ fullName, status }) => (status === 'passed' ? [] : [fullName])),
  )
  expect(skipped.length).toBeGreaterThanOrEqual(readers.length)
  for (const name of skipped) expect(name).toContain('[skipped: no ../shared/data/')
})
