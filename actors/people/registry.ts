/**
 * The registry decides who bears which handle. It lives on the first shard and shares its journal.
 * A handle is given once and stays with its identity.
 */

import { boardHandle, isReserved } from '../records/handles.ts'
import { type HandleClaimed, ownKey, RecordType, registryName } from '../records/record.ts'
import { accept, isOfBoard, refuse, type Situation, type WriteLetter } from '../records/write.ts'

/** `identity.register` names a handle and is refused when it cannot be given. */
export const decideRegister = ({ board, now }: Situation, letter: WriteLetter<{ readonly handle: string }>) => {
  const handle = letter.args.handle
  const own = board.authors.get(letter.author)?.handle
  if (own !== undefined && own !== handle)
    return refuse('conflict', `this identity already has the handle ${own}, and a handle never changes`, 'handle')
  if (isReserved(handle) && !isOwn(handle, letter))
    return refuse('name_taken', `the handle ${handle} is reserved`, 'handle')
  const taken = board.handles.confusedWith(handle)
  if (taken !== undefined && own === undefined) {
    const why = taken === handle ? 'taken' : `too similar to ${taken}, which is taken`
    return refuse('name_taken', `the handle ${handle} is ${why}: choose another`, 'handle')
  }
  const record: HandleClaimed = { ...claimed(letter, handle, now), by: letter.by }
  return accept([{ record, key: letter.id, isPublic: true }], { at: now, handle, isPublic: true })
}

/**
 * A post that named a handle claims it after the post itself was accepted. It never refuses:
 * the reply says why the handle was not given. Asking twice changes nothing.
 */
/** The handle that the identity has, and why it is not the one asked for. */
type Claimed = { readonly handle: string; readonly notApplied?: string }

export const decideClaim = ({ board, now }: Situation, letter: WriteLetter<{ readonly handle: string }>) => {
  const handle = letter.args.handle
  const own = board.authors.get(letter.author)?.handle
  const notApplied = (reason: string) => accept<Claimed>([], { handle: own ?? '', notApplied: reason })
  if (own === handle) return accept<Claimed>([], { handle })
  if (own !== undefined) return notApplied('already_has_handle')
  if (isReserved(handle) && !isOwn(handle, letter)) return notApplied('reserved')
  const taken = board.handles.confusedWith(handle)
  if (taken !== undefined) return notApplied(taken === handle ? 'taken' : 'confusable')
  const record = claimed(letter, handle, now)
  return accept<Claimed>([{ record, key: letter.id, isPublic: true }], { handle })
}

/** The board itself takes its own name. */
function isOwn(handle: string, letter: WriteLetter): boolean {
  return handle === boardHandle && isOfBoard(letter)
}

function claimed(letter: WriteLetter, handle: string, now: number): HandleClaimed {
  return {
    type: RecordType.handleClaimed,
    room: registryName,
    at: now,
    author: Buffer.from(letter.author, 'hex'),
    key: ownKey(letter.by),
    handle,
  }
}
