/**
 * What a shard reports of its private rooms: what happened to those who follow, and who may not read a room any more.
 * Sent after the turn in which it happened is on disk, at most once a turn.
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
  /** For the readers named in `concerned`, with whom they have blocked. */
  | readonly ['rows', Pushed, concerned: Blocked]
  | Live
  /** These readers may not read the room any more. */
  | readonly ['left', room: string, readers: readonly string[]]
  /** No post names these files any more: of redacted ones, whose texts have left the disk. */
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

  hear(told: FollowTell | readonly ['deliver', on: boolean]): void {
    if (told[0] === 'deliver') this.#delivers = told[1]
    else this.#publisher.hear(told)
  }

  /** A turn is on disk. `acted`: the rooms and other actors in which something but posts was done. */
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

  /** Is any change of this turn one that the feed does not tell of? */
  #hasPrivate(): boolean {
    const { changes, board } = this.#context.state
    for (let row = this.#row; row < changes.count; row++) {
      const { room, kind } = changes.at(row)
      if (kind === 'receiver.item' || (room !== nowhere && board.roomList[room]!.visibility === 'private')) return true
    }
    return false
  }
}
