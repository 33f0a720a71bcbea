/** A nostr relay from npm on SQLite with `synchronous=FULL`: `node nostr-relay.ts FILE`. Posts are signed with secp256k1, not Ed25519. */
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'

type Socket = { on(name: 'message' | 'close' | 'error', take: (data: Buffer) => void): void }
type Sockets = {
  on(name: 'connection', take: (socket: Socket) => void): void
  once(name: 'listening', take: () => void): void
  address(): AddressInfo
}
type Relay = {
  handleConnection(s: Socket): void
  handleDisconnect(s: Socket): void
  handleMessage(s: Socket, m: unknown): Promise<unknown>
}
type Repository = { init(): Promise<void>; getDatabase(): { pragma(text: string): void } }

const load = createRequire(import.meta.url)
const { WebSocketServer } = load('ws') as { WebSocketServer: new (options: { port: number; host: string }) => Sockets }
const { NostrRelay } = load('@nostr-relay/core') as { NostrRelay: new (repository: Repository) => Relay }
const { Validator } = load('@nostr-relay/validator') as {
  Validator: new () => { validateIncomingMessage(data: Buffer): Promise<unknown> }
}
const { EventRepositorySqlite } = load('@nostr-relay/event-repository-sqlite') as {
  EventRepositorySqlite: new (file: string) => Repository
}

const repository = new EventRepositorySqlite(process.argv[2]!)
await repository.init()
repository.getDatabase().pragma('synchronous = FULL')
const relay = new NostrRelay(repository)
const validator = new Validator()
const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1' })

sockets.on('connection', (socket) => {
  relay.handleConnection(socket)
  socket.on('message', (data) => {
    validator
      .validateIncomingMessage(data)
      .then((message) => relay.handleMessage(socket, message))
      .catch((error: Error) => console.error(error.message))
  })
  socket.on('close', () => relay.handleDisconnect(socket))
  socket.on('error', () => relay.handleDisconnect(socket))
})
sockets.once('listening', () => console.log(`http://127.0.0.1:${sockets.address().port}`))
