/** Connections to vetted targets, one for each request: none is ever used again. */
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { SecureContextOptions } from 'node:tls'

export type VettedOptions = RequestOptions & { readonly servername?: string }

/** Bytes of an answer's head. */
const headBytesMax = 32_768

export class VettedHttpAgent extends HttpAgent {
  constructor() {
    super({ keepAlive: false })
  }

  send(options: VettedOptions): ClientRequest {
    return httpRequest({ ...options, agent: this, maxHeaderSize: headBytesMax })
  }
}

export class VettedHttpsAgent extends HttpsAgent {
  constructor(trust: SecureContextOptions) {
    super({ keepAlive: false, ...trust, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] })
  }

  send(options: VettedOptions): ClientRequest {
    return httpsRequest({ ...options, agent: this, maxHeaderSize: headBytesMax })
  }
}
