/**
 * From the bytes of a request to a command whose every field has its type, or to why it is none.
 *
 * What it costs to refuse a body is bounded by the body of a good command: few marks of structure, no list longer than any field
 * takes, and more than half a megabyte only for what carries a file. Why it is refused is worked out when it is asked for: not for
 * those who have sent too many.
 */

import { type Command, fields } from '../../actors/kernel/fields.ts'
import { sizes } from '../../actors/kernel/limits.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { operationByName } from '../../actors/operations.ts'
import type { JsonLimits } from '../format/json-fault.ts'
import { stringAt } from '../format/json-head.ts'
import { parseStrictJson, type StrictJson } from '../format/strict-json.ts'
import { checkShape, listItemsMax } from './check.ts'

export type Read =
  | { readonly ok: true; readonly value: Command }
  | { readonly ok: false; readonly fault: () => Refusal }

/** A command has a few hundred marks at most; what has more was never one. */
const limits: JsonLimits = { marksMax: 4_096, itemsMax: listItemsMax }

/** Every command passes here: nothing that only a refusal needs is set up before there is one. */
export function readCommand(body: Buffer): Read {
  if (body.length > sizes.command_bytes && !carriesFile(body, ['operation'])) return tooLarge(body.length)
  const parsed = parseStrictJson(body, limits)
  if (!parsed.ok) return notStrict(parsed)
  const shaped = checkShape(parsed.value)
  return shaped.ok ? shaped : misshapen(shaped.refusal)
}

/** The command whose operation stands at this path puts a file, and may be as large as a body. */
export function carriesFile(body: Buffer, path: readonly string[]): boolean {
  return operationByName.get(stringAt(body, path) ?? '')?.name === 'blob.put'
}

function tooLarge(bytes: number): Read {
  const message = `a command other than blob.put may have ${sizes.command_bytes} bytes, and this has ${bytes}`
  return { ok: false, fault: () => refusal('too_large', message) }
}

function notStrict(parsed: Extract<StrictJson, { ok: false }>): Read {
  return {
    ok: false,
    fault: () => {
      const field = Object.entries(fields).find(([name]) => name === parsed.member)
      if (field === undefined) return refusal('invalid_json', `the body must be one JSON object: ${parsed.message}`)
      const [name, { rule }] = field
      return refusal('invalid_field', `${name} must be ${rule}; more than ${listItemsMax} items were sent`, name)
    },
  }
}

function misshapen(found: Refusal): Read {
  return { ok: false, fault: () => found }
}
