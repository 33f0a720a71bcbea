/** Errors of built code are shown at the lines of their source. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { sourceStack } from '../../src/observe.ts'

const project = resolve(import.meta.dirname, '../..')

test('a position in dist/ becomes the position in the source that it was built from', () => {
  const built = pathToFileURL(join(project, 'dist/src/program.js')).href
  const program = `import { threadFile } from '${built}'; try { threadFile(Symbol()) } catch ({ stack }) { process.stdout.write(stack) }`
  const stack = execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  expect(stack).toMatch(/at threadFile \(file:.*dist\/src\/program\.js:\d+:\d+\)/)
  const [, line] = /at threadFile \(\/.*\/src\/program\.ts:(\d+):\d+\)/.exec(sourceStack(stack)) ?? []
  const source = readFileSync(join(project, 'src/program.ts'), 'utf8').split('\n')
  expect(source.slice(Number(line) - 3, Number(line)).join('\n')).toContain('function threadFile')
})

test('what has no source map stays as it is', () => {
  const stack = 'Error: x\n    at f (file:///nowhere/x.js:1:2)\n    at node:internal/process:3:4'
  expect(sourceStack(stack)).toBe(stack)
})
