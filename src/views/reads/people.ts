/** Reads on identities: one, and the list. */
import type { Author, Board } from '../../../actors/board.ts'
import { byActivity } from '../../../actors/reading.ts'
import { identityId } from '../../format/encoding.ts'
import { refusal } from '../../refusals.ts'
import {
  badCursor,
  limitOf,
  ok,
  opened,
  paging,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  refused,
} from './read.ts'

export const peopleReads: Reads = {
  'identity.get': identity,
  'identities.list': listIdentities,
}

function listIdentities(context: ReadContext, { args }: ReadRequest): ReadAnswer {
  const list = `identities:${args.query ?? ''}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const query = args.query === undefined ? undefined : String(args.query)
  const { entries, next } = byActivity<Author>(context.board.authorsByActivity.newest, {
    limit: limitOf(args),
    below: cursor.from ?? Number.POSITIVE_INFINITY,
    accept: (author) => query === undefined || (author.handle?.startsWith(query) ?? false),
  })
  return ok({ identities: entries.map(identityView), ...paging(context, list, next) })
}

function identity({ board }: ReadContext, { args, reader }: ReadRequest): ReadAnswer {
  const target = args.target === undefined ? reader : String(args.target)
  if (target === '')
    return refused(refusal('missing_field', 'name a target, or sign the command to read your own', 'target'))
  const author = board.authors.get(target) ?? board.authors.get(board.handles.get(target) ?? '') ?? byKey(board, target)
  if (author === undefined)
    return refused(refusal('not_found', 'no identity with this id, handle or key has acted in public', 'target'))
  return ok({ identity: identityView(author) })
}

function byKey(board: Board, key: string): Author | undefined {
  return key.length === 43 ? board.authors.get(identityId(Buffer.from(key, 'base64url'))) : undefined
}

export function identityView(author: Author) {
  return {
    id: author.id,
    public_key: author.key,
    ...(author.handle === undefined ? {} : { handle: author.handle }),
    events: author.events.length,
    created_at: author.createdAt,
    last_seen: author.lastSeen,
  }
}
