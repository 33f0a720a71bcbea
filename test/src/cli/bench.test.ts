import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { benchCommand } from '../../../src/cli/bench.ts'
import { program } from '../../support/program.ts'

test('bench forwards its options and names: a wrong name is answered with the right ones, and the example is valid', () => {
  const { status, stderr } = spawnSync(process.execPath, [program, 'bench', '--quick', '--keep', 'no-such-bench'], {
    encoding: 'utf8',
  })
  expect(status).toBe(2)
  const names = /\[(\w+(?:\|\w+)*)/.exec(stderr)?.[1]?.split('|')
  expect(names).toContain(benchCommand.example.split(' ').at(-1))
})

test.each([
  [['--against', '/nowhere', 'posts'], '--against: /nowhere holds no built Broadside'],
  [['--warm', 'ten', 'posts'], '--warm: ten is not a positive whole number'],
  [['--rounds', '0', 'posts'], '--rounds: 0 is not a positive whole number'],
])('bench %j is refused with the option and the problem', (args, words) => {
  const { status, stderr } = spawnSync(process.execPath, [program, 'bench', ...args], { encoding: 'utf8' })
  expect(status).toBe(2)
  expect(stderr).toContain(words)
})
