/** The registry's decisions over people: pure functions of the state; who signed was settled before. */
import { act } from '../act.ts'
import { formatEntry } from '../entry.ts'
import { type Decider, refuse } from '../write.ts'

const setProfile: Decider = ({ now }, letter) => act(letter, now, { facts: {}, isPublic: true })

/** The front has checked that the new key is one, and that it signed these bytes (`proof`). */
const rotate: Decider = ({ board, state, now }, letter) => {
  const { to, identity, used } = letter.args as { to: string; identity: string; used: boolean }
  const { people } = state
  const own = Buffer.from(letter.by.key).toString('base64url')
  // Two rotations by one key, both checked before either was decided: the second finds its key retired.
  if (people.isRetired(own))
    return refuse('key_rotated', 'this identity has moved to a new key, and the old one is refused', 'public_key')
  if (used || people.identityOf(to) !== undefined || board.authors.has(identity) || own === to)
    return refuse('conflict', 'target must be a key that was never used on this board: make a fresh one', 'target')
  const command = Buffer.from(letter.sha).toString('hex')
  const event = Buffer.from(letter.id).toString('hex')
  const entry = formatEntry({ kind: 'rotate', event, room: '-', seq: '-', time: now, command })
  return act(letter, now, { facts: { to, proof: letter.args.proof }, isPublic: true, entry })
}

const suspend: Decider = ({ state, now }, letter) => {
  const target = letter.args.target as string
  if (!letter.operator) return notOperator
  if (target === letter.author) return refuse('invalid_field', 'an operator cannot suspend itself', 'target')
  if (letter.args.isBoard === true)
    return refuse('invalid_field', 'the board itself cannot be suspended: name another identity', 'target')
  if (state.people.suspension(target) !== undefined)
    return refuse('wrong_state', 'this identity is suspended already', 'target')
  return act(letter, now, { facts: { target, reason: letter.args.reason }, isPublic: true })
}

const unsuspend: Decider = ({ state, now }, letter) => {
  const target = letter.args.target as string
  if (!letter.operator) return notOperator
  if (state.people.suspension(target) === undefined)
    return refuse('wrong_state', 'this identity is not suspended', 'target')
  return act(letter, now, { facts: { target, reason: letter.args.reason }, isPublic: true })
}

const notOperator = refuse('forbidden', 'only an operator of this board suspends identities')

export const peopleDeciders: Readonly<Record<string, Decider>> = {
  'identity.profile.set': setProfile,
  'identity.rotate': rotate,
  'identity.suspend': suspend,
  'identity.unsuspend': unsuspend,
}
