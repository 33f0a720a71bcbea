/**
 * One line of an export held against itself: what is shown must be what was signed, and the ids must follow.
 *
 * Pure. The signature itself is left to the caller (it goes through threads), and so is the place in the log.
 */
import { formatEntry } from '../../actors/entry.ts'
import { leafHash } from '../../storage/merkle.ts'
import { decodeBytes32, decodeBytes64, identityId, isHex32, isHex64 } from '../format/encoding.ts'
import { commandId, type SignableCommand, signingBytes } from '../format/signing.ts'

export type SignatureToCheck = {
  readonly signature: Buffer
  readonly publicKey: Buffer
  readonly message: Buffer
  /** Whose it is, for the reason: "the author's signature". */
  readonly whose: string
}

export type LeafClaim = { readonly origin: string; readonly index: number; readonly leafHash: Buffer }

export type CheckedLine = {
  readonly kind: 'event' | 'tombstone' | 'rotation'
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

type Fields = Readonly<Record<string, unknown>>

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

/** Checks a line of type `event`, `tombstone` or `rotation`; a rotation is entered into `owners`. */
export function checkLine(value: Fields, owners: KeyOwners): LineCheck {
  if (value.type === 'rotation') return checkRotation(value, owners)
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
  const isUntied = author.id !== owners.ownerOf(publicKey, key)
  if (command.public_key !== publicKey) return bad('the signed bytes name another key than the author’s')
  const different = differingField(value, command)
  if (typeof different === 'string') return bad(`the ${different} shown is not the one that was signed`)
  return finish(value, 'event', {
    serviceId: payload.serviceId,
    signatures: [{ signature, publicKey: key, message, whose: 'the author’s signature' }],
    renamed: different,
    isUntied,
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

type Payload = { readonly command: Fields; readonly serviceId: string; readonly message: Buffer }

/** The signed bytes: canonical, and hashing to the line's command_sha256. A string says what is wrong. */
function openPayload(value: Fields): Payload | string {
  if (typeof value.signed_payload !== 'string') return 'there is no signed_payload'
  const message = Buffer.from(value.signed_payload)
  let parsed: Fields
  try {
    parsed = recordOf(JSON.parse(value.signed_payload))
  } catch {
    return 'the signed_payload is not JSON'
  }
  const command = recordOf(parsed.command)
  const serviceId = String(parsed.service)
  try {
    // One command has one spelling: otherwise two readers could read two things in the same signed bytes.
    if (!signingBytes(serviceId, command as SignableCommand).equals(message)) return notCanonical
  } catch {
    return notCanonical
  }
  const { sha256 } = commandId(message)
  return sha256 === value.command_sha256
    ? { command, serviceId, message }
    : 'command_sha256 is not the hash of the signed bytes'
}

const notCanonical = 'the signed_payload is not in the canonical form of signing bytes'

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

type Facts = Pick<CheckedLine, 'serviceId' | 'signatures' | 'renamed' | 'isUntied'>

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
  const isRotation = kind === 'rotation'
  if (!isRotation && (typeof value.room !== 'string' || !Number.isSafeInteger(value.seq))) {
    return bad('room or seq is missing')
  }
  const room = isRotation ? '-' : String(value.room)
  const seq = isRotation ? '-' : (value.seq as number)
  const own = leafOf(value, { kind: isRotation ? 'rotate' : 'post', room, seq })
  if (typeof own === 'string') return bad(own)
  const leaves: LeafClaim[] = [own]
  if (value.redaction !== undefined) {
    const redaction = leafOf(recordOf(value.redaction), { kind: 'redact', room, seq, target: String(event) })
    if (typeof redaction === 'string') return bad(`of the redaction, ${redaction}`)
    leaves.push(redaction)
  }
  return { ok: true, line: { kind, leaves, version, ...facts } }
}

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

function recordOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function bad(problem: string): LineCheck {
  return { ok: false, problem }
}
