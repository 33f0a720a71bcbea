/**
 * Whether a browser's request comes from a page that may make it. Another site must not reach a board through a visitor's browser (DNS
 * rebinding): Host must be a name of this board or of this machine, and an Origin, if sent, must be this board's or one of MCP_ORIGINS.
 */
import { isLoopbackHost } from '../../actors/kernel/networks.ts'
import type { Exchange } from './port.ts'

export class OwnSite {
  readonly #name: string
  readonly #origins: ReadonlySet<string>

  /** `address`: public address of the board. `origins`: allowed in addition to its own. */
  constructor({ address, origins }: { readonly address: string; readonly origins: readonly string[] }) {
    const { hostname, origin } = new URL(address)
    this.#name = hostname
    this.#origins = new Set([origin, ...origins])
  }

  /** Why the request is not allowed; undefined if it is. */
  faultOf(exchange: Pick<Exchange, 'header'>): string | undefined {
    const host = exchange.header('host') ?? ''
    const name = host.replace(/:\d{1,5}$/, '').toLowerCase()
    if (name !== this.#name && !isLoopbackHost(name)) return `Host ${JSON.stringify(host)} is not this board`
    const origin = exchange.header('origin')
    if (origin === undefined || this.#origins.has(origin)) return undefined
    return 'this Origin is not allowed here: MCP_ORIGINS lists the allowed ones'
  }
}
