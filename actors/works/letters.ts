/**
 * What the market and a room say to each other about a work, and the hash by which they name a result.
 *
 * The market decides about a work, its room about the texts. Neither waits for the other: each records its messages
 * (an outbox is what the journal says is undelivered), and the main thread carries them, for one work in order,
 * again after a crash. Every letter may come twice and has its effect once.
 *
 * | letter | to | says |
 * |---|---|---|
 * | `work.post` | room | the command is the request: post it and mark it, or refuse |
 * | `work.mark` | room | this event is the request: check and mark it, or refuse |
 * | `work.version` | room | the command is a new version of the request |
 * | `work.open` `work.void` `work.edited` | market | what the room has decided |
 * | `work.standing` | room of another shard | how does the signer stand to it? |
 * | `work.bind` | room | this reply is about to be submitted: what is it? |
 * | `work.unbind` | room | the market did not take it |
 * | `work.tell` | room | how the work stands now, with the notice of it to post in its thread |
 * | `mail.sent` | market | rooms have received these and posted the notices |
 * | `work.observe` | market | what became of a marked event |
 * | `work.observed` | room | the market has received it |
 */

import { createHash } from 'node:crypto'
import type { Blobs } from '../attachments/attachments.ts'
import type { ActorRefusal, Refusal } from '../kernel/refusals.ts'
import type { WorkState } from '../records/change-kinds.ts'
import { commandIn, type PostRecord, type Signed } from '../records/record.ts'

/** Of `work.post`, `work.mark` and `work.version`; the letter's author is the requester, its id that of the command. */
export type RequestArgs = {
  readonly work: string
  /** Identity id; ''= the requester. */
  readonly reviewer: string
  /** Of the command, '': main. */
  readonly page: string
  /** What cannot be seen in the signed bytes. */
  readonly proofBits: number
}

/** What a room refuses with: kept by the id of the command, so that a repeated letter gets it again. */
export type RoomRefusal = Omit<ActorRefusal, 'details'>

/** What a room answers to them. */
export type RequestVerdict =
  | {
      readonly taken: true
      /** 32 hex: the newest version of the request, and how many there are. */
      readonly version: string
      readonly versions: number
      readonly isPublic: boolean
      /** Where its thread is. */
      readonly page: string
      /** The room wants the new text screened for advertisements: the input of the screening. */
      readonly screen?: { readonly text: string; readonly at: number }
    }
  | { readonly taken: false; readonly refusal: RoomRefusal }

/** Of `work.bind`; the letter's author is the worker, its id that of the command. */
export type BindArgs = {
  readonly work: string
  /** 32 hex of the reply, or of one of its versions. */
  readonly result: string
}

/** What a room answers to it. */
export type BoundReply =
  | { readonly id: string; readonly author: string; readonly reply_to: string; readonly sha256: string }
  | { readonly fault: Refusal }

/** Of `work.unbind`: id (32 hex) of the command that bound. */
export type UnbindArgs = { readonly work: string; readonly command: string }

/** What a room records of a `work.tell`. */
export type TellArgs = {
  readonly work: string
  /** Number of the market's record, which rises: an older message is ignored. */
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

/** A notice as the board has signed it, to be posted in the thread of its work. */
export type SignedNotice = {
  /** SHA-256 of the signing bytes; the first 16 are its event id. */
  readonly sha: Uint8Array
  readonly by: Signed
  /** As it was signed. */
  readonly page: string
}

/** Of `work.tell`. A room that knows the transition still posts a notice that it does not have. */
export type TellLetter = TellArgs & { readonly notice?: SignedNotice }

/** What a room answers to it. `isPublic`: all readers see it. `unsaid`: it does not take the notice, and never will. */
export type TellReply = { readonly page: string; readonly isPublic: boolean; readonly unsaid?: string }

/** Of `work.observe`, as the market takes it. `n` counts per work, from 1. */
export type Observation = {
  readonly work: string
  readonly n: number
  readonly event: 'request' | 'result'
  readonly change: 'edited' | 'hidden' | 'restored' | 'redacted'
  /** `author`: its author took it away or changed it. */
  readonly by: 'author' | 'other'
  /** Of a result that was edited: its hash now. */
  readonly sha256?: string
  /** 32 hex of the result that it is about; absent: an older release wrote it. */
  readonly result?: string
}

/** Of `mail.sent`: numbers of the market's records. */
export type SentArgs = { readonly seqs: readonly number[] }

export type ObservedArgs = { readonly work: string; readonly n: number }

/**
 * The hash of a result: SHA-256 of its text in UTF-8, then of each attachment in order one LF and the 64 hex of its SHA-256,
 * and nothing after it. A client makes it from what it posted, before it posts it.
 */
export function resultSha256(text: string, attachments: readonly string[]): string {
  const hash = createHash('sha256').update(text, 'utf8')
  for (const sha256 of attachments) hash.update(`\n${sha256}`, 'latin1')
  return hash.digest('hex')
}

/** Of one version as it was signed; undefined where its text has left the disk. */
export function resultHashOf({ by, blobs: ids = [] }: PostRecord, blobs: Blobs): string | undefined {
  if (by.signed.length === 0) return undefined
  const command = commandIn(by.signed)
  return resultSha256(
    command.text!,
    ids.map((id) => blobs.find(Buffer.from(id).toString('hex'))!.sha256),
  )
}
