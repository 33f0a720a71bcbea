/**
 * The messages between threads for a post that a clerk has packed. They are arrays, because the member names of objects would be copied
 * with every post.
 */

/** From a clerk to the main thread. */
export type PostDraft = readonly [
  publicKey: string,
  room: string,
  /** Identity id or `@handle` of the addressee, or ''. */
  to: string,
  signedBytes: number,
  requestIds: 0 | 1,
  /** SHA-256 of the signed bytes. */
  sha: Uint8Array,
  /** For the shard. */
  packed: Uint8Array,
]

/** From the main thread to a shard. */
export type DraftLetter = readonly [
  room: string,
  author: string,
  /** The author's handle, or ''. */
  handle: string,
  limited: number,
  factor: number,
  rotated: boolean,
  suspended: boolean,
  operator: boolean,
  roomWait: number,
  /** Identity id of the handle that the post is addressed to, or ''. */
  addressee: string,
  packed: Uint8Array,
]

/** From a shard to the main thread, if the post is new. */
export type PostedLetter = readonly [
  body: Uint8Array,
  isPublic: boolean,
  change: number | undefined,
  madeRoom: boolean,
  screen: Posted['screen'],
]

/** The answer to the main thread; for a retry, the room's first reply. */
export type Posted = {
  /** JSON: the whole answer to the client. */
  readonly body: Uint8Array
  readonly isPublic: boolean
  readonly madeRoom?: true
  /** Set if the room wants the post screened for advertising. */
  readonly screen?: { readonly at: number; readonly isReply: boolean }
}
