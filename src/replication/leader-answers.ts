/** What a board answers its followers under `/replica/`, as both sides know it. */
import type { JournalPlace } from '../../storage/copied-frames.ts'
import type { BoardFacts } from '../board-directory.ts'
import { foreignJson } from '../format/foreign-json.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import { isShares } from './batch.ts'
import type { Ends, FrameShares } from './journals-out.ts'

/** What a follower has to know of its leader, once. */
export type LeaderFacts = {
  readonly facts: BoardFacts
  readonly identity: { readonly id: string; readonly publicKey: string }
  /** The log that grows. */
  readonly log: LogIdentity
  /** All logs, oldest first; absent: a leader of an older release, which names only that one. */
  readonly logs?: readonly LogIdentity[]
  /** What cursors are sealed with, 64 hex. */
  readonly readKey: string
}

/**
 * Up to where the leader's followers may have its journals by asking. `durable`: up to where they are on its disk, which the stream may
 * have brought before the leader heard so. `epoch`: counts the boards that have led.
 */
export type LeaderEnds = Ends & { readonly durable: Ends; readonly epoch: number }

/** Of an attachment that the leader has no more: 404 is what a board answers that has no followers. */
export const goneStatus = 410

/** A write that a follower was sent, and who sent it there. */
export type PassedOn = { readonly command: string; readonly address: string; readonly via: string }

export type AskedPlaces = { readonly places: readonly JournalPlace[] }

/** One line of JSON, and then the frames. */
export function packShares({ journals, payload }: FrameShares): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify({ journals })}\n`), payload])
}

/** Undefined: that is not what `packShares` makes. */
export function unpackShares(body: Buffer): FrameShares | undefined {
  const end = body.indexOf(0x0a)
  const { journals }: { readonly journals?: unknown } = Object(foreignJson(body.toString('utf8', 0, Math.max(0, end))))
  return end >= 0 && isShares(journals) ? { journals, payload: body.subarray(end + 1) } : undefined
}
