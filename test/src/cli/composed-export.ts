/** A whole export built in the test: real keys, real signatures, a real tree and a signed checkpoint. */
import { createHash } from 'node:crypto'
import { formatEntry } from '../../../actors/records/entry.ts'
import { type Signer, signerFromSeed } from '../../../src/cli/sign.ts'
import { commandId, type SignableCommand, signingBytes } from '../../../src/format/signing.ts'
import { encodeBase64 } from '../../../storage/base64.ts'
import { formatCheckpoint } from '../../../storage/checkpoint.ts'
import { CompactRange, inclusionPathOf, leafHash, leafHashes, nodeHash } from '../../../storage/merkle.ts'
import { signNote } from '../../../storage/note.ts'
import { createNoteKey } from '../../../storage/note-signer.ts'

export const composedOrigin = 'board.example/log/2026a'
export const composedServiceId = 'bs-0123456789abcdef'
export const composedLogKey = createNoteKey(composedOrigin, Buffer.alloc(32, 0x11))

export type Json = Record<string, unknown>

export function person(n: number): Signer {
  return signerFromSeed(createHash('sha256').update(`person ${n}`).digest())
}

function signed(command: Json, signer: Signer): { payload: string; sha256: string; signature: string; bytes: Buffer } {
  const bytes = signingBytes(composedServiceId, command as SignableCommand)
  const { sha256 } = commandId(bytes)
  return { payload: bytes.toString('utf8'), sha256, signature: signer.sign(bytes).toString('base64url'), bytes }
}

export class ComposedExport {
  readonly records: Json[] = []
  readonly entries: Buffer[] = []

  /** Posts as `signer`, whose identity may belong to an older key. */
  post(text: string, signer: Signer, { id = signer.id, replyTo = '' } = {}): Json {
    const author = { id, public_key: signer.publicKey }
    return this.event(
      { operation: 'post', room: 'lobby', text, reply_to: replyTo },
      { author, ...(replyTo === '' ? {} : { reply_to: replyTo }) },
      signer,
    )
  }

  /** What `signer` signs in `command`, shown as in `shown` where it is not a note in the lobby that begins a thread. */
  event(command: Json, shown: Json, signer: Signer): Json {
    const seq = this.records.filter((record) => record.seq !== undefined).length + 1
    const created = 1_790_000_000 + seq
    const { payload, sha256, signature } = signed(
      { ...command, public_key: signer.publicKey, timestamp: created, nonce: `nonce ${seq}` },
      signer,
    )
    const event_id = sha256.slice(0, 32)
    const room = String(shown.room ?? 'lobby')
    const index = this.#log({ kind: 'post', event: event_id, room, seq, time: created, command: sha256 })
    const record = {
      type: 'event',
      event_id,
      room,
      page: 'main',
      seq,
      kind: 'note',
      author: { id: signer.id, public_key: signer.publicKey },
      text: command.text,
      thread: event_id,
      created_at: created,
      hidden: false,
      ...shown,
      signature,
      signed_payload: payload,
      command_sha256: sha256,
      log: { state: 'included', origin: composedOrigin, index },
      archive_eligible: true,
    }
    this.records.push(record)
    return record
  }

  /** An entry of the log without a line in the export. */
  other(): void {
    const n = this.entries.length
    this.#log({
      kind: 'redact',
      event: 'f'.repeat(32),
      room: 'lobby',
      seq: 1,
      time: 1_790_000_000 + n,
      command: 'f'.repeat(64),
    })
  }

  rotate(from: Signer, to: Signer): void {
    const created = 1_790_000_500
    const command = {
      operation: 'identity.rotate',
      public_key: from.publicKey,
      target: to.publicKey,
      timestamp: created,
      nonce: 'r',
    }
    const { payload, sha256, signature, bytes } = signed(command, from)
    const event = sha256.slice(0, 32)
    const index = this.#log({ kind: 'rotate', event, room: '-', seq: '-', time: created, command: sha256 })
    this.records.push({
      type: 'rotation',
      event_id: event,
      identity: from.id,
      public_key: from.publicKey,
      new_public_key: to.publicKey,
      signature,
      proof: to.sign(bytes).toString('base64url'),
      signed_payload: payload,
      command_sha256: sha256,
      created_at: created,
      log: { state: 'included', origin: composedOrigin, index },
    })
  }

  /** Turns a record into what is left of it after a redaction. */
  redact(record: Json): void {
    for (const field of ['text', 'signature', 'signed_payload']) delete record[field]
    Object.assign(record, { type: 'tombstone', hidden: true, reason: 'asked by the author' })
  }

  checkpoint(): string {
    return signNote(
      formatCheckpoint({ origin: composedOrigin, size: this.entries.length, root: this.root() }),
      composedLogKey.signer,
    )
  }

  root(): Buffer {
    const range = new CompactRange()
    const hashes = leafHashes(this.entries)
    range.append(hashes, Buffer.alloc(hashes.length * 2 + 54 * 32))
    return range.root()
  }

  /** All lines; leaves in pieces of `perLine`. */
  lines(perLine = 3): Json[] {
    const leaves: Json[] = []
    for (let start = 0; start < this.entries.length; start += perLine) {
      const hashes = encodeBase64(leafHashes(this.entries.slice(start, start + perLine)))
      leaves.push({ type: 'leaves', origin: composedOrigin, start, hashes })
    }
    const end = { type: 'end', count: this.records.length, checkpoint: this.checkpoint() }
    return structuredClone([...this.records, ...leaves, end])
  }

  /** The answer of /api/log/proof for a record. */
  proof(record: Json): Json {
    const index = (record.log as { index: number }).index
    const entry = this.entries[index]!
    const size = this.entries.length
    const path = inclusionPathOf((level, k) => this.#node(level, k), index, size)
    return {
      log: { origin: composedOrigin, vkey: composedLogKey.vkey },
      event_id: record.event_id,
      leaf_index: index,
      leaf_hash: leafHash(entry).toString('hex'),
      entry: encodeBase64(entry),
      tree_size: size,
      root_hash: this.root().toString('hex'),
      inclusion_path: path.map((hash) => hash.toString('hex')),
      checkpoint: this.checkpoint(),
      signed_payload: record.signed_payload,
    }
  }

  #node(level: number, k: number): Buffer {
    return level === 0
      ? leafHash(this.entries[k]!)
      : nodeHash(this.#node(level - 1, 2 * k), this.#node(level - 1, 2 * k + 1))
  }

  #log(fields: Parameters<typeof formatEntry>[0]): number {
    return this.entries.push(formatEntry(fields)) - 1
  }
}

export function composedExport(): ComposedExport {
  const composed = new ComposedExport()
  const [ada, bob, newBob] = [person(1), person(2), person(3)]
  const first = composed.post('first', ada)
  composed.post('second \u2028 🌍 "quoted"', bob, { replyTo: String(first.event_id) })
  composed.other()
  composed.rotate(bob, newBob)
  composed.post('third, with the new key', newBob, { id: bob.id })
  const gone = composed.post('to be removed', ada)
  composed.other()
  composed.redact(gone)
  composed.post('last', ada)
  return composed
}
