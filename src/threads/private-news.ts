/**
 * What a shard reports of its private rooms: for whom something may be new, what the followers of a tail read, and who follows
 * no longer because they may not read the room any more. Sent after the turn in which it happened is on disk, at most once a turn.
 *
 * Readers are named, rooms are not: the shard knows who follows and who is a member.
 */

import type { Room } from '../../actors/records/board.ts'
import { type Change, nowhere } from '../../actors/records/changes.ts'
import { mayWrite } from '../../actors/rooms/roles.ts'
import type { Carried, Requested } from '../../actors/works/delivery.ts'
import { liveText } from '../follow/live.ts'
import { isForReader } from '../follow/rows.ts'
import type { TailFormat } from '../follow/stream.ts'
import type { ReadContext } from '../reads/read.ts'
import type { CarrierTell } from '../works/carrier.ts'
import { unlessFaulty } from './entry.ts'

export type ShardTell =
  /** A reader (identity id) waits for news. */
  | readonly ['follow', reader: string]
  | readonly ['unfollow', reader: string]
  /** A member reads the tail of a room. */
  | readonly ['watch', room: string, format: TailFormat, reader: string]
  | readonly ['unwatch', room: string, format: TailFormat, reader: string]
  /** What identities are called: all that is known when the shard begins, then each that is new. */
  | readonly ['handles', known: readonly (readonly [identity: string, handle: string])[]]
  /** What happens here is delivered to hooks: report when anything private does. */
  | readonly ['deliver', on: boolean]
  | CarrierTell

export type ShardNews =
  /** Letters to actors of other shards; their answers come back as they are. */
  | readonly ['carry', letters: readonly Carried[]]
  /** All letters that an earlier life of this shard has left are delivered, or cannot be now. */
  | readonly ['at rest']
  /** The request of a work was posted, or has a new version. */
  | readonly ['requested', requested: Requested]
  | readonly ['heard', readers: readonly string[]]
  | readonly ['live', room: string, format: TailFormat, position: number, bytes: Uint8Array]
  /** These readers may not read the room any more. */
  | readonly ['left', room: string, readers: readonly string[]]
  /** No post names these files any more: of redacted ones, whose texts have left the disk. */
  | readonly ['unneeded', files: readonly (readonly [room: string, sha256: string])[]]
  /** Something private happened. */
  | readonly ['moved']

type Watched = { readonly formats: Map<TailFormat, number>; readonly readers: Map<string, number> }

export class PrivateNews {
  readonly #context: ReadContext
  readonly #tell: (news: ShardNews) => void
  readonly #followed = new Set<string>()
  readonly #watched = new Map<string, Watched>()
  #delivers = false
  /** Changes sent so far. */
  #row: number

  constructor(context: ReadContext, tell: (news: ShardNews) => void) {
    this.#context = context
    this.#tell = tell
    this.#row = context.state.changes.count
  }

  hear(told: Exclude<ShardTell, readonly ['handles' | 'carried' | 'release', ...unknown[]]>): void {
    if (told[0] === 'follow') this.#followed.add(told[1])
    else if (told[0] === 'unfollow') this.#followed.delete(told[1])
    else if (told[0] === 'deliver') this.#delivers = told[1]
    else this.#watch(told)
  }

  /** A turn is on disk. `acted`: the rooms and other actors in which something but posts was done. */
  afterTurn(acted: ReadonlySet<string>): void {
    const { changes, board } = this.#context.state
    if (this.#delivers && this.#hasPrivate()) this.#tell(['moved'])
    if (this.#followed.size + this.#watched.size === 0) {
      this.#row = changes.count
      return
    }
    const heard = new Set<string>()
    for (; this.#row < changes.count; this.#row++) {
      const change = changes.at(this.#row)
      const room = change.room === nowhere ? undefined : board.roomList[change.room]
      if (room?.visibility === 'public') continue
      for (const reader of this.#candidates(change, room))
        if (isForReader(this.#context.state, change, reader)) heard.add(reader)
      const watched = room === undefined ? undefined : this.#watched.get(room.name)
      for (const format of watched?.formats.keys() ?? []) {
        const text = unlessFaulty(() => liveText(this.#context, change, format))
        if (text !== undefined) this.#tell(['live', room!.name, format, change.position, Buffer.from(text)])
      }
    }
    if (heard.size > 0) this.#tell(['heard', [...heard]])
    for (const name of acted) this.#checkReaders(name)
  }

  /** Is any change of this turn one that the feed does not tell of? */
  #hasPrivate(): boolean {
    const { changes, board } = this.#context.state
    for (let row = this.#row; row < changes.count; row++) {
      const { room, kind } = changes.at(row)
      if (kind === 'receiver.item' || (room !== nowhere && board.roomList[room]!.visibility === 'private')) return true
    }
    return false
  }

  /** Followed readers who may be concerned: of a room whichever is fewer, its members or all. */
  #candidates({ kind, subject }: Change, room: Room | undefined): Iterable<string> {
    if (kind === 'receiver.item') {
      const owner = this.#context.state.receivers.find(subject)?.owner
      return owner !== undefined && this.#followed.has(owner) ? [owner] : []
    }
    if (room === undefined) return []
    if (room.members.size >= this.#followed.size) return this.#followed
    const inside = room.owner === undefined ? [...room.members] : [room.owner, ...room.members]
    return inside.filter((reader) => this.#followed.has(reader))
  }

  #checkReaders(name: string): void {
    const readers = this.#watched.get(name)?.readers
    const room = this.#context.board.rooms.get(name)
    if (readers === undefined || room === undefined) return
    const left = [...readers.keys()].filter((reader) => !mayWrite(room, reader))
    if (left.length > 0) this.#tell(['left', name, left])
  }

  #watch([kind, room, format, reader]: Extract<ShardTell, readonly ['watch' | 'unwatch', ...unknown[]]>): void {
    const by = kind === 'watch' ? 1 : -1
    const watched = this.#watched.get(room) ?? { formats: new Map(), readers: new Map() }
    this.#watched.set(room, watched)
    add(watched.formats, format, by)
    add(watched.readers, reader, by)
    if (watched.readers.size === 0) this.#watched.delete(room)
  }
}

function add<Key>(counts: Map<Key, number>, key: Key, by: number): void {
  const count = (counts.get(key) ?? 0) + by
  if (count > 0) counts.set(key, count)
  else counts.delete(key)
}
