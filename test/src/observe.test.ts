/** Errors of built code are shown at the lines of their source. */
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { sourceStack } from '../../src/observe.ts'

const project = resolve(import.meta.dirname, '../..')

function textOf(path: string): string {
  return readFileSync(join(project, path), 'utf8')
}

test('a position in dist/ becomes the position in the source that it was built from', () => {
  const start = 'function threadFile('
  const built = globSync('dist/src/**/*.js', { cwd: project }).find((path) => textOf(path).includes(start))!
  const [before = ''] = textOf(built).split(start, 1)
  const lines = before.split('\n')
  const place = `${lines.length}:${lines.at(-1)!.length + 'function '.length + 1}`
  const stack = `Error: x\n    at threadFile (${pathToFileURL(join(project, built))}:${place})`
  const [, line] = /at threadFile \(\/.*\/src\/program\.ts:(\d+):\d+\)/.exec(sourceStack(stack)) ?? []
  expect(textOf('src/program.ts').split('\n')[Number(line) - 1]).toContain('function threadFile')
})

test('a position without a source map stays as it is', () => {
  const stack = 'Error: x\n    at f (file:///nowhere/x.js:1:2)\n    at node:internal/process:3:4'
  expect(sourceStack(stack)).toBe(stack)
})
