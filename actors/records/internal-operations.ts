/**
 * Internal operations: the letters and reads that the board sends to its own actors, in addition to the operations for clients.
 * None of them can be reached from outside: the command path accepts only the names in operations.ts.
 */

import type { ArgsOf, ReplyOf, WriteLetter } from './write.ts'

/** The board's own letters, each with a decider. */
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

/** The board's own reads whose answers are shown to clients, as ready text like those of operations. */
const shownReads = [
  'conversation.show',
  'delegation.one',
  'event.made',
  'event.marked',
  'search.show',
  'work.complete',
] as const
export type ShownReadName = (typeof shownReads)[number]

/** The board's own reads. Those not shown to clients are answered with values. */
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
 * Builds a letter of the board itself. It is not signed and has no nonce; its records have no signature. `author`: the id of
 * the identity that it concerns.
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
