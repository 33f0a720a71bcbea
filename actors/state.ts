/**
 * The whole state of a shard or of the feed: the board, the order of changes, and the parts.
 *
 * Decisions, replay and the feed all change it through the one method `apply`; nothing else changes anything.
 */

import { NewerFormat } from '../storage/disk.ts'
import type { Image } from '../storage/snapshot.ts'
import { Blobs } from './attachments/attachments.ts'
import { Direct } from './conversations/conversations.ts'
import { Delegations } from './delegations/delegations.ts'
import { Documents } from './documents/documents.ts'
import { LimitGrants } from './limits/grants.ts'
import { LogBook, type PackedLog } from './log/book.ts'
import { BoardModeration } from './moderation/moderation.ts'
import { People } from './people/people.ts'
import { PostMarks } from './posts/marks.ts'
import { Receivers } from './receive-urls/receive-urls.ts'
import {
  Board,
  Changes,
  type Keeping,
  nowhere,
  type Place,
  packBoard,
  type Room,
  unpackBoard,
} from './records/board.ts'
import { Columns } from './records/columns.ts'
import type { Core, Projection, RecordPlace } from './records/core.ts'
import { none } from './records/event-index.ts'
import { type BoardRecord, type FactRecord, RecordType } from './records/record.ts'
import { Rules } from './rooms/rules.ts'
import { Sales } from './sales/sales.ts'
import { OauthRecords } from './sign-in/records.ts'
import { IdentitySubscriptions } from './subscriptions/subscriptions.ts'
import { ThreadFlags } from './threads/flags.ts'
import { Threads } from './threads/threads.ts'
import { Calls } from './tool-calls/tool-calls.ts'
import { Tools } from './tools/tools.ts'
import { Hooks } from './webhooks/webhooks.ts'
import { RoomWorks } from './works/bound.ts'
import { Mail } from './works/mail.ts'
import { LedgerIndex } from './works/market/ledger.ts'
import { Market } from './works/market/market.ts'

/** `deciding`: a shard, which has outboxes. `reading`: the feed, which only serves reads. */
type Role = 'deciding' | 'reading'

declare module './records/core.ts' {
  interface Parts extends State {}
}

type More = readonly [changes: unknown, parts: readonly unknown[], book: readonly PackedLog[], more: unknown]

const recordTypes: ReadonlySet<number> = new Set(Object.values(RecordType))

export class State implements Core {
  readonly board: Board
  readonly changes: Changes
  /** The public logs, if this state follows them; leaves of records are numbered across all of them. */
  readonly book: LogBook
  readonly marks: PostMarks
  readonly rules: Rules
  readonly people: People
  readonly direct: Direct
  readonly documents: Documents
  readonly blobs: Blobs
  readonly receivers: Receivers
  readonly calls = new Calls()
  readonly sales = new Sales()
  readonly tools = new Tools()
  readonly delegations: Delegations
  readonly bound: RoomWorks
  readonly mail: Mail
  /** Used only in the feed. */
  readonly ledgerIndex = new LedgerIndex()
  readonly market = new Market()
  readonly hooks = new Hooks()
  readonly oauth: OauthRecords
  readonly limitGrants = new LimitGrants()
  readonly subscriptions = new IdentitySubscriptions()
  readonly threadFlags: ThreadFlags
  readonly moderation: BoardModeration
  /** Built from the other parts when a reader first needs it; not in snapshots. */
  readonly threads: Threads
  readonly #role: Role
  /** In the order in which snapshots store them. */
  readonly #parts: readonly Projection[]
  readonly #handlers = new Map<string, Projection>()

  constructor(board = new Board(), role: Role = 'deciding', book = new LogBook()) {
    this.#role = role
    this.board = board
    this.changes = new Changes(board.events)
    this.book = book
    this.marks = new PostMarks(this)
    this.rules = new Rules(this)
    this.people = new People(this)
    this.direct = new Direct(this, this.marks)
    this.documents = new Documents(this)
    this.blobs = new Blobs(this, this.marks)
    this.receivers = new Receivers(this)
    this.delegations = new Delegations(this)
    this.bound = new RoomWorks(this, this.marks, this.blobs)
    this.mail = new Mail(this, role, (work) => this.market.find(work))
    this.oauth = new OauthRecords(this)
    this.threadFlags = new ThreadFlags(this)
    this.moderation = new BoardModeration(role)
    this.threads = new Threads(this, this.marks, this.rules, this.threadFlags)
    this.#parts = [
      this.marks,
      this.rules,
      this.people,
      this.direct,
      this.documents,
      this.blobs,
      this.receivers,
      this.tools,
      this.delegations,
      // Deciders need to know which works are bound to which room; the feed has what they recorded of it.
      role === 'deciding' ? this.bound : this.ledgerIndex,
      this.market,
      this.mail,
      this.hooks,
      this.oauth,
      this.calls,
      this.sales,
      this.limitGrants,
      this.subscriptions,
      this.threadFlags,
      this.moderation,
    ]
    for (const part of this.#parts) {
      for (const op of Object.keys(part.acts)) {
        if (this.#handlers.has(op)) throw new Error(`two parts of the state apply ${op}`)
        this.#handlers.set(op, part)
      }
    }
  }

