/**
 * Checks a single line of an export: it must show what was signed, and its ids must be derived from that.
 *
 * Pure. The caller checks the signature itself, and everything that depends on other lines: whose key it is, and the place in the log.
 */

import { operationByName } from '../../actors/operations.ts'
import { formatEntry } from '../../actors/records/entry.ts'
import { HASH_BYTES, writeLeafHash } from '../../storage/merkle.ts'
import { commandId, decodeBytes32, decodeBytes64, identityId, isHex32, isHex64 } from '../format/signing.ts'
import { checkShown, type Renamed } from './shown-fields.ts'
import {
  dataOf,
  type Fields,
  openPayload,
  type Payload,
  recordOf,
  type SignatureToCheck,
  textOf,
} from './signed-line.ts'

/** Tolerance for the clocks of signers. */
const windowSeconds = 300

export type LeafClaim = { readonly origin: string; readonly index: number; readonly leafHash: Uint8Array }

export type RecordType = keyof typeof entryKinds

export function isRecordType(type: string): type is RecordType {
  return Object.hasOwn(entryKinds, type)
}

export type CheckedLine = {
  readonly kind: RecordType
  /** The delegation under which a delegate signed, or that ended. */
  readonly delegation?: string
  readonly signatures: readonly SignatureToCheck[]
  /** Places in the log: the line's own and, for a redacted event, that of the redaction. Empty if the line says that it is in no log. */
  readonly leaves: readonly LeafClaim[]
  /** The room of an event or a tombstone, and its number there. */
  readonly place?: { readonly room: string; readonly seq: number }
  /** For a later version: its own id, and that of its original. */
  readonly version: { readonly id: string; readonly original: string } | undefined
  /** Events named by an id other than the signed one; correct if `signed` is a version of `shown`. */
  readonly renamed: readonly Renamed[]
  /** The version that the board says replaced it, and the original of both. */
  readonly successor: { readonly id: string; readonly original: string } | undefined
  /** For a line that says whose key signed. */
  readonly owner: OwnerClaim | undefined
  /** The key to which a rotation moves that owner. */
  readonly rotatedTo?: string
  readonly serviceId: string | undefined
}

/** The claimed owner of a key: `shown` with an original key or a rotated one, which depends on the rotations before this line. */
export type OwnerClaim = {
  /** In base64url. */
  readonly publicKey: string
  /** The identity whose first key this is: the hash of the key. */
  readonly id: string
  /** The identity that the line names. */
  readonly shown: string
  /** For the error message: "the author's id". */
  readonly whose: string
}

type LineCheck = { readonly ok: true; readonly line: CheckedLine } | { readonly ok: false; readonly problem: string }

/** Checks a line of type `event`, `tombstone`, `undelegation` or `rotation`. */
export function checkLine(value: Fields): LineCheck {
  if (value.type === 'rotation') return checkRotation(value)
  if (value.type === 'undelegation') return checkUndelegation(value)
  return value.type === 'tombstone' ? checkTombstone(value) : checkEvent(value)
}

function ownerOf(publicKey: string, key: Uint8Array, shown: unknown, whose: string): OwnerClaim {
  return { publicKey, id: identityId(key), shown: textOf(shown), whose }
}

function checkEvent(value: Fields): LineCheck {
  const payload = openPayload(value)
  if (typeof payload === 'string') return bad(payload)
  const { command, message } = payload
  const author = recordOf(value.author)
  const publicKey = textOf(author.public_key)
  const key = decodeBytes32(publicKey)
  const signature = decodeBytes64(textOf(value.signature))
  if (key === undefined) return bad('the author’s public key is not 43 characters of base64url')
  if (signature === undefined) return bad('the signature is not 86 characters of base64url')
  if (command.public_key !== publicKey) return bad('the signed bytes name a key other than the author’s')
  const delegated = value.delegation === undefined ? undefined : openDelegation(value, payload)
  if (typeof delegated === 'string') return bad(delegated)
  // The signer is the author, or the author's delegation names the signer.
  const own = delegated ?? { publicKey, key }
  const owner = ownerOf(own.publicKey, own.key, author.id, 'the author’s id')
  const shown = checkShown(value, command)
  if ('problem' in shown) return bad(shown.problem)
  return finish(value, 'event', {
    serviceId: payload.serviceId,
    signatures: [
      { signature, publicKey: key, message, whose: 'the author’s signature' },
      ...(delegated === undefined ? [] : [delegated.signature]),
    ],
    renamed: shown.renamed,
    owner,
    ...(delegated === undefined ? {} : { delegation: delegated.id }),
  })
}

function checkTombstone(value: Fields): LineCheck {
  for (const field of ['text', 'format', 'source', 'attachments', 'delegation', 'signed_payload', 'signature']) {
    if (value[field] !== undefined) return bad(`a tombstone still has its ${field}`)
  }
  return finish(value, 'tombstone', nothingSigned)
}

