/** The thread that publishes the journals for followers. Started only on a board with REPLICATE set. It only reads the journals. */
import { internalLimits } from '../../actors/kernel/limits.ts'
import { Link, type Port } from '../../actors/kernel/link.ts'
import { blobsDirectory, logDirectory, shardDirectories } from '../board-directory.ts'
import { drained, pause } from '../clock.ts'
import type { ReplicationSettings } from '../config.ts'
import { Acknowledgments } from '../replication/acknowledgments.ts'
import { Copies, framesAfter } from '../replication/copies.ts'
import { Deposed } from '../replication/halted.ts'
import type { Ends } from '../replication/journals-out.ts'
import { readNamedIn } from '../replication/named-files.ts'
import { type OpenStream, openStream } from '../replication/open-stream.ts'
import { Pump } from '../replication/pump.ts'
import { ServerWatch } from '../replication/server-watch.ts'
import { forgetEveryMs, StreamSeal } from '../replication/stream-seal.ts'
import { StreamWriter } from '../replication/writer.ts'
import type { CopiesTell, FramesAsk } from './copies.ts'
import type { Acknowledged } from './log-run.ts'
import type { ThreadPlatform, ThreadStarter } from './thread.ts'

export type ReplicationThread = {
  readonly dataDirectory: string
  readonly serviceId: string
  readonly settings: ReplicationSettings
  /** Where the journals are durable when it starts. */
  readonly ends: Ends
  /** How far the stream is known to have them. If nothing is known, everything durable. */
  readonly from: Ends
  /** The board answers nothing until the stream has been reached once. */
  readonly isAwaited: boolean
  /** The board already answers. */
  readonly isStarted: boolean
  readonly front: Port
}

/** The board answers; or a message from the log: the journals are durable up to here, or sealed segments of one were rewritten. */
export type ReplicationTell = 'started' | CopiesTell

/**
 * What keeps the board from publishing, or writes from being answered; undefined if nothing does. `fatal`: the error after which the board
 * must answer nothing more.
 */
export type ReplicationNews = {
  readonly problem: string | undefined
  readonly fatal?: 'Deposed' | 'Halted' | undefined
}

/** What is durable when the board stops is still published, if the servers are reachable. */
const flushMs = 2_000
const finishMs = 1_000
/** Interval for checking whether writes are answered. */
const checkEveryMs = 1_000
const unflushed = 'The stream is missing the last writes. The next start of this board publishes them.'

export const thread: ThreadStarter<ReplicationThread> = (data, here) => publishing(data, here, openStream)

