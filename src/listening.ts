/** Where a board listens: a port that is free, and how a host is written. */
import { createServer } from 'node:net'

/** A port that is free now: the log's origin names it, so it is chosen before anything is made. */
export function freePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, host, () => {
      const bound = probe.address()
      probe.close(() => resolve(typeof bound === 'object' && bound !== null ? bound.port : 0))
    })
  })
}

/** A host as it stands in a URL. */
export function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
