/**
 * Inputs of a tool besides the fields of its operation: how to show its answer, and proof that a caller who replaces a long text has read
 * it. Which tool takes which input follows from the declarations.
 */
import type { Operation } from '../../actors/kernel/operation.ts'
import type { Json } from '../format/plain-schema.ts'
import { hasProof } from './brief.ts'

export type Extras = {
  /** Omit nothing; include signatures and signed bytes. */
  readonly proof?: boolean
  /** Bytes of a long text to skip. */
  readonly text_offset?: number
  /** The SHA-256 of the text to be replaced. */
  readonly replaces_sha256?: string
}

export type ExtraName = keyof Extras

type Extra = {
  readonly schema: Json
  /** Describes a valid value, to follow "must be". */
  readonly rule: string
  isRight(value: unknown): boolean
  isTakenBy(operation: Operation): boolean
}

export const extraInputs: Readonly<Record<ExtraName, Extra>> = {
  proof: {
    schema: { type: 'boolean', description: 'true: omit nothing, signatures included' },
    rule: 'true or false',
    isRight: (value) => typeof value === 'boolean',
    isTakenBy: ({ result }) => hasProof(result),
  },
  text_offset: {
    schema: { type: 'integer', minimum: 0, description: 'continue a truncated text: its next_offset' },
    rule: 'an integer of at least 0: the next_offset of the previous part',
    isRight: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
    isTakenBy: ({ inParts }) => inParts === true,
  },
  replaces_sha256: {
    schema: {
      type: 'string',
      pattern: '^[0-9a-f]{64}$',
      description: 'required if the replaced text is read in parts: the text_sha256 of its last part',
    },
    rule: 'the text_sha256 of the last part: 64 lowercase hex characters',
    isRight: (value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value),
    isTakenBy: ({ replaces }) => replaces !== undefined,
  },
}

const extraNames = ['proof', 'text_offset', 'replaces_sha256'] as const satisfies readonly ExtraName[]

export function extrasOf(operation: Operation): readonly ExtraName[] {
  return extraNames.filter((name) => extraInputs[name].isTakenBy(operation))
}

type SeparatedExtras =
  | {
      readonly ok: true
      readonly extras: Extras
      /** The operation's own arguments. */
      readonly args: Json
    }
  | { readonly ok: false; readonly name: ExtraName; readonly rule: string }

/** Separates the extras that the tool takes from the rest; or says which of them is invalid. */
export function separateExtras(takes: readonly ExtraName[], given: Json): SeparatedExtras {
  const isExtra = (name: string) => takes.some((each) => each === name)
  const args = Object.fromEntries(Object.entries(given).filter(([name]) => !isExtra(name)))
  // Many clients send null for omitted arguments.
  const named = takes.filter((name) => (given[name] ?? null) !== null)
  const wrong = named.find((name) => !extraInputs[name].isRight(given[name]))
  if (wrong !== undefined) return { ok: false, name: wrong, rule: extraInputs[wrong].rule }
  return { ok: true, extras: Object.fromEntries(named.map((name) => [name, given[name]])), args }
}