/** The thread, with the given way to open the stream. */
export function publishing(
  data: ReplicationThread,
  { disk, clock, random, report }: ThreadPlatform,
  open: OpenStream,
): ReturnType<typeof thread> {
  const { dataDirectory, serviceId, settings, ends, from } = data
  const { ack } = settings
  const waits = ack !== 'local'
  const directories = { log: logDirectory(dataDirectory), shards: shardDirectories(dataDirectory, ends.shards.length) }
  let isAwaited = data.isAwaited
  const copies = new Copies(disk, directories, waits ? from : ends)
  const front = new Link({
    port: data.front,
    openMax: 1,
    patienceMs: internalLimits.patienceMs,
    now: clock.monotonicMs,
    timers: clock,
    onAsk: (body, id) => front.answer(id, framesAfter((body as FramesAsk)[1], copies, report) ?? null),
    onTell: (body) => take(body as ReplicationTell, { pump, copies, held, waits }),
  })
  const news = new News(front, report)
  const seal = new StreamSeal({ disk, dataDirectory, wallSeconds: clock.wallSeconds, random })
  seal.begin()
  const stopForgetting = clock.every(() => seal.forget(), forgetEveryMs)
  const pump = new Pump({
    disk,
    clock,
    report,
    seal,
    ack: waits ? 'quorum' : 'local',
    ends,
    from,
    readNamed: readNamedIn(disk, blobsDirectory(dataDirectory)),
    outageEffect: waits ? 'Writes wait for it.' : 'Followers fall behind.',
    acknowledged: (acknowledged) => {
      // Followers show frames as soon as they have them, from the stream or from copies.
      if (waits) copies.advance(acknowledged)
      held.stream(acknowledged)
    },
    directories,
    openWriter: () => new StreamWriter(disk, dataDirectory, random),
    openStream: async () => {
      const stream = await open({ disk, clock }, settings, serviceId, 'make')
      if (ack === 'copy') void stream.subscribeCopies((ends) => held.copy(ends))
      return stream
    },
    tell: (problem, halted) => {
      const isHalted = halted !== undefined && (waits || isAwaited)
      news.tellStream(problem, halted instanceof Deposed ? 'Deposed' : isHalted ? 'Halted' : undefined)
    },
  })
  const tellAcknowledged = (acknowledged: Ends): void => {
    if (!waits && !isAwaited) return
    isAwaited = false
    front.tell({ acknowledged } satisfies Acknowledged)
    front.flush()
  }
  const held = new Acknowledgments({ ends, clock, waitsForCopy: ack === 'copy', tell: tellAcknowledged })
  const stopChecking = waits ? clock.every(() => news.tellWrites(held.problem), checkEveryMs) : () => {}
  const watch = new ServerWatch({
    clock,
    outageEffect: waits ? 'Writes wait.' : 'Followers fall behind.',
    health: () => pump.health(),
    tell: (problem) => news.tellServers(problem),
  })
  if (data.isStarted) held.started()
  const running = pump.run()
  return {
    facts: {},
    stop: async () => {
      await drained(clock, () => pump.isIdle || !pump.isOpen, flushMs)
      if (!pump.isIdle) report('warn', 'replication.unflushed', { note: unflushed })
      // So that another machine need not wait until this one is missed.
      else if (waits) await handOver(pump, running, clock)
      stopForgetting()
      stopChecking()
      watch.stop()
      await pump.stop()
      await running
      copies.close()
      front.close()
    },
  }
}

type Parts = {
  readonly pump: Pump
  readonly copies: Copies
  readonly held: Acknowledgments
  /** Whether writes wait for the stream. */
  readonly waits: boolean
}

function take(message: ReplicationTell, { pump, copies, held, waits }: Parts): void {
  if (message === 'started') held.started()
  else if ('rewritten' in message) {
    pump.rewritten(message.rewritten)
    copies.rewritten(message.rewritten)
  } else {
    pump.advance(message)
    held.durable(message)
    if (!waits) copies.advance(message)
  }
}

async function handOver(pump: Pump, running: Promise<void>, clock: ThreadPlatform['clock']): Promise<void> {
  pump.finish()
  await Promise.race([running, pause(clock, finishMs)])
}

/** Problems of this thread that the operator must know about. */
class News {
  readonly #front: Link
  readonly #report: ThreadPlatform['report']
  #ofStream: string | undefined
  #ofWrites: string | undefined
  #ofServers: string | undefined

  constructor(front: Link, report: ThreadPlatform['report']) {
    this.#front = front
    this.#report = report
  }

  /** `problem`: what keeps the pump from publishing. */
  tellStream(problem: string | undefined, fatal: ReplicationNews['fatal']): void {
    this.#ofStream = problem
    this.#tell(fatal)
  }

  /** `problem`: what writes are waiting for in vain. */
  tellWrites(problem: string | undefined): void {
    if (problem === this.#ofWrites) return
    this.#ofWrites = problem
    if (problem !== undefined) this.#report('warn', 'replication.waits', { problem })
    this.#tell()
  }

  /** `problem`: what is wrong with the servers, and stops nothing yet. */
  tellServers(problem: string | undefined): void {
    this.#ofServers = problem
    if (problem === undefined) this.#report('info', 'replication.whole', {})
    else this.#report('warn', 'replication.degraded', { problem })
    this.#tell()
  }

  #tell(fatal?: ReplicationNews['fatal']): void {
    const problem = this.#ofStream ?? this.#ofWrites ?? this.#ofServers
    this.#front.tell({ problem, fatal } satisfies ReplicationNews)
  }
}
