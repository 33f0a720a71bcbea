/** A disk that fails on command: the machine's files, with faults and a count of the open ones. */
import { type Disk, type DiskFile, DiskFull, SyncFailed } from '../../storage/disk.ts'
import { machineDisk } from '../../storage/machine-disk.ts'

export class FaultyDisk implements Disk {
  writes = 0
  syncs = 0
  /** Files that are open. */
  open = 0
  /** Bytes that may still be written before the disk is full. */
  bytesLeft = Infinity
  /** The next sync fails, and so does every later use of that file. */
  failNextSync = false
  /** The next write fails with this error after half of its bytes. */
  failNextWrite: Error | undefined
  /** After this many further reads of open files, one fails with EIO, or `failures` in a row. */
  readsUntilFailure = Infinity
  failures = 1

  descriptorsMax = machineDisk.descriptorsMax
  /** It is slow, so reads are prefetched. */
  isSlow = false
  /** Prefetches and reads, in order. */
  readonly reads: {
    readonly what: 'soon' | 'read'
    readonly path: string
    readonly from: number
    readonly to: number
  }[] = []

  readonly openFile: Disk['openFile'] = (path, mode) => {
    const file = new FaultyFile(this, machineDisk.openFile(path, mode))
    this.open++
    return file
  }

  readonly readsAreSlow = () => this.isSlow
  readonly openForReading = machineDisk.openForReading
  readonly readWhole = machineDisk.readWhole
  readonly fileExists = machineDisk.fileExists
  readonly stat = machineDisk.stat
  readonly listFiles = machineDisk.listFiles
  readonly listDirectories = machineDisk.listDirectories
  readonly makeDirectory = machineDisk.makeDirectory
  readonly syncDirectory = machineDisk.syncDirectory
  readonly writeAtomic = machineDisk.writeAtomic
  readonly writeAtomicLater = machineDisk.writeAtomicLater
  readonly replaceLater = machineDisk.replaceLater
  readonly renameDurable = machineDisk.renameDurable
  readonly removeUnsynced = machineDisk.removeUnsynced
  readonly removeFile = machineDisk.removeFile
  readonly removeDirectory = machineDisk.removeDirectory
  readonly freeBytes = machineDisk.freeBytes
}

class FaultyFile implements DiskFile {
  readonly path: string
  readonly #disk: FaultyDisk
  readonly #file: DiskFile
  #failure: SyncFailed | undefined
  #closed = false

  constructor(disk: FaultyDisk, file: DiskFile) {
    this.path = file.path
    this.#disk = disk
    this.#file = file
  }

  size(): number {
    return this.#file.size()
  }

  readAt(into: Uint8Array, position: number): number {
    this.#recordRead('read', position, into.length)
    if (this.#disk.readsUntilFailure-- > 0) return this.#file.readAt(into, position)
    this.#disk.readsUntilFailure = --this.#disk.failures > 0 ? 0 : Infinity
    this.#disk.failures = Math.max(1, this.#disk.failures)
    into.fill(0xff)
    throw Object.assign(new Error('EIO: a read failed'), { code: 'EIO' })
  }

  prefetch(position: number, bytes: number): void {
    this.#recordRead('soon', position, bytes)
    this.#file.prefetch(position, bytes)
  }

  #recordRead(what: 'soon' | 'read', from: number, bytes: number): void {
    if (this.#disk.isSlow) this.#disk.reads.push({ what, path: this.path, from, to: from + bytes })
  }

  writeAt(bytes: Uint8Array, position: number): void {
    if (this.#failure) throw this.#failure
    this.#disk.writes++
    const fault = this.#disk.failNextWrite
    if (fault) {
      this.#disk.failNextWrite = undefined
      this.#file.writeAt(bytes.subarray(0, bytes.length >> 1), position)
      throw fault
    }
    const fits = Math.min(bytes.length, this.#disk.bytesLeft)
    this.#file.writeAt(bytes.subarray(0, fits), position)
    this.#disk.bytesLeft -= fits
    if (fits < bytes.length) throw new DiskFull(this.path)
  }

  sync(): void {
    if (this.#failure) throw this.#failure
    this.#disk.syncs++
    if (this.#disk.failNextSync) {
      this.#disk.failNextSync = false
      this.#failure = new SyncFailed(this.path)
      throw this.#failure
    }
    this.#file.sync()
  }

  syncLater(done: (failed?: SyncFailed) => void): void {
    if (this.#failure) throw this.#failure
    this.#disk.syncs++
    if (!this.#disk.failNextSync) return this.#file.syncLater(done)
    this.#disk.failNextSync = false
    const failed = new SyncFailed(this.path)
    this.#failure = failed
    setImmediate(() => done(failed))
  }

  truncate(size: number): void {
    if (this.#failure) throw this.#failure
    this.#file.truncate(size)
  }

  close(): void {
    if (!this.#closed) this.#disk.open--
    this.#closed = true
    this.#file.close()
  }
}
