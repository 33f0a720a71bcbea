/** How writes on conversations are executed, by the actor of their room. */

import { createHmac } from 'node:crypto'
import { noConversationLeftWords } from '../../actors/conversations/decide.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import { conversationPrefix } from '../../actors/records/record.ts'
import { writerOf } from '../command/charging.ts'
import type { Plan, ReadPlans } from '../command/plan.ts'
import type { Verified } from '../command/verified.ts'
import { provenBits } from '../format/signing.ts'
import { newestFirst } from '../reads/gather.ts'
import { type AnswerOf, dataOf, known } from '../reads/read.ts'

const letters = 'abcdefghijklmnopqrstuvwxyz234567'

/**
 * The room of these members, which is the same for every opener. Derived with the board's secret: anyone may query whether a room exists,
 * and that must not reveal that two people talk.
 */
function conversationRoom(secret: Buffer, members: readonly string[]): string {
  const digest = createHmac('sha256', secret)
    .update(`conversation\n${[...new Set(members)].sort().join('\n')}`)
    .digest()
  return `${conversationPrefix}${[...digest.subarray(0, 26)].map((byte) => letters[byte & 31]).join('')}`
}

function others({ command, signer }: Verified<'conversation.open'>): string[] {
  return [...new Set(command.members)].filter((member) => member !== signer.id).sort()
}

const kindOf = (verified: Verified<'conversation.open'>) => (others(verified).length === 1 ? 'dm' : 'group')

const open: Plan<'conversation.open'> = {
  to: (verified, { secret }) => ({ actor: conversationRoom(secret, [...others(verified), verified.signer.id]) }),
  check: (verified) => {
    if (others(verified).length === 0)
      return refusal('invalid_field', 'members must name someone besides you', 'members')
    const { kind } = verified.data
    if (kind === undefined || kind === kindOf(verified)) return undefined
    const rule = 'a dm has exactly one member besides you, and a group has more: leave kind out, or change members'
    return refusal('invalid_field', rule, 'data.kind')
  },
  args: (verified) => ({
    others: others(verified),
    kind: kindOf(verified),
    proofBits: provenBits(verified.command.proof ?? '', verified.sha.toString('hex')),
    textBytes: Buffer.byteLength(verified.command.text ?? ''),
  }),
  ask: (verified, { throttle, operators }, pass) => {
    const charge = throttle.take('conversations', writerOf(verified, operators))
    pass({
      args: { exhausted: charge.wait },
      limit: { words: noConversationLeftWords, charge },
      // A conversation that already existed costs nothing.
      settle: (answer) => {
        const isMade = answer?.ok === true && answer.duplicate !== true && answer.reply.facts.created
        if (!isMade) charge.giveBack()
      },
    })
  },
  show: (_, __, room) => ({ read: 'conversation.show', args: { room } }),
}

const respond: Plan<'conversation.respond'> = {
  to: ({ command }) => ({ actor: command.room }),
  args: ({ data }) => ({ answer: data.answer }),
  show: (_, __, room) => ({ read: 'conversation.show', args: { room } }),
}

export const directPlans = { 'conversation.open': open, 'conversation.respond': respond }

type FollowNews = NonNullable<AnswerOf<'inbox.get'>['follows']>[number]

function lastOf({ last }: FollowNews): number {
  return last?.created_at ?? 0
}

/** Only its own shard knows a private room, so all shards are queried. */
export const directReadPlans = {
  'conversations.list': { gather: newestFirst('conversations') },
  'inbox.blocked': {
    gather: (parts: readonly AnswerOf<'inbox.blocked'>[]) =>
      known({ blocked: [...new Set(parts.flatMap(({ blocked }) => blocked))] }),
    isForSuspended: true,
  },
  'inbox.get': {
    gather: newestFirst<AnswerOf<'inbox.get'>>('items', (shares) => ({
      seen: shares[0]!.seen,
      ...(shares[0]!.follows === undefined
        ? {}
        : { follows: shares.flatMap(({ follows = [] }) => follows).sort((a, b) => lastOf(b) - lastOf(a)) }),
    })),
    /**
     * The shards of the reader's conversations know whom they have blocked; their own actor knows whom they have muted, and what they
     * follow. Everything by blocked users is left out of every share.
     */
    ask: (request, read, pass) => {
      if (request.reader === '') return pass(request)
      read({ ...request, op: 'inbox.blocked' }, (found) => {
        if (found === undefined || !found.ok) return pass(found)
        const { blocked } = dataOf(found)
        read({ ...request, op: 'subscription.own' }, (own) => {
          if (own === undefined || !own.ok) return pass(own)
          const subscription = dataOf(own)
          const left = [...blocked, ...subscription.muted].join(',')
          pass({ ...request, args: { ...request.args, blocked: left }, found: subscription })
        })
      })
    },
  },
} satisfies ReadPlans
