/**
 * An HTTP server whose connections are held by separate threads on one port. The kernel distributes new connections among them. The main
 * thread answers every request, so it can count per network and per identity, whichever thread holds the connection.
 *
 * A thread that dies loses its connections and is replaced.
 */

import { internalLimits } from '../../actors/kernel/limits.ts'
import { Link } from '../../actors/kernel/link.ts'
import { Supervised, type ThreadError, type ThreadUsage } from '../../actors/kernel/supervisor.ts'
import type { Cancel } from '../../actors/kernel/timers.ts'
import { TurnoverMap } from '../../storage/turnover-map.ts'
import type { Clock } from '../clock.ts'
import type { EngineChoice } from '../config.ts'
import { ConnectionCount } from '../http/connection-count.ts'
import type { FromClients, RequestMessage, ToClients } from '../http/forward-messages.ts'
import { type ClientThread, ForwardedExchange, type ForwardedFlow, ForwardedSocket } from '../http/forwarded.ts'
import { answerDeadlineMs, type Handler, type HttpOptions, type HttpServer } from '../http/port.ts'
import { type Address, addressToListen } from '../listening.ts'
import { log } from '../observe.ts'
import type { Platform } from '../platform.ts'
import { threadFile } from '../program.ts'
import type { HttpThread } from './http.ts'

type HttpThreadsOptions = Pick<Platform, 'clock' | 'startThread' | 'channel' | 'onBytesReleased'> & {
  readonly engine: EngineChoice
  /** Number of threads. */
  readonly threads: number
  readonly handler: Handler
  readonly http: HttpOptions
  /** The longest body that any handler reads. */
  readonly bodyBytesMax: number
  /** Called when the process cannot continue. */
  readonly onFatal: (thread: string, error: ThreadError) => void
}

const stopWithinMs = 2_000
const closeWithinMs = 1_000

export class HttpThreads implements HttpServer {
  engine: 'uws' | 'node' = 'node'
  readonly #connections: ConnectionCount
  readonly #threads: readonly HttpThreadClients[]
  readonly #clock: Clock
  readonly #stopSweeping: Cancel
  readonly #closed: Int32Array<SharedArrayBuffer>

