/**
 * A disk in memory that loses what was not synced when its power is cut.
 *
 * It promises what storage/disk.ts says and not a bit more: bytes are durable after a sync of their file, names after one of
 * their directory. A cut may also tear what was on its way: some of the writes since the last sync, in any order, the last of
 * them in part.
 */
import { dirname, join, resolve } from 'node:path'
import type { Disk, DiskFile, OpenMode, SyncFailed } from '../../storage/disk.ts'

/** The power went off at this operation: nothing after it happens. */
export class PowerLost extends Error {
  override readonly name = 'PowerLost'
}

type Change = { readonly bytes: Uint8Array; readonly position: number } | { readonly size: number }

/** Bytes that grow. */
class Content {
  #bytes = Buffer.alloc(256)
  length = 0

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.length)
  }

  apply(change: Change): void {
    if ('size' in change) {
      this.#bytes.fill(0, Math.min(change.size, this.length), this.length)
      this.#reach(change.size)
      this.length = change.size
      return
    }
    const end = change.position + change.bytes.length
    this.#reach(end)
    this.#bytes.set(change.bytes, change.position)
    this.length = Math.max(this.length, end)
  }

  #reach(length: number): void {
    if (length > this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes], 2 * length)
  }
}

/** A file, whatever its names are. */
class Inode {
  readonly mode: number
  readonly now = new Content()
  readonly durable = new Content()
  /** Not durable yet, in order. */
  readonly pending: Change[] = []
  #settled = 0

  constructor(mode: number) {
    this.mode = mode
  }

  change(change: Change): void {
    this.now.apply(change)
    this.pending.push(change)
  }

  /** How many changes there ever were. */
  get changes(): number {
    return this.#settled + this.pending.length
  }

