/**
 * Attachments (blobs): which exist, who uploaded them, in which room, and which posts show them. Their bytes are in files
 * (storage/blob-files.ts).
 *
 * A blob is identified by the event id of its `blob.put` and permanently belongs to one room; only posts in that room may name
 * it. It is served until it is deleted, or until no post that names it is served. A blob that was never named by a post is
 * served too.
 */

import { hex } from '../kernel/hex.ts'
import type { Room } from '../records/board.ts'
import type { Core, Projection } from '../records/core.ts'
import type { FactRecord, PostRecord } from '../records/record.ts'

export type Blob = {
  readonly id: string
  readonly room: string
  /** Identity id of its uploader. */
  readonly author: string
  /** Hash of the bytes: the name of their file inside the room's directory. */
  readonly sha256: string
  readonly size: number
  readonly filename: string
  readonly mediaType: string
  /** The bytes are an image of the type in `mediaType`, so a browser may show them. */
  readonly isImage: boolean
  /** Unix seconds. */
  readonly at: number
  /** Why it was deleted; undefined if it is not. */
  deleted: string | undefined
  /** Slots of the events that name it. */
  readonly events: number[]
}

/** Facts of `blob.put`, as in its act. */
export type BlobFacts = {
  readonly sha256: Uint8Array
  readonly size: number
  readonly filename: string
  readonly media_type: string
  readonly is_image: boolean
}

/** Facts of `blob.delete`. */
export type DeletedFacts = {
  readonly target: string
  readonly reason: string
  /** The file that is no longer needed; '' if another blob of the room has the same bytes. */
  readonly file: string
  /** It was not deleted by its uploader. */
  readonly moderated?: true
}

/** A blob as a reader sees it. A deleted one has no name and type; `url` is absent in private rooms. */
export type BlobView = {
  readonly id: string
  readonly filename?: string
  readonly media_type?: string
  readonly size: number
  readonly sha256: string
  readonly url?: string
  readonly gone?: 'deleted'
  readonly reason?: string
}

type BlobFault = { readonly code: 'not_found' | 'invalid_field' | 'forbidden'; readonly message: string }

/** A file: its room, and the SHA-256 of its bytes. */
export type RoomFile = readonly [room: string, sha256: string]

/** What happened to an event, by its slot: why its text is not served at `now` (Unix seconds), and its redaction, which is permanent. */
type Fates = {
  gone(slot: number, now: number): object | undefined
  redactionOf(slot: number): object | undefined
}

type Packed = readonly (readonly [
  id: string,
  room: string,
  author: string,
  sha256: string,
  size: number,
  filename: string,
  mediaType: string,
  isImage: boolean,
  at: number,
  deleted: string | null,
  events: readonly number[],
])[]

export class Blobs implements Projection {
  readonly acts: Projection['acts'] = {
    'blob.put': (act, { id }) => this.#put(act, id),
    'blob.delete': (act) => this.#delete(act),
    'blob.remove': (act) => this.#delete(act),
  }
  readonly #core: Core
  readonly #fates: Fates
  #deleted = 0
  readonly #byId = new Map<string, Blob>()
  readonly #byRoom = new Map<string, Blob[]>()
  /** Bytes of existing blobs by identity. */
  readonly #bytes = new Map<string, number>()

  constructor(core: Core, fates: Fates) {
    this.#core = core
    this.#fates = fates
  }

  /** Number of existing blobs. */
  get count(): number {
    return this.#byId.size - this.#deleted
  }

  find(id: string): Blob | undefined {
    return this.#byId.get(id)
  }

  /**
   * Why a post of `author` in `room` may not name these blobs at `now` (Unix seconds), or undefined if it may. Only its
   * uploader may attach a file to posts, because a file is removed with the last post that shows it.
   */
  attachable(room: string, author: string, ids: readonly string[], now: number): BlobFault | undefined {
    if (new Set(ids).size < ids.length)
      return { code: 'invalid_field', message: 'attachments must name each blob once: leave the repeated one out' }
    for (const id of ids) {
      const blob = this.#byId.get(id)
      if (blob?.room !== room || this.goneReason(blob, now) !== undefined)
        return {
          code: 'not_found',
          message: `there is no blob ${id} in room ${room}: first upload the file there with blob.put`,
        }
      if (blob.author !== author)
        return {
          code: 'forbidden',
          message: `blob ${id} was uploaded by someone else: upload the file yourself with blob.put, or name its post`,
        }
    }
    return undefined
  }

  /** How a post that names the blob shows it; undefined if no blob has this id. */
  viewOf(id: string): BlobView | undefined {
    const blob = this.#byId.get(id)
    if (blob === undefined) return undefined
    const { size, sha256, deleted } = blob
    if (deleted !== undefined)
      return { id, size, sha256, gone: 'deleted', ...(deleted === '' ? {} : { reason: deleted }) }
    return {
      id,
      filename: blob.filename,
      media_type: blob.mediaType,
      size,
      sha256,
      ...(this.roomOf(blob).visibility === 'public' ? { url: `/a/${id}` } : {}),
    }
  }

