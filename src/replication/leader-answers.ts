/** What a board answers its followers under `/replica/`, as both sides know it. */
import type { JournalPlace } from '../../storage/copied-frames.ts'
import type { BoardFacts } from '../board-directory.ts'
import { foreignJson } from '../format/foreign-json.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import { isShares } from './batch.ts'
import type { FrameShares } from './journals-out.ts'

/** What a follower has to know of its leader, once. */
export type LeaderFacts = {
  readonly facts: BoardFacts
  readonly identity: { readonly id: string; readonly publicKey: string }
  /** The log that grows. */
  readonly log: LogIdentity
  /** What cursors are sealed with, 64 hex. */
  readonly readKey: string
}

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
