/**
 * Runs boards on simulated machines until something is found: `npm run simulate`.
 *
 * SIGINT and SIGTERM end it once the running boards have ended; it prints the board with which to continue, in this run or on another day.
 * Exit code 1 if something was found, 2 if it could not run.
 */
import { randomInt } from 'node:crypto'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { Progress } from '../../src/cli/progress.ts'
import { systemClock } from '../../src/clock.ts'
import { setLogLevel } from '../../src/observe.ts'
import { exitWith, readOptions, wholeNumber } from '../support/script-options.ts'
import type { Ack, Layout } from './board.ts'
import { faults } from './faults.ts'
import { shrink } from './shrink.ts'
import { takeOvers } from './take-overs.ts'
import { type Outcome, type Run, runWorld, stepsEach } from './world.ts'

const shrinkRunsMax = 200
/** Objects of one step are collected while they are young: this saves 3 percent of a run. */
const resourceLimits = { maxYoungGenerationSizeMb: 64 }

type Plan = {
  readonly seed: string
  readonly steps: number
  /** No board is started after this time. */
  readonly seconds: number
  readonly board: number | undefined
  /** The first board to run: those before it were run some other time. */
  readonly from: number
  readonly only: ReadonlySet<number> | undefined
  readonly layout: Layout | undefined
  /** Every board is replicated, and waits for this. */
  readonly ack: Ack | undefined
  readonly off: ReadonlySet<string>
  readonly jobs: number
  /** A failure is not shrunk. */
  readonly brief: boolean
}

type BoardResult = { readonly board: number; readonly outcome: Outcome }

function runOf({ seed, steps, only, layout, ack, off }: Plan, board: number): Run {
  const left = steps - board * stepsEach
  return {
    seed: `${seed}.${board}`,
    steps: Math.min(stepsEach, Math.max(1, left)),
    off,
    ...(ack === undefined ? {} : { ack }),
    ...(only === undefined ? {} : { only }),
    ...(layout === undefined ? {} : { layout }),
  }
}

/** Totals of all boards. */
class RunTotals {
  readonly counts = new Map<string, number>()
  readonly seen = new Map<string, number>()
  readonly struck = new Map<string, number>()
  steps = 0

  add({ counts, seen, struck }: Outcome, steps: number): void {
    this.steps += steps
    for (const [into, from] of [
      [this.counts, counts],
      [this.seen, seen],
      [this.struck, struck],
    ] as const)
      for (const [name, count] of from) into.set(name, (into.get(name) ?? 0) + count)
  }

  /** Operations of the disk that were hit by a cut, and those that never were. */
  get coverage(): { readonly struck: number; readonly missed: readonly string[] } {
    const points = [...this.seen.keys()].filter((point) => !point.startsWith('read'))
    const missed = points.filter((point) => !this.struck.has(`cut · ${point}`))
    return { struck: points.length - missed.length, missed }
  }
}

/** The result of a run. */
type RunResult = {
  readonly found: BoardResult | undefined
  /** The first board that was not run; undefined: the plan was completed. */
  readonly next: number | undefined
}

/** Runs all boards of a plan, on this many threads at a time; stops at the first that fails. */
async function runAll(plan: Plan, sum: RunTotals, progress: Progress): Promise<RunResult> {
  const first = plan.board ?? plan.from
  const end = plan.board === undefined ? Math.ceil(plan.steps / stepsEach) : first + 1
  const until = performance.now() + 1_000 * plan.seconds
  let next = first
  let isAsked = false
  let found: BoardResult | undefined
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      isAsked = true
    })
  const take = (done: BoardResult): void => {
    sum.add(done.outcome, runOf(plan, done.board).steps)
    progress.update(plan.from * stepsEach + sum.steps, end - first === 1 ? undefined : plan.steps)
    if (done.outcome.found !== undefined && (found === undefined || done.board < found.board)) found = done
  }
  if (end - first === 1) {
    take({ board: first, outcome: await runWorld(runOf(plan, first)) })
    return { found, next: undefined }
  }
  const works = Array.from({ length: Math.min(plan.jobs, end - first) }, async () => {
    const worker = new Worker(new URL(import.meta.url), { workerData: plan, resourceLimits })
    const ended = Promise.withResolvers<void>()
    const go = (): void => {
      if (found !== undefined || isAsked || next >= end || performance.now() > until) void worker.terminate()
      else worker.postMessage(next++)
    }
    worker.on('message', (done: BoardResult) => {
      take(done)
      go()
    })
    worker.on('error', ended.reject)
    worker.on('exit', () => ended.resolve())
    go()
    await ended.promise
  })
  await Promise.all(works)
  return { found, next: found === undefined && next < end ? next : undefined }
}

/** The failure, in as few steps as possible, for people. */
async function explain(plan: Plan, { board, outcome }: BoardResult): Promise<object> {
  const { seed } = plan
  const layout = plan.layout === undefined ? '' : ` --shards ${plan.layout.shards}`
  const ack = plan.ack === undefined ? '' : ` --ack ${plan.ack}`
  const off = plan.off.size === 0 ? '' : ` --off '${[...plan.off].join(',')}'`
  const same = `npm run simulate -- --seed ${seed} --board ${board}${layout}${ack}${off}`
  console.error(`Found with seed ${seed}, board ${board}, step ${outcome.found!.step}: ${outcome.found!.message}`)
  console.error(`Again: ${same}`)
  if (plan.brief) return { board, ...outcome.found }
  const short = await shrink(runOf({ ...plan, steps: (board + 1) * stepsEach }, board), outcome, {
    again: runWorld,
    runsMax: shrinkRunsMax,
  })
  console.error(`The same in ${short.steps.length} steps, after ${short.runs} runs:`)
  for (const line of short.outcome.story) console.error(`  ${line}`)
  console.error(short.outcome.found!.stack.split('\n').slice(1, 6).join('\n'))
  console.error(`Again: ${same} --only ${short.steps.join(',')}`)
  return { board, ...outcome.found, shrunk: short.steps }
}

