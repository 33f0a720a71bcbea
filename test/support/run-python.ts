/** The Python client in a separate process. */
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect } from 'vitest'

/** What a program prints as JSON, with the Python client importable and `given` as JSON on its input. */
export function runPython(program: string, given: unknown, options: readonly string[] = []): unknown {
  const { status, stdout, stderr } = spawnSync(
    'python3',
    [
      ...options,
      '-c',
      `import sys, json\nfrom broadside import *\nimport broadside\ngiven = json.load(sys.stdin)\n${program}`,
    ],
    {
      input: JSON.stringify(given),
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      env: {
        PATH: process.env.PATH,
        PYTHONPATH: resolve(import.meta.dirname, '../../src/client'),
        PYTHONDONTWRITEBYTECODE: '1',
      },
    },
  )
  expect(status, stderr).toBe(0)
  return JSON.parse(stdout)
}
