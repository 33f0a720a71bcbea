/**
 * Does the simulator find faults? Puts each mutation into a copy of the code and runs the simulator there: `npm run mutate`.
 *
 * Prints a table. Exit code 1 if one was not found.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { packageDirectory } from '../../src/program.ts'
import { readOptions, wholeNumber } from '../support/script-options.ts'
import { type Mutation, mutations } from './mutations.ts'

const run = promisify(execFile)
const text = { type: 'string' } as const
const usage = 'mutate -- [--seed S] [--steps N] [--jobs N] [--only NAME]'
const { values } = readOptions({ seed: text, steps: text, jobs: text, only: text }, usage)
const { seed = '1', steps = '20000', jobs = '2', only = '' } = values

type Detection = { readonly step?: number; readonly board?: number; readonly message?: string }

/** A copy of everything that the simulator runs. */
function copyInto(directory: string): void {
  for (const name of ['actors', 'src', 'storage', 'test/simulator', 'test/support', 'package.json', 'tsconfig.json'])
    cpSync(join(packageDirectory, name), join(directory, name), { recursive: true })
  symlinkSync(join(packageDirectory, 'node_modules'), join(directory, 'node_modules'))
}

function apply(directory: string, { name, file, from, to }: Mutation): void {
  const path = join(directory, file)
  const parts = readFileSync(path, 'utf8').split(from)
  if (parts.length !== 2) throw new Error(`${name}: its text stands ${parts.length - 1} times in ${file}`)
  writeFileSync(path, parts.join(to))
}

/** What the simulator says of a copy with this mutation; undefined: it finds nothing. */
async function runIn(directory: string, mutation: Mutation): Promise<Detection | undefined> {
  const original = readFileSync(join(packageDirectory, mutation.file))
  apply(directory, mutation)
  const which = ['--seed', mutation.seed ?? seed, '--steps', steps, '--jobs', '1']
  const args = ['test/simulator/run.ts', ...which, '--brief', '--json']
  try {
    await run(process.execPath, args, { cwd: directory, maxBuffer: 2 ** 26 })
    return undefined
  } catch (error) {
    const { stdout = '', stderr = '', code } = error as { stdout?: string; stderr?: string; code?: number }
    if (code === 1 && stdout !== '') return (JSON.parse(stdout) as { found: Detection }).found
    return { message: `it cannot run: ${stderr.split('\n').find((line) => line.includes('Error')) ?? code}` }
  } finally {
    writeFileSync(join(directory, mutation.file), original)
  }
}

const chosen = mutations.filter(({ name }) => name.includes(only))
const waiting = [...chosen]
const missed: string[] = []
async function work(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'broadside-mutation-'))
  try {
    copyInto(directory)
    for (let mutation = waiting.shift(); mutation !== undefined; mutation = waiting.shift()) {
      const { name } = mutation
      const caught = await runIn(directory, mutation)
      if (caught === undefined) missed.push(name)
      const where = caught?.board === undefined ? '' : `board ${caught.board}, step ${caught.step}: `
      console.log(`| ${name} | ${caught === undefined ? '**not found**' : `${where}${caught.message}`} |`)
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

console.log('| mutation | found |\n|---|---|')
await Promise.all(Array.from({ length: wholeNumber('jobs', jobs) }, work))
console.log(`\n${chosen.length - missed.length} of ${chosen.length} found, seed ${seed}, at most ${steps} steps each`)
process.exitCode = missed.length === 0 ? 0 : 1
