/** The registry's decisions over people: pure functions of the state; who signed was settled before. */
import { act } from '../act.ts'
import { endings } from '../delegations/decide.ts'
import { formatEntry } from '../log/entry.ts'
import { type Decider, type Deciders, type Decision, type Planned, refuse } from '../write.ts'

const setProfile: Decider = ({ now }, letter) => act(letter, now, { facts: {}, isPublic: true })

/** The front has checked that the new key is one, and that it signed these bytes (`proof`). */
const rotate: Decider = ({ board, state, now }, letter) => {
  const { to, identity, used } = letter.args as { to: string; identity: string; used: boolean }
  const { people } = state
  const own = Buffer.from(letter.by.key).toString('base64url')
  // Two rotations by one key, both checked before either was decided: the second finds its key retired.
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
  const rotated = act(letter, now, { facts: { to, proof: letter.args.proof }, isPublic: true, entry })
  return after(endings(live, letter, 'rotated', now), rotated)
}

const suspend: Decider = ({ state, now }, letter) => {
  const target = letter.args.target as string
  if (!letter.operator) return notOperator
  if (target === letter.author)
    return refuse('invalid_field', 'an operator cannot suspend their own identity', 'target')
  if (letter.args.isBoard === true)
    return refuse('invalid_field', 'the board itself cannot be suspended: name another identity', 'target')
  if (state.people.suspension(target) !== undefined)
    return refuse('wrong_state', 'this identity is already suspended: identity.unsuspend ends that', 'target')
  const live = state.delegations.liveOf(target, now)
  const suspended = act(letter, now, { facts: { target, reason: letter.args.reason }, isPublic: true })
  return after(endings(live, letter, 'suspended', now), suspended)
}

const unsuspend: Decider = ({ state, now }, letter) => {
  const target = letter.args.target as string
  if (!letter.operator) return notOperator
  if (state.people.suspension(target) === undefined)
    return refuse('wrong_state', 'this identity is not suspended', 'target')
  return act(letter, now, { facts: { target, reason: letter.args.reason }, isPublic: true })
}

/** The act itself stands last: it is what a retry is told of. */
function after(first: readonly Planned[], decision: Decision): Decision {
  return decision.ok ? { ...decision, records: [...first, ...decision.records] } : decision
}

const notOperator = refuse('forbidden', 'only an operator of this board can suspend identities')

export const peopleDeciders = {
  'identity.profile.set': setProfile,
  'identity.rotate': rotate,
  'identity.suspend': suspend,
  'identity.unsuspend': unsuspend,
} satisfies Deciders
