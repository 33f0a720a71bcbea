/** A board run as a child process, for the demo: started, waited for, stopped. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { programFile } from '../program.ts'
import { CommandFailed } from './command-line.ts'
import { inertText } from './terminal.ts'

const startSecondsMax = 300
const stopSecondsMax = 12
const errorTextMax = 4000

export type BoardProcess = {
  readonly address: string
  /** SIGTERM, and a hard end when that takes longer than a board may take. */
  stop(): Promise<void>
  /** Settles when the process is gone, however it ended. */
  readonly ended: Promise<void>
}

/** Starts `broadside serve` with rates lifted. `port` 0 = a free one. Throws CommandFailed with its last words. */
export async function startBoard({
  dataDirectory,
  port,
}: {
  dataDirectory: string
  port: number
}): Promise<BoardProcess> {
  const args = [programFile, 'serve', '--data', dataDirectory, '--port', String(port), '--limits', 'off']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'exit').then(() => undefined)
  let lastWords = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    lastWords = (lastWords + text).slice(-errorTextMax)
  })
  const address = await Promise.race([
    readAddress(child),
    ended.then(() => undefined),
    new Promise<undefined>((resolve) => setTimeout(resolve, startSecondsMax * 1000, undefined).unref()),
  ])
  if (address === undefined) {
    child.kill('SIGKILL')
    throw new CommandFailed(`The board did not start. Its last output:\n${inertText(lastWords.trim()) || '(none)'}`)
  }
  return { address, ended, stop: () => stop(child, ended) }
}

async function readAddress(child: ChildProcess): Promise<string | undefined> {
  const lines = createInterface({ input: child.stdout! })
  for await (const line of lines) {
    const address = /\bhttps?:\/\/[^\s"]+/.exec(line)?.[0]
    if (address === undefined) continue
    // Whatever it says later is read and dropped: a full pipe would stop it.
    child.stdout!.resume()
    return address
  }
  return undefined
}

async function stop(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), stopSecondsMax * 1000)
  await ended
  clearTimeout(timer)
}
