/**
 * A disk in memory that loses what was not synced when its power is cut, and fails on command.
 *
 * It promises exactly what storage/disk.ts says: bytes are durable after a sync of their file, names after one of their directory. A cut
 * may also tear writes in flight: some of those since the last sync survive, in any order, the last of them in part; and of the name
 * changes, which a file system journals, a prefix survives.
 */
import { dirname, join, resolve } from 'node:path'
import { type Disk, type DiskFile, DiskFull, type OpenMode, SyncFailed } from '../../storage/disk.ts'

/** The power went off at this operation: nothing after it happens. */
export class PowerLost extends Error {
  override readonly name = 'PowerLost'
}

type Change = { readonly bytes: Uint8Array; readonly position: number } | { readonly size: number }

/** A growing byte buffer. */
class Content {
  #bytes = Buffer.alloc(256)
  length = 0

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.length)
  }

  apply(change: Change): void {
    if ('size' in change) {
      this.#bytes.fill(0, Math.min(change.size, this.length), this.length)
      this.#grow(change.size)
      this.length = change.size
      return
    }
    const end = change.position + change.bytes.length
    this.#grow(end)
    this.#bytes.set(change.bytes, change.position)
    this.length = Math.max(this.length, end)
  }

  #grow(length: number): void {
    if (length > this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes], 2 * length)
  }
}

/** A file, independent of its names. */
class Inode {
  readonly mode: number
  readonly now = new Content()
  readonly durable = new Content()
  /** Not durable yet, in order. */
  readonly pending: Change[] = []
  #durableChanges = 0

  constructor(mode: number) {
    this.mode = mode
  }

  /** A file with these bytes, all of them durable. */
  static of(mode: number, bytes: Uint8Array): Inode {
    const made = new Inode(mode)
    for (const content of [made.now, made.durable]) content.apply({ bytes: Uint8Array.from(bytes), position: 0 })
    return made
  }

  change(change: Change): void {
    this.now.apply(change)
    this.pending.push(change)
  }

  /** The total number of changes so far. */
  get changes(): number {
    return this.#durableChanges + this.pending.length
  }

