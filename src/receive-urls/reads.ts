/**
 * Reads on receive URLs: their creator's lists, and what the routes query before accepting a delivery. One shard holds all of one creator
 * (their plan says so: plans.ts), so nothing here is ever absent.
 */

import { isUtf8 } from 'node:buffer'
import { type RefusalCode, refusal } from '../../actors/kernel/refusals.ts'
import { opens } from '../../actors/receive-urls/decide.ts'
import {
  arrivals,
  asksSignature,
  type Item,
  type ItemFacts,
  type Receiver,
  type ReceiverFacts,
} from '../../actors/receive-urls/receive-urls.ts'
import { fromFrame } from '../../actors/records/record.ts'
import { objection } from '../../actors/rooms/policy.ts'
import { openSecret } from '../format/sealed-secrets.ts'
import {
  badCursor,
  countedPage,
  type KnownAnswer,
  known,
  limitOf,
  ok,
  opened,
  paging,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  refused,
  unending,
  withinPage,
  withRoom,
} from '../reads/read.ts'

export const receiversReads = {
  'receiver.list': list,
  'receiver.items': items,
  'receiver.door': deliveryRules,
  'receiver.unposted': unposted,
  'receiver.room': mayPost,
} satisfies Reads

/** What a reader sees of a receive URL; its secret is not known here. */
export function receiverView(receiver: Omit<Receiver, 'owner' | 'hash' | 'posted' | 'items' | 'seen'>) {
  const { id, facts, createdAt, count, deletedAt, delegation } = receiver
  const { label, room, dedupe, allow, post } = facts
  return {
    id,
    ...(label === '' ? {} : { label }),
    ...(room === '' ? {} : { room }),
    post,
    ...(dedupe === '' ? {} : { dedupe_header: dedupe }),
    signed: asksSignature(facts),
    ...(allow.length === 0 ? {} : { allow_from: allow }),
    items: count,
    created_at: createdAt,
    ...(delegation === '' ? {} : { delegation }),
    ...(deletedAt === 0 ? {} : { deleted_at: deletedAt }),
  }
}

function list(
  context: ReadContext,
  request: ReadRequest,
): ReadAnswer<{ receivers: readonly ReturnType<typeof receiverView>[] }> {
  const all = context.state.receivers.of(request.reader)
  const page = countedPage(context, request, { name: `receivers:${request.reader}`, all, show: receiverView })
  return page === undefined ? badCursor : ok({ receivers: page.views, ...page.paging })
}

function items(
  context: ReadContext,
  { args, reader }: ReadRequest,
): ReadAnswer<{ items: readonly ReturnType<typeof itemView>[]; unreadable?: number }> {
  const { receivers } = context.state
  const target = args.target === undefined ? undefined : receivers.find(String(args.target))
  if (args.target !== undefined && target?.owner !== reader)
    return refused(refusal('not_found', `you have no receive URL ${args.target}: receiver.list shows yours`, 'target'))
  if (args.after !== undefined && target === undefined)
    return refused(
      refusal('invalid_field', 'after counts the items of one receive URL: name it as target', 'data.after'),
    )
  const name = `items:${reader}:${target?.id ?? ''}`
  const cursor = opened(context, name, args)
  if (cursor === undefined) return badCursor
  const behind = cursor.from ?? 0
  const after = Number(args.after ?? 0)
  const found = (target === undefined ? receivers.of(reader) : [target])
    .flatMap((each) => each.items)
    .filter(({ seq, item }) => seq > behind && item > after)
    .sort((a, b) => a.seq - b.seq)
  const page = found.slice(0, limitOf(args))
  const { views, cut, missing } = withinPage(context, page, (item) => itemView(item, itemFacts(context, item)))
  const next = cut?.seq ?? (found.length > page.length ? page.at(-1)?.seq : undefined)
  return ok({ items: views, untrusted: true, ...missing, ...paging(context, name, next) }, { until: unending })
}

function itemFacts(context: ReadContext, { shard, seq }: Item): ItemFacts {
  return arrivals.in(fromFrame(context.frame(shard, seq))).facts
}

function itemView({ item, at }: Item, { receiver, type, query = '', headers, body, verified }: ItemFacts) {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const isText = isUtf8(bytes)
  return {
    receiver,
    item,
    received_at: at,
    content_type: type,
    ...(query === '' ? {} : { query }),
    headers: Object.fromEntries(headers),
    bytes: bytes.length,
    body: bytes.toString(isText ? 'utf8' : 'base64url'),
    body_encoding: isText ? ('text' as const) : ('base64url' as const),
    verified,
    untrusted: true,
  }
}

/** Items that a receive URL has received and its room has not. */
export type Unposted = {
  readonly receiver: string
  readonly owner: string
  readonly room: string
  readonly label: string
  readonly items: readonly number[]
}

/** What a delivery must satisfy. `secret`: the one that signs it, or ''. */
export type DeliveryRules = Pick<ReceiverFacts, 'label' | 'room' | 'dedupe' | 'allow' | 'post'> & {
  readonly owner: string
  readonly delegation: string
  readonly secret: string
}

/** Used by the board: whether a URL opens, and what its creator requires of a delivery. Every reason for not opening looks the same. */
function deliveryRules({ state, cursors }: ReadContext, { args }: ReadRequest): KnownAnswer<DeliveryRules> {
  const receiver = state.receivers.find(String(args.receiver))
  if (!opens(receiver, String(args.hash))) return { ok: false, absent: refusal('not_found', '') }
  const { owner, delegation, facts } = receiver!
  const { sealed = '', hmac = '', ...asked } = facts
  const secret = sealed === '' ? hmac : openSecret(cursors, 'receiver', owner, sealed)
  if (secret === undefined) return { ok: false, absent: refusal('not_found', '') }
  return known({ ...asked, owner, delegation, secret })
}

/** Used by the board: what has not been posted yet, for one receive URL or, at its start, for all. */
function unposted({ state }: ReadContext, { args }: ReadRequest): KnownAnswer<readonly Unposted[]> {
  const only = args.receiver === undefined ? undefined : String(args.receiver)
  return known(
    state.receivers.unposted(only).map(({ id, owner, facts, items: kept, posted }) => ({
      receiver: id,
      owner,
      room: facts.room,
      label: facts.label,
      items: kept.filter(({ item }) => item > posted).map(({ item }) => item),
    })),
  )
}

/** Whether this reader may begin a thread in the room. Queried for the user who wants items posted there; the board itself posts them. */
function mayPost(context: ReadContext, request: ReadRequest): KnownAnswer {
  return withRoom(context, request, (room) => {
    const { board, state, now } = context
    const policy = state.rules.policyOf(room.name)
    const candidate = {
      author: request.reader,
      operator: request.operator === true,
      isReply: false,
      isEdit: false,
      ttl: policy.ttl_max,
      proofBits: policy.proof_bits,
    }
    const found = objection(policy, candidate, { board, room, now: now() })
    if (found === undefined) return known({})
    const [code, message, field, retryAfter] = found
    return refused(refusal(code as RefusalCode, message, field, retryAfter))
  })
}
