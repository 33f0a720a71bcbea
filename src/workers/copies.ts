/**
 * The thread that reads the frames that followers lack. Started only on a board with REPLICA_KEY_FILE and without REPLICATE, where followers
 * get everything over HTTP. It only reads the journals.
 */
import { internalLimits } from '../../actors/kernel/limits.ts'
import { Link, type Port } from '../../actors/kernel/link.ts'
import type { JournalPlace } from '../../storage/copied-frames.ts'
import { logDirectory, shardDirectories } from '../board-directory.ts'
import { Copies, framesAfter } from '../replication/copies.ts'
import type { Ends } from '../replication/journals-out.ts'
import type { Rewritten } from './log-run.ts'
import type { ThreadStarter } from './thread.ts'

export type CopiesThread = {
  readonly dataDirectory: string
  /** Where the journals are durable when it starts. */
  readonly ends: Ends
  readonly front: Port
}

/** From the log: the journals are durable up to here, or sealed segments of one were rewritten. */
export type CopiesTell = Ends | Rewritten

/** A follower's request for the frames that it lacks, after these places. */
export type FramesAsk = readonly ['frames', readonly JournalPlace[]]

export const thread: ThreadStarter<CopiesThread> = ({ dataDirectory, ends, front: port }, { disk, clock, report }) => {
  const directories = { log: logDirectory(dataDirectory), shards: shardDirectories(dataDirectory, ends.shards.length) }
  const copies = new Copies(disk, directories, ends)
  const front = new Link({
    port,
    openMax: 1,
    patienceMs: internalLimits.patienceMs,
    now: clock.monotonicMs,
    timers: clock,
    onAsk: (body, id) => front.answer(id, framesAfter((body as FramesAsk)[1], copies, report) ?? null),
    onTell: (body) => {
      const message = body as CopiesTell
      if ('rewritten' in message) copies.rewritten(message.rewritten)
      else copies.advance(message)
    },
  })
  return {
    facts: {},
    stop: () => {
      copies.close()
      front.close()
    },
  }
}
