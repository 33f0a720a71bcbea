/**
 * JSON as strangers write it, read without surprises: no key twice, no deep nesting, numbers as they come (RFC 8259, I-JSON).
 * The stricter reader of commands (src/format/strict-json.ts) takes no fractions, which other people's JSON has.
 */
import { keysIn, marksOf } from '../../format/json-marks.ts'
import { BadInput } from './own-tool.ts'

const depthMax = 128

/** Throws BadInput, with the name of what was read. */
export function readJson(text: string, name: string): unknown {
  const marks = marksOf(text)
  if (marks.depth > depthMax) throw new BadInput(`${name} nests deeper than ${depthMax}`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new BadInput(`${name} is no JSON: ${(error as Error).message.slice(0, 200)}`)
  }
  if (keysIn(value) !== marks.members) throw new BadInput(`${name} has a key twice in one object`)
  return value
}

/** RFC 8785: keys sorted by UTF-16 code units, numbers and strings as ECMAScript writes them. */
export function canonicalText(value: unknown): string {
  if (typeof value === 'string' && !value.isWellFormed()) throw new BadInput('a string holds a lone surrogate')
  if (typeof value === 'number' && !Number.isFinite(value)) throw new BadInput('a number is larger than a double holds')
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, each]) => `${canonicalText(key)}:${canonicalText(each)}`).join(',')}}`
}
