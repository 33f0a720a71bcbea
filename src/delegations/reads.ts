/**
 * Reads on delegations: an identity's own list, and what the main thread needs to recognize a delegate. The registry answers all of them
 * (their plan says so: plans.ts), and only their creator reads them.
 */
import { type Delegation, isLive, type ToldDelegation } from '../../actors/delegations/delegations.ts'
import { fromFrame, type Signed } from '../../actors/records/record.ts'
import { isUnreadable } from '../../storage/disk.ts'
import {
  badCursor,
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
  readable,
  strictContext,
} from '../reads/read.ts'

export const delegationsReads = {
  'delegation.list': list,
  'delegation.one': ({ state, now }, { args }) => {
    const found = state.delegations.find(String(args.id))
    return ok({ delegation: found === undefined ? undefined : delegationView(found, now()) })
  },
  'delegation.known': allKnown,
} satisfies Reads

function delegationView(delegation: Delegation, now: number) {
  const { id, key, scopes, label, clientId, redirectHost, createdAt, expires, isPublished, endedAt, endedBy } =
    delegation
  return {
    id,
    target: key,
    scopes,
    ...(label === '' ? {} : { label }),
    ...(clientId === '' ? {} : { client_id: clientId }),
    ...(redirectHost === '' ? {} : { redirect_host: redirectHost }),
    created_at: createdAt,
    expires_at: expires,
    published: isPublished,
    ...(endedAt === 0 ? {} : { ended_at: endedAt, ended_by: endedBy }),
    ...(endedAt === 0 && now >= expires ? { ended_at: expires, ended_by: 'expired' } : {}),
  }
}

function list(context: ReadContext, { args, reader }: ReadRequest): ReadAnswer {
  const name = `delegations:${reader}`
  const cursor = opened(context, name, args)
  if (cursor === undefined) return badCursor
  const own = context.state.delegations.of(reader)
  const end = cursor.from ?? own.length
  const start = Math.max(0, end - limitOf(args))
  const now = context.now()
  const delegations = own
    .slice(start, end)
    .reverse()
    .map((each) => delegationView(each, now))
  return ok({ delegations, ...paging(context, name, start > 0 ? start : undefined) })
}

/** Every delegation, as the main thread stores it. For those that ended only the key is kept, which stays refused. */
function allKnown(context: ReadContext): KnownAnswer<readonly ToldDelegation[]> {
  const { state, now } = context
  const told: ToldDelegation[] = [...state.delegations.all].map((each) => {
    const { id, identity, key, scopes, expires, isPublished: published } = each
    const found = isLive(each, now()) ? signedIn(context, each) : undefined
    const unread = found === 'unread'
    // A delegate cannot act without the signed bytes of its delegation.
    const ended = found === undefined
    const by = unread ? undefined : found
    return {
      id,
      identity,
      key,
      scopes,
      expires,
      published,
      ended,
      unread,
      by: text(by?.key),
      sig: text(by?.sig),
      signed: text(by?.signed),
    }
  })
  return known(told)
}

/** What was signed for a delegation; undefined if it is damaged, 'unread' if the disk cannot read it now. */
function signedIn(context: ReadContext, { place }: Delegation): Signed | 'unread' | undefined {
  try {
    return readable(strictContext(context), () => fromFrame(context.frame(0, place)))?.by
  } catch (error) {
    if (!isUnreadable(error)) throw error
    context.fault?.(error)
    return 'unread'
  }
}

function text(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? '' : Buffer.from(bytes).toString('base64url')
}
