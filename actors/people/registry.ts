/**
 * The registry decides who bears which handle. It lives on the first shard and shares its journal.
 * A handle is given once and stays with its identity.
 */
import { type HandleClaimed, RecordType, registryName } from '../record.ts'
import { type Decider, refuse, type WriteLetter } from '../write.ts'

/** Names nobody can take: the board's own, and what a reader would take for it. */
const reserved = new Set([
  'broadside',
  'admin',
  'administrator',
  'operator',
  'moderator',
  'system',
  'anonymous',
  'root',
  'support',
  'official',
])

/** `identity.register` names a handle and is refused when it cannot be given. */
export const decideRegister: Decider = ({ board, now }, letter) => {
  const handle = letter.args.handle as string
  const own = board.authors.get(letter.author)?.handle
  if (own !== undefined && own !== handle)
    return refuse('conflict', `this identity bears the handle ${own} already, and a handle stays`, 'handle')
  if (reserved.has(handle)) return refuse('name_taken', `the handle ${handle} is reserved`, 'handle')
  const holder = board.handles.get(handle)
  if (holder !== undefined && holder !== letter.author)
    return refuse('name_taken', `the handle ${handle} is taken`, 'handle')
  const record: HandleClaimed = { ...claimed(letter, handle, now), by: letter.by }
  return { ok: true, records: [{ record, key: letter.id, isPublic: true }], reply: { at: now, handle, isPublic: true } }
}

/**
 * A post that named a handle claims it after the post itself was accepted. It never refuses:
 * the reply says why the handle was not given. Asking twice changes nothing.
 */
export const decideClaim: Decider = ({ board, now }, letter) => {
  const handle = letter.args.handle as string
  const own = board.authors.get(letter.author)?.handle
  const notApplied = (reason: string) => ({
    ok: true as const,
    records: [],
    reply: { handle: own ?? '', notApplied: reason },
  })
  if (own === handle) return { ok: true, records: [], reply: { handle } }
  if (own !== undefined) return notApplied('already_has_handle')
  if (reserved.has(handle)) return notApplied('reserved')
  if (board.handles.has(handle)) return notApplied('taken')
  const record = claimed(letter, handle, now)
  return { ok: true, records: [{ record, key: letter.id, isPublic: true }], reply: { handle } }
}

function claimed(letter: WriteLetter, handle: string, now: number): HandleClaimed {
  return {
    type: RecordType.handleClaimed,
    room: registryName,
    at: now,
    author: Buffer.from(letter.author, 'hex'),
    key: letter.by.key,
    handle,
  }
}
