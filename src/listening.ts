/** Where a board listens: a port that is free, and how a host is written. */
import { createServer } from 'node:net'

/** `host`: an IP address, once something listens there. */
export type Address = { readonly host: string; readonly port: number }

/** The address of this host and port, where nobody listens now; port 0: of any free port. Rejects with the error of the system. */
export function freeAddress(host: string, port: number): Promise<Address> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen({ host, port, exclusive: true }, () => {
      const bound = probe.address()
      const address =
        typeof bound === 'object' && bound !== null ? { host: bound.address, port: bound.port } : { host, port }
      probe.close(() => resolve(address))
    })
  })
}

/** A port that is free now: the log's origin names it, so it is chosen before anything is made. */
export async function freePort(host: string): Promise<number> {
  return (await freeAddress(host, 0)).port
}

export function cannotListen(host: string, port: number, cause?: unknown): Error {
  return new Error(`cannot listen on ${host} port ${port}: in use, not permitted or not an address of this machine`, {
    cause,
  })
}

/** A host as it stands in a URL. */
export function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
