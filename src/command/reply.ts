/**
 * Who sent a command, the verified command itself, and how its answer becomes a reply.
 */

import type { Command, ValueOf } from '../../actors/kernel/fields.ts'
import { type ActorRefusal as Decided, forCaller } from '../../actors/kernel/refusals.ts'
import type { Infer, Schema } from '../../actors/kernel/schema.ts'
import type { Declaration, WriteName, WriteOperation } from '../../actors/operations.ts'
import type { Signed } from '../../actors/records/record.ts'
import { type Reply, refused } from '../format/reply.ts'
import { jsonOf, type ReadAnswer, type ReadRequest } from '../reads/read.ts'
import type { Signer } from './key-cache.ts'
import type { LinePlace } from './line-order.ts'
import type { NoAnswer } from './ports.ts'

export type CommandSource = {
  readonly via: string
  readonly address: string
  /** Identity id of whose sign-in it is, where the board itself signs for it. */
  readonly signedIn?: string
  /** Calls back once when the client disconnects before it is answered: what waits on its behalf stops. */
  readonly onGone?: (callback: () => void) => void
  /** Of a command that came with others: its place among them. */
  readonly place?: LinePlace
  /** Takes an updates.get that is to be followed: nothing else answers it. */
  readonly follow?: (request: ReadRequest) => void
}

/** The fields of a signed command. */
export type SignedCommand = Command & Required<Pick<Command, 'public_key' | 'signature' | 'timestamp' | 'nonce'>>
type CommandOf<Name extends WriteName> = [Name] extends [never]
  ? SignedCommand
  : Name extends WriteName
    ? SignedCommand & { readonly [Given in Declaration<Name>['required'][number]]: ValueOf<Given> }
    : never
/** The JSON inside `data`. */
export type DataOf<Name extends WriteName> = [Name] extends [never]
  ? Readonly<Record<string, unknown>>
  : Name extends WriteName
    ? Declaration<Name> extends { readonly data: infer Shape extends Schema }
      ? Infer<Shape>
      : Readonly<Record<string, never>>
    : never

/** A command whose signature is good, on its way to its actor: of the operation of this name, or of any. */
export type Verified<Name extends WriteName = never> = {
  readonly command: CommandOf<Name>
  readonly operation: WriteOperation
  readonly data: DataOf<Name>
  readonly signer: Signer
  readonly signature: Buffer
  readonly bytes: Buffer
  readonly sha: Buffer
  readonly door: CommandSource
  /** Nothing of the signer's identity was accepted before. */
  readonly isNew?: boolean
}

/** What a record keeps of it. */
export function signedBy({ signer, signature, bytes }: Verified): Signed {
  const { key, delegate } = signer
  return { key, sig: signature, signed: bytes, ...(delegate === undefined ? {} : { for: delegate.proof }) }
}

/** A refusal that an actor made: its code is a declared one. */
export function fromActor(found: Decided): Reply {
  return refused(forCaller(found))
}

export function readReply(answer: ReadAnswer | NoAnswer): Reply | undefined {
  if (answer === undefined) return undefined
  if (answer.ok) return { status: 200, body: `{"ok":true,"data":${jsonOf(answer)}}` }
  return refused('refusal' in answer ? answer.refusal : answer.absent)
}
