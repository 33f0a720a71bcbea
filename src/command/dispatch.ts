/**
 * How a verified command is sent to its actor: the content of its letter, the limits of a delegate's scope, and how a delegate's letter is
 * sent.
 */

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

/** Undefined if the delegation covers this operation. */
export function beyondScope({ name, scope }: Operation, { scopes }: Pick<Delegate, 'scopes'>): Refusal | undefined {
  if (scope === undefined)
    return refusal('forbidden', `${name} cannot be delegated: the key of the identity itself must sign it`, 'operation')
  if (scopes.has(scope)) return undefined
  const own = [...scopes].join(', ')
  return refusal('forbidden', `${name} needs the scope ${scope}; this delegation has ${own}`, 'operation')
}

/** What a letter tells the actor about the delegation. */
function standingOf({ delegates }: LiveFacts, delegate: Delegate): NonNullable<WriteLetter['delegated']> {
  const { expires, isPublished, scopes } = delegate
  const may = { moderates: scopes.has('board:moderate'), reads: !isPublicOnly({ delegate }) }
  return { isOver: delegates.isOver(delegate), expires, isPublished, ...may }
}

/** Operators act as operators with their own keys, or with a delegate's key that has the scope board:operate. */
export function isOperator({ id, delegate }: Signer, operators: ReadonlySet<string>): boolean {
  return operators.has(id) && (delegate === undefined || delegate.scopes.has('board:operate'))
}

/** A delegate without the scope for private reads gets only public content. */
export function isPublicOnly({ delegate }: Pick<Signer, 'delegate'>): boolean {
  return delegate !== undefined && !delegate.scopes.has(privateScope)
}

/** Why a key that was valid is refused now. */
export function keyRefusal(news: LiveFacts, key: string): Refusal | undefined {
  if (news.delegates.isKeyOver(key)) return refusal('forbidden', delegationOver, 'public_key')
  if (!news.isRetired(key)) return undefined
  return refusal(
    'key_rotated',
    'this identity has moved to a new key, and the old one is refused: sign with the new one',
    'public_key',
  )
}

/** The reader of a stream or a waiting request, and the key that signed it; both '' if it is unsigned. */
type FollowReader = { readonly reader: string; readonly key: string }

/** Why this reader is refused from now on. */
export function followRefusal(news: LiveFacts, { reader, key }: FollowReader): Refusal | undefined {
  return news.isSuspended(reader) ? suspendedRefusal : keyRefusal(news, key)
}

const suspendedRefusal = refusal('suspended', 'the operator of this board has suspended this identity')

/** Closing messages for streams whose reader or key is refused from now on. */
const closeReasons = {
  suspended: 'the operator of this board has suspended your identity: closed',
  moved: 'your identity moved to another key: closed. Get a token with the new key',
  ended: 'your delegation has ended: closed',
} as const

export function closeReason(news: LiveFacts, { reader, key }: FollowReader): string | undefined {
  if (news.isSuspended(reader)) return closeReasons.suspended
  if (news.isRetired(key)) return closeReasons.moved
  return news.delegates.isKeyOver(key) ? closeReasons.ended : undefined
}

/** Publishes the delegation once for all waiting letters: nothing of the delegate may precede its delegation in the public log. */
function publish(
  { actors, news }: { readonly actors: Actors; readonly news: LiveFacts },
  delegate: Delegate,
  then: (answer: ShardAnswer | NoAnswer) => void,
): void {
  const waiting = delegate.publishing
  if (waiting !== undefined) {
    waiting.push(then)
    return
  }
  const all = [then]
  delegate.publishing = all
  const letter = internalLetter('delegation.publish', registryName, delegate.identity, { id: delegate.id })
  actors.write(letter, (answer) => {
    delegate.publishing = undefined
    if (answer?.ok) delegate.isPublished = true
    if (answer?.ok && answer.change !== undefined) news.noteChange(registryName, answer.change)
    for (const each of all) each(answer)
  })
}

/**
 * Sends a letter. A delegate's letter is counted while it is pending, and if the actor requires it, waits until its delegation is in the
 * public log.
 */
export function sendAs<Reply extends Facts>(
  { actors, news }: { readonly actors: Actors; readonly news: LiveFacts },
  delegate: Delegate | undefined,
  letter: WriteLetter<object, Reply>,
  answer: TakeReply<Reply>,
): void {
  // Writes that are sent while the delegation's end is being decided are refused, and the decision does not wait for them.
  if (delegate === undefined || letter.delegated?.isOver === true) return actors.write(letter, answer)
  const answered = news.delegates.sent(delegate)
  // If the caller has to wait for more, it registers that before this write counts as answered.
  const take: TakeReply<Reply> = (found, head) => {
    answer(found, head)
    answered()
  }
  actors.write(letter, (found, head) => {
    if (found === undefined || found.ok || found.refusal.code !== unpublishedDelegation) return take(found, head)
    publish({ actors, news }, delegate, (answer) => {
      if (!answer?.ok) return take(answer, undefined)
      actors.write({ ...letter, delegated: { ...letter.delegated!, isOver: false, isPublished: true } }, take)
    })
  })
}

type SignedLetterOptions = {
  readonly news: LiveFacts
  readonly operators: ReadonlySet<string>
  readonly throttle: Pick<Throttle, 'factorOf'>
}

/** What the actor is given with a letter of this name; for a plan, whatever the plan gives. */
export type Given<Name extends AnyWriteName = never> = [Name] extends [never] ? object : ArgsOf<Name>
/** The actor's reply; for a retry, the first one. `sha`: as in Decided. */
export type ActorReply<Name extends AnyWriteName = never> = [Name] extends [never]
  ? Decided
  : ReplyOf<Name> & Pick<Decided, 'sha'>

/** What the main thread knows of a signer and includes in each letter. */
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
): WriteLetter<Given<Name>, ActorReply<Name>> {
  const { command, operation, signer, sha, source } = verified
  return {
    op: operation.name,
    to,
    id: sha.subarray(0, 16),
    sha,
    by: signedBy(verified),
    timestamp: command.timestamp,
    nonce: command.nonce,
    requestId: command.request_id ?? '',
    via: source.via,
    limited,
    ...standingIn(options, signer),
    args,
  }
}
