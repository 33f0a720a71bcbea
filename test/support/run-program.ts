/** Runs a program until it exits, with nothing of this environment except PATH. */
import { spawn } from 'node:child_process'
import { withoutProgress } from './without-progress.ts'

/** `errors`: standard error, without progress lines. */
export type ProgramResult = { readonly code: number | null; readonly output: string; readonly errors: string }

type RunOptions = { readonly input?: string; readonly env?: Readonly<Record<string, string>> }

/** Rejects if the program is not there. `folder`: its working directory and home. */
export function runProgram(
  folder: string,
  program: string,
  args: readonly string[],
  { input, env = {} }: RunOptions = {},
): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: folder, LC_ALL: 'C.UTF-8', ...env },
    })
    let [output, errors] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString()
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output, errors: withoutProgress(errors) }))
    child.stdin.end(input)
  })
}
