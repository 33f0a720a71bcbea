/** A TCP proxy to a board, whose connections a test can cut or block. */
import { connect, createServer, type Server, type Socket } from 'node:net'

export type TcpProxy = {
  readonly address: string
  /** Ends every connection. */
  readonly disconnect: () => void
  /** The same, and accepts no new connection until `unblock`. */
  readonly block: () => void
  readonly unblock: () => void
  readonly close: () => void
}

export async function startTcpProxy(port: number): Promise<TcpProxy> {
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
  const disconnect = () => {
    for (const socket of open) socket.destroy()
  }
  return {
    address: `http://127.0.0.1:${at}`,
    disconnect,
    block: () => {
      isBlocked = true
      disconnect()
    },
    unblock: () => {
      isBlocked = false
    },
    close: () => {
      disconnect()
      server.close()
    },
  }
}
