/** `broadside import --as-it-was`: creates a data directory from the whole-board export of another board. */
import { join } from 'node:path'
import { importFile, uncheckedSecret } from '../board-directory.ts'
import type { Line } from '../board-import/checks.ts'
import type { BoardImport, ImportOptions } from '../board-import/import.ts'
import type { Config } from '../config.ts'
import { hostText } from '../listening.ts'
import { machine } from '../platform.ts'
import { boardSettings } from './board-settings.ts'
import {
  type Arguments,
  CommandFailed,
  commandError,
  exitCodes,
  print,
  type Terminal,
  Unverified,
} from './command-line.ts'
import { lineBytesMax, openLines } from './lines.ts'
import { Progress } from './progress.ts'
import { counted, grouped, inertLine } from './terminal.ts'

export async function importAsItWas(path: string, args: Arguments, terminal: Terminal): Promise<0> {
  const config = await boardSettings(args)
  const { dataDirectory } = config
  const [{ startedImport }, { BadLine }, { lockDirectory }] = await Promise.all([
    import('../board-import/import.ts'),
    import('../board-import/checks.ts'),
    import('../../storage/lock.ts'),
  ])
  let line = 0
  try {
    const options = { ...config, ...facts(config, args.text('keys')), now: terminal.clock.wallSeconds() }
    startedImport(machine.disk, dataDirectory)
    machine.disk.makeDirectory(dataDirectory)
    const lock = await lockDirectory(dataDirectory)
    try {
      return await take(path, options, terminal, (number) => {
        line = number
      })
    } finally {
      lock.release()
    }
  } catch (error) {
    if (error instanceof BadLine)
      throw new Unverified(
        `Line ${grouped(line)} of ${path} was not accepted: ${inertLine(error.message)}. ${
          machine.disk.fileExists(importFile(dataDirectory))
            ? `The board in ${dataDirectory} is not complete. With the right file, run the same command again.`
            : 'Nothing was written.'
        }`,
      )
    throw commandError(error)
  }
}

type Facts = Pick<ImportOptions, 'platform' | 'publicHost' | 'boardKey'> & {
  /** The public address is unknown. */
  readonly isUnnamed: boolean
}

function facts({ baseUrl, host, port }: Config, keys: string | undefined): Facts {
  const address = baseUrl === '' ? `http://${hostText(host)}:${port}` : baseUrl
  return {
    platform: machine,
    publicHost: new URL(address).host,
    isUnnamed: baseUrl === '',
    boardKey: keys === undefined ? undefined : boardKeyIn(keys),
  }
}

function boardKeyIn(keys: string): Buffer {
  const file = join(keys, 'board.key')
  if (!machine.disk.fileExists(file))
    throw new CommandFailed(`${keys} has no board.key. Name the keys directory of the old board, or a copy of it.`)
  const secret = uncheckedSecret(machine.disk, file)
  if (secret.length !== 32) throw new CommandFailed(`${file} does not contain 32 bytes in hex.`)
  return secret
}

/** `onLine`: receives the number of the current line. */
async function take(
  path: string,
  options: ImportOptions & Facts,
  terminal: Terminal,
  onLine: (number: number) => void,
): Promise<0> {
  const [{ BoardImport }, { BadLine, parseLine }] = await Promise.all([
    import('../board-import/import.ts'),
    import('../board-import/checks.ts'),
  ])
  const source = openLines(path)
  const progress = new Progress({ terminal, unit: 'lines' })
  let board: BoardImport | undefined
  try {
    for await (const { number, bytes, isCut } of source.lines()) {
      onLine(number)
      if (isCut) throw new BadLine(`it has more than ${lineBytesMax} bytes`)
      if (bytes.length === 0) continue
      if (board === undefined && !bytes.subarray(0, 64).includes('"board"')) throw new BadLine(noWholeBoard)
      const line = parseLine(bytes.toString('utf8'))
      if (board === undefined) board = begun(line, options)
      else board.take(line)
      progress.update(number, undefined)
    }
    if (board === undefined) throw new BadLine('the file is empty')
    const made = board.finish()
    board = undefined
    progress.clear()
    const { facts, vkey, ...counts } = made
    const { service_id, origin } = facts
    if (options.isUnnamed)
      terminal.err(
        'BASE_URL is not set, so the log is permanently named after HOST and PORT. "broadside log rotate" begins another.\n',
      )
    print(terminal, { data: options.dataDirectory, service_id, log: { origin, vkey }, ...counts }, words(made, options))
    return exitCodes.ok
  } finally {
    progress.clear()
    board?.close()
  }

  function begun(line: Line, given: ImportOptions): BoardImport {
    if (line.type !== 'board') throw new BadLine(noWholeBoard)
    return new BoardImport(given, line as Line & ConstructorParameters<typeof BoardImport>[1])
  }
}

const noWholeBoard = 'the first line must be of type board: this is not an export of a whole board (stream=board)'

type Made = ReturnType<BoardImport['finish']>

function words(made: Made, { dataDirectory, boardKey }: ImportOptions): string {
  const { facts, vkey, before, gone, granted } = made
  const what = [
    counted(made.rooms, 'room'),
    counted(made.events, 'post'),
    counted(made.identities, 'identity', 'identities'),
    counted(made.documents, 'document'),
    counted(made.blobs, 'attachment'),
    counted(made.works, 'work'),
    counted(made.tools, 'tool'),
  ]
  const again = before === 0 ? '' : `An earlier run had written ${counted(before, 'line')} of it.\n`
  const missing =
    gone === 0 ? '' : `${counted(gone, 'record')} of it no longer had a text or file: hidden, redacted or expired.\n`
  const credits =
    granted === 0
      ? ''
      : `${grouped(granted)} credits were created to replace payments for works in private rooms, so that no balance is negative.\n`
  const service =
    boardKey === undefined
      ? `It signs as ${inertLine(facts.service_id)}: clients sign new commands for that. What was signed before stays under its own service id.\n`
      : `It keeps its service id, ${inertLine(facts.service_id)}.\n`
  return (
    `The board is in ${dataDirectory}: ${what.join(', ')}. Every signature in the file was verified.\n${again}${missing}${credits}${service}` +
    `Its log is ${inertLine(facts.origin)}, with the key\n\n  ${inertLine(vkey)}\n\n` +
    'Stated by the old board alone: handles, votes, roles and policies as they came about, times, credits, the head of its log, and that ' +
    'the file leaves nothing out. Works that were in progress wait for their workers (recovery_required). Delegations and sign-ins have ended. Private rooms and messages are in no export.\n'
  )
}
