#!/usr/bin/env node
/**
 * The command line: finds the command, runs it, and turns errors into one sentence and an exit code.
 *
 * Commands are loaded when they are called, so that `post` does not pay for what `serve` needs.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import { userSettings } from '../environment.ts'
import { isComplete } from '../failure.ts'
import { nearest } from '../format/nearest.ts'
import { sourceStack } from '../observe.ts'
import { release } from '../release.ts'
import {
  type Command,
  CommandFailed,
  type ExitCode,
  exitCodeHelp,
  exitCodes,
  helpOf,
  jsonTerminal,
  print,
  readArguments,
  runCommand,
  type Terminal,
  Unverified,
  UsageError,
} from './command-line.ts'
import { inertJson, inertLine, inertText } from './terminal.ts'

/** A command, and, if its name has several words, the arguments after them. */
type Load = (
  argv: readonly string[],
) => Promise<Command | { readonly command: Command; readonly argv: readonly string[] }>

/** Commands that are operations, from the table of verbs. */
const verb =
  (first: string): Load =>
  async (argv) =>
    (await import('./verbs.ts')).verbCommand(first, argv)

/** `tools import` and `tools relay` perform more than one operation. */
const loadTools: Load = async (argv) =>
  argv[0] === 'import' || argv[0] === 'relay' ? (await import('./tools.ts')).toolsCommand : verb('tools')(argv)

/** `thread` prints a thread, and is the first word of moderation commands. */
const loadThread: Load = async (argv) =>
  ['pin', 'lock', 'move'].includes(argv[0] ?? '') ? verb('thread')(argv) : (await import('./read.ts')).threadCommand

/** In the order of the help. The one-line texts are here so that printing the list loads nothing. */
const commands: readonly (readonly [name: string, gist: string, load: Load])[] = [
  ['serve', 'run a board', async () => (await import('./serve.ts')).serveCommand],
  ['follow', 'run a follower of another board', async () => (await import('./serve.ts')).followCommand],
  ['lead', 'make a stopped follower the leader', async () => (await import('./lead.ts')).leadCommand],
  [
    'hand-over',
    'hand the leadership of a stopped board to a follower',
    async () => (await import('./hand-over.ts')).handOverCommand,
  ],
  [
    'check-config',
    'check and explain the settings',
    async () => (await import('./check-config.ts')).checkConfigCommand,
  ],
  ['top', 'watch what a board is doing', async () => (await import('./top.ts')).topCommand],
  ['login', 'make or choose your key, and your board', async () => (await import('./login.ts')).loginCommand],
  ['whoami', 'show who you are on the board', async () => (await import('./login.ts')).whoamiCommand],
  ['keygen', 'make a signing key', async () => (await import('./keygen.ts')).keygenCommand],
  ['post', 'sign and post a message', async () => (await import('./post.ts')).postCommand],
  ['reply', 'reply to a post', async () => (await import('./write-commands.ts')).replyCommand],
  ['edit', 'post a new version of a post of yours', async () => (await import('./write-commands.ts')).editCommand],
  ['vote', 'vote for or against a post', async () => (await import('./write-commands.ts')).voteCommand],
  ['take-back', 'delete the text of a post of yours', verb('take-back')],
  ['attach', 'post a file', async () => (await import('./write-commands.ts')).attachCommand],
  ['read', 'print a room or a thread', async () => (await import('./read.ts')).readCommand],
  ['thread', 'print a thread; pin, lock or move it', loadThread],
  ['threads', 'list threads', verb('threads')],
  ['tail', 'follow a room', async () => (await import('./tail.ts')).tailCommand],
  ['search', 'search posts', verb('search')],
  ['inbox', 'show what was sent to you', verb('inbox')],
  ['room', 'create, invite, members, policy, …', verb('room')],
  ['docs', 'shared documents', verb('docs')],
  ['work', 'request, do and review work', verb('work')],
  ['conversation', 'private conversations', verb('conversation')],
  ['credit', 'balance, history, transfers', verb('credit')],
  ['webhook', 'have events sent to you', verb('webhook')],
  ['receiver', 'URLs that receive deliveries from others', verb('receiver')],
  ['moderate', 'reports, hide, restore, suspend, grant', verb('moderate')],
  ['call', 'run any operation by its name', async () => (await import('./verbs.ts')).callCommand],
  ['import', 'post a corpus of threaded messages', async () => (await import('./import.ts')).importCommand],
  ['export', 'download everything public', async () => (await import('./export.ts')).exportCommand],
  ['mirror', 'keep a verified copy of a log', async () => (await import('./mirror.ts')).mirrorCommand],
  ['verify', 'check an export or a proof offline', async () => (await import('./verify.ts')).verifyCommand],
  ['tools', 'search, call, review, publish; import lists', loadTools],
  [
    'delegate',
    'create a key that acts for you for a limited time',
    async () => (await import('./delegate.ts')).delegateCommand,
  ],
  [
    'identity',
    'move it to a new key; export and erase it',
    async () => (await import('./identity.ts')).identityCommand,
  ],
  ['limits', 'raise the limits of a network or an identity', async () => (await import('./limits.ts')).limitsCommand],
  ['log', 'close the log and begin the next one', async () => (await import('./log.ts')).logCommand],
  ['backup', 'copy a board, running or stopped', async () => (await import('./backup.ts')).backupCommand],
  ['restore', 'create a data directory from a backup', async () => (await import('./restore.ts')).restoreCommand],
  ['restored', 'declare that a backup was restored', async () => (await import('./restored.ts')).restoredCommand],
  ['clock', 'confirm that the clock is right after a jump', async () => (await import('./clock.ts')).clockCommand],
  [
    'reshard',
    'change the number of shards of a stopped board',
    async () => (await import('./reshard.ts')).reshardCommand,
  ],
  ['rekey', 'replace a stolen or lost cursor.key', async () => (await import('./rekey.ts')).rekeyCommand],
  ['fsck', 'check a data directory', async () => (await import('./fsck.ts')).fsckCommand],
  ['bench', 'measure this machine', async () => (await import('./bench.ts')).benchCommand],
  ['demo', 'run everything once, on a new board', async () => (await import('./demo.ts')).demoCommand],
  [
    'completion',
    'complete commands in bash, zsh or fish',
    async () => (await import('./completion.ts')).completionCommand(commandNames),
  ],
]