  /** Why its bytes are not served, or undefined if they are. */
  goneReason({ deleted, events }: Blob, now: number): string | undefined {
    if (deleted !== undefined) return deleted === '' ? 'it was deleted' : `it was deleted: ${deleted}`
    const isServed = events.length === 0 || events.some((slot) => this.#fates.gone(slot, now) === undefined)
    return isServed ? undefined : 'no post that it is attached to is shown any more'
  }

  roomOf(blob: Blob): Room {
    return this.#core.board.rooms.get(blob.room)!
  }

  /** Bytes used here by the existing blobs of an identity. */
  bytesOf(identity: string): number {
    return this.#bytes.get(identity) ?? 0
  }

  /** SHA-256 of every file that must be retained for this room. */
  heldIn(room: string): Set<string> {
    const held = (this.#byRoom.get(room) ?? []).filter(
      ({ deleted, events }) =>
        deleted === undefined &&
        (events.length === 0 || events.some((slot) => this.#fates.redactionOf(slot) === undefined)),
    )
    return new Set(held.map(({ sha256 }) => sha256))
  }

  /** The files that are no longer needed once the texts of the events with these slots are destroyed, each once. */
  unneededAfter(slots: ReadonlySet<number>): RoomFile[] {
    const named = [...this.#byId.values()].filter(({ events }) => events.some((slot) => slots.has(slot)))
    return this.#unneededOf(named.map(({ room, sha256 }) => [room, sha256]))
  }

  /** The files that are no longer needed after these acts, each once. */
  unneededAfterActs(acts: readonly FactRecord[]): RoomFile[] {
    const deletions = acts.filter(({ op }) => op === 'blob.delete' || op === 'blob.remove')
    return this.#unneededOf(deletions.map(({ room, facts }) => [room, this.#byId.get(String(facts.target))!.sha256]))
  }

  #unneededOf(files: readonly RoomFile[]): RoomFile[] {
    const byRoom = new Map<string, Set<string>>()
    for (const [room, sha256] of files) byRoom.set(room, (byRoom.get(room) ?? new Set()).add(sha256))
    return [...byRoom].flatMap(([room, named]) => {
      const held = this.heldIn(room)
      return [...named].filter((sha256) => !held.has(sha256)).map((sha256): RoomFile => [room, sha256])
    })
  }

  /** Names of the rooms that ever had a blob. */
  get rooms(): string[] {
    return [...this.#byRoom.keys()]
  }

  /** Names of the rooms that have a blob with these bytes. */
  roomsHolding(sha256: string): string[] {
    return [...this.#byRoom.keys()].filter((room) => this.standing(room, sha256).length > 0)
  }

  /** The blobs of a room with these bytes that were not deleted. */
  standing(room: string, sha256: string): readonly Blob[] {
    return (this.#byRoom.get(room) ?? []).filter((blob) => blob.sha256 === sha256 && blob.deleted === undefined)
  }

  /** Whether another existing blob in the same room has the same bytes. */
  hasTwin({ id, room, sha256 }: Blob): boolean {
    return this.#byRoom
      .get(room)!
      .some((other) => other.id !== id && other.sha256 === sha256 && other.deleted === undefined)
  }

  actorOf(id: string): string | undefined {
    return this.#byId.get(id)?.room
  }

  onEvent({ blobs = [] }: PostRecord, slot: number): void {
    for (const id of blobs) this.#byId.get(hex(id))!.events.push(slot)
  }

  pack(): Packed {
    return [...this.#byId.values()].map(
      ({ id, room, author, sha256, size, filename, mediaType, isImage, at, deleted, events }) =>
        [id, room, author, sha256, size, filename, mediaType, isImage, at, deleted ?? null, events] as const,
    )
  }

  restore(packed: Packed): void {
    for (const [id, room, author, sha256, size, filename, mediaType, isImage, at, deleted, events] of packed) {
      this.#add({
        id,
        room,
        author,
        sha256,
        size,
        filename,
        mediaType,
        isImage,
        at,
        deleted: deleted ?? undefined,
        events: [...events],
      })
    }
  }

  #put({ room, author, at, facts }: FactRecord<BlobFacts>, id: Uint8Array): void {
    const { sha256, size, filename, media_type, is_image } = facts
    this.#add({
      id: hex(id),
      room,
      author: hex(author),
      sha256: hex(sha256),
      size,
      filename,
      mediaType: media_type,
      isImage: is_image,
      at,
      deleted: undefined,
      events: [],
    })
  }

  #add(blob: Blob): void {
    this.#byId.set(blob.id, blob)
    const others = this.#byRoom.get(blob.room)
    if (others === undefined) this.#byRoom.set(blob.room, [blob])
    else others.push(blob)
    if (blob.deleted === undefined) this.#bytes.set(blob.author, this.bytesOf(blob.author) + blob.size)
    else this.#deleted++
  }

  #delete({ facts }: FactRecord<DeletedFacts>): void {
    const { target, reason } = facts
    const blob = this.#byId.get(target)!
    blob.deleted = reason
    this.#deleted++
    this.#bytes.set(blob.author, this.bytesOf(blob.author) - blob.size)
  }
}
