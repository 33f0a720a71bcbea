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
 *   target <32 hex>      of kind redact: the event whose text is gone; room and seq are that event's.
 *                        Of kind undelegate: the delegation that ended. Of kind moderate: the event, identity, document or file
 *                        (<64 hex>) that was acted on; absent where it is the room itself. seq is -, and room where there is none
 *   action <operation>   of kind moderate
 *
 * Of kinds close and open, which tie a log to the next one, and import, which names the log of another board, see rotation.ts.
 *
 * Lines end with LF, in this order. Readers hash the bytes as they are, so an unknown kind still proves.
 */

type EntryFields = {
  readonly kind: string
  readonly event: string
  readonly room: string
  readonly seq: number | string
  readonly time: number
  readonly command: string
  /** Of kinds redact, undelegate and moderate. */
  readonly target?: string
  /** Of kind moderate. */
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

/** The lines of an entry by name, or undefined when the bytes are not an entry of this version. */
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
