/** `broadside export`: downloads the board's public messages with all that is needed to verify them. */
import { createWriteStream, existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { BoardClient } from './client.ts'
import { type Arguments, type Command, CommandFailed, exitCodes } from './command-line.ts'
import { urlOf, urlOption, urlOptionHelp } from './shared-options.ts'
import { bytesText, durationText, inertLine } from './terminal.ts'

const filters = ['room', 'since', 'until', 'cursor', 'limit'] as const

export const exportCommand: Command = {
  name: 'export',
  summary: 'Downloads all archived public messages as JSON lines, with the log’s leaves and signed checkpoint.',
  usage: 'export [--out FILE] [options]',
  optionHelp: [
    urlOptionHelp,
    ['--out FILE', 'write there (gzip when the name ends in .gz); default: standard output'],
    ['--room NAME', 'only this room'],
    ['--since TIME', 'changes from this Unix second on'],
    ['--until TIME', 'changes before this Unix second'],
    ['--limit N', 'at most N messages; the cursor to go on is printed'],
    ['--cursor TEXT', 'go on from there'],
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
    const path = args.text('out')
    const { bytes, nextCursor } = await download({ client, query: queryOf(args), path, out: terminal.outStream })
    const seconds = (terminal.clock.monotonicMs() - startedMs) / 1000
    if (path !== undefined) {
      const rate = bytesText(Math.round(bytes / Math.max(seconds, 0.001)))
      terminal.err(`${path}: ${bytesText(bytes)} of lines in ${durationText(seconds)} (${rate}/s)\n`)
    }
    if (nextCursor !== undefined) terminal.err(`More follows: --cursor ${inertLine(nextCursor)}\n`)
    return exitCodes.ok
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

export type Download = {
  readonly client: BoardClient
  readonly query: string
  /** undefined = into `out`. */
  readonly path: string | undefined
  readonly out: NodeJS.WritableStream
}

/** Streams an export to its place; a file appears under its name only when it is whole. Throws CommandFailed. */
export async function download({
  client,
  query,
  path,
  out,
}: Download): Promise<{ bytes: number; nextCursor: string | undefined }> {
  if (path !== undefined && existsSync(path))
    throw new CommandFailed(`${path} exists and is not overwritten. Choose another name.`)
  const response = await client.stream(`/v1/export${query}`)
  let bytes = 0
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      done(null, chunk)
    },
  })
  try {
    if (path === undefined) {
      await pipeline(response, counter, out, { end: false })
    } else {
      const part = `${path}.part`
      const file = createWriteStream(part)
      const isGzip = path.endsWith('.gz')
      await (isGzip ? pipeline(response, counter, createGzip(), file) : pipeline(response, counter, file)).catch(
        async (error) => {
          await rm(part, { force: true })
          throw error
        },
      )
      await rename(part, path)
    }
  } catch (error) {
    throw new CommandFailed(
      `The export broke off after ${bytesText(bytes)} (${(error as Error).message}). Run it again.`,
    )
  }
  const cursor = response.headersDistinct['x-next-cursor']?.[0]
  return { bytes, nextCursor: cursor === '' ? undefined : cursor }
}
