/**
 * Plans: how each operation that writes is carried out. Which actor decides, what it is told, and what the answer shows;
 * the way of a write itself is the same for all (writes.ts).
 */

import type { AnyReadName } from '../../actors/internal-operations.ts'
import type { Refusal } from '../../actors/kernel/refusals.ts'
import type { Facts, Signed } from '../../actors/record.ts'
import type { ShardAnswer } from '../../actors/shard.ts'
import type { BlobIntake } from '../attachments/intake.ts'
import type { Charge } from '../limits/meters.ts'
import type { Throttle } from '../limits/throttle.ts'
import type { ReadAnswer, ReadRequest } from '../reads/read.ts'
import type { Verdict } from '../verify/verifier.ts'
import type { Desk } from '../webhooks/service.ts'
import type { News } from './live-facts.ts'
import type { NoAnswer } from './ports.ts'
import type { Reply, Verified } from './reply.ts'

/** What the actor replied: of a retry, what it replied the first time. */
export type Decided = {
  readonly at: number
  readonly isPublic: boolean
  readonly facts: Facts
  /** Of a retry: hex SHA-256 of the command that was accepted, which may not be this one. */
  readonly sha?: string
}

/** Id (32 hex) of what the accepted command made. */
export function idOf({ sha }: Verified, decided: Decided): string {
  return (decided.sha ?? sha.toString('hex')).slice(0, 32)
}

/** An actor by name, or the thing (an event, document, blob or receiver by its 32-hex id) whose actor is looked for. */
export type Addressee = { readonly actor: string } | { readonly thing: string; readonly field: string }

/** Beside the receipt the answer shows what a read gives now, or these values. */
export type Shown =
  | { readonly read: AnyReadName; readonly args: Readonly<Record<string, string | number>> }
  | { readonly values: Readonly<Record<string, unknown>> }
  /** It is known later; `give` is called once. */
  | { readonly later: (give: Give) => void }

/** Takes values, and what the receipt says beside; or a whole reply; undefined cuts the answer. */
export type Give = (
  found:
    | { readonly values: Readonly<Record<string, unknown>>; readonly receipt: Readonly<Record<string, unknown>> }
    | Reply
    | undefined,
) => void

/** What a plan may ask of the house. */
export type Doors = {
  readonly news: News
  readonly throttle: Throttle
  readonly read: (request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void) => void
  readonly verify: (signature: Buffer, publicKey: Buffer, message: Buffer, callback: (verdict: Verdict) => void) => void
  /** Secret of this board, for names that nobody else can work out. */
  readonly secret: Buffer
  readonly blobs: BlobIntake
  /** Calls of tools: what their actor is told, and what comes of one that it has accepted. */
  readonly calls: {
    prepare(verified: Verified, pass: (found: Found) => void): void
    finish(verified: Verified, decided: Decided, isDuplicate: boolean, give: Give): void
  }
  /** Looks of the lab, and rewards for reviews. */
  readonly tools: {
    answer(verified: Verified, decided: Decided, isDuplicate: boolean, give: Give): void
    reviewed(subject: string, author: string, address: string): void
  }
  /** Identity ids of the operators. */
  readonly operators: ReadonlySet<string>
  readonly hooks: Desk
  /** Identity id of the board's own voice. */
  readonly boardIdentity: string
  /** Recovery epoch. */
  readonly generation: string
  /** Rates and quotas hold. */
  readonly limitsOn: boolean
}

export type Plan = {
  readonly to: (verified: Verified, doors: Doors) => Addressee
  /** What a decider needs and cannot take from the letter. */
  readonly args?: (verified: Verified) => Readonly<Record<string, unknown>>
  /** Whose writes of this kind count against no rate and no daily bytes. */
  readonly unmetered?: (verified: Verified, doors: Doors) => boolean
  /** Refuses before an actor is asked; undefined lets it pass. */
  readonly check?: (verified: Verified) => Refusal | undefined
  /** Finds out elsewhere before an actor is asked: `pass` takes a refusal, or more args; `undefined` cuts the answer. */
  readonly ask?: (verified: Verified, doors: Doors, pass: (found: Found) => void) => void
  /** Accepted, and nothing answered yet: the front hears of it here. */
  readonly heard?: (verified: Verified, decided: Decided, doors: Doors, actor: string) => void
  /** `args`: what the actor was told this time; of a retry, not what counted. */
  readonly show: (
    verified: Verified,
    decided: Decided,
    actor: string,
    isDuplicate: boolean,
    args: Readonly<Record<string, unknown>>,
    doors: Doors,
  ) => Shown
}

export type Found = { readonly refusal: Refusal } | Asked | undefined

export type Asked = {
  readonly args: Readonly<Record<string, unknown>>
  /** What the record keeps of the signed command, where that is not all of it. */
  readonly by?: Signed
  /** The actor refuses in these words where this charge was not taken. */
  readonly limit?: { readonly words: string; readonly charge: Charge }
  /** Takes the actor's answer, whatever it is, before anybody else. */
  readonly settle?: (answer: ShardAnswer | NoAnswer) => void
}

/** Plans by the name of the operation. */
export type Plans = Readonly<Record<string, Plan>>
