/** Results as tables for people and JSON for later comparison. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Machine, projectDirectory } from './machine.ts'

/** One measured case; the keys are the columns, with their unit. */
export type Row = { readonly [column: string]: string | number }
export type Table = { readonly title: string; readonly rows: readonly Row[]; readonly notes?: readonly string[] }

export type BenchOptions = {
  /** A few seconds, for a quick look rather than for the record. */
  readonly isQuick: boolean
  /** The directory of another built checkout, to compare with. */
  readonly against?: string
  /** Posts before the first that counts. */
  readonly warmup?: number
  /** How often each load is measured. */
  readonly rounds?: number
  /** The sizes of the boards that are created, in posts. */
  readonly sizes?: readonly number[]
}

export type Bench = {
  /** As on the command line. */
  readonly name: string
  /** The question that the numbers answer. */
  readonly question: string
  run(options: BenchOptions): Promise<readonly Table[]>
}

export type Result = {
  readonly name: string
  readonly question: string
  readonly load_average: readonly [before: number, after: number]
  readonly seconds: number
  readonly tables: readonly Table[]
}

export function tableText({ title, rows, notes = [] }: Table): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const cells = [columns, ...rows.map((row) => columns.map((column) => cellText(row[column])))]
  const isText = columns.map((column) => rows.some((row) => typeof row[column] === 'string'))
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]!.length)))
  const lines = cells.map((line) =>
    line.map((cell, at) => (isText[at] ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!))).join('  '),
  )
  return [title, ...lines.map((line) => `  ${line.trimEnd()}`), ...notes.map((note) => `  ${note}`), ''].join('\n')
}

/** The same as a Markdown table. */
export function tableMarkdown({ title, rows, notes = [] }: Table): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const lines = rows.map((row) => line(columns.map((column) => cellText(row[column]))))
  const rule = line(columns.map(() => '---'))
  return [`### ${title}`, '', line(columns), rule, ...lines, '', ...notes, ''].join('\n')
}

/** Three significant digits, with thousands separators. */
function cellText(value: string | number | undefined): string {
  if (value === undefined) return ''
  if (typeof value === 'string') return value
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return Number.isInteger(value) ? String(value) : value.toPrecision(value < 1 ? 2 : 3)
}

/**
 * Writes bench/results/latest.json and .txt, which stay out of the repository, and with `isKept` the same JSON under the machine's name and
 * the date, to be committed. Returns where.
 */
export function writeResults(facts: {
  readonly machine: Machine
  readonly results: readonly Result[]
  readonly text: string
  readonly isKept: boolean
}): string {
  const { machine, results, text, isKept } = facts
  const directory = join(projectDirectory, 'bench', 'results')
  mkdirSync(directory, { recursive: true })
  const at = new Date().toISOString()
  const json = `${JSON.stringify({ at, machine, results }, null, 2)}\n`
  writeFileSync(join(directory, 'latest.json'), json)
  writeFileSync(join(directory, 'latest.txt'), text)
  if (!isKept) return 'bench/results/latest.json'
  const name = `${machine.processor} ${machine.cores} cores`.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
  writeFileSync(join(directory, `${name}-${at.slice(0, 10)}.json`), json)
  return `bench/results/${name}-${at.slice(0, 10)}.json`
}
