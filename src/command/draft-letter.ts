/** What crosses threads of a post that a clerk has packed. Arrays, and no objects: names would cross with each post. */

/** From a clerk to the main thread. */
export type PostDraft = readonly [
  publicKey: string,
  room: string,
  /** Identity id or `@handle` that it is addressed to, or ''. */
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
  /** Of the author, or ''. */
  handle: string,
  limited: number,
  factor: number,
  rotated: boolean,
  suspended: boolean,
  operator: boolean,
  roomWait: number,
  /** Identity id of the handle that it is addressed to, or ''. */
  addressee: string,
  packed: Uint8Array,
]

/** From a shard to the main thread, where the post is new. */
export type PostedLetter = readonly [
  body: Uint8Array,
  isPublic: boolean,
  change: number | undefined,
  madeRoom: boolean,
  screen: Posted['screen'],
]

/** What the main thread is answered; to a retry, what the room replied the first time. */
export type Posted = {
  /** JSON: the whole answer to the client. */
  readonly body: Uint8Array
  readonly isPublic: boolean
  readonly madeRoom?: true
  /** The room wants to know whether it is an advertisement. */
  readonly screen?: { readonly at: number; readonly isReply: boolean }
}
