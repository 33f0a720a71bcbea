/** Read access to a leader's stream, for a follower: it may not publish, and is notified of new messages. */
import { DeliverPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { type Part, parseHeader } from './batch.ts'
import type { Ends } from './journals-out.ts'
import { closed, connected, copiesSubject, headerName, refuseOld, type StreamOptions, streamName } from './stream.ts'

/** A lost server takes its state of this reader with it: after two missed heartbeats, another server is asked. */
const heartbeatMs = 1_000
const askedAgainMs = 5_000

export class StreamReader {
  readonly #connection: NatsConnection
  readonly #name: string
  readonly #copies: string
  readonly #clock: StreamOptions['clock']

  /** Throws UnfitServers, and errors of the network. */
  static async open({ servers, seed, serviceId, clock }: Omit<StreamOptions, 'systemSeed'>): Promise<StreamReader> {
    const connection = await connected(servers, seed, { maxReconnectAttempts: -1 })
    try {
      refuseOld(connection.info?.server_name ?? 'the server', connection.info?.version ?? '')
    } catch (error) {
      await closed(connection, clock)
      throw error
    }
    return new StreamReader(connection, serviceId, clock)
  }

  private constructor(connection: NatsConnection, serviceId: string, clock: StreamOptions['clock']) {
    this.#clock = clock
    this.#connection = connection
    this.#name = streamName(serviceId)
    this.#copies = copiesSubject(serviceId)
  }

  /** The number of the newest message; 0 if there is none. */
  async last(): Promise<number> {
    const manager = await jetstreamManager(this.#connection, { checkAPI: false })
    const { messages, last_seq } = (await manager.streams.info(this.#name)).state
    return messages === 0 ? 0 : last_seq
  }

  /** Messages from this number on, existing ones and then new ones. `part`: undefined if no board wrote it. */
  async *from(seq: number): AsyncGenerator<{ readonly seq: number; readonly part: Part | undefined }, void, undefined> {
    const consumer = await jetstream(this.#connection, { checkAPI: false }).consumers.get(this.#name, {
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: seq,
    })
    const messages = await consumer.consume({ max_messages: 256, idle_heartbeat: heartbeatMs, expires: askedAgainMs })
    for await (const message of messages) {
      const header = parseHeader(message.headers?.get(headerName) ?? '')
      yield { seq: message.seq, part: header && { header, bytes: message.data } }
    }
  }

  /** Reports how far the journals are on disk here, to a leader that may wait for that. */
  reportCopied(ends: Ends): void {
    this.#connection.publish(this.#copies, JSON.stringify(ends))
  }

  close(): Promise<void> {
    return closed(this.#connection, this.#clock)
  }
}
