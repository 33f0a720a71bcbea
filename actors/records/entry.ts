/**
 * Log entries: the ASCII lines that the public log hashes for each leaf.
 *
 *   broadside/entry@v1
 *   kind post
 *   event <32 hex>
 *   room <room>
 *   seq <number in the room>
 *   time <Unix seconds>
 *   command <64 hex SHA-256 of the signing bytes>
 *   target <32 hex>      for kind redact: the event whose text was removed; room and seq are that event's.
 *                        For kind undelegate: the delegation that ended. For kind moderate: the event, identity, document or file
 *                        (<64 hex>) that was acted on; absent if it is the room itself. seq is -, and so is room if there is none
 *   action <operation>   for kind moderate
 *
 * For kinds close and open, which link a log to the next one, and import, which names the log of another board, see
 * rotation.ts.
 *
 * Lines end with LF, in this order. Readers hash the bytes as they are, so proofs also work for unknown kinds.
 *
 * Journals store the entry of a post packed, as 25 or 41 bytes and the name of its room, and rebuild its text:
 *
 * | bytes | what |
 * |---|---|
 * | 1 | 1, or 2 if the key of the frame replaces the first 16 bytes of `command` |
 * | 32 or 16 | `command`, whose first 16 bytes are `event` |
 * | 4 | `time`, little-endian |
 * | 4 | `seq`, little-endian |
 * | rest | `room` |
 *
 * Any other entry is stored as text, as are those of releases that did not pack: its first byte is the b of `broadside`.
 */

type EntryFields = {
  readonly kind: string
  readonly event: string
  readonly room: string
  readonly seq: number | string
  readonly time: number
  readonly command: string
  /** For kinds redact, undelegate and moderate. */
  readonly target?: string
  /** For kind moderate. */
  readonly action?: string
}

export const entryFirstLine = 'broadside/entry@v1'

export function formatEntry(fields: EntryFields): Buffer {
  const target = fields.target === undefined ? '' : `target ${fields.target}\n`
  const action = fields.action === undefined ? '' : `action ${fields.action}\n`
  return Buffer.from(
    `${entryFirstLine}\nkind ${fields.kind}\nevent ${fields.event}\nroom ${fields.room}\nseq ${fields.seq}\ntime ${fields.time}\ncommand ${fields.command}\n${target}${action}`,
    'latin1',
  )
}

/** The lines of an entry by name, or undefined if the bytes are not an entry of this version. */
export function parseEntry(bytes: Uint8Array): ReadonlyMap<string, string> | undefined {
  const lines = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1').split('\n')
  if (lines.pop() !== '' || lines.shift() !== entryFirstLine) return undefined
  const fields = new Map<string, string>()
  for (const line of lines) {
    const space = line.indexOf(' ')
    if (space < 1 || fields.has(line.slice(0, space))) return undefined
    fields.set(line.slice(0, space), line.slice(space + 1))
  }
  return fields
}

/** The fields of a post's entry. */
type PostFields = {
  readonly room: string
  readonly seq: number
  /** Unix seconds. */
  readonly time: number
  /** 32-byte SHA-256 of the signing bytes. Its first half is the event id, which is also the key of the record's frame. */
  readonly sha: Uint8Array
}

const packed = 1
const packedAfterKey = 2
const keyBytes = 16
/** The most by which the text of an entry is longer than its packed form. */
export const textBytesMax = 180
const hexDigits = Buffer.from('0123456789abcdef')
const beforeEvent = Buffer.from(`${entryFirstLine}\nkind post\nevent `)
const beforeRoom = Buffer.from('\nroom ')
const beforeSeq = Buffer.from('\nseq ')
const beforeTime = Buffer.from('\ntime ')
const beforeCommand = Buffer.from('\ncommand ')
/** Scratch space for joining the two halves of a hash. */
const joined = Buffer.alloc(2 * keyBytes)

