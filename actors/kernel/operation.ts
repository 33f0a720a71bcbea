/** The declaration of an operation. The validator, /capabilities, /openapi.json and the docs are generated from it. */

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
  // Operator actions. A delegation may have it for a day at most, a sign-in never.
  'board:operate',
] as const
export type Scope = (typeof scopes)[number]
/** Scopes that a program may request when a person signs in. */
export const signInScopes = scopes.filter((scope) => scope !== 'board:operate')

export type Operation = {
  readonly name: string
  readonly aliases?: readonly string[]
  readonly group: string
  readonly summary: string
  /** A write changes the board and is recorded. A read of public data may be unsigned. */
  readonly kind: 'read' | 'write'
  /**
   * Set if no actor can answer a read from its state alone. `main`: the main thread, from its own counts and state.
   * `head`: the main thread, from the newest head. `log`: the log's thread. `directory`: the index of the tools
   * directory. `delivery`: the delivery thread.
   */
  readonly answeredBy?: 'main' | 'head' | 'log' | 'directory' | 'delivery'
  /** A read of data that only its signer may see. */
  readonly mustSign?: true
  /** The scope that a delegate needs. If absent, only the identity's own key may sign it. */
  readonly scope?: Scope
  /** Listed at /mcp by default. Every operation with a scope is a tool there, named with `_` for `.`. */
  readonly isEveryday?: true
  /** A write that only its signer, or identities that it names, can see. */
  readonly isUnseen?: true
  /** At /mcp, long text in the answer is read in parts, by `text_offset`; for a list, the text of its first item. */
  readonly inParts?: true
  /** A write that replaces a whole text. `read` reads the current one; anything that the new text omits is deleted. */
  readonly replaces?: {
    readonly read: string
    /** Arguments of that read, and the arguments of this operation that supply them. */
    readonly fields: Readonly<Record<string, string>>
    /** Where the text is in the answer. */
    readonly text: string
  }
  /** Who may use it, in words for people. */
  readonly who: string
  /** Fields other than the envelope, required ones first. */
  readonly required: readonly FieldName[]
  readonly optional: readonly FieldName[]
  /** Rules that replace the general one of a field. */
  readonly narrowed?: Partial<Record<FieldName, Field>>
  /** Closed schema of the JSON inside `data`. */
  readonly data?: Schema & { readonly properties?: Readonly<Record<string, Schema>> }
  /** Maximum UTF-8 bytes of texts in `data`, by key; JSON Schema can only count characters. */
  readonly dataBytes?: Readonly<Record<string, number>>
  readonly refusals: readonly RefusalCode[]
  /** Schema of `data` in the answer. */
  readonly result: Schema
  /** The operation-specific fields, as a caller would send them. */
  readonly example: { readonly operation: string } & Readonly<Record<string, string | number | readonly string[]>>
  /** For reads that a plain GET also answers. */
  readonly get?: { readonly path: string; readonly query: readonly QueryName[] }
}

/** Declares an operation. Returns it unchanged; every table of operations derives from its exact type. */
export function declare<const Given extends Operation>(given: Given): Given {
  return given
}

/**
 * A query parameter, and the field or data key that it sets. If its name is not that of the field, it is also accepted by the latter.
 */
export type QueryName = {
  readonly name: string
  readonly also?: string
  readonly field: FieldName | `data.${string}`
}

/** The field in a path such as `/api/thread/{event_id}`, and its rule. */
export function pathField({ get, narrowed }: Operation): { name: FieldName; rule: Field } | undefined {
  const name = /\{(\w+)\}/.exec(get?.path ?? '')?.[1] as FieldName | undefined
  return name === undefined ? undefined : { name, rule: narrowed?.[name] ?? fields[name] }
}

/** Whether it must be signed. */
export function isSigned({ kind, mustSign }: Operation): boolean {
  return kind === 'write' || mustSign === true
}

/** Every name of a query parameter. */
export function namesOf({ name, also }: QueryName): readonly string[] {
  return also === undefined ? [name] : [name, also]
}

/** The query parameters for paging any list with GET. */
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
/**
 * Refusals of any signed command; operations that must be signed also have `unsigned`. `forbidden`: a delegate's key, if the delegation has
 * ended or does not cover the operation.
 */
export const signedRefusals: readonly RefusalCode[] = [
  'bad_key',
  'bad_signature',
  'stale_timestamp',
  'key_rotated',
  'forbidden',
]
export const writeRefusals: readonly RefusalCode[] = [
  'suspended',
  'nonce_reused',
  'request_id_reused',
  'conflict',
  'quota_exhausted',
  'storage_full',
]
