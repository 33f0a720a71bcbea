/** Reads on identities: one identity, its events, and the list. */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { byActivity } from '../../actors/reading.ts'
import type { Author } from '../../actors/records/authors.ts'
import type { State } from '../../actors/state.ts'
import { decodeBytes32, identityId } from '../format/signing.ts'
import { eventsReads } from '../posts/reads.ts'
import {
  badCursor,
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
  withinPage,
} from '../reads/read.ts'

export const peopleReads = {
  'identity.get': (context, request) =>
    withIdentity(context, request, (author) => ok({ identity: identityView(context.state, author) })),
  'identity.events': (context, request) =>
    withIdentity(context, request, ({ id }) => {
      // Only public ones, even for the identity itself: someone removed from a private room cannot read it by having written there.
      if (context.visibility === 'private') return { ok: false, absent: unknown }
      const args = { ...request.args, target: id }
      return eventsReads['events.list']!(context, { ...request, op: 'events.list', args })
    }),
  'identities.list': listIdentities,
  /** Used by the board: whether anything of this identity was ever accepted. */
  'identity.known': ({ board }, { args }) =>
    board.authors.has(String(args.target)) ? known({}) : { ok: false, absent: unknown },
} satisfies Reads

function listIdentities(context: ReadContext, { args }: ReadRequest): ReadAnswer {
  const list = `identities:${args.query ?? ''}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const query = args.query === undefined ? undefined : String(args.query)
  const { entries, next } = byActivity<Author>(context.board.authors, {
    limit: limitOf(args),
    below: cursor.from ?? Number.POSITIVE_INFINITY,
    accept: (author) => query === undefined || (author.handle?.startsWith(query) ?? false),
  })
  const { views: identities, cut } = withinPage(context, entries, (author) => identityView(context.state, author))
  return ok({ identities, ...paging(context, list, cut?.version ?? next) })
}

const unnamed = refusal('missing_field', 'name a target, or sign the command to read your own', 'target')
const unknown: Refusal = refusal('not_found', 'no identity with this id, handle or key has acted in public', 'target')

/** An identity that has acted only in private rooms exists for itself, and not for others. */
function withIdentity<Data>(
  { state, board, visibility }: ReadContext,
  { args, reader }: ReadRequest,
  read: (author: Author) => ReadAnswer<Data>,
): ReadAnswer<Data> {
  const target = args.target === undefined ? reader : String(args.target)
  if (target === '') return refused(unnamed)
  const author = board.authors.get(target) ?? board.authors.get(board.handles.get(target) ?? byKey(state, target) ?? '')
  if (author === undefined || (visibility === 'private' && author.id !== reader)) return { ok: false, absent: unknown }
  return read(author)
}

/** The identity of a key: the one it was rotated to or from, otherwise the one of its own hash. */
function byKey({ people }: State, text: string): string | undefined {
  const key = decodeBytes32(text)
  return key === undefined ? undefined : (people.identityOf(text) ?? identityId(key))
}

function identityView({ people }: { people: State['people'] }, author: Author) {
  const profile = people.profile(author.id)
  const suspended = people.suspension(author.id)
  const before = people.keysBefore(author.id)
  return {
    id: author.id,
    public_key: author.key,
    ...(author.handle === undefined ? {} : { handle: author.handle }),
    ...(profile === undefined ? {} : { profile: profileView(profile) }),
    ...(before.length === 0 ? {} : { previous_keys: before }),
    ...(suspended === undefined ? {} : { suspended: suspensionView(suspended) }),
    ...(people.isErased(author.id) ? { erased: true } : {}),
    events: author.events.length,
    created_at: author.createdAt,
    last_seen: author.lastSeen,
  }
}

function suspensionView({ reason, at, hidesPosts }: NonNullable<ReturnType<State['people']['suspension']>>) {
  return { reason, since: at, ...(hidesPosts === true ? { hide_posts: true } : {}) }
}

function profileView({ description, capabilities, links, at }: NonNullable<ReturnType<State['people']['profile']>>) {
  return { description, capabilities, links, updated_at: at }
}
