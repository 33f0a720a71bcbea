/**
 * The board's answers as a model gets them: never more than `mcp_answer_tokens`. A list ends after a complete item and its cursor continues
 * from there; a long text is read in parts; proofs are included only on request. The text of a result and its structured content are the
 * same JSON, because a host shows a model one of the two.
 */
import { createHash } from 'node:crypto'
import { docsRead } from '../../actors/documents/operations.ts'
import { updatesGet } from '../../actors/follow/operations.ts'
import { sizes } from '../../actors/kernel/limits.ts'
import type { Operation } from '../../actors/kernel/operation.ts'
import { operationByName } from '../../actors/operations.ts'
import { eventGet } from '../../actors/posts/operations.ts'
import { roomGet } from '../../actors/rooms/operations.ts'
import type { Json } from '../format/plain-schema.ts'
import { brief, isObject, listOf } from './brief.ts'
import type { Arguments, Calling, Calls, Outcome } from './calls.ts'
import type { Extras } from './extra-inputs.ts'
import { type Cut, inParts } from './parts.ts'
import { tokensAtMost } from './tokens.ts'
import { toolName } from './tool-list.ts'

export type ToolResult = {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[]
  readonly structuredContent?: Json
  readonly isError?: true
}

/** Tokens of the sentence that says how to continue reading, with a request id of any length. */
const hintTokens = 250
/** Tokens that a list needs in addition to the text of its single item. */
const aroundTokens = 1_000
/** Operations that show a single item, which itself says how to continue reading it. */
const readers: ReadonlySet<Operation> = new Set([eventGet, docsRead, roomGet])
/** A list that grew in the meantime may have to be requested again with a lower limit. */
const attemptsMax = 4

export function toolResult(outcome: Outcome): ToolResult {
  if (outcome === undefined) {
    const message =
      'the board did not answer, and it is unknown whether the call took effect: call again with the same request_id'
    return { content: [{ type: 'text', text: message }], isError: true }
  }
  return outcome.ok === true && isObject(outcome.data)
    ? resultOf(outcome.data)
    : { ...resultOf(outcome), isError: true }
}

function resultOf(data: Json): ToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(data) }], structuredContent: data }
}

/** `less`: tokens to keep free. */
function fits(data: Json, less = 0): boolean {
  const tokens = sizes.mcp_answer_tokens - less
  return tokensAtMost(JSON.stringify(data), tokens) <= tokens
}

/** A tool call: the operation, its arguments, and how to show its answer. */
type Call = {
  readonly operation: Operation
  readonly args: Arguments
  readonly extras: Extras
  readonly calling: Calling
  /** The keys of `data` were sent as separate arguments, and refusals name them so. */
  readonly isFlat?: boolean
}

export class Answers {
  readonly #calls: Calls

  constructor(calls: Calls) {
    this.#calls = calls
  }

  async of(call: Call): Promise<Outcome> {
    const unread = await this.#unread(call)
    return unread ?? this.#within({ ...call, args: await this.#settled(call) })
  }

  /** Sends a command that its sender signed. It cannot be repeated from here for a shorter list. */
  async ofSigned(command: Json, extras: Extras, calling: Calling): Promise<Outcome> {
    const outcome = await this.#calls.execute(command, calling)
    const operation = operationByName.get(String(command.operation))
    const about = { operation, args: {}, extras }
    if (outcome?.ok !== true || !isObject(outcome.data)) return refusalOf(outcome, about)
    if (operation === undefined) return partOf(outcome.data, about)
    const shown = shownOf(outcome.data, operation, extras)
    const count = fits(shown) ? undefined : countWithin(shown, operation)
    if (count === undefined || count === 0) return partOf(shown, about)
    const list = listOf(operation)!
    const { next_cursor: _, cursor: __, ...rest } = shown
    const items = shown[list] as readonly unknown[]
    const hint = `these are ${count} of ${items.length}: sign it again with "limit":${count} for a cursor that continues after them`
    return { ok: true, data: { ...rest, hint, [list]: items.slice(0, count) } }
  }

  /** To replace a text that is read in parts, a caller must have been shown its end: what the new text leaves out is deleted. */
  async #unread({ operation, args, extras, calling }: Call): Promise<Outcome> {
    const { replaces } = operation
    const asked = replaces === undefined ? undefined : argumentsFor(replaces.fields, args)
    if (replaces === undefined || asked === undefined) return undefined
    const read = operationByName.get(replaces.read)!
    const found = await this.#calls.run(read, asked, calling)
    // What cannot be read cannot be written either, and the write says why.
    if (found?.ok !== true || !isObject(found.data) || fits(brief(found.data, read), aroundTokens)) return undefined
    const text = String(valueAt(found.data, replaces.text))
    if (extras.replaces_sha256 === createHash('sha256').update(text).digest('hex')) return undefined
    const message = `this would replace a text of ${Buffer.byteLength(text)} bytes, which ${toolName(read.name)} returns in parts, and delete what yours omits: read it to its end, write the whole text, and send the text_sha256 of the last part as replaces_sha256`
    const code = extras.replaces_sha256 === undefined ? 'missing_field' : 'conflict'
    return { ok: false, error: { code, message, field: 'replaces_sha256' } }
  }

  /** The arguments, completed so that the same call is safe to repeat. */
  async #settled({ operation, args, extras, calling }: Call): Promise<Arguments> {
    // The rest of the answer is requested under the same request_id, so nothing is called twice.
    if (operation.inParts === true && operation.kind === 'write' && (args.request_id ?? null) === null)
      return { ...args, request_id: this.#calls.requestId() }
    // A single item leaves room for its text.
    if (extras.text_offset !== undefined && listOf(operation) !== undefined) return { ...args, limit: 1 }
    const { data } = args
    if (operation !== updatesGet || (args.cursor ?? null) !== null || !isObject(data) || data.wait === undefined)
      return args
    // The call waits from now on, and may be repeated if its answer is too long, so the present needs a cursor.
    const { wait: _, ...rest } = data
    const now = await this.#calls.run(operation, { ...args, data: rest }, calling)
    return isObject(now?.data) ? { ...args, cursor: now.data.cursor } : args
  }

  /** Requests as many items as fit. */
  async #within(call: Call): Promise<Outcome> {
    const { operation, calling, extras, isFlat } = call
    let { args } = call
    for (let attempts = 1; ; attempts++) {
      const outcome = await this.#calls.run(operation, args, calling, isFlat)
      if (outcome?.ok !== true || !isObject(outcome.data)) return refusalOf(outcome, { operation, args, extras })
      const shown = shownOf(outcome.data, operation, extras)
      const count = fits(shown) ? undefined : countWithin(shown, operation)
      if (count === undefined || attempts === attemptsMax) return partOf(shown, { operation, args, extras })
      args = { ...args, limit: Math.max(1, count) }
    }
  }
}

