/** Signed commands: who sent one, the identity its key acts for, the verified command itself, and what a record stores of it. */

import type { Command, ValueOf } from '../../actors/kernel/fields.ts'
import type { Infer, Schema } from '../../actors/kernel/schema.ts'
import type { Declaration, WriteName, WriteOperation } from '../../actors/operations.ts'
import type { Signed } from '../../actors/records/record.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { decodeBytes32, identityId } from '../format/signing.ts'
import type { ReadRequest } from '../reads/read.ts'
import { isGiven } from './check.ts'
import type { Delegate } from './delegates.ts'
import type { LinePlace } from './line-order.ts'

/** `id`: the identity on whose behalf the key acts. */
export type Signer = {
  readonly key: Buffer
  readonly id: string
  readonly text: string
  /** Present if the key belongs to a delegate. */
  readonly delegate?: Delegate
  /** Whether anything of the identity was accepted; false also means not checked yet. */
  isKnown: boolean
}

type KeysKnown = {
  /** The identity that a key belongs to by a rotation. */
  identityOf(key: string): string | undefined
  readonly delegates: { of(key: string): Delegate | undefined }
}

const keptMax = 16_384

/**
 * Recent signers: caches the raw key and identity id of a public key text. A key that an identity rotated to, or named as its delegate,
 * acts as that identity instead of the one of its own hash.
 */
export class KeyCache {
  readonly #known = new BoundedMap<string, Signer>(keptMax)
  readonly #keys: KeysKnown

  constructor(keys: KeysKnown) {
    this.#keys = keys
  }

  /** Undefined if it is not the canonical text of 32 bytes. */
  of(text: string): Signer | undefined {
    const signer = this.#ofKey(text)
    if (signer === undefined) return undefined
    const delegate = this.#keys.delegates.of(signer.text)
    if (delegate !== undefined) return { ...signer, id: delegate.identity, delegate, isKnown: true }
    const moved = this.#keys.identityOf(signer.text)
    return moved === undefined ? signer : { ...signer, id: moved, isKnown: true }
  }

  #ofKey(text: string): Signer | undefined {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const decoded = decodeBytes32(text)
    if (decoded === undefined) return undefined
    // Copies: the decoded bytes are in a shared 8 KiB pool, and `text` is a slice of the body; both would be retained.
    const key = Buffer.from(new Uint8Array(decoded).buffer)
    const own = key.toString('base64url')
    const signer = { key, id: identityId(key), text: own, isKnown: false }
    this.#known.set(own, signer)
    return signer
  }
}

export type CommandSource = {
  readonly via: string
  readonly address: string
  /** Identity id of the sign-in for which the board itself signs. */
  readonly signedIn?: string
  /** Calls back once if the client disconnects before it is answered, so that work on its behalf can stop. */
  readonly onGone?: (callback: () => void) => void
  /** For a command that arrived with others: its place in their order. */
  readonly place?: LinePlace
  /** Takes an updates.get that is to be followed; then nothing else answers it. */
  readonly follow?: (request: ReadRequest) => void
}

/** A command with the fields that every signed command has. */
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

/** A command with a valid signature: of the operation of this name, or of any. */
export type CommandRead<Name extends WriteName = never> = {
  readonly command: CommandOf<Name>
  readonly operation: WriteOperation
  readonly data: DataOf<Name>
  readonly signature: Buffer
  /** The signed bytes. */
  readonly bytes: Buffer
  /** Their SHA-256. */
  readonly sha: Buffer
}

/** The same on its way to its actor. */
export type Verified<Name extends WriteName = never> = CommandRead<Name> & {
  readonly signer: Signer
  readonly source: CommandSource
  /** Nothing of the signer's identity was accepted before. */
  readonly isNew?: boolean
}

export function isOf<Name extends WriteName, Read extends CommandRead>(
  read: Read,
  name: Name,
): read is Read & CommandRead<Name> {
  return read.operation.name === name
}

/** Fields that every signed command has. */
export const envelope = ['public_key', 'signature', 'timestamp', 'nonce'] as const

export function isWhole(command: Command): command is SignedCommand {
  return envelope.every((name) => isGiven(command[name]))
}

/** What a record stores of the command. */
export function signedBy({
  signer: { key, delegate },
  signature,
  bytes,
}: Pick<CommandRead, 'signature' | 'bytes'> & { readonly signer: Pick<Signer, 'key' | 'delegate'> }): Signed {
  return { key, sig: signature, signed: bytes, ...(delegate === undefined ? {} : { for: delegate.proof }) }
}

const label = ',"data":"'
const quote = 0x22
const backslash = 0x5c

/**
 * What a record stores of a signed command whose `data` is stored elsewhere, or nowhere. `mark`: 32 bytes that identify what was cut out.
 */
export function withoutData(verified: Verified, mark: Uint8Array): Signed {
  const { bytes, sha } = verified
  // Inside a string, `"` follows a backslash, so the position is certain.
  const at = bytes.indexOf(label) + label.length
  const signed = Buffer.concat([bytes.subarray(0, at), bytes.subarray(endOfString(bytes, at))])
  return { ...signedBy(verified), signed, cut: { at, file: mark, sha } }
}

/** Position of the quote that ends the string which begins at `from`: the first one after an even number of backslashes. */
function endOfString(bytes: Buffer, from: number): number {
  for (let at = from; ; at++) {
    at = bytes.indexOf(quote, at)
    let escapes = 0
    while (bytes[at - 1 - escapes] === backslash) escapes++
    if (escapes % 2 === 0) return at
  }
}
