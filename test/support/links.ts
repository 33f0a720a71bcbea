/** The connection of one box to the servers of a cluster, which can be cut. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export class Links {
  readonly #servers: readonly Server[]
  readonly #open = new Set<Socket>()
  #isCut = false

  private constructor(ports: readonly number[]) {
    this.#servers = ports.map((port) => createServer((socket) => this.#pass(socket, port)))
  }

  /** `ports`: of the servers, on this machine. */
  static async to(ports: readonly number[]): Promise<Links> {
    const links = new Links(ports)
    for (const server of links.#servers) {
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
    }
    return links
  }

  /** As REPLICATE names the servers. */
  get addresses(): string {
    return this.#servers.map((server) => `nats://127.0.0.1:${(server.address() as AddressInfo).port}`).join(',')
  }

  cut(): void {
    this.#isCut = true
    for (const socket of this.#open) socket.destroy()
  }

  restore(): void {
    this.#isCut = false
  }

  close(): void {
    this.cut()
    for (const server of this.#servers) server.close()
  }

  #pass(socket: Socket, port: number): void {
    if (this.#isCut) return void socket.destroy()
    const there = connect(port, '127.0.0.1')
    for (const [one, other] of [
      [socket, there],
      [there, socket],
    ] as const) {
      this.#open.add(one)
      one.pipe(other)
      one.on('error', () => {})
      one.once('close', () => {
        this.#open.delete(one)
        other.destroy()
      })
    }
  }
}