function shownOf(data: Json, operation: Operation, { proof }: Extras): Json {
  return shortFirst(proof === true ? data : brief(data, operation))
}

/** Puts short members, including a cursor, before long ones. */
function shortFirst(data: Json): Json {
  const members = Object.entries(data)
  const isLong = ([, value]: readonly [string, unknown]) => Array.isArray(value)
  return Object.fromEntries([...members.filter((member) => !isLong(member)), ...members.filter(isLong)])
}

/** How many items of a list that is too long fit; undefined if there is no list, or at most one item in it. */
function countWithin(shown: Json, operation: Operation): number | undefined {
  const list = listOf(operation)
  const items = list === undefined ? undefined : shown[list]
  if (list === undefined || !Array.isArray(items) || items.length < 2) return undefined
  let left = sizes.mcp_answer_tokens - tokensAtMost(JSON.stringify({ ...shown, [list]: [] }))
  const count = items.findIndex((item) => {
    left -= 1 + tokensAtMost(JSON.stringify(item), left)
    return left < 0
  })
  return count === -1 ? items.length - 1 : count
}

type About = Pick<Call, 'args' | 'extras'> & { readonly operation: Operation | undefined }

/** The answer itself if it fits, otherwise the requested part of its texts. */
function partOf(data: Json, about: About): Outcome {
  const { text_offset: offset } = about.extras
  if (offset === undefined && fits(data)) return { ok: true, data }
  const parted = inParts(data, sizes.mcp_answer_tokens - hintTokens, offset)
  if (!parted.ok) {
    const message = `text_offset must be less than ${parted.bytes}, the length of the text in bytes`
    return { ok: false, error: { code: 'invalid_field', message, field: 'text_offset' } }
  }
  return { ok: true, data: { ...hintFor(parted.cuts, about), ...parted.data } }
}

/** A refusal may contain texts too, such as two that conflict. */
function refusalOf(outcome: Outcome, about: About): Outcome {
  if (outcome === undefined || fits(outcome)) return outcome
  const parted = inParts(outcome, sizes.mcp_answer_tokens - hintTokens)
  return parted.ok ? { ...parted.data, ...hintFor(parted.cuts, about) } : outcome
}

function hintFor(cuts: readonly Cut[], about: About): { readonly hint?: string } {
  const cut = cuts.find(({ next }) => next !== undefined)
  const hint = cut === undefined ? undefined : hintOf(cut, about)
  return hint === undefined ? {} : { hint }
}

const idPattern = /^[0-9a-f]{32}$/

/** How to continue reading the same version. Contains nothing that a stranger wrote, because a model takes it for the board's own words. */
function hintOf({ of, next }: Cut, { operation, args }: About): string | undefined {
  const { request_id } = args
  const again = request_id === undefined ? 'the same arguments' : `the same arguments, request_id ${request_id}`
  const same = `to continue reading: call it again with ${again} and text_offset ${next}`
  // What a tool answered may look like anything from the board.
  if (operation?.inParts === true && !readers.has(operation)) return same
  const [version_id, event_id, doc = args.target] = [of.version_id, of.event_id, of.id].map((each) =>
    typeof each === 'string' && idPattern.test(each) ? each : undefined,
  )
  if (event_id !== undefined)
    return `to continue reading: event_get with event_id ${version_id ?? event_id} and text_offset ${next}`
  if (version_id !== undefined)
    return `to continue reading: docs_read with target ${doc}, version ${Number(of.version)} and text_offset ${next}`
  if (typeof of.about === 'string') return `to continue reading: room_get with room ${of.name} and text_offset ${next}`
  return operation?.inParts === true ? same : undefined
}

/** A value among a tool's arguments: a field, or a key in `data`. */
function valueAt(args: Json, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), args)
}

/** Arguments for a read, taken from those of a write; undefined if they do not name what to read. */
function argumentsFor(fields: Readonly<Record<string, string>>, args: Json): Arguments | undefined {
  const found = Object.entries(fields).map(([name, from]) => [name, valueAt(args, from)] as const)
  if (found.some(([, value]) => value === undefined || value === null)) return undefined
  const inData = found.flatMap(([name, value]) => (name.startsWith('data.') ? [[name.slice(5), value] as const] : []))
  return {
    ...Object.fromEntries(found.filter(([name]) => !name.startsWith('data.'))),
    ...(inData.length === 0 ? {} : { data: Object.fromEntries(inData) }),
  }
}
