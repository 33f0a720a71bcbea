/**
 * What is stored of a delivery besides its body: headers and parameters that describe it or that its receive URL asks for, never those that
 * authenticate the sender.
 */

import { describingHeaders } from '../../actors/receive-urls/operations.ts'

const headersMax = 16
const valueMax = 200

const named: ReadonlySet<string> = new Set(describingHeaders)
const shaped = /^ce-[a-z0-9-]{1,61}$|^[a-z0-9-]{1,51}-(event|delivery|request)-id$/
const secretive = /auth|cookie|signature|secret|token/i

/** The first of each header to keep. `fields`: lowercase names and values, alternating. `own`: the dedupe header of the receive URL, or ''. */
export function keptHeaders(fields: readonly string[], own: string): [name: string, value: string][] {
  const kept = new Map<string, string>()
  const keep = (isOne: (name: string) => boolean): void => {
    for (let i = 0; i < fields.length && kept.size < headersMax; i += 2) {
      const name = fields[i]!
      if (kept.has(name) || !isOne(name) || secretive.test(name)) continue
      kept.set(name, plain(fields[i + 1] ?? ''))
    }
  }
  keep((name) => name === own)
  keep((name) => named.has(name) || shaped.test(name))
  return [...kept]
}

/** The query of the address as it was sent, without parameters that are credentials by their name. */
export function keptQuery(query: string): string {
  const parts = query.split('&').filter((part) => !secretive.test(part.split('=', 1)[0]!))
  return parts.join('&')
}

/** A header's value without unprintable characters, cut to its maximum length. */
export function plain(value: string): string {
  return value.replaceAll(/[^\x20-\x7e]/g, '\u{fffd}').slice(0, valueMax)
}
