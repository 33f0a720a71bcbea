/**
 * One line of an export held against itself: what is shown must be what was signed, and the ids must follow.
 *
 * Pure. The signature itself is left to the caller (it goes through threads), and so is the place in the log.
 */
import { formatEntry } from '../../actors/entry.ts'
import { leafHash } from '../../storage/merkle.ts'
import { decodeBytes32, decodeBytes64, identityId, isHex32, isHex64 } from '../format/encoding.ts'
import { openDelegation } from './delegation-check.ts'
import { type Fields, openPayload, recordOf, type SignatureToCheck } from './signed-line.ts'

export type LeafClaim = { readonly origin: string; readonly index: number; readonly leafHash: Buffer }

export type CheckedLine = {
  readonly kind: 'event' | 'tombstone' | 'rotation' | 'undelegation'
  /** The delegation that a delegate signed by, or that ended. */
  readonly delegation?: string
  readonly signatures: readonly SignatureToCheck[]
  /** Places in the log: the line's own, and of a redacted event that of the redaction. */
  readonly leaves: readonly LeafClaim[]
  /** A later version: its own id, and that of its original. */
  readonly version: { readonly id: string; readonly original: string } | undefined
  /** Events named otherwise than they were signed, which is right where `signed` is a version of `shown`. */
  readonly renamed: readonly Renamed[]
  /** The key is not the one that the author's id is the hash of, and no rotation seen so far ties them. */
  readonly isUntied: boolean
  readonly serviceId: string | undefined
}

export type Renamed = { readonly field: string; readonly signed: string; readonly shown: string }

export type LineCheck =
  | { readonly ok: true; readonly line: CheckedLine }
  | { readonly ok: false; readonly problem: string }

const postOperations: ReadonlySet<string> = new Set(['post', 'event.post', 'message.post'])

/** Which identity a key belongs to: its own hash, or by the rotations seen so far. */
export class KeyOwners {
  readonly #owners = new Map<string, string>()

  ownerOf(publicKey: string, raw: Uint8Array): string {
    return this.#owners.get(publicKey) ?? identityId(raw)
  }

  rotated(newKey: string, owner: string): void {
    this.#owners.set(newKey, owner)
  }
}

/** Checks a line of type `event`, `tombstone`, `undelegation` or `rotation`; a rotation is entered into `owners`. */
export function checkLine(value: Fields, owners: KeyOwners): LineCheck {
  if (value.type === 'rotation') return checkRotation(value, owners)
  if (value.type === 'undelegation') return checkUndelegation(value)
  return value.type === 'tombstone' ? checkTombstone(value) : checkEvent(value, owners)
}

function checkEvent(value: Fields, owners: KeyOwners): LineCheck {
  const payload = openPayload(value)
  if (typeof payload === 'string') return bad(payload)
  const { command, message } = payload
  const author = recordOf(value.author)
  const publicKey = String(author.public_key)
  const key = decodeBytes32(publicKey)
  const signature = decodeBytes64(String(value.signature))
  if (key === undefined) return bad('the author’s public key is not 43 characters of base64url')
  if (signature === undefined) return bad('the signature is not 86 characters of base64url')
  if (command.public_key !== publicKey) return bad('the signed bytes name another key than the author’s')
  const delegated = value.delegation === undefined ? undefined : openDelegation(value, payload)
  if (typeof delegated === 'string') return bad(delegated)
  // Who signed is the author; or the author's word stands behind who signed.
  const own = delegated ?? { publicKey, key }
  const isUntied = author.id !== owners.ownerOf(own.publicKey, own.key)
  const different = differingField(value, command)
  if (typeof different === 'string') return bad(`the ${different} shown is not the one that was signed`)
  return finish(value, 'event', {
    serviceId: payload.serviceId,
    signatures: [
      { signature, publicKey: key, message, whose: 'the author’s signature' },
      ...(delegated === undefined ? [] : [delegated.signature]),
    ],
    renamed: different,
    isUntied,
    ...(delegated === undefined ? {} : { delegation: delegated.id }),
  })
}

function checkTombstone(value: Fields): LineCheck {
  for (const field of ['text', 'signed_payload', 'signature']) {
    if (value[field] !== undefined) return bad(`a tombstone still has its ${field}`)
  }
  return finish(value, 'tombstone', { serviceId: undefined, signatures: [], renamed: [], isUntied: false })
}

function checkRotation(value: Fields, owners: KeyOwners): LineCheck {
  const payload = openPayload(value)
  if (typeof payload === 'string') return bad(payload)
  const { command, message } = payload
  if (command.operation !== 'identity.rotate') return bad('the signed bytes of a rotation are of another operation')
  const oldKey = decodeBytes32(String(command.public_key))
  const newKey = decodeBytes32(String(command.target))
  const signature = decodeBytes64(String(value.signature))
  const proof = decodeBytes64(String(value.proof))
  if (oldKey === undefined || newKey === undefined) return bad('a key of the rotation is not base64url')
  if (signature === undefined || proof === undefined) return bad('a signature of the rotation is not base64url')
  owners.rotated(String(command.target), owners.ownerOf(String(command.public_key), oldKey))
  return finish(value, 'rotation', {
    serviceId: payload.serviceId,
    signatures: [
      { signature, publicKey: oldKey, message, whose: 'the old key’s signature' },
      { signature: proof, publicKey: newKey, message, whose: 'the new key’s signature' },
    ],
    renamed: [],
    isUntied: false,
  })
}