  /** The changes up to this one of all are on the platters. */
  settle(through: number): void {
    const settled = this.pending.splice(0, Math.max(0, through - this.#settled))
    for (const change of settled) this.durable.apply(change)
    this.#settled += settled.length
  }
}

export type MemoryDiskOptions = {
  /** Runs the end of a sync that others do not wait for. */
  readonly soon: (callback: () => void) => void
  /** A number from 0 up to, and not including, `below`. */
  readonly chance: (below: number) => number
}

export class MemoryDisk implements Disk {
  readonly #options: MemoryDiskOptions
  #names = new Map<string, Inode>()
  #durableNames = new Map<string, Inode>()
  readonly #directories = new Set<string>(['/'])
  /** Operations that change something, until the power goes off. */
  #operationsLeft = Number.POSITIVE_INFINITY
  #temporary = 0
  syncs = 0

  constructor(options: MemoryDiskOptions) {
    this.#options = options
  }

  /** The power goes off after so many operations that change something. */
  cutAfter(operations: number): void {
    this.#operationsLeft = operations
  }

  get isDark(): boolean {
    return this.#operationsLeft <= 0
  }

  /** The power is back: what was not durable is gone, but for what was on its way and arrived. */
  restore(): void {
    this.#operationsLeft = Number.POSITIVE_INFINITY
    const { chance } = this.#options
    const survivors = new Set(this.#durableNames.values())
    const names = new Map<string, Inode>()
    const reborn = new Map<Inode, Inode>()
    for (const inode of survivors) {
      for (const change of inode.pending.splice(0)) {
        if (chance(2) === 0) continue
        const isWhole = 'size' in change || chance(2) === 0
        inode.durable.apply(
          isWhole ? change : { ...change, bytes: change.bytes.subarray(0, chance(change.bytes.length + 1)) },
        )
      }
      const fresh = new Inode(inode.mode)
      for (const content of [fresh.now, fresh.durable])
        content.apply({ bytes: Buffer.from(inode.durable.bytes), position: 0 })
      reborn.set(inode, fresh)
    }
    for (const [path, inode] of this.#durableNames) names.set(path, reborn.get(inode)!)
    this.#names = names
    this.#durableNames = new Map(names)
  }

  openFile(path: string, mode: OpenMode): DiskFile {
    const full = resolve(path)
    const there = this.#names.get(full)
    if (mode !== 'create') return new OpenFile(this, path, there ?? missing(path))
    this.spend()
    if (there !== undefined) throw systemError('EEXIST', path)
    if (!this.#directories.has(dirname(full))) missing(path)
    const made = new Inode(0o100600)
    this.#names.set(full, made)
    return new OpenFile(this, path, made)
  }

  async openForReading(path: string) {
    const inode = this.#names.get(resolve(path))
    if (inode === undefined) return undefined
    const { bytes } = inode.now
    return {
      size: bytes.length,
      read: async (into: Uint8Array, position: number) => bytes.copy(into, 0, position, position + into.length),
      close: async () => {},
    }
  }

  readWhole(path: string): Buffer {
    return Buffer.from((this.#names.get(resolve(path)) ?? missing(path)).now.bytes)
  }

  fileExists(path: string): boolean {
    const full = resolve(path)
    return this.#names.has(full) || this.#directories.has(full)
  }

  look(path: string) {
    const full = resolve(path)
    if (this.#directories.has(full)) return { isFile: false, mode: 0o40700 }
    return { isFile: true, mode: (this.#names.get(full) ?? missing(path)).mode }
  }

  listFiles(directory: string): string[] {
    return this.#listed(directory, this.#names.keys())
  }

  listDirectories(directory: string): string[] {
    return this.#listed(directory, this.#directories)
  }

  makeDirectory(path: string): void {
    for (let each = resolve(path); !this.#directories.has(each); each = dirname(each)) {
      this.spend()
      this.#directories.add(each)
    }
  }

  syncDirectory(path: string): void {
    this.spend()
    this.syncs++
    const directory = resolve(path)
    for (const name of this.#durableNames.keys())
      if (dirname(name) === directory && !this.#names.has(name)) this.#durableNames.delete(name)
    for (const [name, inode] of this.#names) if (dirname(name) === directory) this.#durableNames.set(name, inode)
  }

  writeAtomic(path: string, bytes: Uint8Array | readonly Uint8Array[], mode = 0o600): void {
    this.#write(`${path}.tmp`, bytes instanceof Uint8Array ? bytes : Buffer.concat(bytes), mode)
    this.renameDurable(`${path}.tmp`, path)
  }

  async writeAtomicLater(path: string, bytes: Uint8Array): Promise<void> {
    this.makeDirectory(dirname(path))
    const temporary = `${path}.${++this.#temporary}.tmp`
    this.#write(temporary, bytes, 0o600)
    await this.#moment()
    this.renameDurable(temporary, path)
  }

  async replaceLater(path: string, text: string): Promise<void> {
    this.#write(`${path}.tmp`, Buffer.from(text), 0o600)
    await this.#moment()
    this.#rename(`${path}.tmp`, path)
  }

  renameDurable(from: string, to: string): void {
    this.#rename(from, to)
    this.syncDirectory(dirname(to))
    if (dirname(from) !== dirname(to)) this.syncDirectory(dirname(from))
  }

  removeUnsynced(path: string): void {
    this.spend()
    this.#names.delete(resolve(path))
  }

  removeFile(path: string): void {
    this.removeUnsynced(path)
    this.syncDirectory(dirname(path))
  }

  removeDirectory(path: string): void {
    this.spend()
    const within = (each: string): boolean => each === resolve(path) || each.startsWith(`${resolve(path)}/`)
    for (const name of [...this.#names.keys()]) if (within(name)) this.#names.delete(name)
    for (const name of [...this.#directories]) if (within(name)) this.#directories.delete(name)
  }

  freeBytes(): number {
    return Number.MAX_SAFE_INTEGER
  }

  /** One more operation that changes something. */
  spend(): void {
    this.#operationsLeft--
    if (this.#operationsLeft < 0) throw new PowerLost('the power went off')
  }

  later(callback: () => void): void {
    this.#options.soon(callback)
  }

  #moment(): Promise<void> {
    return new Promise((go) => this.#options.soon(go))
  }

  #write(path: string, bytes: Uint8Array, mode: number): void {
    this.spend()
    const full = resolve(path)
    if (!this.#directories.has(dirname(full))) missing(path)
    const inode = new Inode(0o100000 | mode)
    inode.change({ bytes: Buffer.from(bytes), position: 0 })
    this.#names.set(full, inode)
    this.spend()
    this.syncs++
    inode.settle(inode.changes)
  }

  #rename(from: string, to: string): void {
    this.spend()
    const inode = this.#names.get(resolve(from)) ?? missing(from)
    this.#names.delete(resolve(from))
    this.#names.set(resolve(to), inode)
  }

  #listed(directory: string, names: Iterable<string>): string[] {
    const full = resolve(directory)
    if (!this.#directories.has(full)) missing(directory)
    const found = [...names].filter((name) => name !== '/' && dirname(name) === full)
    return found.map((name) => name.slice(join(full, '/').length)).sort()
  }
}

class OpenFile implements DiskFile {
  readonly path: string
  readonly #disk: MemoryDisk
  readonly #inode: Inode
  #isClosed = false

  constructor(disk: MemoryDisk, path: string, inode: Inode) {
    this.#disk = disk
    this.path = path
    this.#inode = inode
  }

  size(): number {
    return this.#open.now.length
  }

  readAt(into: Uint8Array, position: number): number {
    return this.#open.now.bytes.copy(into, 0, position, position + into.length)
  }

  writeAt(bytes: Uint8Array, position: number): void {
    const inode = this.#open
    // What is written when the power goes off may arrive.
    inode.change({ bytes: Uint8Array.from(bytes), position })
    this.#disk.spend()
  }

  sync(): void {
    const inode = this.#open
    this.#disk.spend()
    this.#disk.syncs++
    inode.settle(inode.changes)
  }

  syncLater(done: (failed?: SyncFailed) => void): void {
    const inode = this.#open
    const covered = inode.changes
    this.#disk.later(() => {
      if (this.#disk.isDark) return
      this.#disk.spend()
      this.#disk.syncs++
      inode.settle(covered)
      done()
    })
  }

  truncate(size: number): void {
    this.#open.change({ size })
    this.#disk.spend()
  }

  close(): void {
    this.#isClosed = true
  }

  get #open(): Inode {
    if (this.#isClosed) throw new Error(`${this.path} is closed`)
    return this.#inode
  }
}

function missing(path: string): never {
  throw systemError('ENOENT', path)
}

function systemError(code: 'ENOENT' | 'EEXIST', path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code })
}
