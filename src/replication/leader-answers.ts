/** The answers of a board to its followers under `/replica/`, shared by both sides. */
import type { JournalPlace } from '../../storage/copied-frames.ts'
import type { BoardFacts } from '../board-directory.ts'
import { foreignJson } from '../format/foreign-json.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import { isShares } from './batch.ts'
import type { Ends, FrameShares } from './journals-out.ts'
import type { SharedSettings } from './shared-settings.ts'

/** What a follower needs to know about its leader once. */
export type LeaderFacts = {
  readonly facts: BoardFacts
  readonly identity: { readonly id: string; readonly publicKey: string }
  /** The log that grows. */
  readonly log: LogIdentity
  /** All logs, oldest first; absent if the leader is of an older release, which names only that one. */
  readonly logs?: readonly LogIdentity[]
  /** The key that seals cursors, 64 hex. */
  readonly readKey: string
  /** Only in the answer of a leader; absent if it is of an older release. */
  readonly settings?: SharedSettings
}

/**
 * How far followers may fetch the leader's journals. `durable`: how far they are on its disk; the stream may have brought a
 * follower these frames before the leader releases them. `epoch`: counts the boards that have led.
 */
export type LeaderEnds = Ends & { readonly durable: Ends; readonly epoch: number }

/** Status for an attachment that the leader no longer has. It is not 404, which a board without followers answers. */
export const goneStatus = 410

/** A write that a follower received, and from whom. */
export type ForwardedCommand = { readonly command: string; readonly address: string; readonly via: string }

/** `wait`: for this many milliseconds if there are no frames yet; a leader of an older release does not wait. */
export type AskedPlaces = { readonly places: readonly JournalPlace[]; readonly wait?: number }

/** How long a leader lets a follower wait at most. */
export const framesWaitMaxMs = 2_000

/** One line of JSON, then the frames. */
export function packShares({ journals, payload }: FrameShares): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify({ journals })}\n`), payload])
}

/** Undefined if this is not the output of `packShares`. */
export function unpackShares(body: Buffer): FrameShares | undefined {
  const end = body.indexOf(0x0a)
  const { journals }: { readonly journals?: unknown } = Object(foreignJson(body.toString('utf8', 0, Math.max(0, end))))
  return end >= 0 && isShares(journals) ? { journals, payload: body.subarray(end + 1) } : undefined
}
