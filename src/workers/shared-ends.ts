/**
 * How far the journals reach, in memory shared by the threads. Each thread stores its own journal's end before it answers a write. So a
 * caller that has the answer finds that write counted here, even if other messages between the threads are late.
 */
import type { Ends } from '../replication/journals-out.ts'

/** Frame numbers: the log's newest durable frame, its newest written frame, then each shard's newest durable frame. */
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

/** Newest durable frame of the log. Every shard frame records this, to show what was answered before it. */
export function durableLogEnd(ends: SharedEnds): number {
  return Number(Atomics.load(ends, logDurable))
}

/**
 * A copy of the journals up to these ends has everything that was answered. Some of the log's frames may still be on their way to the disk.
 */
export function writtenEnds(ends: SharedEnds): Ends {
  const shards = Array.from({ length: ends.length - shardsFrom }, (_, shard) =>
    Number(Atomics.load(ends, shardsFrom + shard)),
  )
  return { log: Number(Atomics.load(ends, logWritten)), shards }
}
