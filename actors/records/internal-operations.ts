/**
 * What the board says to its own actors and asks of them, beside the operations that callers have. None of these can be
 * reached from outside: the command path takes only what is in operations.ts.
 */

import type { ArgsOf, ReplyOf, WriteLetter } from './write.ts'

/** Letters of the board's own, each with a decider. */
const internalWrites = [
  'nothing',
  'author.hide',
  'author.show',
  'blob.remove',
  'handle.claim',
  'delegation.publish',
  'oauth.keep',
  'oauth.consume',
  'oauth.drop',
  'receiver.deliver',
  'receiver.posted',
  'call.pay',
  'call.settle',
  'sale.begin',
  'sale.settle',
  'sale.drop',
  'tools.round',
  'tools.probed',
  'work.post',
  'work.mark',
  'work.version',
  'work.standing',
  'work.bind',
  'work.unbind',
  'work.tell',
  'work.observed',
  'mail.sent',
  'work.open',
  'work.void',
  'work.edited',
  'work.observe',
  'market.begin',
  'work.tick',
  'credit.welcome',
  'credit.reward',
  'hook.subscribe',
  'hook.end',
] as const
export type InternalWriteName = (typeof internalWrites)[number]

/** Reads of the board's own whose answer a client is shown: ready text, as that of an operation. */
const shownReads = [
  'conversation.show',
  'delegation.one',
  'event.made',
  'event.marked',
  'search.show',
  'work.complete',
] as const
export type ShownReadName = (typeof shownReads)[number]

/** Questions of the board's own, each with a read. What is shown to no client is answered by a value. */
const internalReads = [
  ...shownReads,
  'author.hidden',
  'author.rooms',
  'blob.file',
  'blob.holders',
  'blob.needed',
  'blob.rooms',
  'blob.usage',
  'board.activity',
  'call.outcome',
  'calls.completed',
  'calls.mark',
  'calls.open',
  'credit.unwelcomed',
  'delegation.known',
  'hook.all',
  'hook.changed',
  'hook.count',
  'hook.ends',
  'hook.of',
  'identity.known',
  'inbox.blocked',
  'limits.known',
  'locate',
  'oauth.find',
  'receiver.door',
  'receiver.room',
  'receiver.unposted',
  'reports.open',
  'room.invite.maker',
  'sale.find',
  'screening.recent',
  'search.begin',
  'subscription.muted',
  'subscription.own',
  'subscription.page',
  'subscription.place',
  'thread.destination',
  'tools.begin',
  'tools.due',
  'tools.listing',
  'tools.recent_reviews',
  'tools.reviewer',
  'tools.subject',
  'work.offer',
  'work.where',
] as const
export type InternalReadName = (typeof internalReads)[number]

const nothing = Buffer.alloc(64)

/**
 * Letters of the board's own, which are not signed: they have no nonce, and records made of them have no signature.
 * `author`: the identity id that it is about.
 */
export function internalLetter<Name extends InternalWriteName>(
  op: Name,
  to: string,
  author: string,
  args: ArgsOf<Name>,
): WriteLetter<ArgsOf<Name>, ReplyOf<Name>> {
  return {
    op,
    to,
    id: nothing.subarray(0, 16),
    sha: nothing.subarray(0, 32),
    author,
    by: { key: nothing.subarray(0, 32), sig: nothing, signed: nothing.subarray(0, 0) },
    timestamp: 0,
    nonce: '',
    requestId: '',
    via: 'receiver',
    limited: 0,
    rotated: false,
    suspended: false,
    operator: false,
    args,
  }
}
