/**
 * Plans: how each operation that writes is carried out. Which actor decides, what it is told, and what the answer shows;
 * the way of a write itself is the same for all (writes.ts).
 */
import type { Facts } from '../../actors/record.ts'
import type { Refusal } from '../refusals.ts'
import type { Verified } from './reply.ts'

/** What the actor replied: of a retry, what it replied the first time. */
export type Decided = { readonly at: number; readonly isPublic: boolean; readonly facts: Facts }

/** An actor by name, or the thing (an event, document, blob or receiver by its 32-hex id) whose actor is looked for. */
export type Addressee = { readonly actor: string } | { readonly thing: string; readonly field: string }

/** Beside the receipt the answer shows what a read gives now, or these values. */
export type Shown =
  | { readonly read: string; readonly args: Readonly<Record<string, string | number>> }
  | { readonly values: Readonly<Record<string, unknown>> }

export type Plan = {
  readonly to: (verified: Verified) => Addressee
  /** What a decider needs and cannot take from the letter. */
  readonly args?: (verified: Verified) => Readonly<Record<string, unknown>>
  /** Refuses before an actor is asked; undefined lets it pass. */
  readonly check?: (verified: Verified) => Refusal | undefined
  /** Finds out elsewhere before an actor is asked: `pass` takes a refusal, or more args; `undefined` cuts the answer. */
  readonly ask?: (verified: Verified, doors: Doors, pass: (found: Found) => void) => void
  /** Accepted, and nothing answered yet: the front hears of it here. */
  readonly heard?: (verified: Verified, decided: Decided, news: News) => void
  /** `args`: what the actor was told this time; of a retry, not what counted. */
  readonly show: (
    verified: Verified,
    decided: Decided,
    actor: string,
    isDuplicate: boolean,
    args: Readonly<Record<string, unknown>>,
  ) => Shown
}

/** Plans by the name of the operation. */
export type Plans = Readonly<Record<string, Plan>>
