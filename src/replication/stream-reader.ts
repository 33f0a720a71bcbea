/** The stream of a leader as a follower reads it: one that may not publish, and is told what comes. */
import { DeliverPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { type Part, parseHeader } from './batch.ts'
import type { Ends } from './journals-out.ts'
import { closed, connected, copiesSubject, headerName, refuseOld, type StreamOptions, streamName } from './stream.ts'

/** A server that was lost took with it what it knew of this reader: two of these without a word, and another is asked. */
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

  /** The number of the newest message; 0: there is none. */
  async last(): Promise<number> {
    const manager = await jetstreamManager(this.#connection, { checkAPI: false })
    const { messages, last_seq } = (await manager.streams.info(this.#name)).state
    return messages === 0 ? 0 : last_seq
  }

  /** Messages from this number on, as far as they are there, and those that come. `part`: undefined where no board wrote it. */
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

  /** Says how far the journals are on the disk here, to a leader that may wait for that. */
  tellCopied(ends: Ends): void {
    this.#connection.publish(this.#copies, JSON.stringify(ends))
  }

  close(): Promise<void> {
    return closed(this.#connection, this.#clock)
  }
}