const usage = `simulate -- [--seed S] [--steps N] [--from BOARD] [--seconds S] [--board N] [--only STEP,STEP] [--shards N] [--off FAULT,FAULT]
  [--jobs N] [--ack quorum|copy] [--json] [--brief]`

function readPlan(): { readonly plan: Plan; readonly json: boolean } {
  const text = { type: 'string' } as const
  const options = {
    seed: text,
    steps: text,
    from: text,
    seconds: text,
    board: text,
    only: text,
    shards: text,
    off: text,
    jobs: text,
    ack: text,
  }
  const flag = { type: 'boolean' } as const
  const { values } = readOptions({ ...options, json: flag, brief: flag }, usage)
  const {
    seed = String(randomInt(2 ** 31)),
    steps = '100000',
    shards,
    jobs = '2',
    ack,
    json = false,
    brief = false,
  } = values
  if (ack !== undefined && ack !== 'quorum' && ack !== 'copy') exitWith(`--ack is quorum or copy, not ${ack}`)
  const off = new Set(values.off?.split(',') ?? [])
  const known = Object.keys({ ...faults, ...takeOvers })
  for (const name of off)
    if (!known.includes(name)) exitWith(`--off names ${name}, which is none of: ${known.join(', ')}`)
  const plan: Plan = {
    seed,
    steps: wholeNumber('steps', steps),
    seconds: values.seconds === undefined ? Number.POSITIVE_INFINITY : wholeNumber('seconds', values.seconds),
    board: values.board === undefined ? undefined : wholeNumber('board', values.board),
    from: values.from === undefined ? 0 : wholeNumber('from', values.from),
    only:
      values.only === undefined ? undefined : new Set(values.only.split(',').map((step) => wholeNumber('only', step))),
    layout: shards === undefined ? undefined : { placement: 'threads', shards: wholeNumber('shards', shards) },
    ack,
    off,
    jobs: wholeNumber('jobs', jobs),
    brief,
  }
  if (plan.from * stepsEach >= plan.steps)
    exitWith(
      `--from must be below ${Math.ceil(plan.steps / stepsEach)}: boards of ${stepsEach} steps make ${plan.steps}`,
    )
  // A board that is named has all its steps, however many others have.
  return { plan: plan.board === undefined ? plan : { ...plan, steps: (plan.board + 1) * stepsEach }, json }
}

async function main(): Promise<void> {
  const { plan, json } = readPlan()
  const sum = new RunTotals()
  const begun = performance.now()
  console.error(`seed ${plan.seed}, ${plan.steps} steps`)
  const terminal = {
    clock: systemClock,
    err: (text: string) => void process.stderr.write(text),
    isInteractive: process.stderr.isTTY === true,
  }
  const progress = new Progress({ terminal, unit: 'steps' })
  const { found: done, next } = await runAll(plan, sum, progress)
  progress.clear()
  const seconds = (performance.now() - begun) / 1_000
  const { user, system } = process.cpuUsage()
  const { struck, missed } = sum.coverage
  const found = done === undefined ? undefined : await explain(plan, done)
  const { seed, steps } = plan
  const report = {
    seed,
    steps: sum.steps,
    seconds,
    steps_per_second: sum.steps / seconds,
    cpu_ms_per_step: (user + system) / 1_000 / sum.steps,
    found,
    next_board: next,
  }
  if (json) {
    const maps = { counts: sum.counts, seen: sum.seen, struck: sum.struck }
    const plain = Object.fromEntries(
      Object.entries(maps).map(([name, map]) => [name, Object.fromEntries([...map].sort())]),
    )
    console.log(JSON.stringify({ ...report, planned: steps, ...plain }))
  } else {
    console.log(
      `${sum.steps} steps in ${seconds.toFixed(1)} s, ${(sum.steps / seconds).toFixed(0)} a second, ${report.cpu_ms_per_step.toFixed(2)} ms of a processor each`,
    )
    console.log(`${sum.counts.get('starts') ?? 0} starts after a fault, ${sum.counts.get('audits') ?? 0} full checks`)
    for (const fault of ['cut', 'sync fails', 'write fails', 'read fails', 'full'])
      console.log(
        `${fault}: ${[...sum.struck].filter(([point]) => point.startsWith(`${fault} · `)).reduce((all, [, times]) => all + times, 0)}`,
      )
    console.log(`the power was cut at ${struck} of ${struck + missed.length} points of the disk`)
    if (missed.length > 0) console.log(`never at: ${missed.join(', ')}`)
  }
  if (next !== undefined) console.error(`Go on: npm run simulate -- --seed ${seed} --steps ${steps} --from ${next}`)
  process.exitCode = found === undefined ? 0 : 1
}

setLogLevel('silent')
if (isMainThread) await main()
else {
  const plan = workerData as Plan
  parentPort!.on('message', async (board: number) => {
    const outcome = await runWorld(runOf(plan, board))
    parentPort!.postMessage({ board, outcome } satisfies BoardResult)
  })
}
