/**
 * Connections to vetted targets. A pool's key holds the vetted addresses beside name and port: a name that moves gets
 * connections of its own, and none is ever shared between two names.
 */
import {
  type AgentOptions,
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type RequestOptions,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { SecureContextOptions } from 'node:tls'
import type { Address } from './target.ts'

export type VettedOptions = RequestOptions & { readonly vetted: readonly Address[]; readonly servername?: string }

/** Few per target, few idle: a board speaks to many. */
const pooled: AgentOptions = {
  keepAlive: true,
  keepAliveMsecs: 5_000,
  maxSockets: 8,
  maxFreeSockets: 2,
  timeout: 60_000,
}
const single: AgentOptions = { keepAlive: false }
/** Bytes of an answer's head. */
const headBytesMax = 32_768

function vettedName(name: string, { vetted }: Partial<VettedOptions>): string {
  return `${name}|${(vetted ?? []).map(({ address }) => address).join(',')}`
}

export class VettedHttpAgent extends HttpAgent {
  constructor(keepAlive: boolean) {
    super(keepAlive ? pooled : single)
  }

  override getName(options?: Partial<VettedOptions>): string {
    return vettedName(super.getName(options), options ?? {})
  }

  send(options: VettedOptions): ClientRequest {
    return httpRequest({ ...options, agent: this, maxHeaderSize: headBytesMax })
  }
}

export class VettedHttpsAgent extends HttpsAgent {
  constructor(keepAlive: boolean, trust: SecureContextOptions) {
    super({ ...(keepAlive ? pooled : single), ...trust, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] })
  }

  override getName(options?: Partial<VettedOptions>): string {
    return vettedName(super.getName(options), options ?? {})
  }

  send(options: VettedOptions): ClientRequest {
    return httpsRequest({ ...options, agent: this, maxHeaderSize: headBytesMax })
  }
}
