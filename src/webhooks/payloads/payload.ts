/**
 * Builds the payload of a delivery, from the current state, for one reader, when it is sent. It leaves out what the reader may
 * not read any more, and texts that were hidden, redacted or have expired meanwhile.
 */

import { isUtf8 } from 'node:buffer'
import { versionOf } from '../../../actors/documents/documents.ts'
import { arrivals } from '../../../actors/receive-urls/receive-urls.ts'
import { none } from '../../../actors/records/event-index.ts'
import { fromFrame, RecordType } from '../../../actors/records/record.ts'
import { mayWrite } from '../../../actors/rooms/policy.ts'
import { excerptChars } from '../../../actors/webhooks/kind-names.ts'
import { answerOf, hasLeft } from '../../conversations/blocks.ts'
import { versionView } from '../../documents/view.ts'
import { addressee, type EventView, names } from '../../reads/event-view.ts'
import { dataOf, type ReadContext, type ReadRequest, view } from '../../reads/read.ts'
import { worksReads } from '../../works/reads.ts'
import type { Offer, Payload, PayloadRequest } from './payload-request.ts'

const skip: Payload = { skip: true }
const barred: Payload = { barred: true }

/** `address`: of this board, for links. */
export function payloadOf(context: ReadContext, address: string, request: PayloadRequest): Payload {
  try {
    return built(context, address, request)
  } catch (error) {
    return { fault: `${request.kind} ${request.subject}: ${(error as Error).message}` }
  }
}

function built(context: ReadContext, address: string, request: PayloadRequest): Payload {
  if (request.kind === 'document.written') return ofDocument(context, address, request)
  if (request.kind === 'receiver.item') return ofItem(context, address, request)
  if (request.kind === 'work.open' || request.kind === 'work.update') return workPayload(context, address, request)
  return ofEvent(context, address, request)
}

function ofEvent(context: ReadContext, address: string, request: PayloadRequest): Payload {
  const { board, state, visibility } = context
  const { reader, kind } = request
  const slot = board.events.find(Buffer.from(request.subject, 'hex'))
  if (slot === none) return skip
  const room = board.roomList[board.events.room(slot)]!
  if (room.visibility !== visibility) return skip
  // A user addressed from a room that they may not read gets nothing; a follower of a room learns that it is closed to them.
  if (room.visibility === 'private' && (!mayWrite(room, reader) || hasLeft(state, room.name, reader)))
    return kind === 'room.post' ? barred : skip
  const event = view(context, slot, false)
  if (event.type === 'tombstone' || event.text === undefined) return skip
  const why = kind === 'room.post' ? undefined : whyFor(context, event, request)
  if (kind !== 'room.post' && why === undefined) return skip
  const isPublic = visibility === 'public'
  return told({
    event_id: event.event_id,
    room: event.room,
    page: event.page,
    kind: event.kind,
    seq: event.seq,
    thread: event.thread,
    ...(event.reply_to === undefined ? {} : { reply_to: event.reply_to }),
    author: person(event.author),
    created_at: event.created_at,
    ...(kind === 'inbox.item' ? { type: why } : {}),
    ...excerptOf(event.text),
    links: isPublic
      ? {
          web: `${address}/e/${event.event_id}`,
          api: `${address}/api/events/${event.event_id}`,
          proof: `${address}/e/${event.event_id}/proof`,
        }
      : { api: `${address}/v1/command` },
  })
}

/** How the event concerns the reader, if this kind reports that. */
function whyFor(
  { state, board }: ReadContext,
  event: EventView,
  { reader, handle, blocked, kind }: PayloadRequest,
): 'reply' | 'mention' | 'addressed' | 'request' | undefined {
  const author = event.author.id
  if (author === reader || blocked.includes(author)) return undefined
  const target = event.reply_to === undefined ? none : board.events.find(Buffer.from(event.reply_to, 'hex'))
  const isReply = target !== none && board.authors.idOf(board.events.author(target)) === reader
  const isNamed = names(event, reader, handle)
  if (kind === 'reply') return isReply ? 'reply' : undefined
  if (kind === 'mention') return isNamed ? 'mention' : undefined
  if (isReply) return 'reply'
  if (isNamed) return addressee(event) === reader ? 'addressed' : 'mention'
  const conversation = state.direct.conversation(event.room)
  const isRequest = conversation !== undefined && answerOf(conversation, reader) === 'pending'
  return isRequest && author === conversation.opener ? 'request' : undefined
}