/** The entry of a post in stored form. */
export function postEntry({ room, seq, time, sha }: PostFields): Buffer {
  if (seq > 0xffff_ffff || time > 0xffff_ffff) {
    const command = Buffer.from(sha).toString('hex')
    return formatEntry({ kind: 'post', event: command.slice(0, 2 * keyBytes), room, seq, time, command })
  }
  const at = 1 + keyBytes
  const entry = Buffer.allocUnsafe(at + 8 + room.length)
  entry[0] = packedAfterKey
  entry.set(sha.subarray(keyBytes), 1)
  entry.writeUInt32LE(time, at)
  entry.writeUInt32LE(seq, at + 4)
  entry.write(room, at + 8, 'latin1')
  return entry
}

/** The stored form of an entry, in the record with this key. */
export function keptEntry(text: Uint8Array, key: Uint8Array): Uint8Array {
  const lines = parseEntry(text)
  const sha = Buffer.from(lines?.get('command') ?? '', 'hex')
  if (lines === undefined || sha.length !== 32) return text
  const made = postEntry({
    room: lines.get('room') ?? '',
    seq: Number(lines.get('seq')),
    time: Number(lines.get('time')),
    sha,
  })
  return entryText(made, key).equals(text) ? made : text
}

/**
 * The text that the log hashes, from a stored entry. `key`: the key of the frame, if it is a record's. `into`: memory for the
 * text of a packed entry, `textBytesMax` bytes longer than it.
 */
export function entryText(
  kept: Buffer,
  key?: Uint8Array,
  into = Buffer.allocUnsafe(kept.length + textBytesMax),
): Buffer {
  const fields = packedAt(kept)
  if (fields === 0) return kept
  // Bytes are written one by one, in a third of the time that strings take.
  const event = copyInto(into, 0, beforeEvent)
  let at = kept[0] === packed ? hexInto(into, event, kept, 1, 1 + keyBytes) : hexInto(into, event, key!, 0, keyBytes)
  at = copyInto(into, at, beforeRoom)
  for (let i = fields + 8; i < kept.length; i++) into[at++] = kept[i]!
  at = numberInto(into, copyInto(into, at, beforeSeq), kept.readUInt32LE(fields + 4))
  at = numberInto(into, copyInto(into, at, beforeTime), kept.readUInt32LE(fields))
  at = copyInto(into, at, beforeCommand)
  into.copyWithin(at, event, event + 2 * keyBytes)
  at = hexInto(into, at + 2 * keyBytes, kept, fields - keyBytes, fields)
  into[at++] = 10
  return into.subarray(0, at)
}

/** These write into memory from `at` on and return the offset after the last byte. */
function copyInto(into: Buffer, at: number, bytes: Buffer): number {
  for (let i = 0; i < bytes.length; i++) into[at + i] = bytes[i]!
  return at + bytes.length
}

function hexInto(into: Buffer, at: number, bytes: Uint8Array, start: number, end: number): number {
  let next = at
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!
    into[next++] = hexDigits[byte >> 4]!
    into[next++] = hexDigits[byte & 15]!
  }
  return next
}

function numberInto(into: Buffer, at: number, number: number): number {
  let end = at + 1
  for (let left = number; left >= 10; left = Math.floor(left / 10)) end++
  let rest = number
  for (let i = end - 1; i >= at; i--) {
    const left = Math.floor(rest / 10)
    into[i] = 48 + rest - 10 * left
    rest = left
  }
  return end
}

/** `command` of a stored entry: 64 hex, or '-'. */
export function entryCommand(kept: Buffer, key?: Uint8Array): string {
  const at = packedAt(kept)
  if (at === 0) return parseEntry(kept)?.get('command') ?? '-'
  if (kept[0] === packed) return kept.toString('hex', 1, at)
  joined.set(key!, 0)
  joined.set(kept.subarray(1, at), keyBytes)
  return joined.toString('hex')
}

/** Copies a record's stored entry in the form that the log stores; returns the bytes written. */
export function writeLogged(kept: Buffer, key: Uint8Array, into: Buffer, at: number): number {
  if (kept[0] !== packedAfterKey) {
    into.set(kept, at)
    return kept.length
  }
  into[at] = packed
  into.set(key, at + 1)
  into.set(kept.subarray(1), at + 1 + keyBytes)
  return kept.length + keyBytes
}

/** Offset of `time` in a packed entry; 0 if the entry is text. */
function packedAt(kept: Buffer): number {
  return kept[0] === packedAfterKey ? 1 + keyBytes : kept[0] === packed ? 1 + 2 * keyBytes : 0
}
