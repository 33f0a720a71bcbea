/**
 * JSON of other people's programs with one meaning: what two readers could take for different things is refused. Fractions and
 * exponents pass, which a command does not have (strict-json.ts) and a message of another protocol may.
 */
import { isUtf8 } from 'node:buffer'
import { keysIn, marksOf } from './json-marks.ts'

/** Levels of a message of MCP: those of `data`, of what carries it, and room for clients that say more of themselves. */
const nestingMax = 64
/** Of `{ [ : ,` outside strings: those of the largest `data`, given as an object. More would take longer to read than to send. */
const marksMax = 32_768

export type PlainJson =
  | { readonly ok: true; readonly value: unknown }
  /** What is wrong, as the rest of a sentence. */
  | { readonly ok: false; readonly fault: string }

export function plainJson(body: Buffer): PlainJson {
  if (!isUtf8(body)) return { ok: false, fault: 'is not UTF-8' }
  const text = body.toString('utf8')
  const { depth, members, marks } = marksOf(text)
  if (depth > nestingMax) return { ok: false, fault: `nests deeper than ${nestingMax}: nothing here is that deep` }
  if (marks > marksMax) return { ok: false, fault: `has more than ${marksMax} of { [ : , outside strings` }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { ok: false, fault: 'is not JSON' }
  }
  return keysIn(value) === members ? { ok: true, value } : { ok: false, fault: 'has a key twice in one object' }
}
