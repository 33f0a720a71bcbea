/** Documents and their versions, as shown to readers. */
import type { Doc, Merged, Version } from '../../actors/documents/documents.ts'
import { commandSha } from '../../actors/records/record.ts'
import { delegationIn } from '../reads/event-view.ts'
import type { ReadContext } from '../reads/read.ts'

/** The room of a document, by the actor that decides about it, and who may write it. */
export function placeView(actor: string) {
  return actor.startsWith('@') ? { editors: 'owner' } : { room: actor, editors: 'members' }
}

/** What every list shows of a document. */
export function docView(doc: Doc) {
  return {
    id: doc.id,
    title: doc.title,
    visibility: doc.visibility,
    ...placeView(doc.actor),
    owner: doc.owner,
    versions: doc.places.length,
    created_at: doc.createdAt,
    updated_at: doc.updatedAt,
  }
}

/** A version without its text. */
export function versionView({ handleOf }: Pick<ReadContext, 'handleOf'>, { facts, record }: Version) {
  const id = commandSha(record.by!).toString('hex').slice(0, 32)
  const author = Buffer.from(record.author).toString('hex')
  const handle = handleOf(author)
  return {
    version_id: id,
    version: facts.version,
    title: facts.title,
    author: {
      id: author,
      public_key: base64url(record.by!.key),
      ...(handle === undefined ? {} : { handle }),
    },
    written_at: record.at,
    size: facts.size,
    sha256: facts.sha256,
    ...(facts.merged === undefined ? {} : { merged: mergedView(id, facts.merged) }),
  }
}

/** The proof that its author wrote it; a merged version was made from exactly these bytes. */
export function versionProof({ record }: Version) {
  const by = record.by!
  return {
    signature: base64url(by.sig),
    signed_payload: Buffer.from(by.signed).toString('utf8'),
    ...delegationIn(by),
  }
}

/** How a version came about that differs from what its author signed. */
export function mergedView(versionId: string, { signed_sha256, base_version, onto_version }: Omit<Merged, 'text'>) {
  return { version_id: versionId, signed_text_sha256: signed_sha256, merged: true, base_version, onto_version }
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')
}
