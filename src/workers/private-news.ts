/**
 * A shard's notifications about its private rooms: what happened that followers want, and who lost access to a room. Sent after the turn in
 * which it happened is on disk, at most once per turn.
 */
import type { RoomFile } from '../../actors/attachments/attachments.ts'
import { nowhere } from '../../actors/records/board.ts'
import type { Carried, Requested } from '../../actors/works/delivery.ts'
import type { Blocked, FollowTell, Live, Pushed } from '../follow/topics.ts'
import type { ReadContext } from '../reads/read.ts'
import type { CarrierTell } from '../works/carrier.ts'
import { Publisher } from './publisher.ts'
import type { Report } from './thread.ts'

export type ShardTell =
  | FollowTell
  /** Handles of identities: all that are known when the shard starts, then each new one. */
  | readonly ['handles', known: readonly (readonly [identity: string, handle: string])[]]
  /** Whether hooks need deliveries from here: if so, report when anything private happens. */
  | readonly ['deliver', on: boolean]
  | CarrierTell

export type ShardNews =
  /** Letters to actors of other shards. Their answers are returned unchanged. */
  | readonly ['carry', letters: readonly Carried[]]
  /** All letters left by an earlier run of this shard have been delivered, or cannot be for now. */
  | readonly ['at rest']
  /** A work's request was posted, or has a new version. */
  | readonly ['requested', requested: Requested]
  /** Rows for the readers in `concerned`; each comes with whom that reader has blocked. */
  | readonly ['rows', Pushed, concerned: Blocked]
  | Live
  /** These readers may no longer read the room. */
  | readonly ['left', room: string, readers: readonly string[]]
  /** No remaining post names these files: the texts of the redacted posts that did have left the disk. */
  | readonly ['unneeded', files: readonly RoomFile[]]
  /** Something private happened. */
  | readonly ['moved']

export class PrivateNews {
  readonly #context: ReadContext
  readonly #tell: (news: ShardNews) => void
  readonly #publisher: Publisher
  #delivers = false
  /** Changes sent so far. */
  #row: number

  constructor(report: Report, context: ReadContext, tell: (news: ShardNews) => void) {
    this.#context = context
    this.#tell = tell
    this.#publisher = new Publisher(report, context, tell)
    this.#row = context.state.changes.count
  }

  receive(message: FollowTell | readonly ['deliver', on: boolean]): void {
    if (message[0] === 'deliver') this.#delivers = message[1]
    else this.#publisher.receive(message)
  }

  /** A turn is on disk. `acted`: the rooms and other actors that had operations other than posts. */
  afterTurn(acted: ReadonlySet<string>): void {
    const { changes } = this.#context.state
    if (this.#delivers && this.#hasPrivate()) this.#tell(['moved'])
    if (!this.#publisher.isFollowed) {
      this.#row = changes.count
      return
    }
    for (; this.#row < changes.count; this.#row++) this.#publisher.publish(changes.at(this.#row))
    const concerned = this.#publisher.concerned()
    if (concerned.length > 0) this.#tell(['rows', this.#publisher.take(), concerned])
    for (const name of acted) {
      const left = this.#publisher.left(name)
      if (left.length > 0) this.#tell(['left', name, left])
    }
  }

  /** Whether any change of this turn is one that the feed does not report. */
  #hasPrivate(): boolean {
    const { changes, board } = this.#context.state
    for (let row = this.#row; row < changes.count; row++) {
      const { room, kind } = changes.at(row)
      if (kind === 'receiver.item' || (room !== nowhere && board.roomList[room]!.visibility === 'private')) return true
    }
    return false
  }
}
