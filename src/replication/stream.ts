/**
 * The stream that carries the journals: NATS JetStream, three servers that sync every message. They are transport and fence, never the
 * only copy. Nothing else here speaks to NATS, and it is loaded only on a board that has REPLICATE.
 */
import { JetStreamApiError, type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import {
  type ConnectionOptions,
  connect,
  headers,
  type NatsConnection,
  nkeyAuthenticator,
} from '@nats-io/transport-node'
import { type Part, parseHeader } from './batch.ts'
import { keptSeconds } from './stream-seal.ts'

export type StreamOptions = {
  /** Addresses, such as `tls://n1.example:4222`. */
  readonly servers: readonly string[]
  /** Nkey seed of the user that publishes, and of the user of the system account. */
  readonly seed: Uint8Array
  readonly systemSeed: Uint8Array
  readonly serviceId: string
}

/** What was made of a publication. An error, or no answer, proves nothing: the message may be there or still come. */
export type Published = { readonly seq: number } | { readonly unknown: string }

/** These servers cannot carry a board's journals; the sentence says which and why. */
export class UnfitServers extends Error {
  override name = 'UnfitServers'
}

/** Before it, 2.10 loses what it has acknowledged; 2.9 knows no `sync_interval: always`. */
const oldestVersion = [2, 10, 23] as const
const replicas = 3
const streamNotFound = 10_059
export const headerName = 'Broadside'
const expectedHeader = 'Nats-Expected-Last-Sequence'
/** Of one server. */
const connectWithinMs = 2_000
const publishWithinMs = 5_000
const answersWithinMs = 2_000
const systemPing = '$SYS.REQ.SERVER.PING.VARZ'

export class JournalStream {
  readonly #options: StreamOptions
  readonly #connection: NatsConnection
  readonly #manager: JetStreamManager
  readonly #name: string
  readonly #subject: string
  #isChecked = false

  /** Connects and finds servers that are fit; makes the stream where there is none. Throws UnfitServers, and errors of the network. */
  static async open(options: StreamOptions): Promise<JournalStream> {
    const connection = await connect({ ...connecting(options.servers, options.seed), maxReconnectAttempts: -1 })
    try {
      refuseOld(connection.info?.server_name ?? 'the server', connection.info?.version ?? '')
      const stream = new JournalStream(options, connection, await jetstreamManager(connection, { checkAPI: false }))
      await stream.#make()
      await stream.check()
      return stream
    } catch (error) {
      await connection.close()
      throw error
    }
  }

  private constructor(options: StreamOptions, connection: NatsConnection, manager: JetStreamManager) {
    this.#options = options
    this.#connection = connection
    this.#manager = manager
    this.#name = streamName(options.serviceId)
    this.#subject = `broadside.${tokenOf(options.serviceId)}.frames`
    void this.#watch()
  }

  /** The time at which the stream was made tells it from one that took its place. */
  async state(): Promise<{ readonly created: string; readonly lastSeq: number }> {
    const { created, state } = await this.#manager.streams.info(this.#name)
    return { created: String(created), lastSeq: state.last_seq }
  }

  /** One at a time, ever. `expected`: the number of the newest message that the stream may have. */
  async publish({ header, bytes }: Part, expected: number): Promise<Published> {
    const given = headers()
    given.set(headerName, JSON.stringify(header))
    given.set(expectedHeader, String(expected))
    try {
      const answer = await this.#connection.request(this.#subject, bytes, { headers: given, timeout: publishWithinMs })
      const { error, seq } = answer.json<{ readonly error?: { readonly description: string }; readonly seq: number }>()
      return error === undefined ? { seq } : { unknown: error.description }
    } catch (error) {
      return { unknown: String(error) }
    }
  }

  /** A message, from the leader of the stream; 'foreign': no board wrote it; undefined: there is none with this number. */
  async read(seq: number): Promise<Part | 'foreign' | undefined> {
    const found = await this.#manager.streams.getMessage(this.#name, { seq })
    if (found === null) return undefined
    const header = parseHeader(found.header.get(headerName))
    return header === undefined ? 'foreign' : { header, bytes: found.data }
  }

  /** After a reconnection the servers may be others. */
  get isChecked(): boolean {
    return this.#isChecked
  }

  /** Throws UnfitServers unless every server that holds the stream is new enough and syncs every message. */
  async check(): Promise<void> {
    const { cluster, config } = await this.#manager.streams.info(this.#name)
    if (config.num_replicas < replicas || config.storage !== 'file')
      throw new UnfitServers(
        `The stream ${this.#name} has to keep ${replicas} copies in files. Delete it: the board makes it as it has to be.`,
      )
    const names = [cluster?.leader, ...(cluster?.replicas ?? []).map(({ name }) => name)].filter(
      (name) => name !== undefined,
    )
    const found = await this.#servers(names.length)
    for (const name of names) {
      const server = found.get(name)
      if (server === undefined)
        throw new UnfitServers(`The NATS server ${name} did not say whether it syncs every message. Is it there?`)
      refuseOld(name, server.version)
      if (!server.syncsAlways)
        throw new UnfitServers(
          `The NATS server ${name} does not sync every message. Set sync_interval: always in its jetstream block.`,
        )
    }
    this.#isChecked = true
  }

  async close(): Promise<void> {
    await this.#connection.close()
  }

  async #watch(): Promise<void> {
    for await (const { type } of this.#connection.status()) if (type === 'reconnect') this.#isChecked = false
  }

  /** Makes the stream where there is none. */
  async #make(): Promise<void> {
    const isThere = await this.#manager.streams.info(this.#name).then(
      () => true,
      (error: unknown) => {
        if (error instanceof JetStreamApiError && error.code === streamNotFound) return false
        throw error
      },
    )
    if (isThere) return
    try {
      await this.#manager.streams.add({
        name: this.#name,
        subjects: [this.#subject],
        storage: 'file',
        num_replicas: replicas,
        max_age: keptSeconds * 1e9,
        discard: 'old',
        deny_purge: true,
        allow_direct: false,
      })
    } catch (error) {
      if (!(error instanceof JetStreamApiError)) throw error
      throw new UnfitServers(`The NATS servers do not make a stream with ${replicas} copies: ${error.message}.`)
    }
  }

  /** What each server of the cluster says of itself, by name. */
  async #servers(count: number): Promise<Map<string, { readonly version: string; readonly syncsAlways: boolean }>> {
    const system = await connect(connecting(this.#options.servers, this.#options.systemSeed))
    const found = new Map<string, { version: string; syncsAlways: boolean }>()
    try {
      const answers = await system.requestMany(systemPing, '', { strategy: 'timer', maxWait: answersWithinMs })
      for await (const answer of answers) {
        const { server, data } = answer.json<ServerSaid>()
        found.set(server.name, { version: server.ver, syncsAlways: data?.jetstream?.config?.sync_always === true })
        if (found.size === count) break
      }
      return found
    } finally {
      await system.close()
    }
  }
}

/** A name in subjects may have no dot. */
function tokenOf(serviceId: string): string {
  return serviceId.replaceAll('.', '_')
}

export function streamName(serviceId: string): string {
  return `broadside-${tokenOf(serviceId)}`
}

type ServerSaid = {
  readonly server: { readonly name: string; readonly ver: string }
  readonly data?: { readonly jetstream?: { readonly config?: { readonly sync_always?: boolean } } }
}

export function connecting(servers: readonly string[], seed: Uint8Array): ConnectionOptions {
  return { servers: [...servers], authenticator: nkeyAuthenticator(seed), name: 'broadside', timeout: connectWithinMs }
}

export function refuseOld(name: string, version: string): void {
  const numbers = version.split('.').map((each) => Number.parseInt(each, 10))
  const at = oldestVersion.findIndex((number, index) => (numbers[index] ?? 0) !== number)
  if (at === -1 || (numbers[at] ?? 0) > oldestVersion[at]!) return
  throw new UnfitServers(`The NATS server ${name} is ${version}. A board needs at least ${oldestVersion.join('.')}.`)
}
