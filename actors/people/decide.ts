/** The registry's decisions about people and their handles: pure functions of the state; the signer was verified earlier. */

import { endings } from '../delegations/decide.ts'
import { formatEntry } from '../records/entry.ts'
import { boardHandle, isReserved } from '../records/handles.ts'
import { type HandleClaimed, ownKey, RecordType, registryName } from '../records/record.ts'
import {
  accept,
  act,
  type Deciders,
  isOfBoard,
  preceded,
  refuse,
  type Situation,
  type WriteLetter,
} from '../records/write.ts'
import type { EraseFacts, SuspendFacts } from './people.ts'

const setProfile = ({ now }: Situation, letter: WriteLetter) => act(letter, now, { facts: {}, isPublic: true })

type RotateArgs = {
  /** The new public key, base64url. */
  readonly to: string
  /** Signature of the new key over the command. */
  readonly proof: string
  readonly identity: string
  readonly used: boolean
}
type SuspendArgs = {
  readonly target: string
  readonly reason: string
  readonly isBoard: boolean
  readonly hidesPosts: boolean
}

/** The main thread has checked that the new key is valid, and that it signed these bytes (`proof`). */
const rotate = ({ board, state, now }: Situation, letter: WriteLetter<RotateArgs>) => {
  const { to, proof, identity, used } = letter.args
  const { people } = state
  const own = Buffer.from(letter.by.key).toString('base64url')
  // Two rotations by one key may both be checked before either is decided: the second finds its key retired.
  if (people.isRetired(own))
    return refuse(
      'key_rotated',
      'this identity has moved to a new key, and the old one is refused: sign with the new one',
      'public_key',
    )
  const isKnown = people.identityOf(to) !== undefined || state.delegations.ofKey(to) !== undefined
  if (used || isKnown || board.authors.has(identity) || own === to)
    return refuse('conflict', 'target must be a key that was never used on this board: make a new one', 'target')
  const command = Buffer.from(letter.sha).toString('hex')
  const event = Buffer.from(letter.id).toString('hex')
  const entry = formatEntry({ kind: 'rotate', event, room: '-', seq: '-', time: now, command })
  const live = state.delegations.liveOf(letter.author, now)
  const rotated = act(letter, now, { facts: { to, proof }, isPublic: true, entry })
  return preceded(endings(live, letter, 'rotated', now), rotated)
}

const suspend = ({ state, now }: Situation, letter: WriteLetter<SuspendArgs>) => {
  const { target, reason, isBoard, hidesPosts } = letter.args
  if (!letter.operator) return notOperator
  if (target === letter.author)
    return refuse('invalid_field', 'an operator cannot suspend their own identity', 'target')
  if (isBoard) return refuse('invalid_field', 'the board itself cannot be suspended: name another identity', 'target')
  const before = state.people.suspension(target)
  if (before !== undefined && (!hidesPosts || before.hidesPosts === true))
    return refuse('wrong_state', 'this identity is already suspended: identity.unsuspend ends that', 'target')
  const live = state.delegations.liveOf(target, now)
  const facts: SuspendFacts = { target, reason, ...(hidesPosts ? { hide_posts: true } : {}) }
  const suspended = act(letter, now, { facts, isPublic: true })
  return preceded(endings(live, letter, 'suspended', now), suspended)
}

const unsuspend = ({ state, now }: Situation, letter: WriteLetter<Pick<SuspendArgs, 'target' | 'reason'>>) => {
  const { target, reason } = letter.args
  if (!letter.operator) return notOperator
  if (state.people.suspension(target) === undefined)
    return refuse('wrong_state', 'this identity is not suspended', 'target')
  if (state.people.isErased(target)) return refuse('wrong_state', 'this identity was permanently erased', 'target')
  return act(letter, now, { facts: { target, reason }, isPublic: true })
}

const erase = ({ state, now }: Situation, letter: WriteLetter<Omit<SuspendArgs, 'hidesPosts'>>) => {
  const { target, reason, isBoard } = letter.args
  if (!letter.operator) return notOperator
  if (target === letter.author) return refuse('invalid_field', 'an operator cannot erase their own identity', 'target')
  if (isBoard) return refuse('invalid_field', 'the board itself cannot be erased: name another identity', 'target')
  if (state.people.isErased(target))
    return refuse('wrong_state', 'this identity is already erased: identity.get shows it', 'target')
  const facts: EraseFacts = { target, reason }
  const erased = act(letter, now, { facts, isPublic: true })
  return preceded(endings(state.delegations.liveOf(target, now), letter, 'suspended', now), erased)
}

const notOperator = refuse('forbidden', 'only an operator of this board can suspend identities')

export const peopleDeciders = {
  'identity.profile.set': setProfile,
  'identity.rotate': rotate,
  'identity.suspend': suspend,
  'identity.unsuspend': unsuspend,
  'identity.erase': erase,
} satisfies Deciders

/**
 * The registry decides who gets which handle. It is on the first shard and shares its journal. A handle is assigned once and
 * stays with its identity. `identity.register` names a handle and is refused if the handle cannot be assigned.
 */
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

/** The handle that the identity has, and why it is not the requested one. */
type Claimed = { readonly handle: string; readonly notApplied?: string }

/**
 * A post that names a handle claims it after the post itself was accepted. The claim is never refused: the reply says why the
 * handle was not assigned. Claiming twice changes nothing.
 */
export const decideClaim = ({ state, board, now }: Situation, letter: WriteLetter<{ readonly handle: string }>) => {
  const handle = letter.args.handle
  const own = board.authors.get(letter.author)?.handle
  const notApplied = (reason: string) => accept<Claimed>([], { handle: own ?? '', notApplied: reason })
  if (state.people.suspension(letter.author) !== undefined) return notApplied('suspended')
  if (own === handle) return accept<Claimed>([], { handle })
  if (own !== undefined) return notApplied('already_has_handle')
  if (isReserved(handle) && !isOwn(handle, letter)) return notApplied('reserved')
  const taken = board.handles.confusedWith(handle)
  if (taken !== undefined) return notApplied(taken === handle ? 'taken' : 'confusable')
  const record = claimed(letter, handle, now)
  return accept<Claimed>([{ record, key: letter.id, isPublic: true }], { handle })
}

/** The board claims its own name. */
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
