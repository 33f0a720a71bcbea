/**
 * Conversations and inboxes: for each identity, the events that reply to it, are addressed to it, or mention it.
 *
 * A conversation is the private room of exactly its members; this part holds who opened it and what the others answered. Until
 * one of them has accepted (with an answer, or a post of their own), its opener may only send a little. Declining and blocking
 * are silent: the opener sees the same as from a user who never answered.
 *
 * An inbox is a list of slots, 4 bytes an item. If a version addresses a user whom no earlier version did, that version's own
 * slot is in the list; whether the newest version still does is checked when the text is read. Handles are known in the feed
 * but not in the shard of a private room: there, a mention is stored by handle, and found by the user who has it.
 */

import { hex } from '../kernel/hex.ts'
import type { PostMarks } from '../posts/marks.ts'
import type { Room } from '../records/board.ts'
import type { Columns, Kept } from '../records/columns.ts'
import type { Core, Projection, RecordPlace } from '../records/core.ts'
import { SlotList } from '../records/event-index.ts'
import { IdTable, none, type PackedIds } from '../records/id-table.ts'
import { commandIn, type FactRecord, type PostRecord } from '../records/record.ts'
import { has, type PackedSlotLists, SlotLists, type Slots } from '../records/slot-lists.ts'

export type Answer = 'accept' | 'decline' | 'block'

export type Conversation = {
  readonly room: string
  readonly kind: 'dm' | 'group'
  /** Identity id. */
  readonly opener: string
  readonly openedAt: number
  /** Number of the record in its journal; 0 if it comes from a snapshot of an older release. */
  readonly order: number
  /** The answers of members, by identity id. */
  readonly answers: Map<string, Answer>
  /** A member other than the opener has accepted; this never changes back. */
  accepted: boolean
  /** Messages from the opener before that. */
  sent: number
}

/** Bytes of an identity id. */
const idBytes = 32

/** Mentions counted per event. */
const mentionsMax = 8

type Packed = readonly [
  conversations: readonly (readonly [
    room: string,
    kind: 'dm' | 'group',
    opener: string,
    openedAt: number,
    answers: readonly (readonly [string, Answer])[],
    accepted: boolean,
    sent: number,
    order?: number,
  ])[],
  inboxes: readonly [readers: PackedIds, slots: PackedSlotLists],
  mentions: readonly (readonly [handle: string, slots: Kept])[],
]

export class Direct implements Projection {
  readonly acts: Projection['acts'] = {
    'conversation.open': (act, place) => this.#opened(act, place),
    'conversation.respond': (act) => this.#answered(act),
  }
  readonly #core: Core
  readonly #marks: PostMarks
  readonly #conversations = new Map<string, Conversation>()
  /** Identities that have an inbox. */
  readonly #readers = new IdTable(idBytes)
  /** By the number of the reader. */
  readonly #inboxes = new SlotLists()
  /** Mentions in private rooms, by handle. */
  readonly #mentions = new Map<string, SlotList>()

  constructor(core: Core, marks: PostMarks) {
    this.#core = core
    this.#marks = marks
  }

  conversation(room: string): Conversation | undefined {
    return this.#conversations.get(room)
  }

  conversationsOf(identity: string): Conversation[] {
    return this.#core.board.roomsOf(identity).flatMap(({ name }) => this.#conversations.get(name) ?? [])
  }

  /** Slots of the events for this identity's inbox, oldest first. */
  inbox(identity: string): Slots | undefined {
    const reader = this.#readers.find(Buffer.from(identity, 'hex'))
    return reader === none ? undefined : this.#inboxes.of(reader)
  }

  /** Slots of the events in private rooms that mention a handle, oldest first. */
  privateMentions(handle: string): Slots | undefined {
    return this.#mentions.get(handle)
  }