function checkRotation(value: Fields): LineCheck {
  const payload = openPayload(value)
  if (typeof payload === 'string') return bad(payload)
  const { command, message } = payload
  if (command.operation !== 'identity.rotate') return bad('the signed bytes of a rotation are for another operation')
  const { public_key, target } = command
  const oldKey = decodeBytes32(textOf(public_key))
  const newKey = decodeBytes32(textOf(target))
  const signature = decodeBytes64(textOf(value.signature))
  const proof = decodeBytes64(textOf(value.proof))
  if (oldKey === undefined || newKey === undefined) return bad('a key of the rotation is not base64url')
  if (signature === undefined || proof === undefined) return bad('a signature of the rotation is not base64url')
  for (const [field, signed] of [
    ['public_key', public_key],
    ['new_public_key', target],
  ] as const) {
    if (value[field] !== signed) return bad(`the ${field} shown is not the one that was signed`)
  }
  return finish(value, 'rotation', {
    ...nothingSigned,
    serviceId: payload.serviceId,
    signatures: [
      { signature, publicKey: oldKey, message, whose: 'the old key’s signature' },
      { signature: proof, publicKey: newKey, message, whose: 'the new key’s signature' },
    ],
    owner: ownerOf(textOf(public_key), oldKey, value.identity, idOfIdentity),
    rotatedTo: textOf(target),
  })
}

const idOfIdentity = 'the identity’s id'

/** The end of a delegation: its leaf and, if the identity itself ended it, its signature. */
function checkUndelegation(value: Fields): LineCheck {
  const { delegation_id: delegation, signed_payload, ended_by: by } = value
  if (typeof delegation !== 'string' || !isHex32(delegation)) return bad('delegation_id is not 32 hex digits')
  const isSigned = signed_payload !== undefined
  if (isSigned !== (value.signature !== undefined)) return bad('only one of signature and signed_payload is present')
  if (isSigned !== (by === 'revoked'))
    return bad(
      isSigned ? 'the line has a signed revocation, but ended_by is not "revoked"' : 'the revocation is not signed',
    )
  if (!isSigned) return finish(value, 'undelegation', { ...nothingSigned, delegation })
  const payload = openPayload(value)
  if (typeof payload === 'string') return bad(payload)
  const { command, message, serviceId } = payload
  if (command.operation !== 'delegation.revoke') return bad('the signed bytes of an end are for another operation')
  const { public_key, target } = command
  const publicKey = decodeBytes32(textOf(public_key))
  const signature = decodeBytes64(textOf(value.signature))
  if (publicKey === undefined || signature === undefined) return bad('key or signature of the end is not base64url')
  // A revocation may name the delegate's key instead.
  if (isHex32(textOf(target)) && target !== delegation)
    return bad('the delegation_id shown is not the one that was signed')
  const owner = ownerOf(textOf(public_key), publicKey, value.identity, idOfIdentity)
  const signatures = [{ signature, publicKey, message, whose: 'the signature that ended the delegation' }]
  return finish(value, 'undelegation', { ...nothingSigned, serviceId, signatures, delegation, owner })
}

type Facts = Pick<CheckedLine, 'serviceId' | 'signatures' | 'renamed' | 'owner' | 'rotatedTo' | 'delegation'>

const nothingSigned: Facts = { serviceId: undefined, signatures: [], renamed: [], owner: undefined }

/** Fields that other reads show: expiring events are not archived, and every version has its own line. */
const fieldsOfOtherReads = ['expires_at', 'edited_at', 'version_id', 'versions'] as const

/** What events, tombstones, rotations and ends of delegations have in common: the id and the entry in the log. */
function finish(value: Fields, kind: CheckedLine['kind'], facts: Facts): LineCheck {
  const { event_id: event, command_sha256: command } = value
  if (typeof command !== 'string' || !isHex64(command)) return bad('command_sha256 is not 64 hex digits')
  if (typeof event !== 'string' || !isHex32(event)) return bad('event_id is not 32 hex digits')
  if (event !== command.slice(0, 32)) return bad('event_id is not the first half of command_sha256')
  const { supersedes, superseded_by: successor, hidden, archive_eligible: eligible } = value
  if (supersedes !== undefined && !isHex32(textOf(supersedes))) return bad('supersedes is not 32 hex digits')
  if (successor !== undefined && !isHex32(textOf(successor))) return bad('superseded_by is not 32 hex digits')
  const isHidden = kind === 'tombstone'
  if (hidden !== undefined && hidden !== isHidden) return bad(`hidden is not ${isHidden}`)
  if (eligible !== undefined && eligible !== true) return bad('archive_eligible is not true')
  for (const field of fieldsOfOtherReads) {
    if (value[field] !== undefined) return bad(`it shows ${field}, which no line of an export has`)
  }
  const line = {
    ...facts,
    kind,
    version: supersedes === undefined ? undefined : { id: event, original: textOf(supersedes) },
    successor: successor === undefined ? undefined : { id: textOf(successor), original: textOf(supersedes ?? event) },
  }
  const log = recordOf(value.log)
  if (log.state === 'none') return { ok: true, line: { ...line, leaves: [] } }
  const isOfKeys = kind === 'rotation' || kind === 'undelegation'
  if (!isOfKeys && (typeof value.room !== 'string' || !Number.isSafeInteger(value.seq))) {
    return bad('room or seq is missing')
  }
  const room = isOfKeys ? '-' : String(value.room)
  const seq = isOfKeys ? '-' : (value.seq as number)
  const target = kind === 'undelegation' ? { target: facts.delegation! } : {}
  const own = leafOf(value, { kind: entryKinds[kind], room, seq, ...target })
  if (typeof own === 'string') return bad(own)
  const leaves: LeafClaim[] = [own]
  if (value.redaction !== undefined) {
    const redaction = recordOf(value.redaction)
    const leaf = leafOf(redaction, { kind: 'redact', room, seq, target: event })
    if (typeof leaf === 'string') return bad(`of the redaction, ${leaf}`)
    if (redaction.event_id !== textOf(redaction.command_sha256).slice(0, 32))
      return bad('of the redaction, event_id is not the first half of command_sha256')
    leaves.push(leaf)
  }
  return { ok: true, line: { ...line, leaves, ...(seq === '-' ? {} : { place: { room, seq } }) } }
}

