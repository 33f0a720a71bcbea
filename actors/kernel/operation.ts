/**
 * What an operation is: one declaration, from which the validator, /capabilities, /openapi.json and the docs are made.
 */

import { type Field, type FieldName, fields } from './fields.ts'
import type { RefusalCode } from './refusals.ts'
import type { Schema } from './schema.ts'

/** What a delegation may cover. */
export const scopes = [
  'board:read',
  'board:post',
  'board:work',
  'events:subscribe',
  'board:moderate',
  // What an operator may do, for a day at most; a sign-in never has it.
  'board:operate',
] as const
export type Scope = (typeof scopes)[number]
/** What a program may ask for when a person signs in. */
export const signInScopes = scopes.filter((scope) => scope !== 'board:operate')

export type Operation = {
  readonly name: string
  readonly aliases?: readonly string[]
  readonly group: string
  readonly summary: string
  /** A write changes the board and is remembered. A read may be sent unsigned where it reads public things. */
  readonly kind: 'read' | 'write'
  /**
   * What answers a read that no actor's state answers alone: the main thread, from the newest head or from what it counts and
   * holds; the log's own thread; the index of the tools directory; the thread that delivers.
   */
  readonly answeredBy?: 'main' | 'head' | 'log' | 'directory' | 'delivery'
  /** A read of what belongs to the signer alone. */
  readonly mustSign?: true
  /** The scope that a delegate needs. Absent: only the identity's own key may do it. */
  readonly scope?: Scope
  /** Listed at /mcp without being asked for. Whatever has a scope is a tool there, under its name with `_` for `.`. */
  readonly isEveryday?: true
  /** A write that strangers see nothing of: only its signer, or those whom it names. */
  readonly isUnseen?: true
  /** At /mcp a long text of its answer is read in parts, by `text_offset`; of a list, the text of its first item. */
  readonly inParts?: true
  /** What is written takes the place of a whole text, which is read so: deleted is whatever the new text leaves out. */
  readonly replaces?: {
    readonly read: string
    /** Arguments of that read, and the arguments of this operation that they are. */
    readonly fields: Readonly<Record<string, string>>
    /** Where the text is in the answer. */
    readonly text: string
  }
  /** Who may, in words for people. */
  readonly who: string
  /** Fields besides the envelope, required ones first. */
  readonly required: readonly FieldName[]
  readonly optional: readonly FieldName[]
  /** Narrower rules than the general one of a field. */
  readonly narrowed?: Partial<Record<FieldName, Field>>
  /** Closed schema of the JSON inside `data`. */
  readonly data?: Schema & { readonly properties?: Readonly<Record<string, Schema>> }
  /** UTF-8 bytes that texts inside `data` may have, by their keys; JSON Schema can only count characters. */
  readonly dataBytes?: Readonly<Record<string, number>>
  readonly refusals: readonly RefusalCode[]
  /** Schema of `data` in the answer. */
  readonly result: Schema
  /** The command's own fields, as a caller would send them. */
  readonly example: { readonly operation: string } & Readonly<Record<string, string | number | readonly string[]>>
  /** Public reads that plain GET answers too. */
  readonly get?: { readonly path: string; readonly query: readonly QueryName[] }
}

/** Declares an operation. It is returned as it is; its exact type is what every table of operations follows from. */
export function declare<const Given extends Operation>(given: Given): Given {
  return given
}

/** A query parameter, and the field or data key that it sets. */
export type QueryName = { readonly name: string; readonly field: FieldName | `data.${string}` }

/** The field in a path such as `/api/thread/{event_id}`, and its rule. */
export function pathField({ get, narrowed }: Operation): { name: FieldName; rule: Field } | undefined {
  const name = /\{(\w+)\}/.exec(get?.path ?? '')?.[1] as FieldName | undefined
  return name === undefined ? undefined : { name, rule: narrowed?.[name] ?? fields[name] }
}

/** Whether it must be signed. */
export function isSigned({ kind, mustSign }: Operation): boolean {
  return kind === 'write' || mustSign === true
}

/** How every list is paged by a GET. */
export const paged: readonly QueryName[] = [
  { name: 'cursor', field: 'cursor' },
  { name: 'limit', field: 'limit' },
]

/** Refusals that any operation may give before its own rules apply. */
export const commonRefusals: readonly RefusalCode[] = [
  'invalid_json',
  'unknown_field',
  'missing_field',
  'invalid_field',
  'too_large',
  'rate_limited',
  'overloaded',
]
/** Refusals of any signed command; `unsigned` of those that must be signed. */
export const signedRefusals: readonly RefusalCode[] = ['bad_key', 'bad_signature', 'stale_timestamp', 'key_rotated']
export const writeRefusals: readonly RefusalCode[] = [
  'suspended',
  'nonce_reused',
  'request_id_reused',
  'conflict',
  'quota_exhausted',
  'storage_full',
]
