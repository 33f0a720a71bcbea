/**
 * Defines a tool of the board itself: free, useful without any network, pure, and bounded in time and size for any input.
 *
 * Descriptors are light and load nothing. Where a tool runs depends on its cost:
 * - `here`: immediately, in time linear in its input, which is at most as long as `data` of a command;
 * - `bench`: on a separate thread with a time limit, because hostile input could make it slow;
 * - `board`: it queries the board.
 */
import type { Schema } from '../../actors/kernel/schema.ts'
import { parseForeign } from '../format/foreign-json.ts'

export type OwnTool = {
  /** `broadside:<name>`. */
  readonly id: string
  readonly name: string
  readonly description: string
  readonly category: string
  readonly input: Schema
  readonly output: Schema
  readonly example: { readonly input: Input; readonly output: Readonly<Record<string, unknown>> }
  readonly where: 'here' | 'bench' | 'board'
}

export type Input = Readonly<Record<string, unknown>>
export type Output = Readonly<Record<string, unknown>>

/** The input fits the schema but makes no sense; the message says why. */
export class BadInput extends Error {
  override name = 'BadInput'
}

const inputDepthMax = 128

/** Parses JSON inside an input. Throws BadInput with the name of what was parsed. */
export function readJson(text: string, name: string): unknown {
  const read = parseForeign(text, { depthMax: inputDepthMax })
  if (!read.ok) throw new BadInput(`${name} ${read.fault}`)
  return read.value
}
