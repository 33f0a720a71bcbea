/**
 * Boards that are to be killed, refused or run under a tracer: each in its own process group, so that what it runs under dies with it, and
 * ended at the latest with this process. Tests import `board-process.ts`; this is also for scripts.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { patience } from './patience.ts'
import { program } from './program.ts'

export type BoardOptions = {
  readonly directory: string
  /** Environment of src/config.ts; rate limits are off unless it says otherwise. */
  readonly env?: Readonly<Record<string, string>>
  readonly port?: number
  /** `follow`: a follower; by default an independent board. */
  readonly command?: 'serve' | 'follow'
  /** A follower that may take over from its leader. */
  readonly mayLead?: boolean
  /** A program and its arguments to run the board under. */
  readonly under?: readonly string[]
  /** Called as soon as there is a process, before it is ready. */
  readonly onLaunch?: (board: Board) => void
}

export type ExitStatus = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

export class Board {
  readonly directory: string
  /** Lines of standard error, oldest first. */
  readonly lines: string[] = []
  readonly child: ChildProcess
  readonly ended: Promise<ExitStatus>
  address = ''
  #isEnded = false

  constructor(directory: string, child: ChildProcess) {
    this.directory = directory
    this.child = child
    this.ended = new Promise((done) => child.once('close', (code, signal) => done({ code, signal })))
    child.once('exit', () => {
      this.#isEnded = true
    })
  }

  get port(): number {
    return Number(new URL(this.address).port)
  }

  /** Sends a signal to the board and whatever it runs under. */
  signal(name: NodeJS.Signals): void {
    if (!this.#isEnded) process.kill(-this.child.pid!, name)
  }

  /** Sends SIGTERM and returns how the process ended. */
  async stop(): Promise<ExitStatus> {
    this.signal('SIGTERM')
    return this.ended
  }

  /** SIGKILL: the process cannot react. */
  async kill(): Promise<void> {
    this.signal('SIGKILL')
    await this.ended
  }
}

const running = new Set<Board>()

function endAll(): void {
  for (const board of running) board.signal('SIGKILL')
}

process.once('exit', endAll)
/** Ends all boards that still run. */
export async function endBoards(): Promise<void> {
  endAll()
  await Promise.all([...running].map(({ ended }) => ended))
}

/** strace counts the calls of each thread by itself, so that one thread has to do all that are counted. */
const oneFileThread = { UV_THREADPOOL_SIZE: '1' }

function launch({ directory, env = {}, port = 0, under = [], command: verb = 'serve', mayLead }: BoardOptions): Board {
  const [command = '', ...args] = [...under, process.execPath, program, verb, '--data', directory]
  const child = spawn(command, [...args, '--port', String(port), ...(mayLead ? ['--may-lead'] : [])], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: {
      PATH: process.env.PATH,
      PLACEMENT: process.env.PLACEMENT,
      HTTP_THREADS: process.env.HTTP_THREADS,
      BROADSIDE_LIMITS: 'off',
      SHARDS: '1',
      ...(under.some((argument) => argument.includes(':when=')) ? oneFileThread : {}),
      ...env,
    },
  })
  const board = new Board(directory, child)
  running.add(board)
  void board.ended.then(() => running.delete(board))
  createInterface({ input: child.stderr! }).on('line', (line) => board.lines.push(line))
  return board
}

/** The address that a starting board prints, or undefined if it exits before. */
async function readyAddress(board: Board): Promise<string | undefined> {
  const lines = createInterface({ input: board.child.stdout! })
  const address = await new Promise<string | undefined>((done) => {
    lines.on('line', (line) => done(/^Broadside is ready at (\S+)$/.exec(line)?.[1]))
    lines.on('close', () => done(undefined))
  })
  // Later output is read and dropped: a full pipe would block it.
  board.child.stdout!.resume()
  return address
}

/** Whether this is the message of a board whose port is taken, which may also happen to a port that it chose itself. */
export function isPortTaken(output: string): boolean {
  return /in use.*Set HOST/.test(output)
}

/**
 * Starts a board and waits until it answers. Throws with its last output if it does not start. It waits for a port that is taken; a board
 * that chooses its port chooses another.
 */
export async function startBoard(options: BoardOptions): Promise<Board> {
  const until = performance.now() + patience.timeout
  for (;;) {
    const found = await tryStartBoard(options)
    if (found instanceof Board) return found
    const { code, signal, output } = found
    if (!isPortTaken(output) || performance.now() > until)
      throw new Error(`the board did not start (code ${code}, signal ${signal}): ${output.slice(-3000)}`)
    await sleep(200)
  }
}

/** Starts a board that may exit before it is ready: returns the running board, or how it ended and its output. */
export async function tryStartBoard(
  options: BoardOptions,
): Promise<Board | (ExitStatus & { readonly output: string })> {
  const board = launch(options)
  options.onLaunch?.(board)
  const address = await readyAddress(board)
  if (address === undefined) return { ...(await board.ended), output: board.lines.join('\n') }
  board.address = address
  return board
}

/** Starts a board that must refuse to: returns its exit code and output. */
export async function expectStartRefused(options: BoardOptions): Promise<ExitStatus & { readonly output: string }> {
  const found = await tryStartBoard(options)
  if (!(found instanceof Board)) return found
  await found.kill()
  throw new Error('the board started, though it should have refused')
}
