#!/usr/bin/env node
/**
 * The command line: finds the command, runs it, and turns what went wrong into one sentence and an exit code.
 *
 * Commands are loaded when they are called, so that `post` does not pay for what `serve` needs.
 */
import { systemClock } from '../clock.ts'
import { isComplete } from '../failure.ts'
import { nearest } from '../format/nearest.ts'
import { sourceStack } from '../observe.ts'
import {
  type Command,
  CommandFailed,
  type ExitCode,
  exitCodeHelp,
  exitCodes,
  helpOf,
  readArguments,
  type Terminal,
  Unverified,
  UsageError,
} from './command-line.ts'
import { inertLine, inertText } from './terminal.ts'

/** In the order of the help. The one-line texts stand here so that the list loads nothing. */
const commands: readonly (readonly [name: string, gist: string, load: () => Promise<Command>])[] = [
  ['serve', 'run a board', async () => (await import('./serve.ts')).serveCommand],
  ['keygen', 'make a signing key', async () => (await import('./keygen.ts')).keygenCommand],
  ['post', 'sign and post a message', async () => (await import('./post.ts')).postCommand],
  ['read', 'print a room or a thread', async () => (await import('./read.ts')).readCommand],
  ['tail', 'follow a room', async () => (await import('./tail.ts')).tailCommand],
  ['import', 'post a corpus of threaded messages', async () => (await import('./import.ts')).importCommand],
  ['export', 'download everything public', async () => (await import('./export.ts')).exportCommand],
  ['mirror', 'keep a verified copy of a log', async () => (await import('./mirror.ts')).mirrorCommand],
  ['verify', 'check an export or a proof offline', async () => (await import('./verify.ts')).verifyCommand],
  ['tools', 'import lists of tools into the directory', async () => (await import('./tools.ts')).toolsCommand],
  ['limits', 'raise the limits of a network or an identity', async () => (await import('./limits.ts')).limitsCommand],
  ['log', 'close the log and begin the next one', async () => (await import('./log.ts')).logCommand],
  ['restored', 'declare that a backup was restored', async () => (await import('./restored.ts')).restoredCommand],
  ['fsck', 'check a data directory', async () => (await import('./fsck.ts')).fsckCommand],
  ['bench', 'measure this machine', async () => (await import('./bench.ts')).benchCommand],
  ['demo', 'run all of it once, on a new board', async () => (await import('./demo.ts')).demoCommand],
]

/** Runs one command line (without `node` and the program). Never throws. */
export async function main(argv: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const [name, ...rest] = argv
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    ;(name === undefined ? terminal.err : terminal.out)(overview())
    return name === undefined ? exitCodes.usage : exitCodes.ok
  }
  const found = commands.find(([known]) => known === name)
  if (found === undefined) {
    const meant = nearest(
      name,
      commands.map(([known]) => known),
    )
    const hint = meant === undefined ? '' : ` Did you mean "${meant}"?`
    terminal.err(`There is no command "${inertLine(name)}".${hint} See: broadside --help\n`)
    return exitCodes.usage
  }
  try {
    const command = await found[2]()
    const { args, help } = readArguments(command, rest)
    if (help) {
      terminal.out(helpOf(command))
      return exitCodes.ok
    }
    return await command.run(args, terminal)
  } catch (error) {
    return ended(error, terminal)
  }
}

/** Whatever made it, a sentence may contain what a stranger wrote: a file's lines, a board's answer, an argument. */
function ended(error: unknown, terminal: Terminal): ExitCode {
  if (error instanceof UsageError) {
    terminal.err(`${inertText(error.message)}\n`)
    return exitCodes.usage
  }
  if (error instanceof Unverified) {
    terminal.err(`NOT VERIFIED: ${inertText(error.message)}\n`)
    return exitCodes.unverified
  }
  if (error instanceof CommandFailed || isComplete(error)) {
    terminal.err(`${inertText(error.message)}\n`)
    return exitCodes.failed
  }
  if (isOfFile(error)) {
    terminal.err(`${inertText(error.message)}. Check that name, its permissions and the free space on its disk.\n`)
    return exitCodes.failed
  }
  // An unforeseen error: the trace is what its maintainers need.
  const trace = error instanceof Error ? sourceStack(error.stack ?? error.message) : String(error)
  terminal.err(`${inertText(trace)}\n`)
  return exitCodes.failed
}

/** What the system says of a file that a command was given: it names the file, and a trace says no more. */
function isOfFile(error: unknown): error is Error {
  const { path, syscall, name } = Object(error) as { path?: unknown; syscall?: unknown; name?: unknown }
  return error instanceof Error && typeof path === 'string' && (typeof syscall === 'string' || name === 'DiskFull')
}

function overview(): string {
  const rows = commands.map(([name, gist]) => `  ${name.padEnd(10)}${gist}`)
  return [
    'broadside COMMAND [arguments]',
    '',
    'A public bulletin board: every post signed by its author, provable by anyone.',
    '',
    ...rows,
    '',
    'See broadside COMMAND --help for details.',
    exitCodeHelp,
    '',
  ].join('\n')
}

function processTerminal(): Terminal {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that has seen enough (| head) closes the pipe: no error, just the end.
    if (error.code === 'EPIPE') process.exit(exitCodes.ok)
    const words = `Standard output is incomplete (${error.message}). Write it to a place with free space.\n`
    process.stderr.write(words, () => process.exit(exitCodes.failed))
  })
  return {
    clock: systemClock,
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isInteractive: process.stderr.isTTY === true,
    outStream: process.stdout,
  }
}

if (import.meta.main) {
  const code = await main(process.argv.slice(2), processTerminal())
  // Written answers leave first; threads or sockets that a command has left open must not keep the process.
  process.stdout.write('', (error) => {
    // The listener above ends the process then.
    if (!error) process.stderr.write('', () => process.exit(code))
  })
}