/** The records of an export, and their names in the log. */
const entryKinds = { event: 'post', tombstone: 'post', rotation: 'rotate', undelegation: 'undelegate' } as const

/** The leaf that a record claims to be, built with the given facts of its entry; a string says what is wrong. */
function leafOf(
  record: Fields,
  { kind, room, seq, target }: { kind: string; room: string; seq: number | string; target?: string },
): LeafClaim | string {
  const log = recordOf(record.log)
  if (log.state !== 'included' || typeof log.origin !== 'string') return 'log names no state and origin'
  if (!isLeafIndex(log.index)) return 'log.index is not the number of a leaf'
  const { created_at: time, command_sha256: command } = record
  if (!Number.isSafeInteger(time)) return 'created_at is not a time in Unix seconds'
  if (typeof command !== 'string' || !isHex64(command)) return 'command_sha256 is not 64 hex digits'
  const event = command.slice(0, 32)
  const more = target === undefined ? {} : { target }
  const entry = formatEntry({ kind, event, room, seq, time: time as number, command, ...more })
  return { origin: log.origin, index: log.index, leafHash: ownLeafHash(entry) }
}

/** The hash of an entry in its own buffer: a view into a shared one would be sent to another thread with the whole buffer. */
export function ownLeafHash(entry: Buffer): Uint8Array {
  const hash = Buffer.alloc(HASH_BYTES)
  writeLeafHash(entry, hash, 0)
  return hash
}

export function isLeafIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function bad(problem: string): LineCheck {
  return { ok: false, problem }
}

type OpenedDelegation = {
  readonly id: string
  /** The identity's own key. */
  readonly publicKey: string
  readonly key: Buffer
  readonly signature: SignatureToCheck
}

/**
 * For an event that a delegate signed: the delegation next to it must name the delegate, cover the operation, and be valid at the time. The
 * caller, who knows the rotations, checks whether its signer is the author; whether it had ended depends on the whole file. A text says
 * what is wrong.
 */
function openDelegation(event: Fields, { command, serviceId }: Payload): OpenedDelegation | string {
  const given = recordOf(event.delegation)
  const text = textOf(given.signed_payload)
  const { sha256 } = commandId(Buffer.from(text))
  const opened = openPayload({ signed_payload: text, command_sha256: sha256 })
  if (typeof opened === 'string') return `of the delegation, ${opened}`
  const { command: made, message } = opened
  if (made.operation !== 'delegation.create') return 'the signed bytes of the delegation are for another operation'
  if (opened.serviceId !== serviceId) return 'the delegation belongs to another board'
  if (given.id !== sha256.slice(0, 32)) return 'the delegation’s id is not the hash of its signed bytes'
  if (made.target !== command.public_key) return 'the delegation is for another key than the one that signed'
  const { scopes } = dataOf(made)
  const scope = operationByName.get(textOf(command.operation))?.scope
  if (scope === undefined || !Array.isArray(scopes) || !scopes.includes(scope))
    return `the delegation does not cover ${textOf(command.operation)}`
  const from = numberOf(made.timestamp)
  const at = numberOf(event.created_at)
  if (!(at >= from - windowSeconds)) return 'the delegation was made after the event'
  if (!(at < from + numberOf(made.ttl))) return 'the delegation had expired before the event'
  const publicKey = textOf(made.public_key)
  const key = decodeBytes32(publicKey)
  const signature = decodeBytes64(textOf(given.signature))
  if (key === undefined || signature === undefined) return 'key or signature of the delegation is not base64url'
  const whose = 'the identity’s signature over the delegation'
  return { id: String(given.id), publicKey, key, signature: { signature, publicKey: key, message, whose } }
}

/** NaN if it is not a number, so that comparisons are false. */
function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : Number.NaN
}