/** The version that was written; the newest if a snapshot of an older release does not say which one that was. */
function ofDocument(context: ReadContext, address: string, request: PayloadRequest): Payload {
  const { subject, item, reader, filter } = request
  const doc = context.state.documents.find(subject)
  const isHere = doc !== undefined && (doc.visibility === 'public') === (context.visibility === 'public')
  if (!isHere || doc.isDeleted || doc.visibility === 'unlisted') return skip
  const room = context.board.rooms.get(doc.actor)
  if (room !== undefined && !mayWrite(room, reader)) return filter.room === room.name ? barred : skip
  const record = fromFrame(context.frame(doc.shard, doc.places.at(item - 1)!))
  if (record.type !== RecordType.act) return skip
  const version = versionOf(record)
  const shown = versionView(context, version)
  return told({
    document_id: doc.id,
    version: shown.version,
    version_id: shown.version_id,
    ...(room === undefined ? {} : { room: room.name }),
    title: shown.title,
    author: person(shown.author),
    created_at: shown.written_at,
    ...excerptOf(version.text),
    links:
      context.visibility === 'public'
        ? { web: `${address}/d/${doc.id}`, api: `${address}/api/docs/${doc.id}` }
        : { api: `${address}/v1/command` },
  })
}

function ofItem(context: ReadContext, address: string, { subject, item, reader }: PayloadRequest): Payload {
  const receiver = context.state.receivers.find(subject)
  if (receiver?.owner !== reader) return skip
  const kept = receiver.items.find((each) => each.item === item)
  if (kept === undefined) return skip
  const { type, body, verified } = arrivals.in(fromFrame(context.frame(kept.shard, kept.seq))).facts
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return told({
    receiver_id: subject,
    item,
    content_type: type,
    bytes: bytes.length,
    verified,
    created_at: kept.at,
    ...excerptOf(isUtf8(bytes) ? bytes.toString('utf8', 0, 8 * excerptChars) : ''),
    links: { api: `${address}/v1/command` },
  })
}

function told(data: object): Payload {
  return { data: JSON.stringify(data) }
}

function person({ id, handle }: { readonly id: string; readonly handle?: string }) {
  return { id, ...(handle === undefined ? {} : { handle }) }
}

/** The first characters of a text, without splitting any. */
function excerptOf(text: string) {
  return { excerpt: [...text.slice(0, 2 * excerptChars)].slice(0, excerptChars).join(''), excerpt_is_untrusted: true }
}

/** The payload for a work: what its own read shows the reader now, checked against the hook's filter. */
function workPayload(context: ReadContext, address: string, request: PayloadRequest): Payload {
  const { subject, kind, filter, state, at } = request
  const found = workOf(context, request)
  if (found === undefined) return skip
  const { work } = found
  // A work that was claimed meanwhile is no longer open, and a simulated one is not an offer.
  if (kind === 'work.open' && (work.state !== 'open' || work.simulated === true)) return skip
  if (kind === 'work.open' && !isWanted(found, filter)) return skip
  const { room, title, requester, reward } = work
  const text = work.request?.text ?? ''
  const data = {
    work_id: subject,
    state: kind === 'work.open' ? work.state : state,
    ...(room === undefined ? {} : { room }),
    ...(requester === undefined ? {} : { author: person(requester) }),
    ...(title === undefined ? {} : { title }),
    ...(reward === undefined ? {} : { reward: reward.amount }),
    created_at: at,
    excerpt: [...text.slice(0, 2 * excerptChars)].slice(0, excerptChars).join(''),
    excerpt_is_untrusted: true,
    links:
      context.visibility === 'public'
        ? {
            web: `${address}/e/${subject}`,
            api: `${address}/api/work/${subject}`,
            proof: `${address}/e/${subject}/proof`,
          }
        : { api: `${address}/v1/command` },
  }
  return { data: JSON.stringify(data) }
}

function offerIn(context: ReadContext, request: ReadRequest): Offer | null | undefined {
  const told = worksReads['work.offer'](context, request)
  return told.ok ? dataOf(told) : undefined
}

/** Undefined if there is none, or the reader may not read it. The market knows the work; its room knows who may read it, and its text. */
function workOf(context: ReadContext, { subject, reader, filter, offer }: PayloadRequest): Offer | undefined {
  const { eligible_for } = filter
  const args = { event_id: subject, ...(eligible_for === undefined ? {} : { eligible_for }) }
  const found = offer === undefined ? offerIn(context, { op: 'work.offer', args, reader }) : offer
  if (found === undefined || found === null) return undefined
  if (context.visibility === 'public') return found
  const { room = '' } = found.work
  const completed = worksReads['work.complete'](context, {
    ...{ op: 'work.complete', args: { room }, reader },
    found: { work: found.work },
  })
  return completed.ok ? { ...found, ...(dataOf(completed) as Pick<Offer, 'work'>) } : undefined
}

function isWanted(
  { work, isNewcomer }: Offer,
  { capability, min_reward = 0, eligible_for }: PayloadRequest['filter'],
): boolean {
  if (capability !== undefined && work.capabilities?.includes(String(capability)) !== true) return false
  if ((work.reward?.amount ?? 0) < Number(min_reward)) return false
  if (eligible_for === undefined) return true
  const identity = String(eligible_for)
  if (work.requester?.id === identity || work.reviewer?.id === identity) return false
  return work.eligibility !== 'first_work' || isNewcomer
}
