/**
 * The address of a client: the socket's peer, or, behind a proxy, the address in the header that TRUST_PROXY names.
 *
 * The header is trusted only from the peers of TRUST_PROXY_FROM, and only its last entry, or the n-th from the right behind n proxies: the
 * client itself sent everything to the left of it. A proxy may append its own header line instead of extending the existing one (HAProxy
 * does), so all lines count as one list. An entry that is not an address is treated as a missing header.
 */

import { NetworkSet, parseAddress } from '../../actors/kernel/networks.ts'
import type { TrustedProxy } from '../config.ts'
import type { Exchange } from './port.ts'

/** Receives what an operator must see: an event, and a sentence that explains the problem. */
type Warn = (event: string, facts: Readonly<Record<string, string>>) => void

/** Headers in which proxies usually pass on the client's address. */
const usualHeaders: ReadonlySet<string> = new Set(['x-forwarded-for', 'x-real-ip', 'forwarded'])

/** Whether a request came through a proxy, trusted or not. `header`: of the trusted one, or ''. */
export function isForwarded(exchange: Pick<Exchange, 'header'>, header: string): boolean {
  return [...usualHeaders, header].some((name) => name !== '' && exchange.header(name) !== undefined)
}

export class ClientAddresses {
  readonly #proxy: TrustedProxy
  readonly #from: NetworkSet
  readonly #warn: Warn
  /** The last peer looked up: behind a proxy it is the same every time. */
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

  /** Warns once if a proxy's header is not trusted, because all of its clients then count as one address. */
  #check(peer: string, headers: readonly string[]): void {
    const { header } = this.#proxy
    const named = headers.find((name, at) => at % 2 === 0 && (header === '' ? usualHeaders.has(name) : name === header))
    if (named === undefined) return
    this.#hasWarned = true
    const problem =
      header === ''
        ? `a proxy at ${peer} sends ${named}, and TRUST_PROXY is not set: all its clients count as one address`
        : `${named} came from ${peer}, which TRUST_PROXY_FROM does not name: the header is ignored`
    this.#warn('proxy.not_trusted', { peer, header: named, problem })
  }
}

/**
 * The n-th entry from the right of a comma-separated list. The search runs from the right so that a quote that the client left open cannot
 * swallow what the proxies appended.
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

/** The `for` value of one element of a Forwarded header; undefined if the element is malformed or does not have exactly one. */
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

/** An address with or without a port, for IPv6 with or without brackets. A hidden name (`_x`, `unknown`) is not an address. */
function addressOfNode(node: string): string | undefined {
  const [, bracketed] = /^\[([^\]]*)\](?::[\w.-]+)?$/.exec(node) ?? []
  const [, dotted] = /^([\d.]+):[\w.-]+$/.exec(node) ?? []
  return parseAddress(bracketed ?? dotted ?? node)
}