  /** The changes up to this one are durable. */
  makeDurable(through: number): void {
    const settled = this.pending.splice(0, Math.max(0, through - this.#durableChanges))
    for (const change of settled) this.durable.apply(change)
    this.#durableChanges += settled.length
  }
}

/** The operations that a fault can hit, in files of each kind. */
type Operation = 'create' | 'write' | 'truncate' | 'sync' | 'names' | 'rename' | 'remove' | 'read' | 'directory'
type FaultName = 'cut' | 'sync fails' | 'write fails' | 'read fails' | 'full'

/** The kind of a file, so that faults can be counted. */
function kindOfFile(path: string): string {
  const kinds: readonly (readonly [RegExp, string])[] = [
    [/\.mark(\.tmp)?$/, 'mark'],
    [/lost\+tail/, 'lost tail'],
    [/snapshots?(\/|$)/, 'snapshot'],
    [/\/log\/nodes/, 'tree'],
    [/\/log\/.*\.idx/, 'log index'],
    [/\/log(\/.*\.log.*)?$/, 'log journal'],
    [/\/shard-\d+\/.*\.idx/, 'shard index'],
    [/\/shard-\d+(\/.*\.log.*)?$/, 'shard journal'],
    [/\/blobs/, 'attachment'],
  ]
  return kinds.find(([pattern]) => pattern.test(path))?.[1] ?? 'board'
}

/** Faults that hit, and operations that could have been hit. */
export class FaultPoints {
  readonly seen = new Map<string, number>()
  readonly hits = new Map<string, number>()
  readonly #kinds = new Map<string, string>()

  /** The name of the point. */
  countPoint(operation: Operation, path: string): string {
    const point = `${operation} · ${this.#kindOf(path)}`
    count(this.seen, point)
    return point
  }

  countFault(fault: FaultName, operation: Operation, path: string): void {
    count(this.hits, `${fault} · ${operation} · ${this.#kindOf(path)}`)
  }

  #kindOf(path: string): string {
    const known = this.#kinds.get(path) ?? kindOfFile(path)
    this.#kinds.set(path, known)
    return known
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

export type MemoryDiskOptions = {
  /** Runs the end of a background sync, `slowMs` later than on a fast disk. */
  readonly soon: (callback: () => void, slowMs: number) => void
  /** A number from 0 up to, and not including, `below`. */
  readonly randomBelow: (below: number) => number
}

/** A copy of all files, such as a backup. */
export type FilesCopy = ReadonlyMap<string, { readonly mode: number; readonly bytes: Buffer }>

type Renaming = { readonly directory: string; readonly name: string; readonly inode: Inode | undefined }

const infinity = Number.POSITIVE_INFINITY

export class MemoryDisk implements Disk {
  readonly descriptorsMax = infinity
  /** So that everything that can prefetch does so here. */
  readonly readsAreSlow = () => true
  readonly points = new FaultPoints()
  readonly #options: MemoryDiskOptions
  #names = new Map<string, Inode>()
  #durableNames = new Map<string, Inode>()
  /** Changes of names that are not durable yet, in order. */
  #renamings: Renaming[] = []
  readonly #directories = new Set<string>(['/'])
  /** Modifying operations until the power goes off. */
  #operationsLeft = infinity
  #cutPoint: { readonly point: string; readonly operations: number } | undefined
  #temporaryFiles = 0
  /** Grows with each process that used the disk: pending callbacks of an earlier one are dropped. */
  #life = 0
  syncs = 0
  /** After this many further syncs one fails, once; likewise for writes and reads. */
  syncFailsAfter = infinity
  writeFailsAfter = infinity
  readFailsAfter = infinity
  /** The next read at this point fails; `points` has the names. */
  readFailsAt: string | undefined
  /** Bytes that files may still grow by. */
  bytesLeft = infinity
  /** The maximum delay of a sync in milliseconds, beyond that of a fast disk. */
  slowMs = 0

  constructor(options: MemoryDiskOptions) {
    this.#options = options
  }

  /** The power goes off after this many modifying operations. */
  cutAfter(operations: number): void {
    this.#operationsLeft = operations
  }

  /** The power goes off this many operations after the next one at this point; `points` has the names. */
  cutAt(point: string, operations: number): void {
    this.#cutPoint = { point, operations }
  }

  get isPowerOff(): boolean {
    return this.#operationsLeft <= 0
  }

  /** No fault is pending. */
  heal(): void {
    this.#operationsLeft = infinity
    this.#cutPoint = undefined
    this.syncFailsAfter = infinity
    this.writeFailsAfter = infinity
    this.readFailsAfter = infinity
    this.readFailsAt = undefined
    this.bytesLeft = infinity
    this.slowMs = 0
  }

  /** The process that used it has ended; its writes stay. */
  endLife(): void {
    this.#life++
  }

  /** The power is back: what was not durable is gone, except for writes in flight that arrived. */
  restore(): void {
    this.endLife()
    this.heal()
    const { randomBelow } = this.#options
    const arrived = this.#renamings.splice(0)
    for (const { name, inode } of arrived.slice(0, randomBelow(arrived.length + 1)))
      if (inode === undefined) this.#durableNames.delete(name)
      else this.#durableNames.set(name, inode)
    const survivors = new Set(this.#durableNames.values())
    const reborn = new Map<Inode, Inode>()
    for (const inode of survivors) {
      for (const change of inode.pending.splice(0)) {
        if (randomBelow(2) === 0) continue
        const isWhole = 'size' in change || randomBelow(2) === 0
        inode.durable.apply(
          isWhole ? change : { ...change, bytes: change.bytes.subarray(0, randomBelow(change.bytes.length + 1)) },
        )
      }
      reborn.set(inode, Inode.of(inode.mode, inode.durable.bytes))
    }
    for (const [path, inode] of this.#durableNames) this.#durableNames.set(path, reborn.get(inode)!)
    this.#names = new Map(this.#durableNames)
  }

  /** All files below a directory as they are now. */
  copy(directory: string): FilesCopy {
    const inside = [...this.#names].filter(([name]) => name.startsWith(`${directory}/`))
    return new Map(inside.map(([name, { mode, now }]) => [name, { mode, bytes: Buffer.from(now.bytes) }]))
  }

  /** Whether a power cut now would leave a file with these bytes. */
  hasDurably(bytes: Buffer): boolean {
    return [...this.#durableNames.values()].some(({ durable }) => durable.bytes.includes(bytes))
  }

  /** Replaces all files below a directory. */
  replaceFiles(directory: string, copy: FilesCopy): void {
    this.#renamings = []
    for (const name of [...this.#names.keys()]) if (name.startsWith(`${directory}/`)) this.#names.delete(name)
    for (const [name, { mode, bytes }] of copy) {
      this.#names.set(name, Inode.of(mode, bytes))
      for (let above = dirname(name); !this.#directories.has(above); above = dirname(above))
        this.#directories.add(above)
    }
    this.#durableNames = new Map(this.#names)
  }

  /** Flips one bit in place, without a write. */
  flipBit(path: string, byte: number, bit: number): void {
    const { now, durable } = this.#names.get(resolve(path)) ?? throwMissing(path)
    for (const { bytes } of [now, durable]) if (byte < bytes.length) bytes[byte]! ^= 1 << bit
  }

  openFile(path: string, mode: OpenMode): DiskFile {
    const full = resolve(path)
    const there = this.#names.get(full)
    if (mode !== 'create') return new OpenFile(this, path, there ?? throwMissing(path))
    this.countOperation('create', path)
    if (there !== undefined) throw systemError('EEXIST', 'open', path)
    if (!this.#directories.has(dirname(full))) throwMissing(path)
    const made = new Inode(0o100600)
    this.#setName(full, made)
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
    const { now } = this.#names.get(resolve(path)) ?? throwMissing(path)
    this.countRead(path)
    return Buffer.from(now.bytes)
  }

  fileExists(path: string): boolean {
    const full = resolve(path)
    return this.#names.has(full) || this.#directories.has(full)
  }

  stat(path: string) {
    const full = resolve(path)
    if (this.#directories.has(full)) return { isFile: false, mode: 0o40700 }
    return { isFile: true, mode: (this.#names.get(full) ?? throwMissing(path)).mode }
  }

  listFiles(directory: string): string[] {
    return this.#list(directory, this.#names.keys())
  }

  listDirectories(directory: string): string[] {
    return this.#list(directory, this.#directories)
  }

  makeDirectory(path: string): void {
    const missing: string[] = []
    for (let each = resolve(path); !this.#directories.has(each); each = dirname(each)) missing.unshift(each)
    for (const each of missing) {
      this.countOperation('directory', path)
      this.#directories.add(each)
    }
  }

  syncDirectory(path: string): void {
    this.countOperation('names', path)
    this.countSync(path, 'names')
    const directory = resolve(path)
    this.#renamings = this.#renamings.filter((each) => each.directory !== directory)
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
    const temporary = `${path}.${++this.#temporaryFiles}.tmp`
    try {
      this.#write(temporary, bytes, 0o600)
      await this.#pause()
      this.renameDurable(temporary, path)
    } catch (error) {
      this.removeUnsynced(temporary)
      throw error
    }
  }

  async replaceLater(path: string, text: string): Promise<void> {
    this.#write(`${path}.tmp`, Buffer.from(text), 0o600)
    await this.#pause()
    this.#rename(`${path}.tmp`, path)
  }

  renameDurable(from: string, to: string): void {
    this.#rename(from, to)
    this.syncDirectory(dirname(to))
    if (dirname(from) !== dirname(to)) this.syncDirectory(dirname(from))
  }

  removeUnsynced(path: string): void {
    this.countOperation('remove', path)
    this.#setName(resolve(path), undefined)
  }

  removeFile(path: string): void {
    this.removeUnsynced(path)
    this.syncDirectory(dirname(path))
  }

  removeDirectory(path: string): void {
    this.countOperation('remove', path)
    const within = (each: string): boolean => each === resolve(path) || each.startsWith(`${resolve(path)}/`)
    for (const name of [...this.#names.keys()]) if (within(name)) this.#setName(name, undefined)
    for (const name of [...this.#directories]) if (within(name)) this.#directories.delete(name)
  }

  freeBytes(): number {
    return Math.min(Math.max(0, this.bytesLeft), Number.MAX_SAFE_INTEGER)
  }

  /** One more modifying operation. */
  countOperation(operation: Operation, path: string): void {
    const point = this.points.countPoint(operation, path)
    if (point === this.#cutPoint?.point) {
      this.#operationsLeft = Math.min(this.#operationsLeft, 1 + this.#cutPoint.operations)
      this.#cutPoint = undefined
    }
    this.#operationsLeft--
    if (this.#operationsLeft === 0) this.points.countFault('cut', operation, path)
    if (this.#operationsLeft < 0) throw new PowerLost('the power went off')
  }

  /** One more sync. Throws SyncFailed. */
  countSync(path: string, operation: 'sync' | 'names' = 'sync'): void {
    this.syncs++
    if (this.syncFailsAfter-- > 0) return
    this.syncFailsAfter = infinity
    this.points.countFault('sync fails', operation, path)
    throw new SyncFailed(path, systemError('EIO', 'fsync', path))
  }

  /** One more write, by which its file grows by this much: returns the part that is done, and why not all. */
  countWrite(path: string, bytes: Uint8Array, growth: number): { readonly done: Uint8Array; readonly failed?: Error } {
    if (this.writeFailsAfter-- <= 0) {
      this.writeFailsAfter = infinity
      this.points.countFault('write fails', 'write', path)
      const half = bytes.subarray(0, this.#options.randomBelow(bytes.length + 1))
      return { done: half, failed: systemError('EIO', 'write', path) }
    }
    if (growth > this.bytesLeft) {
      this.points.countFault('full', 'write', path)
      return { done: bytes.subarray(0, 0), failed: new DiskFull(path, systemError('ENOSPC', 'write', path)) }
    }
    this.bytesLeft -= Math.max(0, growth)
    return { done: bytes }
  }

  /** One more read. Throws EIO. */
  countRead(path: string): void {
    const point = this.points.countPoint('read', path)
    if (point !== this.readFailsAt && this.readFailsAfter-- > 0) return
    this.readFailsAfter = infinity
    this.readFailsAt = undefined
    this.points.countFault('read fails', 'read', path)
    throw systemError('EIO', 'read', path)
  }

  /** Calls back in this process, unless it has ended. */
  later(callback: () => void): void {
    const life = this.#life
    const slowMs = this.slowMs === 0 ? 0 : this.#options.randomBelow(this.slowMs)
    this.#options.soon(() => {
      if (this.#life === life) callback()
    }, slowMs)
  }

  #pause(): Promise<void> {
    return new Promise((go) => this.later(go))
  }

  #write(path: string, bytes: Uint8Array, mode: number): void {
    this.countOperation('write', path)
    const full = resolve(path)
    if (!this.#directories.has(dirname(full))) throwMissing(path)
    const inode = new Inode(0o100000 | mode)
    const { done, failed } = this.countWrite(path, bytes, bytes.length)
    if (failed !== undefined) throw failed
    inode.change({ bytes: Buffer.from(done), position: 0 })
    this.#setName(full, inode)
    this.countOperation('sync', path)
    this.countSync(path)
    inode.makeDurable(inode.changes)
  }

  #rename(from: string, to: string): void {
    this.countOperation('rename', to)
    const inode = this.#names.get(resolve(from)) ?? throwMissing(from)
    // A single change: no name is ever without its file in between.
    this.#setName(resolve(to), inode)
    this.#setName(resolve(from), undefined)
  }

  #setName(name: string, inode: Inode | undefined): void {
    if (inode === undefined) this.#names.delete(name)
    else this.#names.set(name, inode)
    this.#renamings.push({ directory: dirname(name), name, inode })
  }

  #list(directory: string, names: Iterable<string>): string[] {
    const full = resolve(directory)
    if (!this.#directories.has(full)) throwMissing(directory)
    const found = [...names].filter((name) => name !== '/' && dirname(name) === full)
    return found.map((name) => name.slice(join(full, '/').length)).sort()
  }
}

class OpenFile implements DiskFile {
  readonly path: string
  readonly #disk: MemoryDisk
  readonly #inode: Inode
  #failure: SyncFailed | undefined
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
    const { bytes } = this.#open.now
    this.#disk.countRead(this.path)
    return bytes.copy(into, 0, position, position + into.length)
  }

  prefetch(): void {}

  writeAt(bytes: Uint8Array, position: number): void {
    const inode = this.#writable
    const { done, failed } = this.#disk.countWrite(this.path, bytes, position + bytes.length - inode.now.length)
    // Data written when the power goes off may arrive.
    inode.change({ bytes: Uint8Array.from(done), position })
    this.#disk.countOperation('write', this.path)
    if (failed !== undefined) throw failed
  }

  sync(): void {
    const inode = this.#writable
    this.#disk.countOperation('sync', this.path)
    this.#finishSync(inode, inode.changes)
    if (this.#failure !== undefined) throw this.#failure
  }

  syncLater(done: (failed?: SyncFailed) => void): void {
    const inode = this.#writable
    const covered = inode.changes
    this.#disk.later(() => {
      if (this.#disk.isPowerOff) return
      this.#disk.countOperation('sync', this.path)
      this.#finishSync(inode, covered)
      done(this.#failure)
    })
  }

  truncate(size: number): void {
    this.#writable.change({ size })
    this.#disk.countOperation('truncate', this.path)
  }

  close(): void {
    this.#isClosed = true
  }

  #finishSync(inode: Inode, covered: number): void {
    try {
      this.#disk.countSync(this.path)
      inode.makeDurable(covered)
    } catch (error) {
      if (!(error instanceof SyncFailed)) throw error
      this.#failure = error
    }
  }

  get #open(): Inode {
    if (this.#isClosed) throw new Error(`${this.path} is closed`)
    return this.#inode
  }

  /** Must not be poisoned: it is about to be changed. */
  get #writable(): Inode {
    if (this.#failure !== undefined) throw this.#failure
    return this.#open
  }
}

function throwMissing(path: string): never {
  throw systemError('ENOENT', 'open', path)
}

/** As Node's own errors of system calls. */
function systemError(code: 'ENOENT' | 'EEXIST' | 'EIO' | 'ENOSPC', syscall: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code, syscall })
}