  private constructor(options: HttpThreadsOptions) {
    const { connections = new ConnectionCount(), deadlineMs = answerDeadlineMs } = options.http
    this.#connections = connections
    this.#closed = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT * options.threads))
    this.#threads = Array.from(
      { length: options.threads },
      (_, number) => new HttpThreadClients(options, number, connections, this.#closed),
    )
    const sweep = (): void => {
      for (const thread of this.#threads) thread.sweep(deadlineMs)
    }
    this.#clock = options.clock
    this.#stopSweeping = options.clock.every(sweep, Math.min(1_000, deadlineMs / 4))
    process.once('exit', this.#closeAtOnce)
  }

  /** Resolves when every thread has loaded its engine. Rejects if one cannot. */
  static async start(options: HttpThreadsOptions): Promise<HttpThreads> {
    const threads = new HttpThreads(options)
    try {
      const [engine] = await Promise.all(threads.#threads.map((thread) => thread.start()))
      threads.engine = engine === 'uws' ? 'uws' : 'node'
      return threads
    } catch (error) {
      await threads.close()
      throw error
    }
  }

  get openConnections(): number {
    return this.#connections.open
  }

  async listen(host: string, port: number): Promise<number> {
    // Threads that share a port would not notice another board listening there.
    const address = await addressToListen(host, port)
    await Promise.all(this.#threads.map((thread) => thread.listen(address)))
    return address.port
  }

  async stopAccepting(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.stopAccepting()))
  }

  /** Resource usage of each thread, by its name. */
  usage(): Promise<[thread: string, usage: ThreadUsage][]> {
    return Promise.all(this.#threads.map((thread) => thread.usage()))
  }

  async close(): Promise<void> {
    this.#stopSweeping()
    await Promise.all(this.#threads.map((thread) => thread.close()))
    process.off('exit', this.#closeAtOnce)
  }

  /**
   * The process exits regardless of requests in progress: blocks until the threads have closed their connections. With connections left
   * open, the native engine would end the process with a libuv assertion instead of its exit code.
   */
  readonly #closeAtOnce = (): void => {
    const running = this.#threads.filter((thread) => thread.beginsToClose())
    const until = this.#clock.monotonicMs() + closeWithinMs
    for (const { number } of running)
      Atomics.wait(this.#closed, number, 0, Math.max(0, until - this.#clock.monotonicMs()))
  }
}

/** One thread, and its clients' exchanges. */
class HttpThreadClients implements ClientThread {
  readonly options: HttpOptions
  readonly pending = {
    delete: (exchange: unknown): boolean =>
      exchange instanceof ForwardedExchange && this.#exchanges.delete(exchange.id),
  }
  draining = false
  readonly #supervised: Supervised
  readonly #given: HttpThreadsOptions
  readonly #connections: ConnectionCount
  readonly number: number
  #link: Link | undefined
  readonly #closed: Int32Array<SharedArrayBuffer>
  /** Unanswered exchanges, oldest first. */
  readonly #exchanges = new TurnoverMap<number, ForwardedExchange>()
  readonly #flows = new Map<number, ForwardedFlow>()
  /** Where it listens, once told to. */
  #address: Address | undefined
  /** This thread replaced one that died. */
  #isAgain = false
  /** Requests in the message being handled. */
  #received = 0
  readonly #listening = Promise.withResolvers<void>()
  readonly #notAccepting = Promise.withResolvers<void>()
  /** The last message, if it is a write that has not been sent yet. Other streams that get the same bytes join it. */
  #writing: { readonly ids: number[]; readonly chunk: Uint8Array } | undefined

  constructor(
    given: HttpThreadsOptions,
    number: number,
    connections: ConnectionCount,
    closed: Int32Array<SharedArrayBuffer>,
  ) {
    this.#given = given
    this.#closed = closed
    this.options = given.http
    this.number = number
    this.#connections = connections
    this.#supervised = this.#supervise(`http-${number}`)
  }

  /** Returns its engine. */
  async start(): Promise<unknown> {
    return (await this.#supervised.start()).engine
  }

  listen(address: Address): Promise<void> {
    this.#address = address
    this.tell(['listen', address.host, address.port])
    return this.#listening.promise
  }

  async stopAccepting(): Promise<void> {
    this.draining = true
    this.tell(['stop accepting'])
    await this.#notAccepting.promise
  }

  async close(): Promise<void> {
    this.draining = true
    // Terminating the worker would end the process, because the native engine has open handles.
    await this.#supervised.stop(stopWithinMs, 'leave')
    this.#lose()
    this.#link?.close()
  }

  /** Returns false if it is not running. */
  beginsToClose(): boolean {
    if (!this.#supervised.isRunning) return false
    this.tell(['close'])
    this.#link?.flush()
    return true
  }

  async usage(): Promise<[thread: string, usage: ThreadUsage]> {
    return [this.#supervised.name, await this.#supervised.usage()]
  }

  sweep(deadlineMs: number): void {
    const now = this.options.now()
    for (const exchange of this.#exchanges.values()) {
      if (now - exchange.since < deadlineMs) return
      exchange.overdue()
    }
  }

  tell(message: ToClients): void {
    this.#writing = undefined
    this.#link?.tell(message)
  }

  write(id: number, chunk: Uint8Array): void {
    if (this.#writing?.chunk === chunk) {
      this.#writing.ids.push(id)
      return
    }
    const ids = [id]
    this.#link?.tell(['write', ids, chunk] satisfies ToClients)
    this.#writing = { ids, chunk }
  }

  follow(id: number, flow: ForwardedFlow): void {
    this.#flows.set(id, flow)
  }

  #supervise(name: string): Supervised {
    const { clock, startThread, channel, onBytesReleased, engine, http, bodyBytesMax, onFatal } = this.#given
    const { connectionsMax, socketPath, bodies, deadlineMs } = http
    return new Supervised({
      name,
      file: threadFile('http'),
      startData: () => {
        const front = channel()
        this.#lose()
        this.#link?.close()
        this.#link = new Link({
          port: front.port1,
          openMax: 1,
          patienceMs: internalLimits.patienceMs,
          now: clock.monotonicMs,
          timers: clock,
          onTell: (body) => this.#take(body as FromClients),
          onFlush: () => {
            this.#writing = undefined
          },
          onReceived: (bytes) => {
            if (this.#received > 0) this.tell(['received', this.#received])
            this.#received = 0
            onBytesReleased(bytes)
          },
        })
        const data: HttpThread = {
          front: front.port2,
          number: this.number,
          connections: this.#connections.slots,
          closed: this.#closed,
          engine,
          connectionsMax,
          socketPath,
          bodies,
          bodyBytesMax,
          deadlineMs,
        }
        return { data, transfer: [front.port2] }
      },
      onRestart: () => {
        if (this.#address === undefined || this.draining) return
        this.#isAgain = true
        this.tell(['listen', this.#address.host, this.#address.port])
      },
      startThread,
      mayRestart: () => true,
      onEvent: log,
      onFatal,
      now: clock.monotonicMs,
      timers: clock,
    })
  }

  #take(message: FromClients): void {
    switch (message[0]) {
      case 'request':
        this.#serve(message)
        break
      case 'body':
        this.#exchanges.get(message[1])?.onBody(message[2])
        break
      case 'long body':
        this.#exchanges.get(message[1])?.bodyIsLong(message[2])
        break
      case 'lost':
        this.#exchanges.get(message[1])?.lost()
        break
      case 'taken':
      case 'taken again':
        this.#flows.get(message[1])?.taken(message[2], message[0] === 'taken again')
        break
      case 'blocked':
        this.#flows.get(message[1])?.blocked()
        break
      case 'closed': {
        const flow = this.#flows.get(message[1])
        this.#flows.delete(message[1])
        flow?.closed()
        break
      }
      case 'message': {
        const flow = this.#flows.get(message[1])
        if (flow instanceof ForwardedSocket) flow.message(message[2], message[3])
        break
      }
      case 'ping':
      case 'pong': {
        const flow = this.#flows.get(message[1])
        if (flow instanceof ForwardedSocket) flow.control(message[0])
        break
      }
      case 'full':
        this.options.onFull?.()
        break
      case 'listening':
        this.#listening.resolve()
        break
      case 'stopped accepting':
        this.#notAccepting.resolve()
        break
      case 'not listening':
        // The caller that starts the board awaits this. For a replacement thread nobody does.
        this.#listening.reject(new Error(message[1]))
        if (this.#isAgain) this.#given.onFatal(this.#supervised.name, { name: 'Error', message: message[1], stack: '' })
        break
    }
  }

  #serve(request: RequestMessage): void {
    const exchange = new ForwardedExchange(this, request)
    this.#received++
    try {
      const promise = this.#given.handler(exchange)
      if (promise !== undefined) promise.catch((error: unknown) => exchange.fault(error))
    } catch (error) {
      exchange.fault(error)
    }
    exchange.handled()
    if (!exchange.ended) this.#exchanges.set(exchange.id, exchange)
  }

  /** The thread is gone, with all its connections. */
  #lose(): void {
    this.#connections.forget(this.number)
    // Nor does it accept connections anymore.
    if (this.draining) this.#notAccepting.resolve()
    const flows = [...this.#flows.values()]
    this.#flows.clear()
    const exchanges = [...this.#exchanges.values()]
    for (const flow of flows) flow.closed()
    for (const exchange of exchanges) exchange.lost()
  }
}
