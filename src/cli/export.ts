/** `broadside export`: downloads the board's public messages with everything needed to verify them. */
import { existsSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { sizes } from '../../actors/kernel/limits.ts'
import { BoardClient } from './client.ts'
import { type Arguments, type Command, CommandFailed, exitCodes, print } from './command-line.ts'
import { urlOf, urlOption, urlOptionHelp } from './shared-options.ts'
import { bytesText, durationText, grouped, inertLine } from './terminal.ts'

const filters = ['stream', 'room', 'since', 'until', 'cursor', 'limit'] as const

export const exportCommand: Command = {
  name: 'export',
  summary: 'Downloads all archived public messages as JSON lines, with the log’s leaves and signed checkpoint.',
  usage: 'export [--out FILE] [options]',
  optionHelp: [
    urlOptionHelp,
    ['--out FILE', 'write there (gzip when the name ends in .gz); default, and for -: standard output'],
    [
      '--stream NAME',
      'board: everything needed to recreate the board (import --as-it-was); ledger: movements of credits',
    ],
    ['--room NAME', 'only this room'],
    ['--since TIME', 'changes at or after this Unix time'],
    ['--until TIME', 'changes before this Unix time'],
    ['--limit N', `at most N messages, 1 to ${sizes.page_maximum}; the cursor for the next page is printed`],
    ['--cursor TEXT', 'continue from this cursor'],
  ],
  example: 'broadside export --out board.jsonl.gz',
  options: {
    ...urlOption,
    out: { type: 'string' },
    ...Object.fromEntries(filters.map((name) => [name, { type: 'string' as const }])),
  },
  positionals: { min: 0, max: 0 },
  async run(args, terminal) {
    const client = new BoardClient({ url: urlOf(args) })
    const startedMs = terminal.clock.monotonicMs()
    const out = args.text('out')
    const path = out === '-' ? undefined : out
    const query = queryOf(args)
    const { bytes, unreadable, nextCursor } = await download({ client, query, path, out: terminal.outStream })
    const seconds = (terminal.clock.monotonicMs() - startedMs) / 1000
    if (path !== undefined) {
      const rate = bytesText(Math.round(bytes / Math.max(seconds, 0.001)))
      print(
        // The summary is not the export, so it goes to standard error.
        { ...terminal, out: terminal.err },
        { file: path, bytes, seconds, unreadable, ...(nextCursor !== undefined && { next_cursor: nextCursor }) },
        `${path}: ${bytesText(bytes)} of lines in ${durationText(seconds)} (${rate}/s)\n`,
      )
    }
    if (nextCursor !== undefined) terminal.err(`More follows: --cursor ${inertLine(nextCursor)}\n`)
    if (unreadable === 0) return exitCodes.ok
    terminal.err(
      `Incomplete: ${grouped(unreadable)} of these records are damaged on the board’s disk; a line of type "unreadable" replaces each. The operator can locate them with broadside fsck.\n`,
    )
    return exitCodes.unverified
  },
}

function queryOf(args: Arguments): string {
  const query = new URLSearchParams()
  for (const name of filters) {
    const value = args.text(name)
    if (value !== undefined) query.set(name, value)
  }
  return query.size === 0 ? '' : `?${query}`
}

type Download = {
  readonly client: BoardClient
  readonly query: string
  /** undefined = into `out`. */
  readonly path: string | undefined
  readonly out: NodeJS.WritableStream
}

type Downloaded = {
  readonly bytes: number
  /** Lines for records that the board could not read. */
  readonly unreadable: number
  readonly nextCursor: string | undefined
}

/**
 * Streams an export to its destination; a file gets its final name only when it is complete. Throws CommandFailed, or the error of a path
 * that cannot be opened.
 */
export async function download({ client, query, path, out }: Download): Promise<Downloaded> {
  if (path !== undefined && existsSync(path))
    throw new CommandFailed(`${path} exists and is not overwritten. Choose another name.`)
  const part = `${path}.part`
  // Before the request: a path that cannot be written must not cost a download.
  const file = path === undefined ? undefined : await open(part, 'w')
  const seen = new SeenLines()
  try {
    const response = await client.stream(`/v1/export${query}`)
    if (path === undefined || file === undefined) {
      await pipeline(response, seen, out, { end: false })
    } else {
      const disk = file.createWriteStream()
      await (path.endsWith('.gz') ? pipeline(response, seen, createGzip(), disk) : pipeline(response, seen, disk))
      await rename(part, path)
    }
    const cursor = response.headersDistinct['x-next-cursor']?.[0]
    return { ...seen.facts, nextCursor: cursor === '' ? undefined : cursor }
  } catch (error) {
    if (path !== undefined) {
      await file?.close()
      await rm(part, { force: true })
    }
    if (!(error instanceof Error) || error instanceof CommandFailed) throw error
    if (isWriteError(error))
      throw new CommandFailed(
        `${path ?? 'Standard output'} cannot be written (${error.message}). Free some space, or name another place.`,
      )
    const { bytes } = seen.facts
    throw new CommandFailed(
      `The export stopped after ${bytesText(bytes)} (${error.message}). Run it again. If it always stops there, the board cannot read further: its log names the file and byte, and broadside fsck lists all damage.`,
    )
  }
}

function isWriteError(error: Error): boolean {
  return ['write', 'fsync', 'close'].includes((error as NodeJS.ErrnoException).syscall ?? '')
}

const unreadableStart = Buffer.from('\n{"type":"unreadable",')

/** Counts bytes and unreadable records in the stream. A text cannot imitate the start of a line, because JSON escapes its line feeds. */
class SeenLines extends Transform {
  #bytes = 0
  #unreadable = 0
  #end: Buffer = Buffer.from('\n')

  get facts(): { bytes: number; unreadable: number } {
    return { bytes: this.#bytes, unreadable: this.#unreadable }
  }

  override _transform(chunk: Buffer, _encoding: string, done: (error: null, chunk: Buffer) => void): void {
    this.#bytes += chunk.length
    // The retained tail is shorter than the marker, so no marker is counted twice.
    const seen = Buffer.concat([this.#end, chunk])
    for (let at = seen.indexOf(unreadableStart); at !== -1; at = seen.indexOf(unreadableStart, at + 1))
      this.#unreadable++
    this.#end = seen.subarray(-(unreadableStart.length - 1))
    done(null, chunk)
  }
}
