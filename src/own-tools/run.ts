/** Runs one call of a built-in tool: its input checked against its schema, its work done on the right thread, its output as JSON text. */

import { dataFault } from '../format/data-fault.ts'
import { type Check, compile } from '../format/schema-check.ts'
import type { Platform } from '../platform.ts'
import { Bench, type BenchResult } from './bench.ts'
import { type BoardAccess, Busy, boardTools } from './board-tools.ts'
import { ownToolById } from './descriptors.ts'
import { hereTools } from './here.ts'
import { BadInput, type Input, type OwnTool } from './own-tool.ts'

/** `fault`: what is wrong with the input, as a sentence. `failure`: it was not finished. */
type OwnResult = { readonly json: string } | { readonly fault: string } | { readonly failure: OwnFailure }
type OwnFailure = 'overloaded' | 'timeout' | 'too_large'

/** Time that one tool may take on the bench. */
const limitMsDefault = 2_000
const waitingMax = 64

const checks = new Map<OwnTool, Check>()

/** What is wrong with this input, and with which of its keys; undefined if the tool accepts it. */
export function inputFault(
  tool: OwnTool,
  input: Input,
): { readonly message: string; readonly key: string } | undefined {
  let check = checks.get(tool)
  if (check === undefined) {
    check = compile(tool.input)
    checks.set(tool, check)
  }
  if (check(input)) return undefined
  const shape = { name: `the input of ${tool.id}`, shape: tool.input, example: JSON.stringify(tool.example.input) }
  const { message, field } = dataFault(shape, input, check.errors ?? [])
  return { message, key: field.slice('data.'.length) }
}

export class OwnTools {
  readonly #board: BoardAccess
  readonly #bench: Bench

  constructor(
    board: BoardAccess,
    { clock, startThread }: Pick<Platform, 'clock' | 'startThread'>,
    limitMs = limitMsDefault,
  ) {
    this.#board = board
    this.#bench = new Bench({ limitMs, waitingMax, timers: clock, startThread })
  }

  /** The input must have passed `inputFault`. `now`: Unix seconds when the call was accepted. `from`: the network of the caller. */
  async run(
    id: string,
    input: Input,
    { now, from }: { readonly now: number; readonly from: string },
  ): Promise<OwnResult> {
    const tool = ownToolById.get(id)!
    try {
      if (tool.where === 'bench') return asResult(await this.#onBench(id, input, from))
      const output = await (tool.where === 'here'
        ? hereTools[id]!(input, now)
        : boardTools[id]!(input, this.#board, from))
      return { json: JSON.stringify(output) }
    } catch (error) {
      if (error instanceof BadInput) return { fault: error.message }
      if (error instanceof Busy) return { failure: 'overloaded' }
      throw error
    }
  }

  close(): Promise<void> {
    return this.#bench.close()
  }

  #onBench(tool: string, input: Input, from: string): Promise<BenchResult> {
    return new Promise((done) => this.#bench.run({ tool, input, from, done }))
  }
}

function asResult(result: BenchResult): OwnResult {
  return 'output' in result ? { json: JSON.stringify(result.output) } : result
}
