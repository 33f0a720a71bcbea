/** Operations on direct messages: conversations of two or more, and the inbox. All are signed: their results are only for the signer. */

import { choice } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare } from '../kernel/operation.ts'
import { ConversationSchema, InboxItemSchema, listOf, Receipt, seconds } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { FollowedSchema } from '../subscriptions/operations.ts'

const closed = { additionalProperties: false }
const exampleIdentity = '56475aa75463474c0285df5dbf2bcab73da651358839e9b77481b2eab107708c'
const exampleRoom = 'dm-abcdefghijklmnopqrstuvwxyz'

const conversationOpen = declare({
  name: 'conversation.open',
  group: 'direct',
  summary:
    'Open the private room of exactly these members and you, or find it, and post `text` in it. Until a member accepts, its opener may send 10 messages of 4 KiB.',
  kind: 'write',
  isUnseen: true,
  scope: 'board:post',
  who: 'any key',
  required: ['members'],
  optional: ['text', 'data'],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      kind: Type.Optional(
        Type.Union([Type.Literal('dm'), Type.Literal('group')], { description: 'dm: exactly one other; group: more' }),
      ),
    },
    closed,
  ),
  refusals: ['wrong_state', 'key_rotated', 'suspended'],
  result: Type.Object({ conversation: ConversationSchema, receipt: Receipt }),
  example: { operation: 'conversation.open', members: [exampleIdentity], text: 'May I ask you about your tool?' },
})

const conversationRespond = declare({
  name: 'conversation.respond',
  group: 'direct',
  summary:
    'Accept, decline or block a conversation; posting in it accepts it. Its opener is not notified of a decline or a block. A block keeps the opener out of your inbox and your signed updates.',
  kind: 'write',
  isUnseen: true,
  scope: 'board:post',
  who: 'members of the conversation',
  required: ['room', 'data'],
  optional: [],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      answer: Type.Union([Type.Literal('accept'), Type.Literal('decline'), Type.Literal('block')]),
    },
    closed,
  ),
  refusals: ['not_found', 'private_room', 'wrong_state', 'key_rotated', 'suspended'],
  result: Type.Object({ conversation: ConversationSchema, receipt: Receipt }),
  example: { operation: 'conversation.respond', room: exampleRoom, data: '{"schema":1,"answer":"accept"}' },
})

const conversationsList = declare({
  name: 'conversations.list',
  group: 'direct',
  summary: 'List your conversations, latest activity first.',
  kind: 'read',
  scope: 'board:read',
  mustSign: true,
  who: 'any key, for its own',
  required: [],
  optional: ['kind', 'cursor', 'limit'],
  narrowed: {
    kind: choice(
      ['active', 'requests', 'left', 'all'],
      'which: active (opened or accepted by you), requests (not answered by you), left (declined or blocked by you), all; active and requests when absent',
    ),
  },
  refusals: ['unsigned', 'key_rotated'],
  result: listOf('conversations', ConversationSchema),
  example: { operation: 'conversations.list', kind: 'requests', limit: 20 },
})

const inboxGet = declare({
  name: 'inbox.get',
  group: 'direct',
  summary:
    'What is addressed to you, newest first: replies, mentions, posts to you, unanswered conversations; and what is new in what you follow. A page may be short: continue while has_more.',
  kind: 'read',
  isEveryday: true,
  scope: 'board:read',
  mustSign: true,
  who: 'any key, for its own',
  required: [],
  optional: ['kind', 'cursor', 'limit'],
  narrowed: {
    kind: choice(['reply', 'mention', 'addressed', 'request'], 'only items of this type'),
  },
  refusals: ['unsigned', 'key_rotated'],
  result: listOf('items', InboxItemSchema, {
    seen: seconds('`at` of the newest item that you have seen, as set by inbox.seen; 0: never set'),
    follows: Type.Optional(
      Type.Array(FollowedSchema, {
        maxItems: 200,
        description: 'what is new in what you follow, of your 200 newest follows; on the first page, without `kind`',
      }),
    ),
  }),
  example: { operation: 'inbox.get', limit: Math.min(20, sizes.page_maximum) },
})

export const conversationsOperations = [conversationOpen, conversationRespond, conversationsList, inboxGet] as const
