/** Several boxes, one leader and its followers, as hosts start them: on one machine, each with a directory and a port. */
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createReplicaKeyFile } from '../../src/cli/key-file.ts'
import { freePort } from '../../src/listening.ts'
import { type Board, type BoardOptions, startBoard } from './board-launch.ts'
import type { NatsCluster } from './nats-cluster.ts'
import { program } from './program.ts'
import { type ProgramResult, runProgram } from './run-program.ts'

type Env = Readonly<Record<string, string>>

export class Box {
  readonly directory: string
  readonly port: number
  readonly #env: Env
  readonly #leaders: string

  constructor(directory: string, port: number, env: Env, leaders: string) {
    this.directory = directory
    this.port = port
    this.#env = env
    this.#leaders = leaders
  }

  get address(): string {
    return `http://127.0.0.1:${this.port}`
  }

  options(command: 'serve' | 'follow', mayLead = false): BoardOptions {
    const env = command === 'serve' ? this.#env : { ...this.#env, FOLLOW: this.#leaders }
    return { directory: this.directory, port: this.port, env, command, mayLead }
  }

  serve(): Promise<Board> {
    return startBoard(this.options('serve'))
  }

  follow(): Promise<Board> {
    return startBoard(this.options('follow'))
  }

  /** Leads or follows, depending on the state. */
  join(): Promise<Board> {
    return startBoard(this.options('follow', true))
  }

  /** How far the board here has come, as its followers are told; undefined: it does not lead. */
  async ends(): Promise<{ readonly epoch: number; readonly log: number } | undefined> {
    const key = readFileSync(this.#env.REPLICA_KEY_FILE!, 'latin1').trim()
    const request = { headers: { authorization: `Bearer ${key}` }, signal: AbortSignal.timeout(2_000) }
    const answer = await fetch(`${this.address}/replica/ends`, request).catch(() => undefined)
    return answer?.status === 200 ? ((await answer.json()) as { epoch: number; log: number }) : undefined
  }

  /** Runs a command of the command line on this directory. */
  run(...args: string[]): Promise<ProgramResult> {
    return runProgram(this.directory, process.execPath, [program, ...args, '--data', this.directory], {
      env: { ...this.#env, FOLLOW: this.#leaders },
    })
  }

  /** The keys of the board, which a host copies to where it may be led. */
  copyKeysFrom({ directory }: Box): void {
    cpSync(join(directory, 'keys'), join(this.directory, 'keys'), { recursive: true })
  }
}

/** `directory`: contains all of them. `more`: settings of each. */
export async function makeBoxes(
  directory: string,
  count: number,
  cluster: NatsCluster,
  more: Env | ((box: number) => Env),
): Promise<Box[]> {
  mkdirSync(directory, { recursive: true })
  const keyFile = join(directory, 'replica.key')
  createReplicaKeyFile(keyFile)
  const ports: number[] = []
  for (let n = 0; n < count; n++) ports.push(await freePort('127.0.0.1'))
  const leaders = ports.map((port) => `http://127.0.0.1:${port}`).join(',')
  const base = { ...cluster.env, REPLICA_KEY_FILE: keyFile }
  return ports.map((port, n) => {
    const own = join(directory, `box-${n}`)
    mkdirSync(own, { recursive: true })
    return new Box(own, port, { ...base, ...(typeof more === 'function' ? more(n) : more) }, leaders)
  })
}
