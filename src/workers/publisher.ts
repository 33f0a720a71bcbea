/**
 * Tracks what is followed in this thread, and pushes to the followers: texts for tails, and rows for long polls. The feed publishes public
 * changes and a shard private ones, using the same table and formats.
 */

import { type Change, nowhere, type Room } from '../../actors/records/board.ts'
import { mayWrite } from '../../actors/rooms/policy.ts'
import { blockedBy } from '../conversations/blocks.ts'
import { liveText } from '../follow/live.ts'
import { isForReader, type PushedRow, privateRows, publicRows } from '../follow/rows.ts'
import type { TailFormat } from '../follow/stream.ts'
import type { Blocked, FollowTell, Live, Pushed, Topic } from '../follow/topics.ts'
import { type ReadContext, strictContext } from '../reads/read.ts'
import { type Report, unlessFaulty } from './thread.ts'

/** Rows per push: a waiting request takes no more. */
const rowsMax = 100
const bytesMax = 256 * 1024
/** Stands in for the text of a change that tails do not show. */
const notShown = Symbol('notShown')

export class Publisher {
  readonly #report: Report
  readonly #context: ReadContext
  readonly #send: (live: Live) => void
  /** room -> format -> readers */
  readonly #tails = new Map<string, Map<TailFormat, Set<string>>>()
  /** Private room -> readers who follow their membership. */
  readonly #members = new Map<string, Set<string>>()
  readonly #rooms = new Set<string>()
  readonly #readers = new Set<string>()
  /** Followed readers who have new rows. */
  readonly #concerned = new Set<string>()
  #rows: PushedRow[] = []
  #bytes = 0
  #isWhole = true

  constructor(report: Report, context: ReadContext, send: (live: Live) => void) {
    this.#report = report
    this.#context = strictContext(context)
    this.#send = send
  }

  get isFollowed(): boolean {
    return this.#tails.size + this.#members.size + this.#rooms.size + this.#readers.size > 0
  }

  receive([kind, topic]: FollowTell): void {
    if (topic[0] === 'tail') return this.#tail(kind, topic)
    if (topic[0] === 'member') return this.#member(kind, topic)
    const names = topic[0] === 'room' ? this.#rooms : this.#readers
    if (kind === 'follow') names.add(topic[1])
    else names.delete(topic[1])
  }

  /** Handles a change: sends the texts, and keeps the rows for the next push. */
  publish(change: Change): void {
    const { board, visibility } = this.#context
    const room = change.room === nowhere ? undefined : board.roomList[change.room]!
    // A shard has public rooms too, but the feed reports those.
    if (room !== undefined && room.visibility !== visibility) return
    for (const format of (room && this.#tails.get(room.name)?.keys()) ?? []) {
      const text = unlessFaulty(this.#report, () => liveText(this.#context, change, format) ?? notShown)
      if (text !== notShown) this.#send(['live', room!.name, format, change.position, Buffer.from(text ?? '')])
    }
    if (visibility === 'private') return this.#collectPrivate(change, room)
    if (this.#carries(room?.name ?? '')) this.#collect(() => publicRows(this.#context, change))
  }

  /** Which of these public rooms have their rows pushed; [''] means all. */
  followed(rooms: Iterable<string>): readonly string[] {
    return this.#rooms.has('') ? [''] : [...rooms].filter((room) => this.#rooms.has(room))
  }

  /** The rows since the last call. */
  take(): Pushed {
    const pushed = { through: this.#context.board.change, rows: this.#rows, isWhole: this.#isWhole }
    this.#rows = []
    this.#bytes = 0
    this.#isWhole = true
    return pushed
  }

  /** The readers who have rows in the next push of a shard. */
  concerned(): Blocked {
    const found = [...this.#concerned].map((reader) => [reader, blockedBy(this.#context.state, reader)] as const)
    this.#concerned.clear()
    return found
  }

  /** Followers of a private room who may no longer read it. */
  left(name: string): readonly string[] {
    const room = this.#context.board.rooms.get(name)
    const sets = [...(this.#tails.get(name)?.values() ?? []), this.#members.get(name) ?? []]
    if (room === undefined) return []
    return [...new Set(sets.flatMap((readers) => [...readers]))].filter((reader) => !mayWrite(room, reader))
  }

  #member(kind: FollowTell[0], [, room, reader]: Extract<Topic, readonly ['member', ...unknown[]]>): void {
    const readers = this.#members.get(room) ?? new Set<string>()
    if (kind === 'follow') {
      this.#members.set(room, readers.add(reader))
      return
    }
    readers.delete(reader)
    if (readers.size === 0) this.#members.delete(room)
  }

  #tail(kind: FollowTell[0], [, room, format, reader]: Extract<Topic, readonly ['tail', ...unknown[]]>): void {
    const formats = this.#tails.get(room) ?? new Map<TailFormat, Set<string>>()
    const readers = formats.get(format) ?? new Set<string>()
    if (kind === 'follow') {
      this.#tails.set(room, formats.set(format, readers.add(reader)))
      return
    }
    readers.delete(reader)
    if (readers.size === 0) formats.delete(format)
    if (formats.size === 0) this.#tails.delete(room)
  }

  #carries(room: string): boolean {
    return this.#rooms.has('') || this.#rooms.has(room)
  }

  #collectPrivate(change: Change, room: Room | undefined): void {
    if (this.#readers.size === 0) return
    const { state } = this.#context
    const readers = [...this.#candidates(change, room)].filter((reader) => isForReader(state, change, reader))
    if (readers.length === 0) return
    for (const reader of readers) this.#concerned.add(reader)
    this.#collect(() => privateRows(this.#context, change, readers))
  }

  #collect(make: () => readonly PushedRow[]): void {
    if (!this.#isWhole) return
    const rows = unlessFaulty(this.#report, make)
    this.#isWhole = rows !== undefined && this.#rows.length + rows.length <= rowsMax && this.#bytes < bytesMax
    if (!this.#isWhole) this.#rows = []
    for (const row of (this.#isWhole && rows) || []) {
      this.#bytes += row.json.length
      this.#rows.push(row)
    }
  }

  /** Followed readers who may be concerned. For a room, iterates over its members or all followed readers, whichever is smaller. */
  #candidates({ kind, subject }: Change, room: Room | undefined): Iterable<string> {
    if (kind === 'receiver.item') {
      const owner = this.#context.state.receivers.find(subject)?.owner
      return owner !== undefined && this.#readers.has(owner) ? [owner] : []
    }
    if (room === undefined) return []
    if (room.members.size >= this.#readers.size) return this.#readers
    const inside = room.owner === undefined ? [...room.members] : [room.owner, ...room.members]
    return inside.filter((reader) => this.#readers.has(reader))
  }
}