  onEvent(event: PostRecord, slot: number): void {
    const room = this.#core.board.roomList[this.#core.board.events.room(slot)]!
    const author = hex(event.author)
    // The board's notices about a work do not accept a conversation on behalf of a member.
    if (event.via !== 'board') this.#posted(room, author)
    if (!this.#core.notifiesOf(room)) return
    const said = addresseesOf(event)
    const identities = new Set<string>(said.to === '' ? [] : [said.to])
    const target = event.reply === undefined ? none : this.#core.board.events.find(event.reply)
    if (target !== none) identities.add(this.#core.board.authors.idOf(this.#core.board.events.author(target)))
    for (const handle of said.handles) {
      if (room.visibility === 'private') this.#mentioned(handle, slot)
      else {
        const holder = this.#core.board.handles.get(handle)
        if (holder !== undefined) identities.add(holder)
      }
    }
    identities.delete(author)
    for (const identity of identities) this.#addToInbox(Buffer.from(identity, 'hex'), slot)
  }

  #addToInbox(identity: Buffer, slot: number): void {
    if (identity.length !== idBytes) return
    let reader = this.#readers.find(identity)
    if (reader === none) {
      reader = this.#readers.add(identity)
      this.#inboxes.add()
    }
    if (!this.#isIn(this.#inboxes.of(reader), slot)) this.#inboxes.push(reader, slot)
  }

  #mentioned(handle: string, slot: number): void {
    const list = this.#mentions.get(handle) ?? new SlotList()
    this.#mentions.set(handle, list)
    if (!this.#isIn(list, slot)) list.push(slot)
  }

  /** Whether the event is in the list already. It is listed once, under its first version that concerns the owner of the list. */
  #isIn(list: Slots, slot: number): boolean {
    const original = this.#marks.original(slot)
    return slot !== original && [original, ...this.#marks.edits(original)].some((each) => has(list, each))
  }

  pack(columns: Columns): Packed {
    return [
      [...this.#conversations.values()].map((each) => [
        each.room,
        each.kind,
        each.opener,
        each.openedAt,
        [...each.answers],
        each.accepted,
        each.sent,
        each.order,
      ]),
      [this.#readers.pack(columns), this.#inboxes.pack(columns)],
      [...this.#mentions].map(([handle, slots]) => [handle, slots.pack(columns)]),
    ]
  }

  restore([conversations, inboxes, mentions]: Packed, columns: Columns): void {
    for (const [room, kind, opener, openedAt, answers, accepted, sent, order = 0] of conversations)
      this.#conversations.set(room, { room, kind, opener, openedAt, order, answers: new Map(answers), accepted, sent })
    this.#readers.restore(inboxes[0], columns)
    this.#inboxes.restore(inboxes[1], columns)
    for (const [handle, slots] of mentions) this.#mentions.set(handle, SlotList.of(slots, columns))
  }

  #opened({ room, author, at, facts }: FactRecord<{ kind: 'dm' | 'group' }>, { seq }: RecordPlace): void {
    if (this.#conversations.has(room)) return
    const { kind } = facts
    this.#conversations.set(room, {
      room,
      kind,
      opener: hex(author),
      openedAt: at,
      order: seq,
      answers: new Map(),
      accepted: false,
      sent: 0,
    })
  }

  #answered({ room, author, facts }: FactRecord<{ answer: Answer }>): void {
    const conversation = this.#conversations.get(room)!
    const { answer } = facts
    conversation.answers.set(hex(author), answer)
    if (answer === 'accept' && conversation.opener !== hex(author)) conversation.accepted = true
  }

  /** Posting to a conversation accepts it. */
  #posted({ name }: Room, author: string): void {
    const conversation = this.#conversations.get(name)
    if (conversation === undefined) return
    if (conversation.opener !== author) {
      conversation.accepted = true
      conversation.answers.set(author, 'accept')
    } else if (!conversation.accepted) conversation.sent++
  }
}

/** A handle after an @ that does not follow a word: `mail@host` has none. */
const mention = /(?<![a-zA-Z0-9_.@/-])@([a-z0-9][a-z0-9_-]{1,31})(?![a-z0-9_-])/g

type Addressees = { readonly to: string; readonly handles: ReadonlySet<string> }
const nobody: Addressees = { to: '', handles: new Set() }

/** Whom the signed bytes address and mention. Most do neither, and are not even parsed. */
export function addresseesOf({ by, to }: Pick<PostRecord, 'by' | 'to'>): Addressees {
  const bytes = Buffer.from(by.signed.buffer, by.signed.byteOffset, by.signed.byteLength)
  // Inside a string the quotes would be escaped, so this is the field itself or nothing.
  if (!bytes.includes('"to":"') && !bytes.includes(0x40)) return nobody
  const command = commandIn(bytes)
  return { to: to === undefined ? (command.to ?? '') : hex(to), handles: mentionsIn(command.text ?? '') }
}

/** The first few handles that a text mentions. */
export function mentionsIn(text: string): ReadonlySet<string> {
  const found = [...text.matchAll(mention)].map(([, handle]) => handle!)
  return new Set(found.slice(0, mentionsMax))
}
