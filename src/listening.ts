/** The address at which a board listens: finds a free port, and formats a host for a URL. */
import { createServer } from 'node:net'
import { BadConfig } from './environment.ts'

/** `host`: an IP address, once something listens there. */
export type Address = { readonly host: string; readonly port: number }

/** The address for this host and port, if nothing listens there now; port 0: with any free port. Rejects with the system's error. */
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

/** Throws BadConfig if no board could listen on this host, whatever the port. */
export async function checkHost(host: string): Promise<void> {
  try {
    await freePort(host)
  } catch (error) {
    throw new BadConfig(
      `HOST must be an address of this machine, such as 127.0.0.1 or 0.0.0.0, but it is "${host}": ${(error as Error).message}.`,
    )
  }
}

/** A port that is free now. The log's origin names it, so it is chosen before anything is created. */
export async function freePort(host: string): Promise<number> {
  return (await freeAddress(host, 0)).port
}

/** `freeAddress` for a board, which is told what to do if it cannot listen there. */
export async function addressToListen(host: string, port: number): Promise<Address> {
  try {
    return await freeAddress(host, port)
  } catch (error) {
    throw cannotListen(host, port, error)
  }
}

export function cannotListen(host: string, port: number, cause?: unknown): Error {
  return new Error(`cannot listen on ${host} port ${port}: in use, not permitted or not an address of this machine`, {
    cause,
  })
}

/** A host as written in a URL. */
export function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
