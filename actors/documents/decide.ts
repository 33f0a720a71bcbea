/**
 * Decisions about documents: pure functions of the state and of the texts in this journal; the signer was verified earlier.
 *
 * A write names the version it was based on. If others have written since, the two edits are merged, or refused if they touch
 * each other. So nothing that was accepted is ever lost, and no author overwrites a text that they have not seen.
 */

import { hash } from 'node:crypto'
import type { Room } from '../records/board.ts'
import { commandSha, type FactRecord, RecordType } from '../records/record.ts'
import { act, type Deciders, type Refused, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import { documentObjection, editObjection } from '../rooms/additions.ts'
import {
  delegationTouchesNone,
  isOwnersAlone,
  mayDelete,
  mayTouchOthers,
  mayWrite,
  ownersAlone,
} from '../rooms/policy.ts'
import {
  type Doc,
  type DocDeletedFacts,
  type DocVisibility,
  type Merged,
  signedText,
  type VersionFacts,
  versionOf,
} from './documents.ts'
import { mergeTexts } from './merge.ts'

export type CreateArgs = {
  /** '': outside of rooms. */
  readonly room: string
  readonly title: string
  /** '' if the command does not say. */
  readonly visibility: '' | 'public' | 'unlisted'
}
export type WriteArgs = {
  readonly target: string
  readonly base_version: number
  /** '': unchanged. */
  readonly title: string
  readonly limits: DocLimits
}
type DocLimits = { readonly versions: number; readonly bytes: number }
export type DeleteArgs = { readonly target: string; readonly reason: string }

const create = (situation: Situation, letter: WriteLetter<CreateArgs>) => {
  const { room: name, title, visibility } = letter.args
  const room = name === '' ? undefined : situation.board.rooms.get(name)
  if (name !== '' && room === undefined)
    return refuse('not_found', `there is no room ${name}: create it with room.create, or with a first post`, 'room')
  const objection = room === undefined ? undefined : objectionOf(situation, letter, room)
  if (objection !== undefined) return objection
  const isPrivate = room?.visibility === 'private'
  if (isPrivate && visibility !== '')
    return refuse('invalid_field', 'a document of a private room is private: leave visibility out', 'visibility')
  const text = signedText(letter.by.signed)
  const facts: VersionFacts = {
    doc: Buffer.from(letter.id).toString('hex'),
    version: 1,
    title,
    visibility: isPrivate ? 'private' : visibility === '' ? 'public' : visibility,
    ...measured(text),
  }
  return act(letter, situation.now, { facts, isPublic: isListed(facts.visibility) })
}

const write = (situation: Situation, letter: WriteLetter<WriteArgs>) => {
  const { target, base_version: base, title, limits } = letter.args
  const doc = situation.state.documents.find(target)
  if (doc === undefined || !maySee(situation, doc, letter)) return unknown(target)
  if (doc.isDeleted) return refuse('not_found', `document ${target} was deleted`, 'target')
  const room = situation.board.rooms.get(doc.actor)
  const objection =
    room === undefined
      ? undefined
      : editObjection(situation.state.rules.policyOf(room.name), room, letter, { maker: doc.owner, now: situation.now })
  if (objection !== undefined) return refuse(...objection)
  if (room === undefined && doc.owner !== letter.author)
    return refuse('forbidden', 'this document is in no room: only its owner can write it', 'target')
  const latest = doc.places.length
  if (latest >= limits.versions)
    return refuse(
      'wrong_state',
      `this document has ${latest} versions, which is the limit: make a new one with docs.create`,
      'target',
    )
  if (base > latest)
    return refuse(
      'invalid_field',
      `"base_version" is ${base}, but the newest version is ${latest}: docs.read gives it`,
      'data.base_version',
    )
  const text = signedText(letter.by.signed)
  // Two authors who make the same change from an older version agree, and that is a merge. Sending the newest version again is
  // not.
  const isSame = base === latest && (title === '' || title === doc.title) && text === textOf(situation, doc, latest)
  if (isSame)
    return refuse(
      'invalid_field',
      `text is the same as that of version ${latest}, the newest: there is nothing to write`,
      'text',
    )
  const merged = base === latest ? undefined : mergedText(situation, doc, base, text)
  if (merged === null || (merged !== undefined && Buffer.byteLength(merged.text) > limits.bytes))
    return conflict(situation, doc, base, letter)
  const facts: VersionFacts = {
    doc: target,
    version: latest + 1,
    title: title === '' ? doc.title : title,
    visibility: doc.visibility,
    ...measured(merged?.text ?? text),
    ...(merged === undefined ? {} : { merged }),
  }
  return act(letter, situation.now, { facts, isPublic: isListed(doc.visibility) })
}

const remove = (situation: Situation, letter: WriteLetter<DeleteArgs>) => {
  const { target, reason } = letter.args
  const doc = situation.state.documents.find(target)
  // As for posts and files: the main thread lets an operator get this far only if the author of a private document was erased.
  if (doc === undefined || !(maySee(situation, doc, letter) || letter.operator)) return unknown(target)
  if (doc.isDeleted) return refuse('not_found', `document ${target} was deleted`, 'target')
  const room = situation.board.rooms.get(doc.actor)
  const { author, operator } = letter
  const mayRemove = doc.owner === author || (room === undefined ? operator : mayDelete(room, author, operator))
  if (!mayRemove)
    return refuse('forbidden', 'only the owner of a document or a moderator of its room can delete it', 'target')
  if (doc.owner !== author && !mayTouchOthers(letter)) return refuse('forbidden', delegationTouchesNone, 'target')
  if (room !== undefined && isOwnersAlone(room, doc.owner, letter)) return refuse('forbidden', ownersAlone, 'target')
  const facts: DocDeletedFacts = { target, reason, ...(doc.owner === author ? {} : { moderated: true }) }
  return act(letter, situation.now, { facts, isPublic: isListed(doc.visibility) })
}

export const documentsDeciders = {
  'docs.create': create,
  'docs.write': write,
  'docs.delete': remove,
} satisfies Deciders

/** Only these get a change number and are in public lists. */
function isListed(visibility: DocVisibility): boolean {
  return visibility === 'public'
}

function unknown(target: string): Refused {
  return refuse('not_found', `there is no document ${target}`, 'target')
}

function maySee({ board }: Situation, doc: Doc, { author }: WriteLetter): boolean {
  const room = board.rooms.get(doc.actor)
  return room === undefined || mayWrite(room, author)
}

function objectionOf({ state, now }: Situation, letter: WriteLetter, room: Room): Refused | undefined {
  const found = documentObjection(state.rules.policyOf(room.name), room, letter, now)
  return found === undefined ? undefined : refuse(...found)
}

function measured(text: string): { size: number; sha256: string } {
  return { size: Buffer.byteLength(text), sha256: hash('sha256', text, 'hex') }
}

/** The edit of version `base` merged onto the newest one; null if they touch. */
function mergedText(situation: Situation, doc: Doc, base: number, edited: string): Merged | null {
  const current = textOf(situation, doc, doc.places.length)
  const text = mergeTexts(textOf(situation, doc, base), current, edited)
  if (text === undefined) return null
  return {
    text,
    signed_sha256: hash('sha256', edited, 'hex'),
    base_version: base,
    onto_version: doc.places.length,
  }
}

function conflict(
  situation: Situation,
  doc: Doc,
  base: number,
  { delegated }: Pick<WriteLetter, 'delegated'>,
): Refused {
  const version = doc.places.length
  // A delegate may be able to write what it may not read.
  if (delegated?.reads === false && doc.visibility !== 'public') {
    const message = `version ${version} changed the same lines since version ${base}, and this delegation may not read it: the identity itself, or a delegate with board:read, has to merge the two`
    return { ok: false, refusal: { code: 'conflict', message, field: 'data.base_version' } }
  }
  const details = {
    version_id: commandSha(recordOf(situation, doc, version).by!)
      .toString('hex')
      .slice(0, 32),
    version,
    title: doc.title,
    text: textOf(situation, doc, version),
    base: textOf(situation, doc, base),
  }
  const message = `version ${version} changed the same lines since version ${base}: merge the two (details has both texts), and write with base_version ${version}`
  return { ok: false, refusal: { code: 'conflict', message, field: 'data.base_version', details } }
}

function textOf(situation: Situation, doc: Doc, version: number): string {
  return versionOf(recordOf(situation, doc, version)).text
}

function recordOf({ record }: Situation, doc: Doc, version: number): FactRecord {
  const found = record(doc.places[version - 1]!)
  if (found.type !== RecordType.act) throw new Error(`version ${version} of document ${doc.id} is not an act`)
  return found
}
