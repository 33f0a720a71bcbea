/** How a verified command goes to its actor: what its letter says, what a delegate may not, and how a delegate's letter is sent. */

import type { Operation } from '../../actors/kernel/operation.ts'
import { type Refusal, refusal, unpublishedDelegation } from '../../actors/kernel/refusals.ts'
import type { AnyWriteName } from '../../actors/operations.ts'
import type { ShardAnswer } from '../../actors/records/answer.ts'
import { internalLetter } from '../../actors/records/internal-operations.ts'
import { type Facts, registryName } from '../../actors/records/record.ts'
import { type ArgsOf, delegationOver, type ReplyOf, type WriteLetter } from '../../actors/records/write.ts'
import { privateScope } from '../../actors/webhooks/kind-names.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { Delegate } from './delegates.ts'
import type { LiveFacts } from './live-facts.ts'
import type { Decided } from './plan.ts'
import type { Actors, NoAnswer, TakeReply } from './ports.ts'
import { type Signer, signedBy, type Verified } from './verified.ts'

/** Undefined: the delegation covers this operation. */
export function beyondScope({ name, scope }: Operation, { scopes }: Pick<Delegate, 'scopes'>): Refusal | undefined {
  if (scope === undefined)
    return refusal('forbidden', `${name} cannot be delegated: the key of the identity itself must sign it`, 'operation')
  if (scopes.has(scope)) return undefined
  const own = [...scopes].join(', ')
  return refusal('forbidden', `${name} needs the scope ${scope}; this delegation has ${own}`, 'operation')
}

/** What an actor is sent about the delegation of a letter. */
function standingOf({ delegates }: LiveFacts, delegate: Delegate): NonNullable<WriteLetter['delegated']> {
  const { expires, isPublished, scopes } = delegate
  const may = { moderates: scopes.has('board:moderate'), reads: !isPublicOnly({ delegate }) }
  return { isOver: delegates.isOver(delegate), expires, isPublished, ...may }
}

/** Operators act as such with their own keys, or with one that they let operate for a time. */
export function isOperator({ id, delegate }: Signer, operators: ReadonlySet<string>): boolean {
  return operators.has(id) && (delegate === undefined || delegate.scopes.has('board:operate'))
}

/** A delegate that may not read in private gets only what is public. */
export function isPublicOnly({ delegate }: Pick<Signer, 'delegate'>): boolean {
  return delegate !== undefined && !delegate.scopes.has(privateScope)
}

/** Why a key that was good is refused now. */
export function keyRefusal(news: LiveFacts, key: string): Refusal | undefined {
  if (news.delegates.isKeyOver(key)) return refusal('forbidden', delegationOver, 'public_key')
  if (!news.isRetired(key)) return undefined
  return refusal(
    'key_rotated',
    'this identity has moved to a new key, and the old one is refused: sign with the new one',
    'public_key',
  )
}

/** Last words to who follows by a key that is refused since. */
const keyFarewells = {
  moved: 'your identity moved to another key: closed. Get a token with the new key',
  ended: 'your delegation has ended: closed',
} as const

export function keyFarewell(news: LiveFacts, key: string): string | undefined {
  if (news.isRetired(key)) return keyFarewells.moved
  return news.delegates.isKeyOver(key) ? keyFarewells.ended : undefined
}

/** Once for all who wait for it: nothing of the delegate's stands in the public log before its delegation. */
function publish(
  { actors, news }: { readonly actors: Actors; readonly news: LiveFacts },
  delegate: Delegate,
  then: (told: ShardAnswer | NoAnswer) => void,
): void {
  const waiting = delegate.publishing
  if (waiting !== undefined) {
    waiting.push(then)
    return
  }
  const all = [then]
  delegate.publishing = all
  const letter = internalLetter('delegation.publish', registryName, delegate.identity, { id: delegate.id })
  actors.write(letter, (told) => {
    delegate.publishing = undefined
    if (told?.ok) delegate.isPublished = true
    if (told?.ok && told.change !== undefined) news.noteChange(registryName, told.change)
    for (const each of all) each(told)
  })
}

/** A delegate's letter is counted while it is under way, and waits until its delegation is in the public log where it must be. */
export function sendAs<Reply extends Facts>(
  { actors, news }: { readonly actors: Actors; readonly news: LiveFacts },
  delegate: Delegate | undefined,
  letter: WriteLetter<object, Reply>,
  answer: TakeReply<Reply>,
): void {
  // What is sent while its end is decided is refused, and nobody waits for it.
  if (delegate === undefined || letter.delegated?.isOver === true) return actors.write(letter, answer)
  const answered = news.delegates.sent(delegate)
  // A caller that has to wait for more says so before this one counts as answered.
  const take: TakeReply<Reply> = (found, head) => {
    answer(found, head)
    answered()
  }
  actors.write(letter, (found, head) => {
    if (found === undefined || found.ok || found.refusal.code !== unpublishedDelegation) return take(found, head)
    publish({ actors, news }, delegate, (told) => {
      if (!told?.ok) return take(told, undefined)
      actors.write({ ...letter, delegated: { ...letter.delegated!, isOver: false, isPublished: true } }, take)
    })
  })
}

type SignedLetterOptions = {
  readonly news: LiveFacts
  readonly operators: ReadonlySet<string>
  readonly throttle: Pick<Throttle, 'factorOf'>
}

/** What the actor is given with a letter of this name; of a plan, whatever that gives. */
export type Given<Name extends AnyWriteName = never> = [Name] extends [never] ? object : ArgsOf<Name>
/** What it replies; to a retry, what it replied the first time. `sha`: as in Decided. */
export type Said<Name extends AnyWriteName = never> = [Name] extends [never]
  ? Decided
  : ReplyOf<Name> & Pick<Decided, 'sha'>

/** What the main thread knows of a signer and says in each letter. */
export function standingIn(
  { news, operators, throttle }: SignedLetterOptions,
  signer: Signer,
): Pick<WriteLetter, 'author' | 'factor' | 'rotated' | 'suspended' | 'delegated' | 'operator'> {
  const { id, text, delegate } = signer
  const factor = throttle.factorOf(id)
  return {
    author: id,
    ...(factor === 1 ? {} : { factor }),
    rotated: news.isRetired(text),
    suspended: news.isSuspended(id),
    ...(delegate === undefined ? {} : { delegated: standingOf(news, delegate) }),
    operator: isOperator(signer, operators),
  }
}

export function signedLetter<Name extends AnyWriteName = never>(
  options: SignedLetterOptions,
  verified: Verified,
  { to, args, limited }: { readonly to: string; readonly args: Given<Name>; readonly limited: number },
): WriteLetter<Given<Name>, Said<Name>> {
  const { command, operation, signer, sha, door } = verified
  return {
    op: operation.name,
    to,
    id: sha.subarray(0, 16),
    sha,
    by: signedBy(verified),
    timestamp: command.timestamp,
    nonce: command.nonce,
    requestId: command.request_id ?? '',
    via: door.via,
    limited,
    ...standingIn(options, signer),
    args,
  }
}