  /** Applies one record; `key` is the 16-byte id of the command that caused it. */
  apply(record: BoardRecord, key: Uint8Array, place: Place): void {
    this.#checkKnown(record, place)
    this.board.apply(record, key, place)
    const from: RecordPlace = { ...place, id: key }
    if (record.type === RecordType.act) {
      // Applies what the decider of this operation recorded.
      this.#handlers.get(record.op)!.acts[record.op]!(record as FactRecord<never>, from)
      for (const part of this.#parts) part.onAct?.(record, from)
      return
    }
    const { board, changes } = this
    if (record.type === RecordType.event) {
      const slot = board.events.find(key)
      // A new version is reported as a change of its original, by the part that tracks versions.
      if (record.original === undefined && this.notifiesOf(board.roomList[board.events.room(slot)]!))
        changes.posted(slot)
      for (const part of this.#parts) part.onEvent?.(record, slot, from)
    } else if (record.type === RecordType.roomCreated) {
      const room = board.rooms.get(record.room)!.number
      changes.add('room.created', { position: place.change, room, slot: nowhere, subject: '', at: record.at })
    }
  }

  notifiesOf({ visibility }: Pick<Room, 'visibility'>): boolean {
    return this.#role === 'reading' || visibility === 'private'
  }

  /** Refuses a record from a newer release before any of it is applied. */
  #checkKnown(record: BoardRecord, { shard, seq }: Place): void {
    const isKnown = record.type === RecordType.act ? this.#handlers.has(record.op) : recordTypes.has(record.type)
    if (isKnown) return
    const what = record.type === RecordType.act ? `is an act ${record.op}` : `is a record of type ${record.type}`
    throw new NewerFormat(`frame ${seq} of shard ${shard}`, what)
  }

  /** The actor that decides for the event, document, blob or receiver with this id (32 hex), if it is here. */
  actorOf(id: string): string | undefined {
    const slot = this.board.events.find(Buffer.from(id, 'hex'))
    if (slot !== none) return this.board.roomList[this.board.events.room(slot)]!.name
    for (const part of this.#parts) {
      const actor = part.actorOf?.(id)
      if (actor !== undefined) return actor
    }
    return undefined
  }

  /** The identity that made the event, document or blob with this id (32 hex), if it is here. */
  makerOf(id: string): string | undefined {
    const { events, authors } = this.board
    const slot = events.find(Buffer.from(id, 'hex'))
    if (slot !== none) return authors.idOf(events.author(slot))
    return this.blobs.find(id)?.author ?? this.documents.find(id)?.owner
  }

  /** `more`: whatever else the thread needs to continue; anything that msgpack can hold. */
  pack(more: unknown, columns = new Columns()): Image {
    const parts = this.#parts.map((part) => part.pack(columns))
    const packed: More = [this.changes.pack(columns), parts, this.book.pack(), more]
    return { bytes: packBoard(this.board, packed, columns), columns: columns.all }
  }

  /** Undefined if the bytes have another format, or the shelf lacks a part that they refer to. */
  static unpack(
    image: Image,
    role: Role = 'deciding',
    keeping: Keeping = {},
  ): { state: State; more: unknown; columns: Columns } | undefined {
    const columns = new Columns(image.columns)
    const kept = unpackBoard(image.bytes, columns, keeping)
    if (kept === undefined) return undefined
    const [changes, parts, book, more] = kept.more as More
    const state = new State(kept.board, role, new LogBook(book))
    if (parts.length !== state.#parts.length) return undefined
    state.changes.restore(changes as never, columns)
    for (const [n, part] of state.#parts.entries()) part.restore(parts[n] as never, columns)
    return { state, more, columns }
  }
}
