/** The thread that publishes the journals for followers. Started only on a board that has REPLICATE; it only reads their files. */
import { inside } from '../../actors/kernel/limits.ts'
import { Link, type Port } from '../../actors/kernel/link.ts'
import type { JournalPlace } from '../../storage/copied-frames.ts'
import { logDirectory, shardDirectory } from '../board-directory.ts'
import { drained } from '../clock.ts'
import type { ReplicationSettings } from '../config.ts'
import { Copies, type FramesAnswer } from '../replication/copies.ts'
import type { Ends } from '../replication/journals-out.ts'
import { Pump } from '../replication/pump.ts'
import { seedIn } from '../replication/seed.ts'
import { JournalStream } from '../replication/stream.ts'
import { forgetEveryMs, StreamSeal } from '../replication/stream-seal.ts'
import { StreamWriter } from '../replication/writer.ts'
import type { Acknowledged, Rewritten } from './log-run.ts'
import type { ThreadStarter } from './thread.ts'

export type ReplicationThread = {
  readonly dataDirectory: string
  readonly serviceId: string
  readonly settings: ReplicationSettings
  /** As far as the journals are durable when it starts. */
  readonly ends: Ends
  /** As far as the stream is known to have them: where nothing is known, all that is durable. */
  readonly from: Ends
  readonly front: Port
}

/** What the log says of the journals: they are durable up to here; or sealed segments of one were rewritten. */
export type ReplicationTell = Ends | Rewritten

/** Of a follower: what it lacks, after these places. */
export type ReplicationAsk = readonly ['frames', readonly JournalPlace[]]

/** What keeps the board from publishing; undefined: nothing does. `isForGood`: it publishes no more. */
export type ReplicationNews = { readonly problem: string | undefined; readonly isForGood: boolean }

/** What is durable when the board stops is published, if the servers are there. */
const flushMs = 2_000

export const thread: ThreadStarter<ReplicationThread> = (data, { disk, clock, random, report }) => {
  const { dataDirectory, serviceId, settings, ends, from } = data
  const waits = settings.ack === 'quorum'
  const { servers, keyFile, systemKeyFile } = settings
  const directories = {
    log: logDirectory(dataDirectory),
    shards: ends.shards.map((_, shard) => shardDirectory(dataDirectory, shard)),
  }
  const copies = new Copies(disk, directories, waits ? from : ends)
  /** Damage costs the followers that reach it. */
  const framesAfter = (places: readonly JournalPlace[]): FramesAnswer => {
    try {
      return copies.after(places)
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      report('error', 'replication.not_copied', { problem })
      return { problem: 'the leader cannot read its own journals: its log says why', isForGood: false }
    }
  }
  const front = new Link({
    port: data.front,
    openMax: 1,
    patienceMs: inside.patienceMs,
    now: clock.monotonicMs,
    timers: clock,
    onAsk: (body, id) => front.answer(id, framesAfter((body as ReplicationAsk)[1]) ?? null),
    onTell: (body) => {
      const told = body as ReplicationTell
      if ('rewritten' in told) {
        pump.rewritten(told.rewritten)
        copies.rewritten(told.rewritten)
      } else {
        pump.hear(told)
        if (!waits) copies.hear(told)
      }
    },
  })
  const seal = new StreamSeal({ disk, dataDirectory, wallSeconds: clock.wallSeconds, random })
  seal.begin()
  const stopForgetting = clock.every(() => seal.forget(), forgetEveryMs)
  const pump = new Pump({
    disk,
    clock,
    report,
    seal,
    ends,
    from,
    costOfSilence: waits ? 'Writes wait for it.' : 'Followers fall behind.',
    // Followers show what they get, by whichever way.
    acknowledged: (acknowledged) => {
      if (!waits) return
      copies.hear(acknowledged)
      front.tell({ acknowledged } satisfies Acknowledged)
      front.flush()
    },
    directories,
    openWriter: () => new StreamWriter(disk, dataDirectory, random),
    openStream: () =>
      JournalStream.open({
        servers,
        seed: seedIn(disk, keyFile),
        systemSeed: seedIn(disk, systemKeyFile),
        serviceId,
      }),
    tell: (problem, isForGood) => front.tell({ problem, isForGood } satisfies ReplicationNews),
  })
  const running = pump.run()
  return {
    facts: {},
    stop: async () => {
      await drained(clock, () => pump.isIdle, flushMs)
      stopForgetting()
      await pump.stop()
      await running
      copies.close()
      front.close()
    },
  }
}
