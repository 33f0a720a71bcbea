/**
 * What a clerk does with the bytes of a command, off the main thread: everything that follows from the bytes alone. It applies the same
 * rules as the main thread, but only reports its findings; the main thread words all refusals.
 */

import { hash } from 'node:crypto'
import { decodeBytes32, decodeBytes64, signingBytes } from '../format/signing.ts'
import { type Ed25519Backend, judge } from '../verify/backends.ts'
import { type Verdict, verdictOf } from '../verify/verifier.ts'
import { checkOperation, readCommand } from './check.ts'
import type { PostDraft } from './draft-letter.ts'
import { draftOf } from './post-draft.ts'
import { isOf, isWhole } from './verified.ts'

/** A post that lacks only what the main thread knows; or the verdict on the signature; or `unread` if there was no signature to check. */
export type Reading = PostDraft | Verdict | 'unread'

type ClerkOptions = {
  readonly serviceId: string
  /** Bits of work that every post must prove, 0 = none. */
  readonly proofBits: number
  readonly backend: Ed25519Backend
}

/** `via`: the interface that the command came through. */
export function readAsClerk(body: Uint8Array, via: string, { serviceId, proofBits, backend }: ClerkOptions): Reading {
  const found = readCommand(Buffer.from(body.buffer, body.byteOffset, body.byteLength))
  if (!found.ok || !isWhole(found.value)) return 'unread'
  const command = found.value
  const publicKey = decodeBytes32(command.public_key)
  const signature = decodeBytes64(command.signature)
  if (publicKey === undefined || signature === undefined) return 'unread'
  const bytes = signingBytes(serviceId, command)
  const verdict = verdictOf(judge(backend, { signature, publicKey, message: bytes }))
  if (verdict !== 'good') return verdict
  const checked = checkOperation(command)
  if (!checked.ok || checked.value.operation.kind === 'read') return verdict
  const { operation, data } = checked.value
  const read = { command, operation, data, signature, bytes, sha: hash('sha256', bytes, 'buffer') }
  return (isOf(read, 'post') ? draftOf(read, publicKey, { via, proofBits }) : undefined) ?? verdict
}
