/** Reads on documents: one version, the list, the history. Texts come from the journal, not from state. */
import { type Doc, type Version, versionOf } from '../../actors/documents/documents.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import { fromFrame, RecordType } from '../../actors/records/record.ts'
import { mayWrite } from '../../actors/rooms/policy.ts'
import { firstInOrder } from '../reads/first-in-order.ts'
import { share } from '../reads/gather.ts'
import {
  badCursor,
  type KnownAnswer,
  limitOf,
  ok,
  opened,
  paging,
  placeInList,
  privateRoom,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  refused,
  type Scope,
  type Share,
  unending,
  withinPage,
  withRoom,
} from '../reads/read.ts'
import { docView, versionProof, versionView } from './view.ts'

export const documentsReads = {
  'docs.read': (context, request) => withDoc(context, request, (doc) => readVersion(context, request, doc)),
  'docs.list': list,
  'docs.history': (context, request) => withDoc(context, request, (doc) => history(context, request, doc)),
} satisfies Reads

/** Anyone who has the id of an unlisted document can read it: its shard answers, as for a private room. */
function withDoc(context: ReadContext, { args, reader }: ReadRequest, read: (doc: Doc) => ReadAnswer): ReadAnswer {
  const doc = context.state.documents.find(String(args.target))
  const isHere = doc !== undefined && (doc.visibility === 'public') === (context.visibility === 'public')
  const absent = refusal('not_found', `there is no document ${args.target}`, 'target')
  if (!isHere) return { ok: false, absent }
  const room = context.board.rooms.get(doc.actor)
  if (room !== undefined && !mayWrite(room, reader)) return privateRoom('target')
  if (doc.isDeleted) return refused(refusal('not_found', `document ${doc.id} was deleted`, 'target'))
  return read(doc)
}

function readVersion(context: ReadContext, { args }: ReadRequest, doc: Doc): ReadAnswer {
  const latest = doc.places.length
  const number = args.version === undefined ? latest : Number(args.version)
  if (number > latest)
    return refused(refusal('not_found', `the newest version of document ${doc.id} is ${latest}`, 'data.version'))
  const version = versionAt(context, doc, number)
  const shown = {
    ...docView(doc),
    ...versionView(context, version),
    text: version.text,
    ...versionProof(version),
  }
  return ok({ doc: shown }, scopeOf(context))
}

function history(context: ReadContext, { args }: ReadRequest, doc: Doc): ReadAnswer {
  const name = `docs.history:${doc.id}`
  const cursor = opened(context, name, args)
  if (cursor === undefined) return badCursor
  const newest = cursor.from ?? doc.places.length
  const oldest = Math.max(1, newest - limitOf(args) + 1)
  const numbers = Array.from({ length: newest - oldest + 1 }, (_, n) => newest - n)
  const { views, cut, missing } = withinPage(context, numbers, (version) =>
    versionView(context, versionAt(context, doc, version)),
  )
  const next = (cut ?? oldest) - 1
  const data = { doc: docView(doc), versions: views, ...missing }
  return ok({ ...data, ...paging(context, name, next > 0 ? next : undefined) }, scopeOf(context))
}

/** Non-public changes have no change number, so the answer is valid only for this moment. */
function scopeOf({ visibility, now }: ReadContext): Scope {
  return { until: visibility === 'public' ? unending : now() }
}

/** A room's documents, the reader's own, or every public one; latest activity first. */
function list(context: ReadContext, request: ReadRequest): ReadAnswer {
  const { documents } = context.state
  if (request.args.own !== undefined) return request.reader === '' ? refused(unsigned) : own(context, request)
  if (request.args.room === undefined)
    return page(context, request, 'docs.list', () => byActivity(documents.listed.newest))
  return withRoom(context, request, ({ name }) => {
    const docs = documents.ofActor(name).filter(({ visibility, isDeleted }) => visibility !== 'unlisted' && !isDeleted)
    const newestBelow = (from: number) =>
      firstInOrder(
        docs.filter(({ version }) => version < from),
        limitOf(request.args) + 1,
        (a, b) => b.version - a.version,
      )
    return page(context, request, `docs.list:${name}`, newestBelow, { room: name, until: unending })
  })
}

const unsigned = refusal('unsigned', 'sign the command to list your own documents')

function page(
  context: ReadContext,
  { args }: ReadRequest,
  name: string,
  /** Newest first; at least those below this version. */
  newestBelow: (from: number) => Iterable<Doc>,
  scope: Scope = { until: unending },
): ReadAnswer {
  const cursor = opened(context, name, args)
  if (cursor === undefined) return badCursor
  const { from = Number.POSITIVE_INFINITY } = cursor
  const docs: Doc[] = []
  for (const doc of newestBelow(from)) {
    if (doc.version >= from || doc.isDeleted) continue
    if (docs.length === limitOf(args))
      return ok({ docs: docs.map(docView), ...paging(context, name, docs.at(-1)!.version) }, scope)
    docs.push(doc)
  }
  return ok({ docs: docs.map(docView), ...paging(context, name, undefined) }, scope)
}

function* byActivity(newest: Doc | undefined): Generator<Doc> {
  for (let doc = newest; doc !== undefined; doc = doc.older) yield doc
}

/**
 * This actor's share of the documents that the reader created (src/reads/gather.ts merges the shares). The feed returns the public ones, a
 * shard all others; those of private rooms only while the reader is a member and not suspended.
 */
function own(context: ReadContext, request: ReadRequest): KnownAnswer<Share> {
  const { reader, isSuspended } = request
  const { board, state, visibility } = context
  const isOpen = visibility === 'public' || isSuspended !== true
  return share(context, request, `docs.list own:${reader}`, (below, count) => {
    const shown = state.documents.ofOwner(reader).filter((doc) => {
      const room = board.rooms.get(doc.actor)
      const isHere = (doc.visibility === 'public') === (visibility === 'public')
      const isOwn = isHere && !doc.isDeleted && (room === undefined || (isOpen && mayWrite(room, reader)))
      return isOwn && (below === '~' || placeOf(doc) < below)
    })
    return { items: firstInOrder(shown, count, newestDoc).map((doc) => ({ place: placeOf(doc), item: docView(doc) })) }
  })
}

function placeOf({ updatedAt, version, id }: Doc): string {
  return placeInList(updatedAt, version, id)
}

/** Orders documents as their places do, without making these. */
function newestDoc(a: Doc, b: Doc): number {
  return b.updatedAt - a.updatedAt || b.version - a.version || (a.id < b.id ? 1 : -1)
}

function versionAt({ frame }: ReadContext, doc: Doc, version: number): Version {
  const record = fromFrame(frame(doc.shard, doc.places[version - 1]!))
  if (record.type !== RecordType.act) throw new Error(`version ${version} of document ${doc.id} is not an act`)
  return versionOf(record)
}
