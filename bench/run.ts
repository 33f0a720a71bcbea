/**
 * Runs the benches: all, or those named. `npm run bench -- [--quick] [--keep] [--json] [NAME ...]`; for `posts` also `[--against DIRECTORY]
 * [--warm POSTS] [--rounds COUNT]`; for `scale` also `[--sizes POSTS,POSTS]`.
 *
 * Prints a table for each and writes them with machine, Node and commit to bench/results/latest.json; `--quick` takes under a minute,
 * `--keep` also writes a file to commit. Whatever else runs on the machine lowers the rates: the load average is printed under each bench,
 * and the ratios are more stable than the rates.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { loadNow, machineFacts } from './machine.ts'
import { type Bench, type BenchOptions, type Result, tableText, writeResults } from './report.ts'

const benches: readonly (readonly [name: string, load: () => Promise<Bench>])[] = [
  ['verify', async () => (await import('./verify.bench.ts')).verifyBench],
  ['hash', async () => (await import('./hash.bench.ts')).hashBench],
  ['frame', async () => (await import('./frame.bench.ts')).frameBench],
  ['append', async () => (await import('./append.bench.ts')).append],
  ['merkle', async () => (await import('./merkle.bench.ts')).merkle],
  ['log', async () => (await import('./log.bench.ts')).log],
  ['index', async () => (await import('./index.bench.ts')).index],
  ['link', async () => (await import('./link.bench.ts')).linkBench],
  ['schema', async () => (await import('./schema.bench.ts')).schema],
  ['posts', async () => (await import('./posts.bench.ts')).posts],
  ['mixed', async () => (await import('./mixed.bench.ts')).mixed],
  ['overload', async () => (await import('./overload.bench.ts')).overload],
  ['reads', async () => (await import('./reads.bench.ts')).reads],
  ['pages', async () => (await import('./pages.bench.ts')).pages],
  ['tools', async () => (await import('./tools.bench.ts')).tools],
  ['export', async () => (await import('./export.bench.ts')).exportBench],
  ['tail', async () => (await import('./tail.bench.ts')).tail],
  ['updates', async () => (await import('./updates.bench.ts')).updates],
  ['webhooks', async () => (await import('./webhooks.bench.ts')).webhooks],
  ['works', async () => (await import('./works.bench.ts')).works],
  ['thread-lists', async () => (await import('./thread-lists.bench.ts')).threadLists],
  ['big-board', async () => (await import('./big-board.bench.ts')).bigBoard],
  ['scale', async () => (await import('./scale.bench.ts')).scale],
  ['followers', async () => (await import('./followers.bench.ts')).followers],
  ['reshard', async () => (await import('./reshard.bench.ts')).reshardBench],
  ['work-lists', async () => (await import('./work-lists.bench.ts')).workLists],
  ['hostile', async () => (await import('./hostile.bench.ts')).hostile],
  ['profile', async () => (await import('./profile.bench.ts')).profile],
  ['fanout', async () => (await import('./fanout.bench.ts')).fanout],
]

/** They have nothing to compare, or take an hour. */
const onlyByName: readonly string[] = ['profile', 'scale']

const options = {
  json: { type: 'boolean', default: false },
  quick: { type: 'boolean', default: false },
  keep: { type: 'boolean', default: false },
  against: { type: 'string' },
  warm: { type: 'string' },
  rounds: { type: 'string' },
  sizes: { type: 'string' },
} as const

async function runOne(bench: Bench, options: BenchOptions, say: (text: string) => void): Promise<Result> {
  const before = loadNow()
  const start = performance.now()
  say(`${bench.name}: ${bench.question}\n`)
  const tables = await bench.run(options)
  const seconds = Math.round((performance.now() - start) / 100) / 10
  for (const table of tables) say(tableText(table))
  const after = loadNow()
  say(`  ${seconds} s, load average ${before} before, ${after} after\n`)
  return { name: bench.name, question: bench.question, load_average: [before, after], seconds, tables }
}

/** Parses the command line. Exits with the usage if it is invalid. */
function given(): { names: readonly string[]; isKept: boolean; isJson: boolean; options: BenchOptions } {
  try {
    const { values, positionals: names } = parseArgs({ options, allowPositionals: true })
    const unknown = names.find((name) => !benches.some(([known]) => known === name))
    if (unknown !== undefined) throw new Error(`there is no bench ${unknown}`)
    const against = values.against === undefined ? undefined : resolve(values.against)
    if (against !== undefined && !existsSync(join(against, 'dist', 'src', 'cli', 'main.js')))
      throw new Error(`--against: ${against} holds no built Broadside: run \`npm run build\` there`)
    const optional = (option: 'warm' | 'rounds') =>
      values[option] === undefined ? undefined : countOf(option, values[option])
    const counts = { warmup: optional('warm'), rounds: optional('rounds') }
    return {
      names,
      isKept: values.keep,
      isJson: values.json,
      options: {
        isQuick: values.quick,
        ...(against === undefined ? {} : { against }),
        ...(counts.warmup === undefined ? {} : { warmup: counts.warmup }),
        ...(values.sizes === undefined ? {} : { sizes: values.sizes.split(',').map((size) => countOf('sizes', size)) }),
        ...(counts.rounds === undefined ? {} : { rounds: counts.rounds }),
      },
    }
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    console.error(
      `usage: npm run bench -- [--quick] [--keep] [--json] [${benches.map(([name]) => name).join('|')} ...]`,
    )
    console.error('       npm run bench -- posts [--against DIRECTORY] [--warm POSTS] [--rounds COUNT]')
    console.error('       npm run bench -- scale [--sizes POSTS,POSTS]')
    process.exit(2)
  }
}

function countOf(option: string, text: string): number {
  const count = Number(text)
  if (!Number.isSafeInteger(count) || count < 1) throw new Error(`--${option}: ${text} is not a positive whole number`)
  return count
}

async function main(): Promise<void> {
  const { names, isKept, isJson, options } = given()
  // With --json standard output has only the results, one per line.
  const print = isJson ? console.error : console.log
  let text = ''
  const say = (line: string): void => {
    text += `${line}\n`
    print(line)
  }
  const machine = machineFacts()
  say(
    Object.entries(machine)
      .map(([fact, value]) => `${fact}: ${value}`)
      .join('; '),
  )
  say('')
  const results: Result[] = []
  for (const [name, load] of benches) {
    if (names.length === 0 ? !onlyByName.includes(name) : names.includes(name)) {
      const result = await runOne(await load(), options, say)
      results.push(result)
      if (isJson) console.log(JSON.stringify(result))
    }
  }
  print(`written to ${writeResults({ machine, results, text, isKept })}`)
}

await main()
