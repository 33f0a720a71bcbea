/**
 * The stream that carries the journals: NATS JetStream, on three servers that sync every message. They provide transport and
 * fencing, and are never the only copy. Nothing else here speaks to NATS, and this module is loaded only on a board that has
 * REPLICATE.
 */
import { JetStreamApiError, type JetStreamManager, jetstreamManager, type PeerInfo } from '@nats-io/jetstream'
import {
  type ConnectionOptions,
  connect,
  headers,
  type NatsConnection,
  nkeyAuthenticator,
} from '@nats-io/transport-node'
import { type Clock, pause } from '../clock.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { type Part, parseHeader } from './batch.ts'
import { Foreign } from './halted.ts'
import { type Ends, isEnds } from './journals-out.ts'
import { keptSeconds } from './stream-seal.ts'

export type StreamOptions = {
  /** Addresses, such as `tls://n1.example:4222`. */
  readonly servers: readonly string[]
  /** Nkey seed of the user that publishes, and of the user of the system account. */
  readonly seed: Uint8Array
  readonly systemSeed: Uint8Array
  readonly serviceId: string
  readonly clock: Pick<Clock, 'later' | 'monotonicMs'>
}

/** The outcome of a publication. An error, or no answer, proves nothing: the message may be there or still arrive. */
export type Published = { readonly seq: number } | { readonly unknown: string }

/** `away`: names of servers with a copy of the stream that are away or lack messages. */
export type StreamHealth = {
  /** The server that leads the stream, and its clock in Unix seconds, if it says. */
  readonly leader: string
  readonly wallSeconds: number | undefined
  readonly away: readonly string[]
}

/** These servers cannot carry a board's journals; the message says which and why. */
export class UnfitServers extends Error {
  override name = 'UnfitServers'
}

/** The servers cannot be reached now, or lack a majority. */
export class StreamAway extends Error {
  override name = 'StreamAway'
}

/** 2.10 before this version loses messages that it has acknowledged; 2.9 does not know `sync_interval: always`. */
const oldestVersion = [2, 10, 23] as const
const replicas = 3
const streamNotFound = 10_059
export const headerName = 'Broadside'
const expectedHeader = 'Nats-Expected-Last-Sequence'
/** Per server. */
const connectWithinMs = 2_000
const publishWithinMs = 5_000
const answersWithinMs = 2_000
const closedWithinMs = 1_000
/** A server that is away has no part in acknowledgments. It is asked again how it syncs, in case it is back. */
const askAgainMs = 5_000
/** Servers that hold a stream hear from each other every second. */
const heardWithinNs = 3e9
const systemPing = '$SYS.REQ.SERVER.PING.VARZ'

export class JournalStream {
  readonly #options: StreamOptions
  readonly #connection: NatsConnection
  readonly #manager: JetStreamManager
  readonly #name: string
  readonly #subject: string
  #checkedUntilMs = Number.NEGATIVE_INFINITY

