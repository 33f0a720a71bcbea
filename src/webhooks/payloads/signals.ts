/**
 * Signals: changes in the order of one source (the feed, or a shard for private content), with just enough data to find their
 * subscribers. A signal contains no text: the payload is built and checked when it is sent (payload.ts).
 */

import { addresseesOf } from '../../../actors/conversations/conversations.ts'
import { versionOfChange } from '../../../actors/documents/documents.ts'
import { type Change, nowhere } from '../../../actors/records/board.ts'
import { none } from '../../../actors/records/event-index.ts'
import type { HookKind } from '../../../actors/webhooks/kind-names.ts'
import { eventOf } from '../../reads/event-view.ts'
import { type ReadContext, readable } from '../../reads/read.ts'

export type Signal = {
  readonly position: number
  /** Unix seconds. */
  readonly at: number
  /** The kinds it may be delivered as, in that order. */
  readonly kinds: readonly HookKind[]
  /** `''`: in no room. */
  readonly room: string
  readonly page: string
  /** Kind of the post. */
  readonly kind: string
  /** Id (32 hex) of the event, document, receive URL or work. */
  readonly subject: string
  /** Number of the item at a receive URL, or of the version of a document, else 0. */
  readonly item: number
  /** For a work: its state. */
  readonly state: string
  /** Identities it addresses or belongs to. */
  readonly to: readonly string[]
  /** In a private source: the handles it names, because a shard does not know who holds them. */
  readonly handles: readonly string[]
}

export type SignalsRequest = {
  /** First position of interest. */
  readonly from: number
  /** Whether to find out whom it addresses, which requires reading every post. */
  readonly spoken: boolean
  /** Only in this room; '': all. */
  readonly room: string
  /** Only changes that address an identity, or belong to one. */
  readonly personal: boolean
}

export type SignalsPage = {
  readonly signals: readonly Signal[]
  /** Everything before it is in `signals` or of no interest. */
  readonly next: number
  readonly more: boolean
}

/** Rows examined, posts read, and signals found for one page: other readers wait meanwhile. */
const rowsMax = 4_096
const rowsReadMax = 512
const signalsMax = 512

export function signalsPage(context: ReadContext, request: SignalsRequest): SignalsPage {
  const { changes } = context.state
  const signals: Signal[] = []
  const first = changes.after(request.from - 1)
  const last = Math.min(changes.count, first + (request.spoken ? rowsReadMax : rowsMax))
  for (let row = first; row < last; row++) {
    const change = changes.at(row)
    // Changes with the same position stay together.
    if (signals.length >= signalsMax && changes.at(row - 1).position !== change.position)
      return { signals, next: change.position, more: true }
    const signal = signalOf(context, change, request)
    if (signal !== undefined) signals.push(signal)
  }
  if (last < changes.count) {
    const next = changes.at(last).position
    const whole = signals.filter(({ position }) => position < next)
    return { signals: whole, next, more: true }
  }
  return { signals, next: Math.max(context.board.change + 1, request.from), more: false }
}

/** The first position from `from` on that is no older than `since`, and whether anything older was skipped. */
export function positionSince(
  { state, board }: ReadContext,
  { from, since }: { from: number; since: number },
): { next: number; truncated: boolean } {
  const { changes } = state
  let low = changes.after(from - 1)
  let high = changes.count
  if (low === high || changes.at(low).at >= since) return { next: from, truncated: false }
  // Times never go back within one journal, and in the feed only by a moment.
  while (low < high) {
    const middle = (low + high) >>> 1
    if (changes.at(middle).at < since) low = middle + 1
    else high = middle
  }
  return { next: low < changes.count ? changes.at(low).position : board.change + 1, truncated: true }
}

function signalOf(context: ReadContext, change: Change, request: SignalsRequest): Signal | undefined {
  const { state, board, visibility } = context
  const room = change.room === nowhere ? undefined : board.roomList[change.room]!
  if (room !== undefined && room.visibility !== visibility) return undefined
  if (request.room !== '' && room?.name !== request.room) return undefined
  const base = { ...nothing, position: change.position, at: change.at, room: room?.name ?? '', subject: change.subject }
  const kind: string = change.kind
  if (kind === 'receiver.item') {
    const receiver = state.receivers.find(change.subject)
    const item = receiver?.items.findLast(({ seq }) => seq === change.position)
    if (receiver === undefined || item === undefined) return undefined
    return { ...base, kinds: ['receiver.item'], item: item.item, to: [receiver.owner] }
  }
  if (room === undefined && visibility === 'private') return undefined
  if (kind === 'document.written') {
    const doc = request.personal ? undefined : state.documents.find(change.subject)
    return doc && { ...base, kinds: ['document.written'], item: versionOfChange(doc, change.position) }
  }
  if (kind.startsWith('work.')) {
    if (request.personal) return undefined
    const kinds: HookKind[] = kind === 'work.open' ? ['work.open', 'work.update'] : ['work.update']
    return { ...base, kinds, state: kind.slice('work.'.length) }
  }
  if (kind !== 'event.posted' && kind !== 'event.superseded') return undefined
  return postSignal(context, change, base, request)
}

const nothing = {
  page: '',
  kind: '',
  item: 0,
  state: '',
  to: [] as readonly string[],
  handles: [] as readonly string[],
}

function postSignal(
  context: ReadContext,
  { kind, slot }: Change,
  base: Omit<Signal, 'kinds'>,
  { spoken, personal }: SignalsRequest,
): Signal | undefined {
  const { state, board } = context
  const { events, authors } = board
  const original = state.marks.original(slot)
  const isPost = kind === 'event.posted'
  const author = authors.idOf(events.author(slot))
  const to = new Set<string>()
  const handles = new Set<string>()
  let isReply = false
  if (spoken) {
    const parent = events.parent(slot)
    const repliedTo = parent === none ? undefined : authors.idOf(events.author(parent))
    if (isPost && repliedTo !== undefined && repliedTo !== author) {
      to.add(repliedTo)
      isReply = true
    }
    // A damaged record does not say whom it addresses, and the others must not wait for it.
    const said = readable(context, () => addresseesOf(eventOf(context.body(slot))))
    if (said !== undefined && said.to !== '') to.add(said.to)
    for (const handle of said?.handles ?? []) {
      const holder = context.visibility === 'public' ? board.handles.get(handle) : undefined
      if (holder !== undefined) to.add(holder)
      else if (context.visibility === 'private') handles.add(handle)
    }
    // The first message of a conversation asks its other members for an answer.
    const conversation = state.direct.conversation(base.room)
    if (isPost && conversation !== undefined && author === conversation.opener) {
      const members = board.rooms.get(base.room)!.members
      for (const member of members) if (!conversation.answers.has(member)) to.add(member)
    }
    to.delete(author)
  }
  const speaks = to.size + handles.size > 0
  if ((personal || !isPost) && !speaks) return undefined
  const kinds: HookKind[] = [
    ...(isPost ? (['room.post'] as const) : []),
    ...(isReply ? (['reply'] as const) : []),
    ...(speaks ? (['mention', 'inbox.item'] as const) : []),
  ]
  return {
    ...base,
    kinds,
    page: board.page(slot),
    kind: board.kind(original),
    subject: events.idHex(isPost ? slot : original),
    to: [...to],
    handles: [...handles],
  }
}
