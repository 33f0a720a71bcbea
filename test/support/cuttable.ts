/** A proxy to a board whose connections can be cut, as those of readers sometimes are. */
import { connect, createServer, type Server, type Socket } from 'node:net'

export type Way = {
  readonly address: string
  /** Ends every connection. */
  readonly cut: () => void
  /** The same, and lets nobody through until `clear`. */
  readonly block: () => void
  readonly clear: () => void
  readonly close: () => void
}

export async function cuttable(port: number): Promise<Way> {
  const open = new Set<Socket>()
  let isBlocked = false
  const server: Server = createServer((near) => {
    if (isBlocked) return near.destroy()
    const far = connect(port, '127.0.0.1')
    open.add(near)
    near.on('close', () => open.delete(near))
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
      one.pipe(other)
    }
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port: at } = server.address() as { port: number }
  const cut = () => {
    for (const socket of open) socket.destroy()
  }
  return {
    address: `http://127.0.0.1:${at}`,
    cut,
    block: () => {
      isBlocked = true
      cut()
    },
    clear: () => {
      isBlocked = false
    },
    close: () => {
      cut()
      server.close()
    },
  }
}
