/**
 * An event as a reader gets it, from the record on disk and the index beside it.
 * The text comes out of the signed bytes themselves, so what is shown is what was signed.
 */
import type { Board } from '../../actors/board.ts'
import { none } from '../../actors/event-index.ts'
import { type Event, fromFrame, RecordType, type Signed } from '../../actors/record.ts'
import type { Frame } from '../../storage/journal.ts'

export type PersonView = { readonly id: string; readonly public_key: string; readonly handle?: string }

export type EventView = {
  readonly type: 'event' | 'tombstone'
  readonly event_id: string
  readonly room: string
  readonly page: string
  readonly seq: number
  readonly kind: string
  readonly author: PersonView
  readonly text?: string
  readonly format?: 'text' | 'markdown'
  readonly reply_to?: string
  readonly to?: string
  readonly thread: string
  readonly attachments?: readonly never[]
  readonly created_at: number
  readonly expires_at?: number
  readonly hidden: boolean
  readonly reason?: string
  readonly votes: { readonly up: number; readonly down: number; readonly score: number }
  readonly via: string
  readonly signature?: string
  readonly signed_payload?: string
  readonly log: { readonly state: 'included'; readonly index: number } | { readonly state: 'none' }
}

/** The fields of a signed post that its view shows. */
export type SignedPost = { readonly text: string; readonly to?: string; readonly data?: string }

export type EventFacts = {
  readonly id: string
  readonly room: string
  readonly page: string
  readonly seq: number
  readonly kind: string
  readonly author: PersonView
  readonly replyTo: string
  readonly thread: string
  readonly at: number
  /** Unix seconds, 0 = never. */
  readonly expires: number
  readonly via: string
  /** undefined in private rooms. */
  readonly leaf: number | undefined
}

/** `payload`: also give the exact signed bytes. `now`: Unix seconds, decides whether the text has expired. */
export function eventView(
  facts: EventFacts,
  post: SignedPost,
  by: Signed,
  { payload, now }: { payload: boolean; now: number },
): EventView {
  const gone = facts.expires !== 0 && facts.expires <= now
  return {
    type: gone ? 'tombstone' : 'event',
    event_id: facts.id,
    room: facts.room,
    page: facts.page,
    seq: facts.seq,
    kind: facts.kind,
    author: facts.author,
    ...(gone ? {} : { text: post.text, format: formatOf(post.data) }),
    ...(facts.replyTo === '' ? {} : { reply_to: facts.replyTo }),
    ...(post.to === undefined ? {} : { to: post.to }),
    thread: facts.thread,
    ...(gone ? {} : { attachments: [] }),
    created_at: facts.at,
    ...(facts.expires === 0 ? {} : { expires_at: facts.expires }),
    hidden: gone,
    ...(gone ? { reason: 'expired' } : {}),
    votes: { up: 0, down: 0, score: 0 },
    via: facts.via,
    ...(gone ? {} : { signature: base64url(by.sig) }),
    ...(gone || !payload ? {} : { signed_payload: Buffer.from(by.signed).toString('utf8') }),
    log: facts.leaf === undefined ? { state: 'none' } : { state: 'included', index: facts.leaf },
  }
}

/** The same for a slot of a board whose body lies in `frame`. */
export function slotView(
  board: Board,
  slot: number,
  frame: Frame,
  options: { payload: boolean; now: number },
): EventView {
  const record = eventOf(frame)
  const { command } = JSON.parse(Buffer.from(record.by.signed).toString('utf8')) as { command: SignedPost }
  return eventView(slotFacts(board, slot, record), command, record.by, options)
}

export function slotFacts(board: Board, slot: number, record: Event): EventFacts {
  const { events } = board
  const author = board.authorList[events.author[slot]!]!
  const root = events.root[slot]!
  const leaf = events.leaf[slot]!
  const isPublic = board.roomList[events.room[slot]!]!.visibility === 'public'
  return {
    id: events.idHex(slot),
    room: record.room,
    page: record.page,
    seq: record.seq,
    kind: record.kind,
    author: {
      id: author.id,
      public_key: base64url(record.by.key),
      ...(author.handle === undefined ? {} : { handle: author.handle }),
    },
    replyTo: record.reply === undefined ? '' : Buffer.from(record.reply).toString('hex'),
    thread: events.idHex(root === none ? slot : root),
    at: record.at,
    expires: events.expires[slot]!,
    via: record.via,
    leaf: isPublic ? leaf : undefined,
  }
}

export function eventOf(frame: Frame): Event {
  const record = fromFrame(frame)
  if (record.type !== RecordType.event) throw new Error(`frame ${frame.seq} holds no event`)
  return record
}

export function formatOf(data: string | undefined): 'text' | 'markdown' {
  if (data === undefined || data === '') return 'text'
  return (JSON.parse(data) as { format?: 'text' | 'markdown' }).format ?? 'text'
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')
}
