/** The registry's decisions about delegations: who may act for whom. Pure functions; the signer was verified earlier. */

import { formatEntry } from '../records/entry.ts'
import { actIn, commandSha, type FactRecord, type Facts, RecordType, registryName } from '../records/record.ts'
import { accept, act, type Deciders, type Planned, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import { type Delegation, type DelegationFacts, type EndedBy, isLive } from './delegations.ts'

/** Delegations that one identity may have at a time: a few programs, and a sign-in on each device. */
const delegationsMax = 64
/** Seconds that a key may act for an operator: a working day, so a lost key stops working on its own. */
const operateSecondsMax = 86_400
/** How far the signer's clock may be ahead. */
const clockSeconds = 300

type CreateArgs = DelegationFacts & {
  /** The identity that the delegate's key would be on its own. */
  readonly identity: string
  /** That identity has acted on this board. */
  readonly used: boolean
}

/** The main thread has checked that the delegate's key is valid, and that it signed these bytes (`proof`). */
const create = ({ board, state, now }: Situation, letter: WriteLetter<CreateArgs>) => {
  const { identity, used, ...facts } = letter.args
  const { people, delegations } = state
  const { key, expires } = facts
  const isKnown = delegations.ofKey(key) !== undefined || people.identityOf(key) !== undefined
  if (used || isKnown || board.authors.has(identity) || identity === letter.author)
    return refuse('conflict', 'target must be a key that was never used on this board: make a new one', 'target')
  if (expires <= now)
    return refuse('expired', 'this delegation would end in the past: it ends ttl seconds after timestamp', 'ttl')
  if (facts.scopes.includes('board:operate') && expires - now > operateSecondsMax + clockSeconds)
    return refuse(
      'invalid_field',
      `a delegation with the scope board:operate lasts at most ${operateSecondsMax} seconds: choose a smaller ttl`,
      'ttl',
    )
  const live = delegations.liveOf(letter.author, now)
  if (live.length >= delegationsMax) {
    const message = `this identity has ${delegationsMax} delegations, which is the limit: end one with delegation.revoke`
    return refuse('quota_exhausted', message, undefined, Math.min(...live.map((each) => each.expires)) - now)
  }
  return act(letter, now, { facts, isPublic: false })
}

/** Decided before its key first does something public. Repeating it changes nothing. */
const publish = ({ state, now, record }: Situation, letter: WriteLetter<{ readonly id: string }>) => {
  const delegation = state.delegations.find(letter.args.id)
  if (delegation === undefined || !isLive(delegation, now)) return over
  if (delegation.isPublished) return accept([], { at: now })
  const { by } = actIn(record(delegation.place))
  const command = commandSha(by!).toString('hex')
  const { id } = delegation
  const entry = formatEntry({ kind: 'delegate', event: id, room: '-', seq: '-', time: now, command })
  const facts = { id, key: by!.key, sig: by!.sig, signed: by!.signed }
  const planned = unsigned('delegation.published', delegation, { key: Buffer.from(id, 'hex'), facts, entry, now })
  return accept([planned], { at: now })
}

const revoke = ({ state, now }: Situation, letter: WriteLetter<{ readonly target: string }>) => {
  const target = letter.args.target
  const delegation = state.delegations.find(target) ?? state.delegations.ofKey(target)
  if (delegation?.identity !== letter.author)
    return refuse('not_found', `you have no delegation ${target}: delegation.list shows yours`, 'target')
  if (!isLive(delegation, now))
    return refuse('wrong_state', 'this delegation has already ended, and its key is refused', 'target')
  const entry = delegation.isPublished ? { entry: undelegateEntry(letter, delegation.id, now) } : {}
  return act(letter, now, { facts: { id: delegation.id }, isPublic: delegation.isPublished, ...entry })
}

const over = refuse('forbidden', 'this delegation has ended, and its key is permanently refused', 'public_key')

/** Records for the end of every published delegation of an identity, to be written before the act that ends them. */
export function endings(live: readonly Delegation[], letter: WriteLetter, by: EndedBy, now: number): Planned[] {
  return live
    .filter(({ isPublished }) => isPublished)
    .map((delegation) => {
      const entry = undelegateEntry(letter, delegation.id, now)
      const facts = { id: delegation.id, by }
      return unsigned('delegation.ended', delegation, { key: letter.id, facts, entry, now })
    })
}

function undelegateEntry(letter: WriteLetter, target: string, time: number): Buffer {
  const event = Buffer.from(letter.id).toString('hex')
  const command = Buffer.from(letter.sha).toString('hex')
  return formatEntry({ kind: 'undelegate', event, room: '-', seq: '-', time, command, target })
}

/** An act that follows from an earlier signature. It has none of its own, so that no retry is mistaken for it. */
function unsigned(
  op: string,
  { identity }: Delegation,
  { key, facts, entry, now }: { key: Uint8Array; facts: Facts; entry: Buffer; now: number },
): Planned {
  const author = Buffer.from(identity, 'hex')
  const record: FactRecord = { type: RecordType.act, room: registryName, at: now, author, op, facts }
  return { record, key, isPublic: true, entries: [entry] }
}

export const delegationDeciders = {
  'delegation.create': create,
  'delegation.publish': publish,
  'delegation.revoke': revoke,
} satisfies Deciders
