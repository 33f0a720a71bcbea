/**
 * The letters between the market and a room about a work, and the hash that identifies a result.
 *
 * The market decides about a work, its room about the texts. Neither waits for the other: each records its messages (the outbox
 * is what the journal lists as undelivered), and the main thread carries them, in order for each work, again after a crash.
 * Every letter may arrive twice but takes effect once.
 *
 * | letter | to | says |
 * |---|---|---|
 * | `work.post` | room | the command is the request: post it and mark it, or refuse |
 * | `work.mark` | room | this event is the request: check and mark it, or refuse |
 * | `work.version` | room | the command is a new version of the request |
 * | `work.open` `work.void` `work.edited` | market | what the room has decided |
 * | `work.standing` | room of another shard | what are the signer's rights in it? |
 * | `work.bind` | room | this reply is about to be submitted: look it up and bind it |
 * | `work.unbind` | room | the market did not accept it |
 * | `work.tell` | room | the current state of the work, with its notice to post in the thread |
 * | `mail.sent` | market | rooms have received these and posted the notices |
 * | `work.observe` | market | what happened to a marked event |
 * | `work.observed` | room | the market has received it |
 */

import { createHash } from 'node:crypto'
import type { Blobs } from '../attachments/attachments.ts'
import type { ActorRefusal, Refusal } from '../kernel/refusals.ts'
import type { WorkState } from '../records/change-kinds.ts'
import { commandIn, type PostRecord, type Signed } from '../records/record.ts'

/** Arguments of `work.post`, `work.mark` and `work.version`. The letter's author is the requester, its id that of the command. */
export type RequestArgs = {
  readonly work: string
  /** Identity id; '' means the requester. */
  readonly reviewer: string
  /** The page that the command names; '' means main. */
  readonly page: string
  /** Not visible in the signed bytes. */
  readonly proofBits: number
}

/** A room's refusal, stored by the id of the command, so that a repeated letter gets the same one. */
export type RoomRefusal = Omit<ActorRefusal, 'details'>

/** The room's answer to them. */
export type RequestVerdict =
  | {
      readonly taken: true
      /** 32 hex: the newest version of the request, and how many there are. */
      readonly version: string
      readonly versions: number
      readonly isPublic: boolean
      /** The page of its thread. */
      readonly page: string
      /** The room wants the new text screened for advertisements: the input of the screening. */
      readonly screen?: { readonly text: string; readonly at: number }
    }
  | { readonly taken: false; readonly refusal: RoomRefusal }

/** Arguments of `work.bind`. The letter's author is the worker, its id that of the command. */
export type BindArgs = {
  readonly work: string
  /** 32 hex of the reply, or of one of its versions. */
  readonly result: string
}

/** The room's answer to it. */
export type BoundReply =
  | { readonly id: string; readonly author: string; readonly reply_to: string; readonly sha256: string }
  | { readonly fault: Refusal }

/** Arguments of `work.unbind`; `command`: id (32 hex) of the command that bound the result. */
export type UnbindArgs = { readonly work: string; readonly command: string }

/** What a room records from a `work.tell`. */
export type TellArgs = {
  readonly work: string
  /** Number of the market's record. It only grows: an older message is ignored. */
  readonly n: number
  readonly state: WorkState
  /** Credits are held for it. */
  readonly live: boolean
  /** Identity ids; '': none. */
  readonly requester: string
  readonly reviewer: string
  readonly worker: string
  readonly fence: number
  /** 32 hex of its result, or '', and the hash that it was submitted with. */
  readonly result: string
  readonly sha256: string
  /** Every state that it went through, in order, and since when. */
  readonly states: readonly (readonly [state: WorkState, at: number])[]
}

/** A notice signed by the board, to be posted in the thread of its work. */
export type SignedNotice = {
  /** SHA-256 of the signing bytes; the first 16 are its event id. */
  readonly sha: Uint8Array
  readonly by: Signed
  /** The page that was signed. */
  readonly page: string
}

/** Arguments of `work.tell`. A room that knows the transition still posts a notice that it lacks. */
export type TellLetter = TellArgs & { readonly notice?: SignedNotice }

/** The room's answer to it. `isPublic`: everyone can read the room. `noticeRefusal`: why it will never accept the notice. */
export type TellReply = { readonly page: string; readonly isPublic: boolean; readonly noticeRefusal?: string }

/** Arguments of `work.observe`, as the market receives them. `n` counts per work, from 1. */
export type Observation = {
  readonly work: string
  readonly n: number
  readonly event: 'request' | 'result'
  readonly change: 'edited' | 'hidden' | 'restored' | 'redacted'
  /** `author`: its author removed or changed it. */
  readonly by: 'author' | 'other'
  /** For an edited result: its current hash. */
  readonly sha256?: string
  /** 32 hex of the result concerned; absent if an older release wrote it. */
  readonly result?: string
}

/** Arguments of `mail.sent`: numbers of the market's records. */
export type SentArgs = { readonly seqs: readonly number[] }

export type ObservedArgs = { readonly work: string; readonly n: number }

/**
 * The hash of a result: SHA-256 of its text in UTF-8, then for each attachment in order one LF and the 64 hex of its SHA-256,
 * and nothing after it. A client can compute it before posting.
 */
export function resultSha256(text: string, attachments: readonly string[]): string {
  const hash = createHash('sha256').update(text, 'utf8')
  for (const sha256 of attachments) hash.update(`\n${sha256}`, 'latin1')
  return hash.digest('hex')
}

/** The hash of one version as it was signed; undefined if its text has left the disk. */
export function resultHashOf({ by, blobs: ids = [] }: PostRecord, blobs: Blobs): string | undefined {
  if (by.signed.length === 0) return undefined
  const command = commandIn(by.signed)
  return resultSha256(
    command.text!,
    ids.map((id) => blobs.find(Buffer.from(id).toString('hex'))!.sha256),
  )
}