  /**
   * Connects and checks that the servers are fit. `whenMissing`: what to do if there is no stream. Throws UnfitServers and
   * StreamAway.
   */
  static async open(options: StreamOptions, whenMissing: 'make' | 'refuse'): Promise<JournalStream> {
    const connection = await connected(options.servers, options.seed, { maxReconnectAttempts: -1 }).catch(
      (error: unknown) => {
        throw away(options, error)
      },
    )
    try {
      refuseOld(connection.info?.server_name ?? 'the server', connection.info?.version ?? '')
      const stream = new JournalStream(options, connection, await jetstreamManager(connection, { checkAPI: false }))
      if (!(await stream.#isThere())) await stream.#make(whenMissing)
      await stream.check()
      return stream
    } catch (error) {
      await closed(connection, options.clock)
      throw error instanceof UnfitServers || error instanceof StreamAway ? error : away(options, error)
    }
  }

  private constructor(options: StreamOptions, connection: NatsConnection, manager: JetStreamManager) {
    this.#options = options
    this.#connection = connection
    this.#manager = manager
    this.#name = streamName(options.serviceId)
    this.#subject = framesSubject(options.serviceId)
    void this.#watch()
  }

  /** The creation time distinguishes the stream from one that replaced it. */
  async state(): Promise<{ readonly created: string; readonly firstSeq: number; readonly lastSeq: number }> {
    const { created, state } = await answerTo(this.#manager.streams.info(this.#name))
    return { created: String(created), firstSeq: state.first_seq, lastSeq: state.last_seq }
  }

  /** Only one may be pending at a time. `expected`: the number that the newest message of the stream must have. */
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

  /** A message, from the leader of the stream; undefined if there is none with this number. Throws Foreign. */
  async read(seq: number): Promise<Part | undefined> {
    const found = await answerTo(this.#manager.streams.getMessage(this.#name, { seq }))
    if (found === null) return undefined
    const header = parseHeader(found.header.get(headerName))
    if (header === undefined) throw new Foreign()
    return { header, bytes: found.data }
  }

  /** From now on, calls `take` with how far followers have the journals on their disks. */
  async subscribeCopies(take: (ends: Ends) => void): Promise<void> {
    for await (const message of this.#connection.subscribe(copiesSubject(this.#options.serviceId))) {
      const ends = foreignJson(message.string())
      if (isEnds(ends)) take(ends)
    }
  }

  /** False after a reconnection, because the servers may be others, or if one that was away may be back. */
  get isChecked(): boolean {
    return this.#options.clock.monotonicMs() < this.#checkedUntilMs
  }

  /**
   * Throws UnfitServers if a server that holds the stream is too old or does not sync every message. Throws StreamAway unless
   * the stream's leader, all servers that are up to date, and a majority have confirmed that they do.
   */
  async check(): Promise<void> {
    const { cluster, config } = await answerTo(this.#manager.streams.info(this.#name))
    if (config.num_replicas < replicas || config.storage !== 'file')
      throw new UnfitServers(
        `The stream ${this.#name} must keep ${replicas} copies in files. Delete it: the board recreates it correctly.`,
      )
    const { leader, replicas: others = [] } = cluster ?? {}
    if (leader === undefined)
      throw new StreamAway(
        'None of the NATS servers leads the stream now. At least two of the three must be running and reach each other.',
      )
    const awaited = [leader, ...others.filter(isUpToDate).map(({ name }) => name)]
    const names = [leader, ...others.map(({ name }) => name)]
    const found = await this.#servers(awaited, names)
    for (const name of names) {
      const server = found.get(name)
      if (server === undefined) continue
      refuseOld(name, server.version)
      if (!server.syncsAlways)
        throw new UnfitServers(
          `The NATS server ${name} does not sync every message. Set sync_interval: always in its jetstream block.`,
        )
    }
    const silent = names.filter((name) => !found.has(name))
    const unproven = awaited.find((name) => !found.has(name)) ?? (isMinority(silent, names) ? undefined : silent[0])
    if (unproven !== undefined)
      throw new StreamAway(`The NATS server ${unproven} did not report whether it syncs every message. Is it running?`)
    this.#checkedUntilMs =
      silent.length === 0 ? Number.POSITIVE_INFINITY : this.#options.clock.monotonicMs() + askAgainMs
  }

  /** What the server that leads the stream knows of the others. Throws StreamAway. */
  async health(): Promise<StreamHealth> {
    const { cluster, ts } = await answerTo(this.#manager.streams.info(this.#name))
    const { leader = '', replicas: others = [] } = cluster ?? {}
    const away = others.filter((each) => !isUpToDate(each)).map(({ name }) => name)
    return { leader, away, wallSeconds: ts === undefined ? undefined : Date.parse(ts) / 1000 }
  }

  close(): Promise<void> {
    return closed(this.#connection, this.#options.clock)
  }

  async #watch(): Promise<void> {
    for await (const { type } of this.#connection.status())
      if (type === 'reconnect') this.#checkedUntilMs = Number.NEGATIVE_INFINITY
  }

  #isThere(): Promise<boolean> {
    return this.#manager.streams.info(this.#name).then(
      () => true,
      (error: unknown) => {
        if (error instanceof JetStreamApiError && error.code === streamNotFound) return false
        throw error
      },
    )
  }

  async #make(whenMissing: 'make' | 'refuse'): Promise<void> {
    if (whenMissing === 'refuse') throw new UnfitServers(`The NATS servers have no stream ${this.#name}.`)
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
      throw new UnfitServers(`The NATS servers did not create a stream with ${replicas} copies: ${error.message}.`)
    }
  }

  /**
   * What servers of the cluster report about themselves, by name: all awaited ones, and a majority of those that hold the
   * stream, if they answer in time. Others may be missing.
   */
  async #servers(
    awaited: readonly string[],
    names: readonly string[],
  ): Promise<Map<string, { readonly version: string; readonly syncsAlways: boolean }>> {
    const { servers, systemSeed } = this.#options
    const system = await connected(servers, systemSeed, { reconnect: false }, 'REPLICATE_SYSTEM_KEY_FILE')
    const found = new Map<string, { version: string; syncsAlways: boolean }>()
    try {
      const answers = await system.requestMany(systemPing, '', { strategy: 'timer', maxWait: answersWithinMs })
      for await (const answer of answers) {
        const { server, data } = answer.json<ServerInfo>()
        found.set(server.name, { version: server.ver, syncsAlways: data?.jetstream?.config?.sync_always === true })
        const isSilent = (name: string) => !found.has(name)
        if (!awaited.some(isSilent) && isMinority(names.filter(isSilent), names)) break
      }
      return found
    } finally {
      await closed(system, this.#options.clock)
    }
  }
}

/** A killed server is not reported as offline for minutes, but the others have not heard from it, or it lacks messages. */
function isUpToDate({ offline, current, active }: PeerInfo): boolean {
  return !offline && current && active < heardWithinNs
}

function isMinority(some: readonly string[], all: readonly string[]): boolean {
  return some.length * 2 < all.length
}

function away({ servers }: StreamOptions, error: unknown): StreamAway {
  const problem = error instanceof Error ? error.message : String(error)
  return new StreamAway(`The servers of the stream (${servers.join(', ')}) are out of reach: ${problem}.`)
}

/** Rejects with StreamAway instead of an error of the library. */
async function answerTo<Answer>(request: Promise<Answer>): Promise<Answer> {
  try {
    return await request
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    throw new StreamAway(
      `The NATS servers did not do what was asked (${problem}). Are at least two of the three running?`,
    )
  }
}

/** A name in subjects may have no dot. */
function tokenOf(serviceId: string): string {
  return serviceId.replaceAll('.', '_')
}

/** Where a board publishes its journals. */
export function framesSubject(serviceId: string): string {
  return `broadside.${tokenOf(serviceId)}.frames`
}

/** Where followers report how far they have the journals. The stream stores none of it. */
export function copiesSubject(serviceId: string): string {
  return `broadside.${tokenOf(serviceId)}.copies`
}

export function streamName(serviceId: string): string {
  return `broadside-${tokenOf(serviceId)}`
}

type ServerInfo = {
  readonly server: { readonly name: string; readonly ver: string }
  readonly data?: { readonly jetstream?: { readonly config?: { readonly sync_always?: boolean } } }
}

/** Rejects with errors of the network; if the servers and this board do not accept each other, with the setting to check. */
export async function connected(
  servers: readonly string[],
  seed: Uint8Array,
  more: ConnectionOptions,
  keyFile = 'REPLICATE_KEY_FILE',
): Promise<NatsConnection> {
  try {
    return await connect({ ...connecting(servers, seed), ...more })
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    if (/authorization violation/i.test(problem))
      throw new Error(`${problem}: they have no user with the key in ${keyFile}`)
    if (/self[- ]signed|unable to (get|verify)/i.test(problem))
      throw new Error(`${problem}: NODE_EXTRA_CA_CERTS must name the file of the CA that signed their certificates`)
    throw error
  }
}

function connecting(servers: readonly string[], seed: Uint8Array): ConnectionOptions {
  const authenticator = nkeyAuthenticator(seed)
  // Only the configured servers, not those they advertise: these addresses may belong to a network that this board cannot
  // reach.
  return {
    servers: [...servers],
    authenticator,
    name: 'broadside',
    timeout: connectWithinMs,
    ignoreClusterUpdates: true,
  }
}

/** A connection that is reconnecting does not report when it has closed. */
export async function closed(connection: NatsConnection, clock: Pick<Clock, 'later'>): Promise<void> {
  await Promise.race([connection.close(), pause(clock, closedWithinMs)])
}

export function refuseOld(name: string, version: string): void {
  const numbers = version.split('.').map((each) => Number.parseInt(each, 10))
  const at = oldestVersion.findIndex((number, index) => (numbers[index] ?? 0) !== number)
  if (at === -1 || (numbers[at] ?? 0) > oldestVersion[at]!) return
  throw new UnfitServers(`The NATS server ${name} is ${version}. A board needs at least ${oldestVersion.join('.')}.`)
}
