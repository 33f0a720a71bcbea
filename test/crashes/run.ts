/**
 * Runs many kills, power cuts, backups or take-overs, or a soak: `npm run kills`, `npm run power-cuts`, `npm run backups`, `npm run
 * take-overs` and `npm run soak`.
 *
 * `--ack` is only for take-overs. Exit code 1 if something was found, 2 if it could not run.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { missingNats } from '../peers/peers.ts'
import { endBoards } from '../support/board-launch.ts'
import { exitWith, readOptions, wholeNumber } from '../support/script-options.ts'
import { runBackups } from './backups.ts'
import { runKills } from './kills.ts'
import { missingForPowerCuts, runPowerCuts } from './power-cuts.ts'
import { Finding, sendModes } from './rounds.ts'
import { runSoak } from './soak.ts'
import { runTakeOvers } from './take-overs.ts'

const runs = {
  kills: { run: runKills, rounds: 300 },
  'power-cuts': { run: runPowerCuts, rounds: 100 },
  backups: { run: runBackups, rounds: 200 },
  'take-overs': { run: runTakeOvers, rounds: 200 },
  soak: { run: runSoak, rounds: 10 },
} as const

function oneOf<const Name extends string>(flag: string, given: string, names: readonly Name[]): Name {
  return names.find((name) => name === given) ?? exitWith(`--${flag} is one of ${names.join(', ')}, not ${given}`)
}

const text = { type: 'string' } as const
const flags = {
  rounds: text,
  seconds: text,
  seed: text,
  placement: text,
  engine: text,
  shards: text,
  by: text,
  ack: text,
}

const usage = `kills|power-cuts|backups|take-overs|soak -- [--rounds N] [--seconds S] [--seed S] [--placement back|clerks|threads] [--engine uws|node]
  [--shards N] [--by mixed|single|batches|stream] [--ack quorum|copy]`
const { values, positionals } = readOptions(flags, usage, true)
const name = oneOf('kind', positionals[0] ?? 'kills', ['kills', 'power-cuts', 'backups', 'take-overs', 'soak'])
const needs = { 'power-cuts': missingForPowerCuts, 'take-overs': missingNats } as const
const missing = name === 'power-cuts' || name === 'take-overs' ? needs[name]() : undefined
if (missing !== undefined) exitWith(missing)
const { run, rounds } = runs[name]
const planned = {
  rounds: values.rounds === undefined ? rounds : wholeNumber('rounds', values.rounds),
  seed: values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : wholeNumber('seed', values.seed),
  placement: oneOf('placement', values.placement ?? 'back', ['back', 'clerks', 'threads']),
  shards: wholeNumber('shards', values.shards ?? '1'),
  by: oneOf('by', values.by ?? 'mixed', sendModes),
  ack: oneOf('ack', values.ack ?? 'quorum', ['quorum', 'copy']),
  ...(values.seconds === undefined ? {} : { seconds: wholeNumber('seconds', values.seconds) }),
  ...(values.engine === undefined ? {} : { engine: oneOf('engine', values.engine, ['uws', 'node']) }),
  progress: (line: string) => console.log(line),
}
const directory = mkdtempSync(join(tmpdir(), `broadside-${name}-`))
const options = { ...planned, directory }
const { engine = 'uws', seed, placement, shards, by, ack } = options
console.log(`${name}, seed ${seed}, placed as ${placement}, ${shards} shards, engine ${engine}, load ${by}`)
// Boards are in their own process groups, and a disk stays mounted: both are cleaned up at exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
try {
  console.log(await run(options))
  rmSync(directory, { recursive: true, force: true })
} catch (error) {
  await endBoards()
  if (!(error instanceof Finding)) exitWith(`could not run: ${error instanceof Error ? error.stack : error}`)
  console.error(`Found in ${error.message}`)
  const same = `--seed ${seed} --placement ${placement} --shards ${shards} --engine ${engine} --by ${by} --ack ${ack}`
  console.error(`The files are in ${directory}. Again: npm run ${name} -- --rounds ${error.round} ${same}`)
  process.exitCode = 1
}
