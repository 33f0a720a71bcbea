/** Strict parsing of URL queries: each parameter at most once, percent-encoding that decodes, and a bounded length. */

import { sizes } from '../../actors/kernel/limits.ts'
import { namesOf, type QueryName } from '../../actors/kernel/operation.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { nearest } from '../format/nearest.ts'
import { printable } from '../format/printable.ts'

export function parseQuery(query: string, bytesMax: number): ReadonlyMap<string, string> | Refusal {
  if (query.length > bytesMax)
    return refusal('too_large', `the query has ${query.length} bytes, ${bytesMax} are allowed`)
  const found = new Map<string, string>()
  if (query === '') return found
  for (const part of query.split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const name = decode(equals < 0 ? part : part.slice(0, equals))
    const value = decode(equals < 0 ? '' : part.slice(equals + 1))
    if (name === undefined || value === undefined) {
      const shown = name === undefined ? undefined : printable(name)
      return refusal(
        'invalid_field',
        `${shown ?? 'a name'} in the query is not percent-encoded UTF-8: write each byte as a percent sign and two hex digits`,
        shown,
      )
    }
    if (found.has(name))
      return refusal('invalid_field', `the parameter ${printable(name)} was given twice`, printable(name))
    found.set(name, value)
  }
  return found
}

/** The declared parameter that has this name. */
export function parameterNamed(declared: readonly QueryName[], name: string): QueryName | undefined {
  return declared.find((each) => namesOf(each).includes(name))
}

/** The refusal of a parameter that was given by both of its names. */
export function namedTwice({ name, also }: QueryName): Refusal {
  return refusal('invalid_field', `${name} and ${also} are two names of one parameter: give only one of them`, name)
}

/** The refusal by a path that takes no parameter of this name. */
export function unknownParameter(path: string, taken: readonly string[], name: string): Refusal {
  const meant = nearest(name, taken)
  const hint = meant === undefined ? `it takes ${taken.join(', ') || 'none'}` : `did you mean ${meant}?`
  return refusal('unknown_field', `${path} takes no parameter ${printable(name)}; ${hint}`, printable(name))
}

/** Refuses the query on a path without parameters, as other paths refuse an unknown parameter. */
export function noQuery(path: string, query: string): Refusal | undefined {
  if (query === '') return undefined
  const given = parseQuery(query, sizes.url_query_bytes)
  if ('code' in given) return given
  const [name] = given.keys()
  if (name === undefined) return undefined
  return unknownParameter(path, [], name)
}

/** A path segment, percent-decoded: `%40ada` is `@ada`. A segment that does not decode stays as it is. */
export function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
