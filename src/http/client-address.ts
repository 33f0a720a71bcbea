/**
 * The address of a client: the socket's peer, or, behind a proxy, what the header says that TRUST_PROXY names.
 *
 * A header is believed only from the peers of TRUST_PROXY_FROM, and only its last entry, or the n-th from the right behind n
 * proxies: everything to the left of it was sent by the client. A proxy may append a header line of its own instead of extending
 * the one that came (HAProxy does), so all lines count as one list. An entry that is no address counts as no header.
 */

import { NetworkSet, parseAddress } from '../../actors/kernel/networks.ts'
import type { TrustedProxy } from '../config.ts'
import type { Exchange } from './port.ts'

/** Takes what an operator has to see: an event and what is wrong in a sentence. */
type Warn = (event: string, facts: Readonly<Record<string, string>>) => void

/** Headers by which proxies usually say whose request they pass on. */
const usualHeaders: ReadonlySet<string> = new Set(['x-forwarded-for', 'x-real-ip', 'forwarded'])

export class ClientAddresses {
  readonly #proxy: TrustedProxy
  readonly #from: NetworkSet
  readonly #warn: Warn
  /** The peer that was looked up last: behind a proxy it is the same every time. */
  #peer = ''
  #isPeerTrusted = false
  #hasWarned = false

  constructor(proxy: TrustedProxy, warn: Warn) {
    this.#proxy = proxy
    this.#from = new NetworkSet(proxy.from)
    this.#warn = warn
  }

  of(exchange: Pick<Exchange, 'remoteAddress' | 'headers'>): string {
    const { remoteAddress, headers } = exchange
    const { header, hops } = this.#proxy
    const isTrusted = this.#trusts(remoteAddress)
    if (!this.#hasWarned && isTrusted === (header === '')) this.#check(remoteAddress, headers)
    if (!isTrusted || header === '') return remoteAddress
    const lines: string[] = []
    for (let i = 0; i < headers.length; i += 2) if (headers[i] === header) lines.push(headers[i + 1]!)
    const entry = lines.length === 0 ? undefined : entryFromRight(lines.join(','), hops)
    const node = entry === undefined || header !== 'forwarded' ? entry : forwardedFor(entry)
    return (node === undefined ? undefined : addressOfNode(node)) ?? remoteAddress
  }

  #trusts(peer: string): boolean {
    if (peer !== this.#peer) {
      this.#peer = peer
      this.#isPeerTrusted = this.#from.has(peer)
    }
    return this.#isPeerTrusted
  }

  /** Where the header of a proxy is not believed, all of its clients count as one address: said once. */
  #check(peer: string, headers: readonly string[]): void {
    const { header } = this.#proxy
    const named = headers.find((name, at) => at % 2 === 0 && (header === '' ? usualHeaders.has(name) : name === header))
    if (named === undefined) return
    this.#hasWarned = true
    const problem =
      header === ''
        ? `a proxy at ${peer} sends ${named}, and TRUST_PROXY is not set: all its clients count as one address`
        : `${named} came from ${peer}, which TRUST_PROXY_FROM does not name: the header is not believed`
    this.#warn('proxy.not_trusted', { peer, header: named, problem })
  }
}

/**
 * The n-th entry from the right of a comma-separated list. It is looked for from the right because a quote that a client left
 * open on the left must not swallow what the proxies appended.
 */
function entryFromRight(list: string, n: number): string | undefined {
  let end = list.length
  let left = n
  let isQuoted = false
  for (let at = list.length - 1; at >= 0; at--) {
    if (list[at] === '"') isQuoted = isQuoted && isEscaped(list, at) ? true : !isQuoted
    if (list[at] !== ',' || isQuoted) continue
    left--
    if (left === 0) return list.slice(at + 1, end).trim()
    end = at
  }
  return left === 1 ? list.slice(0, end).trim() : undefined
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0
  while (text[at - 1 - backslashes] === '\\') backslashes++
  return backslashes % 2 === 1
}

/** One pair of a forwarded-element (RFC 7239, section 4): a token, `=`, and a token or a quoted string. */
const forwardedPair = /\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^";,\s]*))\s*(?:;|$)/y

/** The `for` of one element of a Forwarded header; undefined where the element is malformed or has not exactly one. */
function forwardedFor(element: string): string | undefined {
  const found: string[] = []
  forwardedPair.lastIndex = 0
  while (forwardedPair.lastIndex < element.length) {
    const [, name, quoted, token = ''] = forwardedPair.exec(element) ?? []
    if (name === undefined) return undefined
    if (name.toLowerCase() === 'for') found.push(quoted === undefined ? token : quoted.replace(/\\(.)/g, '$1'))
  }
  return found.length === 1 ? found[0] : undefined
}

/** An address with or without a port, an IPv6 one with or without brackets; a hidden name (`_x`, `unknown`) is none. */
function addressOfNode(node: string): string | undefined {
  const [, bracketed] = /^\[([^\]]*)\](?::[\w.-]+)?$/.exec(node) ?? []
  const [, dotted] = /^([\d.]+):[\w.-]+$/.exec(node) ?? []
  return parseAddress(bracketed ?? dotted ?? node)
}
