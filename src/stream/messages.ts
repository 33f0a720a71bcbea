/** Parses client messages on /v1/stream. A message is one JSON object with an `id` and a request; its answer has the same `id`. */
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { listItemsMax } from '../command/check.ts'
import type { JsonLimits } from '../format/json-fault.ts'
import { parseStrictJson } from '../format/strict-json.ts'

export type Asked =
  | { readonly kind: 'command' | 'follow'; readonly id: string; readonly command: Buffer }
  | { readonly kind: 'unfollow'; readonly id: string; readonly target: string }

const limits: JsonLimits = { marksMax: 4_096, itemsMax: listItemsMax }
const idText = /^[\x20\x21\x23-\x5b\x5d-\x7e]{1,64}$/
const idRule = 'id must be a string of 1 to 64 printable ASCII characters without quotes and backslashes'

/** The form in which most clients write it, parsed without building values. The command path reads everything inside the braces. */
const usual = /^\{\s*"id"\s*:\s*"([\x20\x21\x23-\x5b\x5d-\x7e]{1,64})"\s*,\s*"(command|follow)"\s*:\s*(?=\{)/

/** A member may follow the command. Where only a text or a malformed command looks so, the slower path gives the same result. */
const mayHaveMore = /\}\s*,\s*"/

/** `text`: the same bytes as latin1. `id`: of a refused message, '' if it has none that can be repeated. */
export function readMessage(bytes: Buffer, text: string): Asked | { readonly id: string; readonly fault: Refusal } {
  const [head, id, kind] = usual.exec(text) ?? []
  const end = text.trimEnd().length - 1
  const isUsual = head !== undefined && text[end] === '}'
  if (isUsual && !mayHaveMore.test(text))
    return { kind: kind as 'command' | 'follow', id: id!, command: bytes.subarray(head.length, end) }
  const parsed = parseStrictJson(bytes, limits)
  if (!parsed.ok) {
    const message = `a message must be one JSON object: ${parsed.message}`
    return { id: isUsual ? id! : '', fault: refusal('invalid_json', message) }
  }
  const { value } = parsed
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { id: '', fault: refusal('invalid_json', 'a message must be one JSON object') }
  return checked({ ...value })
}

function checked({ id, ...rest }: Readonly<Record<string, unknown>>): ReturnType<typeof readMessage> {
  if (typeof id !== 'string' || !idText.test(id))
    return { id: '', fault: refusal(id === undefined ? 'missing_field' : 'invalid_field', idRule, 'id') }
  const [[kind, asked] = [], ...more] = Object.entries(rest)
  if (kind === undefined)
    return {
      id,
      fault: refusal('missing_field', 'a message needs command, follow or unfollow beside its id', 'command'),
    }
  const isKnown = kind === 'command' || kind === 'follow' || kind === 'unfollow'
  if (!isKnown || more.length > 0) {
    const name = isKnown ? more[0]![0] : kind
    const message = 'a message has an id and one of command, follow and unfollow, nothing else'
    return { id, fault: refusal('unknown_field', message, name.slice(0, 64)) }
  }
  if (kind === 'unfollow') {
    if (typeof asked === 'string') return { kind, id, target: asked }
    return { id, fault: refusal('invalid_field', 'unfollow must be the id of a follow', 'unfollow') }
  }
  if (typeof asked === 'object' && asked !== null && !Array.isArray(asked))
    return { kind, id, command: Buffer.from(JSON.stringify(asked)) }
  return { id, fault: refusal('invalid_field', `${kind} must be a command, a JSON object`, kind) }
}
