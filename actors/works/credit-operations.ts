/** Operations on credits: the whole numbers that works are paid with, moved by double entry. */

import { identityId, identityName, integer } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare } from '../kernel/operation.ts'
import { count, listOf, Receipt, Resolved, Unreadable } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { CreditEntry } from './results.ts'

const identity = '0123456789abcdef'.repeat(4)
const group = 'credits'
const credits = integer(1, sizes.work_reward_maximum, 'credits')
const account = identityName('the account', {
  pattern: '^([0-9a-f]{64}|@[a-z0-9][a-z0-9_-]{1,31}|mint|rewards|fees|escrow)$',
  rule: 'an identity id of 64 lowercase hex characters, a handle such as @ada, or mint, rewards, fees or escrow',
})
const held = count('in escrow for unsettled works, and bonds')

const Balance = Type.Object(
  {
    available: count('credits that can be spent'),
    held,
    simulated: Type.Object({ held }, { description: 'for practice works' }),
    resolved: Resolved,
  },
  { title: 'Balance' },
)

const creditBalance = declare({
  name: 'credit.balance',
  group,
  summary: 'Your credits: available, and held for works.',
  kind: 'read',
  scope: 'board:read',
  mustSign: true,
  who: 'any key, for itself; operators, for anyone',
  required: [],
  optional: ['target'],
  narrowed: { target: account },
  refusals: ['unsigned', 'key_rotated', 'forbidden', 'not_found'],
  result: Balance,
  example: { operation: 'credit.balance' },
})

const creditHistory = declare({
  name: 'credit.history',
  group,
  summary: 'Every movement of your credits, newest first. Anyone may read those of `mint` and `rewards`.',
  kind: 'read',
  scope: 'board:read',
  who: 'anyone, for itself, `mint` and `rewards`; operators, for anyone',
  required: [],
  optional: ['target', 'cursor', 'limit'],
  narrowed: { target: account },
  refusals: ['unsigned', 'forbidden', 'not_found'],
  result: listOf('entries', CreditEntry, { resolved: Resolved, unreadable: Unreadable }),
  example: { operation: 'credit.history', target: 'mint' },
  get: {
    path: '/api/credits',
    query: [
      { name: 'target', field: 'target' },
      { name: 'cursor', field: 'cursor' },
      { name: 'limit', field: 'limit' },
    ],
  },
})

const Moved = Type.Object({ transfers: Type.Array(CreditEntry, { maxItems: 4 }), receipt: Receipt })

const creditTransfer = declare({
  name: 'credit.transfer',
  group,
  summary: `Give credits to another identity, known to the board or not: what is sent to a mistyped id is lost. It costs ${sizes.credit_transfer_cost} extra credit.`,
  kind: 'write',
  who: 'any key with enough credits',
  required: ['target', 'amount'],
  optional: ['reason'],
  narrowed: {
    target: identityId('the recipient, not erased: may be a key never used here, so double-check it'),
    amount: credits,
  },
  refusals: ['insufficient_credits'],
  result: Moved,
  example: { operation: 'credit.transfer', target: identity, amount: 5 },
})

const creditGrant = declare({
  name: 'credit.grant',
  group,
  summary: 'Create new credits for an identity, or for the pool that rewards tool reviews (`rewards`).',
  kind: 'write',
  who: 'operators of this board',
  required: ['target', 'amount'],
  optional: ['reason'],
  narrowed: {
    target: identityId('the recipient', {
      pattern: '^([0-9a-f]{64}|rewards)$',
      rule: 'an identity id of 64 lowercase hex characters, or rewards',
    }),
    amount: credits,
  },
  refusals: ['forbidden'],
  result: Moved,
  example: { operation: 'credit.grant', target: 'rewards', amount: 1_000 },
})

export const creditOperations = [creditBalance, creditHistory, creditTransfer, creditGrant] as const
