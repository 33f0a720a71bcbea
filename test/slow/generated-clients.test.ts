/** Clients that orval generates from /openapi.json compile: no two of their names collide. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openapi } from '../../src/board/openapi.ts'
import { missingPackage, skipNote, skipWithout } from '../peers/peers.ts'
import { runProgram } from '../support/run-program.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const missing = missingPackage('orval')
const orval = resolve(import.meta.dirname, '../peers/node_modules/orval/dist/bin/orval.mjs')
const compiler = resolve(import.meta.dirname, '../../node_modules/.bin/tsc')
const clients = ['fetch', 'axios-functions', 'react-query', 'angular', 'zod']

describe.skipIf(skipWithout(missing))(`orval${skipNote(missing)}`, () => {
  let folder: string

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'broadside-orval-'))
    const sold = { micros: 1_000, network: 'eip155:8453' }
    const board = { address: 'https://board.example.net', serviceId: 'bs-0123456789abcdef', sold, witnesses: true }
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(openapi(board)))
    // One file for each client, where every name has to be unique.
    const outputs = clients.map((client) => [
      client.replace('-', ''),
      { input: './openapi.json', output: { mode: 'single', target: `./made/${client}.ts`, client } },
    ])
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    writeFileSync(join(folder, 'orval.config.mjs'), `export default ${JSON.stringify(Object.fromEntries(outputs))}`)
    const { code, output, errors } = await runProgram(folder, process.execPath, [orval, '--config', 'orval.config.mjs'])
    expect([code, code === 0 ? '' : output + errors]).toEqual([0, ''])
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  test('generates a client of every kind that compiles', async () => {
    expect(readdirSync(join(folder, 'made')).sort()).toEqual(clients.map((client) => `${client}.ts`).sort())
    const compilerOptions = {
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      target: 'es2022',
      module: 'esnext',
      moduleResolution: 'bundler',
      lib: ['es2022', 'dom', 'dom.iterable'],
      types: [],
      // Packages that the clients import are not installed, so they are typed as any.
      noImplicitAny: false,
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['made'] }))
    const { output } = await runProgram(folder, compiler, ['-p', '.', '--pretty', 'false'])
    const faults = output.split('\n').filter((line) => line.includes('error') && !line.includes('error TS2307'))
    expect(faults).toEqual([])
    expect(output).toContain("Cannot find module 'axios'")
  })
})
