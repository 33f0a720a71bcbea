/**
 * How far the journals reach, in memory that the threads share. Each thread stores how far its own does before it answers a write, so
 * whoever has the answer finds that write counted here, even if other messages between the threads are late.
 */
import type { Ends } from '../replication/journals-out.ts'

/** Frame numbers: of the log the newest that is durable and the newest that is written, then of each shard the newest that is durable. */
export type SharedEnds = BigUint64Array<SharedArrayBuffer>

const logDurable = 0
const logWritten = 1
const shardsFrom = 2

export function sharedEnds(shards: number): SharedEnds {
  return new BigUint64Array(new SharedArrayBuffer(BigUint64Array.BYTES_PER_ELEMENT * (shardsFrom + shards)))
}

export function storeShardEnd(ends: SharedEnds, shard: number, durable: number): void {
  Atomics.store(ends, shardsFrom + shard, BigInt(durable))
}

export function storeLogEnd(ends: SharedEnds, { durableSeq, nextSeq }: { durableSeq: number; nextSeq: number }): void {
  Atomics.store(ends, logDurable, BigInt(durableSeq))
  Atomics.store(ends, logWritten, BigInt(nextSeq - 1))
}

/** Newest frame of the log that is durable: every frame of a shard says so of what was answered before it. */
export function durableLogEnd(ends: SharedEnds): number {
  return Number(Atomics.load(ends, logDurable))
}

/** Whoever has the journals so far has everything that was answered; of the log some of it may still be on its way to the disk. */
export function writtenEnds(ends: SharedEnds): Ends {
  const shards = Array.from({ length: ends.length - shardsFrom }, (_, shard) =>
    Number(Atomics.load(ends, shardsFrom + shard)),
  )
  return { log: Number(Atomics.load(ends, logWritten)), shards }
}