/**
 * Which shown field of a post differs from the signed one; else the events that it names by another of their ids.
 * Other operations show text that they derive.
 */
function differingField(value: Fields, command: Fields): string | readonly Renamed[] {
  if (!postOperations.has(String(command.operation))) return []
  if (value.text !== command.text) return 'text'
  const supersedes = supersedesOf(command)
  const renamed: Renamed[] = []
  for (const [field, signed] of [
    ['supersedes', supersedes],
    ['reply_to', String(command.reply_to ?? '')],
  ] as const) {
    const shown = String(value[field] ?? '')
    // A version may leave its place to its original.
    if (shown === signed || (field === 'reply_to' && signed === '' && supersedes !== '')) continue
    if (shown === '' || signed === '') return field
    renamed.push({ field, signed, shown })
  }
  if ((value.to ?? '') !== (command.to ?? '')) return 'to'
  if (value.kind !== (command.kind ?? 'note')) return 'kind'
  // A reply may leave its place to the post that it answers.
  if (command.room !== undefined && value.room !== command.room) return 'room'
  if (command.page !== undefined && value.page !== command.page) return 'page'
  return renamed
}

/** The event that a signed post says it is a new version of, or ''. */
function supersedesOf({ data }: Fields): string {
  if (typeof data !== 'string') return ''
  try {
    return String(recordOf(JSON.parse(data)).supersedes ?? '')
  } catch {
    return ''
  }
}

type Facts = Pick<CheckedLine, 'serviceId' | 'signatures' | 'renamed' | 'isUntied' | 'delegation'>

/** The end of a delegation: its leaf; and where the identity itself ended it, its signature. */
function checkUndelegation(value: Fields): LineCheck {
  const { delegation_id: delegation } = value
  if (typeof delegation !== 'string' || !isHex32(delegation)) return bad('delegation_id is not 32 hex digits')
  const facts = { renamed: [], isUntied: false, delegation }
  if (value.signed_payload === undefined)
    return finish(value, 'undelegation', { ...facts, serviceId: undefined, signatures: [] })
  const payload = openPayload(value)
  if (typeof payload === 'string') return bad(payload)
  const { command, message, serviceId } = payload
  if (command.operation !== 'delegation.revoke') return bad('the signed bytes of an end are of another operation')
  const publicKey = decodeBytes32(String(command.public_key))
  const signature = decodeBytes64(String(value.signature))
  if (publicKey === undefined || signature === undefined) return bad('key or signature of the end is not base64url')
  const signatures = [{ signature, publicKey, message, whose: 'the signature that ended the delegation' }]
  return finish(value, 'undelegation', { ...facts, serviceId, signatures })
}

/** What events, tombstones and rotations have in common: the id and the entry in the log. */
function finish(value: Fields, kind: CheckedLine['kind'], facts: Facts): LineCheck {
  const { event_id: event, command_sha256: command } = value
  if (typeof command !== 'string' || !isHex64(command)) return bad('command_sha256 is not 64 hex digits')
  if (kind !== 'rotation' || event !== undefined) {
    if (typeof event !== 'string' || !isHex32(event)) return bad('event_id is not 32 hex digits')
    if (event !== command.slice(0, 32)) return bad('event_id is not the first half of command_sha256')
  }
  const { supersedes } = value
  if (supersedes !== undefined && (typeof supersedes !== 'string' || !isHex32(supersedes)))
    return bad('supersedes is not 32 hex digits')
  const version = supersedes === undefined ? undefined : { id: String(event), original: supersedes }
  const log = recordOf(value.log)
  if (log.state === 'none') return { ok: true, line: { kind, leaves: [], version, ...facts } }
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
    const redaction = leafOf(recordOf(value.redaction), { kind: 'redact', room, seq, target: String(event) })
    if (typeof redaction === 'string') return bad(`of the redaction, ${redaction}`)
    leaves.push(redaction)
  }
  return { ok: true, line: { kind, leaves, version, ...facts } }
}

const entryKinds = { event: 'post', tombstone: 'post', rotation: 'rotate', undelegation: 'undelegate' } as const

/** The leaf that a record says it is, with what else its entry has to say; a string says what is wrong. */
function leafOf(
  record: Fields,
  { kind, room, seq, target }: { kind: string; room: string; seq: number | string; target?: string },
): LeafClaim | string {
  const log = recordOf(record.log)
  if (log.state !== 'included' || typeof log.origin !== 'string') return 'log names no state and origin'
  if (!Number.isSafeInteger(log.index) || (log.index as number) < 0) return 'log.index is not the number of a leaf'
  const { created_at: time, command_sha256: command } = record
  if (!Number.isSafeInteger(time)) return 'created_at is not a time in Unix seconds'
  if (typeof command !== 'string' || !isHex64(command)) return 'command_sha256 is not 64 hex digits'
  const event = command.slice(0, 32)
  const more = target === undefined ? {} : { target }
  const entry = formatEntry({ kind, event, room, seq, time: time as number, command, ...more })
  return { origin: log.origin, index: log.index as number, leafHash: leafHash(entry) }
}

function bad(problem: string): LineCheck {
  return { ok: false, problem }
}
