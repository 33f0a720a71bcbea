/**
 * The identities of a board, in columns of typed arrays: id and key (32 bytes each), first and last seen, posts, and rank by
 * latest activity. About 120 bytes per identity, and 4 to 8 per post.
 */

import { ByVersion, type PackedOrder } from './by-version.ts'
import { bytesOf, type Columns, grown, type Kept } from './columns.ts'
import { IdTable, none, type PackedIds } from './id-table.ts'
import { type PackedSlotLists, SlotLists, type Slots } from './slot-lists.ts'

const idBytes = 32
const initialAuthors = 64

export type PackedAuthors = readonly [
  ids: PackedIds,
  keys: Kept,
  createdAt: Kept,
  lastSeen: Kept,
  posts: PackedSlotLists,
  order: PackedOrder,
  handles: readonly (readonly [author: number, handle: string])[],
]

/** A live view of an identity: later reads may return newer values. */
export class Author {
  readonly #authors: Authors
  readonly number: number

  constructor(authors: Authors, number: number) {
    this.#authors = authors
    this.number = number
  }

  /** 64 hex. */
  get id(): string {
    return this.#authors.idOf(this.number)
  }

  /** base64url of the public key. */
  get key(): string {
    return this.#authors.keyOf(this.number)
  }

  set key(key: string) {
    this.#authors.setKey(this.number, Buffer.from(key, 'base64url'))
  }

  get handle(): string | undefined {
    return this.#authors.handles.get(this.number)
  }

  set handle(handle: string | undefined) {
    if (handle === undefined) this.#authors.handles.delete(this.number)
    else this.#authors.handles.set(this.number, handle)
  }

  /** Unix seconds. */
  get createdAt(): number {
    return this.#authors.createdAt(this.number)
  }

  get lastSeen(): number {
    return this.#authors.lastSeen(this.number)
  }

  /** Number of the newest change by this identity. */
  get version(): number {
    return this.#authors.versionOf(this.number)
  }

  /** Slots of its posts, oldest first. */
  get events(): Slots {
    return this.#authors.posts.of(this.number)
  }
}

export class Authors {
  readonly posts = new SlotLists()
  /** By number. */
  readonly handles = new Map<number, string>()
  readonly #ids = new IdTable(idBytes)
  readonly #order = new ByVersion()
  #keys = Buffer.alloc(initialAuthors * idBytes)
  #createdAt = new Uint32Array(initialAuthors)
  #lastSeen = new Uint32Array(initialAuthors)

  get size(): number {
    return this.#ids.count
  }

  /** `id`: 64 hex; any other text finds nothing. */
  get(id: string): Author | undefined {
    const number = this.#find(id)
    return number === none ? undefined : new Author(this, number)
  }

  has(id: string): boolean {
    return this.#find(id) !== none
  }

  /** The identity with this number, which must exist. */
  at(number: number): Author {
    return new Author(this, number)
  }

  idOf(number: number): string {
    return this.#ids.hex(number)
  }

  keyOf(number: number): string {
    return this.#keys.toString('base64url', number * idBytes, (number + 1) * idBytes)
  }

  setKey(number: number, key: Uint8Array): void {
    this.#keys.set(key, number * idBytes)
  }

  createdAt(number: number): number {
    return this.#createdAt[number]!
  }

  lastSeen(number: number): number {
    return this.#lastSeen[number]!
  }

  versionOf(number: number): number {
    return this.#order.versionOf(number)
  }

  /** Records activity at `at` (Unix seconds) in change `version`, and adds the identity at its first. Returns its number. */
  seen(id: Uint8Array, key: Uint8Array, at: number, version: number): number {
    let number = this.#ids.find(id)
    if (number === none) {
      number = this.#ids.add(id)
      if (number === this.#createdAt.length) this.#grow()
      this.posts.add()
      this.setKey(number, key)
      this.#createdAt[number] = at
    }
    this.#lastSeen[number] = at
    this.#order.touch(number, version)
    return number
  }

  /** Identities with a version below `below`, latest activity first. */
  *below(below: number): Generator<Author> {
    for (const number of this.#order.below(below)) yield new Author(this, number)
  }

  pack(columns: Columns): PackedAuthors {
    return [
      this.#ids.pack(columns),
      columns.put(this.#keys.subarray(0, this.size * idBytes)),
      columns.putGrowing(bytesOf(this.#createdAt, this.size)),
      columns.put(bytesOf(this.#lastSeen, this.size)),
      this.posts.pack(columns),
      this.#order.pack(columns),
      [...this.handles],
    ]
  }

  /** Restores what `pack` returned. */
  restore([ids, keys, createdAt, lastSeen, posts, order, handles]: PackedAuthors, columns: Columns): void {
    this.#ids.restore(ids, columns)
    this.#keys = Buffer.from(columns.take(keys, initialAuthors * idBytes).buffer)
    this.#createdAt = new Uint32Array(columns.take(createdAt, initialAuthors * 4).buffer)
    this.#lastSeen = new Uint32Array(columns.take(lastSeen, initialAuthors * 4).buffer)
    this.posts.restore(posts, columns)
    this.#order.restore(order, columns)
    for (const [number, handle] of handles) this.handles.set(number, handle)
  }

  #find(id: string): number {
    const bytes = Buffer.from(id, 'hex')
    return bytes.length === idBytes && id.length === 2 * idBytes ? this.#ids.find(bytes) : none
  }

  #grow(): void {
    const room = this.#createdAt.length * 2
    this.#createdAt = grown(this.#createdAt, new Uint32Array(room))
    this.#lastSeen = grown(this.#lastSeen, new Uint32Array(room))
    const keys = Buffer.alloc(room * idBytes)
    keys.set(this.#keys)
    this.#keys = keys
  }
}
