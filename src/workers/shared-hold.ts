/**
 * The result of the main thread's clock checks, in memory shared by the threads. One watcher judges for all of them, and a restarted thread
 * knows the result immediately.
 */
import { type Jump, jumpSeconds } from '../clock-jumps.ts'

/** Unix seconds: the wall clock at the last check, 0 if there was none; and the time at which time-outs are held, 0 if they are not. */
export type SharedHold = BigInt64Array<SharedArrayBuffer>

const lookedAt = 0
const heldAt = 1

export function sharedHold(): SharedHold {
  return new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT))
}

/** `looked`: what the wall clock showed. */
export function storeHold(hold: SharedHold, looked: number, jump: Pick<Jump, 'heldAt'> | undefined): void {
  // In this order: a thread that sees the time of this check also sees its result.
  Atomics.store(hold, heldAt, BigInt(jump?.heldAt ?? 0))
  Atomics.store(hold, lookedAt, BigInt(looked))
}

/**
 * The time at which time-outs of works are held, for a thread whose clock shows `wall`; undefined if they are not held. They are held
 * before the first check, and after a jump that the main thread has not noticed yet.
 */
export function timeoutsHeldAt(hold: SharedHold, wall: number): number | undefined {
  const looked = Number(Atomics.load(hold, lookedAt))
  const held = Number(Atomics.load(hold, heldAt))
  if (looked === 0) return 0
  if (held !== 0) return held
  return Math.abs(wall - looked) < jumpSeconds ? undefined : looked
}
