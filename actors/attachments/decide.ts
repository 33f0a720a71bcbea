/** Decisions about blobs: pure functions of the state; the signer was verified earlier. */

import { type FactRecord, RecordType } from '../records/record.ts'
import { accept, act, type Deciders, type Planned, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import { fileObjection } from '../rooms/additions.ts'
import {
  delegationTouchesNone,
  isOwnersAlone,
  mayDelete,
  mayTouchOthers,
  mayWrite,
  ownersAlone,
} from '../rooms/policy.ts'
import type { BlobFacts, DeletedFacts } from './attachments.ts'

/** What the main thread knows about a file that it wrote before sending this letter. */
export type PutArgs = BlobFacts & {
  /** The identity's quota is used up. The actor checks it, because a retry is never refused for it. */
  readonly over_quota: boolean
  /** These bytes were taken down; checked here for the same reason. */
  readonly taken_down: boolean
}

export type DeleteArgs = { readonly target: string; readonly reason: string }

const put = ({ state, board, now }: Situation, letter: WriteLetter<PutArgs>) => {
  const { over_quota, taken_down, ...facts } = letter.args
  const room = board.rooms.get(letter.to)
  if (room === undefined)
    return refuse(
      'not_found',
      `there is no room ${letter.to}: create it with room.create, or with a first post`,
      'room',
    )
  const objection = fileObjection(state.rules.policyOf(room.name), room, letter, now)
  // Whoever must deliver a result may attach what it needs, whatever the policy says.
  const delivers = mayWrite(room, letter.author) && state.bound.isHolderIn(room.number, letter.author)
  if (objection !== undefined && !delivers) return refuse(...objection)
  if (taken_down)
    return refuse('forbidden', 'an operator took these bytes down: they cannot be uploaded to this board', 'data')
  if (over_quota)
    return refuse(
      'quota_exhausted',
      'the files of this identity have reached its storage limit: delete some with blob.delete',
      undefined,
      3_600,
    )
  return act(letter, now, { facts, isPublic: room.visibility === 'public' })
}

const remove = ({ state, board, now }: Situation, letter: WriteLetter<DeleteArgs>) => {
  const { target, reason } = letter.args
  const blob = state.blobs.find(target)
  const room = board.rooms.get(letter.to)
  if (blob === undefined || room === undefined || !(mayWrite(room, letter.author) || letter.operator))
    return refuse('not_found', `there is no blob ${target}`, 'target')
  if (blob.deleted !== undefined) return refuse('not_found', `blob ${target} is already deleted`, 'target')
  if (blob.author !== letter.author && !mayDelete(room, letter.author, letter.operator))
    return refuse('forbidden', 'only the owner of a file or a moderator of its room can delete it', 'target')
  if (blob.author !== letter.author && !mayTouchOthers(letter))
    return refuse('forbidden', delegationTouchesNone, 'target')
  if (isOwnersAlone(room, blob.author, letter)) return refuse('forbidden', ownersAlone, 'target')
  const isHandedIn = (slot: number) => state.bound.liveResultAt(slot) !== undefined || state.bound.isBound(slot)
  if (blob.author === letter.author && blob.events.some(isHandedIn))
    return refuse(
      'wrong_state',
      'this file is attached to the result of a work: it stays until the work is settled (work.get shows its state)',
      'target',
    )
  const facts: DeletedFacts = {
    target,
    reason,
    file: state.blobs.hasTwin(blob) ? '' : blob.sha256,
    ...(blob.author === letter.author ? {} : { moderated: true }),
  }
  return act(letter, now, { facts, isPublic: room.visibility === 'public' })
}

/** Records per turn: they take a few milliseconds in each thread that follows. */
const removedMax = 100

export type RemoveArgs = { readonly sha256: string; readonly reason: string }

/** Applies a takedown in a room: removes every blob with these bytes, one batch at a time. */
const takeOut = ({ state, board, now }: Situation, letter: WriteLetter<RemoveArgs>) => {
  const { sha256, reason } = letter.args
  const room = board.rooms.get(letter.to)
  if (room === undefined) return refuse('not_found', `there is no room ${letter.to}`, 'room')
  const standing = state.blobs.standing(room.name, sha256)
  const isPublic = room.visibility === 'public'
  const planned = standing.slice(0, removedMax).map(({ id }): Planned => {
    const facts: DeletedFacts = { target: id, reason, file: sha256, moderated: true }
    const author = Buffer.from(letter.author, 'hex')
    const record: FactRecord = { type: RecordType.act, room: room.name, at: now, author, op: letter.op, facts }
    return { record, key: letter.id, isPublic }
  })
  return accept(planned, { left: standing.length - planned.length })
}

export const blobsDeciders = { 'blob.put': put, 'blob.delete': remove, 'blob.remove': takeOut } satisfies Deciders