export const commandNames = commands.map(([name]) => name)

/** Runs one command line (without `node` and the program). Never throws. */
export async function main(argv: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const [first, ...others] = argv
  if (first === '--version' || first === 'version') {
    const isJson = others.includes('--json')
    print(isJson ? jsonTerminal(terminal) : terminal, { version: release }, `broadside ${release}\n`)
    return exitCodes.ok
  }
  const isHelp = first === 'help' && others.length > 0
  const [name, ...rest] = isHelp ? [...others, '--help'] : argv
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    ;(name === undefined ? terminal.err : terminal.out)(overview())
    return name === undefined ? exitCodes.usage : exitCodes.ok
  }
  const found = commands.find(([known]) => known === name)
  if (found === undefined) {
    const meant = nearest(name, commandNames)
    const hint = meant === undefined ? '' : ` Did you mean "${meant}"?`
    terminal.err(`There is no command "${inertLine(name)}".${hint} See: broadside --help\n`)
    return exitCodes.usage
  }
  let isJson = false
  try {
    const loaded = await found[2](rest)
    const { command, argv: own } = 'command' in loaded ? loaded : { command: loaded, argv: rest }
    const { args, help } = readArguments(command, own)
    if (help) {
      terminal.out(helpOf(command))
      return exitCodes.ok
    }
    isJson = args.flag('json')
    return await runCommand(command, args, terminal)
  } catch (error) {
    return ended(error, terminal, isJson)
  }
}

/** The sentence may contain untrusted text, such as a line of a file, a board's answer, or an argument. */
function ended(error: unknown, terminal: Terminal, isJson: boolean): ExitCode {
  if (error instanceof UsageError) {
    terminal.err(`${inertText(error.message)}\n`)
    return exitCodes.usage
  }
  if (error instanceof Unverified) {
    terminal.err(`NOT VERIFIED: ${inertText(error.message)}\n`)
    return exitCodes.unverified
  }
  if (isJson && error instanceof CommandFailed && error.facts !== undefined) {
    terminal.err(`${inertJson(error.facts)}\n`)
    return exitCodes.failed
  }
  if (error instanceof CommandFailed || isComplete(error)) {
    terminal.err(`${inertText(error.message)}\n`)
    return exitCodes.failed
  }
  if (isOfFile(error)) {
    terminal.err(`${inertText(error.message)}. Check that name, its permissions and the free space on its disk.\n`)
    return exitCodes.failed
  }
  // An unexpected error: the maintainers need the trace.
  const trace = error instanceof Error ? sourceStack(error.stack ?? error.message) : String(error)
  terminal.err(`${inertText(trace)}\n`)
  return exitCodes.failed
}

/** A system error about a file that the command was given: it names the file, and a trace would add nothing. */
function isOfFile(error: unknown): error is Error {
  const { path, syscall, name } = Object(error) as { path?: unknown; syscall?: unknown; name?: unknown }
  return error instanceof Error && typeof path === 'string' && (typeof syscall === 'string' || name === 'DiskFull')
}

function overview(): string {
  const rows = commands.map(([name, gist]) => `  ${name.padEnd(14)}${gist}`)
  return [
    'broadside COMMAND [arguments]',
    '',
    'A public bulletin board: every post signed by its author, provable by anyone.',
    '',
    ...rows,
    '',
    'See broadside help COMMAND for details. Commands that connect to a board take --url and --key, all take --json.',
    exitCodeHelp,
    '',
  ].join('\n')
}

function processTerminal(): Terminal {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that has seen enough (| head) closes the pipe: this is not an error.
    if (error.code === 'EPIPE') process.exit(exitCodes.ok)
    const words = `Standard output is incomplete (${error.message}). Write it to a place with free space.\n`
    process.stderr.write(words, () => process.exit(exitCodes.failed))
  })
  return {
    clock: systemClock,
    wait: sleep,
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isInteractive: process.stderr.isTTY === true,
    isColored: process.stdout.isTTY === true && !userSettings().noColor,
    outStream: process.stdout,
  }
}

// Before 22.18, Node does not tell which module is the program, and would exit here silently.
if (import.meta.main === undefined) {
  process.stderr.write(
    `Broadside needs Node 22.18 or newer, and this is ${process.version}. Install a newer one from nodejs.org or with "npm install node@22".\n`,
  )
  process.exitCode = exitCodes.usage
} else if (import.meta.main) {
  // Imported dynamically, because too old a Node lacks what it imports.
  ;(await import('../compile-cache.ts')).cacheCompiledCode()
  const code = await main(process.argv.slice(2), processTerminal())
  // Flush the output, then exit: threads or sockets that a command has left open must not keep the process alive.
  process.stdout.write('', (error) => {
    // On an error, the listener above exits.
    if (!error) process.stderr.write('', () => process.exit(code))
  })
}
