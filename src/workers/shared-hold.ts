/**
 * What the main thread has found when it looked at the clocks, in memory that the threads share: one watch judges for all of them, and a
 * thread that is started again knows it at once.
 */
import { type Jump, jumpSeconds } from '../clock-jumps.ts'

/** Unix seconds: what the wall clock showed at the last look, 0: there was none; and where time-outs stand still, 0: they do not. */
export type SharedHold = BigInt64Array<SharedArrayBuffer>

const lookedAt = 0
const heldAt = 1

export function sharedHold(): SharedHold {
  return new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT))
}

/** `looked`: what the wall clock showed. */
export function storeHold(hold: SharedHold, looked: number, jump: Pick<Jump, 'heldAt'> | undefined): void {
  // In this order: a thread that finds the time of this look finds what it saw.
  Atomics.store(hold, heldAt, BigInt(jump?.heldAt ?? 0))
  Atomics.store(hold, lookedAt, BigInt(looked))
}

/**
 * Where time-outs of works stand still for a thread whose clock shows `wall`; undefined: they do not. Before the first look, and after a
 * jump that the main thread has not seen yet, they wait.
 */
export function timeoutsHeldAt(hold: SharedHold, wall: number): number | undefined {
  const looked = Number(Atomics.load(hold, lookedAt))
  const held = Number(Atomics.load(hold, heldAt))
  if (looked === 0) return 0
  if (held !== 0) return held
  return Math.abs(wall - looked) < jumpSeconds ? undefined : looked
}
