/**
 * The keys of sign-ins: the only user keys that this board holds. Each may do only what its delegation allows.
 *
 * They are in one file, mode 0600, outside of journals, snapshots and exports. Leave it out of backups: users can sign in again. Slots of
 * 64 bytes:
 *
 *   4   "BSK1"
 *   16  id of the delegation
 *   32  seed of its Ed25519 key
 *   12  zero
 *
 * A key is on disk before its delegation exists, and is overwritten with zeros in place when the delegation ends.
 */
import { type KeyObject, sign } from 'node:crypto'
import { dirname } from 'node:path'
import { type Disk, type DiskFile, NewerFormat } from '../../storage/disk.ts'
import { privateKeyOf, rawPublicKeyOf } from '../../storage/ed25519.ts'

const slotBytes = 64
const mark = Buffer.from('BSK1')
const endOfSeed = 52

export type SignInKey = { readonly publicKey: string; readonly sign: (bytes: Buffer) => Buffer }

export class SignInKeys {
  readonly #disk: Disk
  readonly #path: string
  #file: DiskFile | undefined
  readonly #keys = new Map<string, SignInKey & { readonly slot: number }>()
  readonly #free: number[] = []
  /** Stored keys whose delegation may or may not come into being. */
  readonly #unsettled = new Set<string>()
  #slots = 0

  constructor(disk: Disk, path: string) {
    this.#disk = disk
    this.#path = path
    if (disk.fileExists(path)) this.#read()
  }

  get(delegation: string): SignInKey | undefined {
    return this.#keys.get(delegation)
  }

  get count(): number {
    return this.#keys.size
  }

  /** Stores a key; it is durable when this returns. `settle` or `erase` must follow. */
  keep(delegation: string, seed: Buffer): void {
    this.#unsettled.add(delegation)
    const slot = this.#free.pop() ?? this.#slots++
    const bytes = Buffer.concat([mark, Buffer.from(delegation, 'hex'), seed], slotBytes)
    this.#write(slot, bytes)
    bytes.fill(0)
    this.#keys.set(delegation, { ...keyOf(seed), slot })
  }

  /** Call when its delegation exists. */
  settle(delegation: string): void {
    this.#unsettled.delete(delegation)
  }

  erase(delegation: string): void {
    this.#unsettled.delete(delegation)
    const found = this.#keys.get(delegation)
    if (found === undefined) return
    this.#keys.delete(delegation)
    this.#write(found.slot, Buffer.alloc(slotBytes))
    this.#free.push(found.slot)
  }

  /** Erases the keys of delegations that have ended. */
  retain(isLive: (delegation: string) => boolean): void {
    for (const delegation of [...this.#keys.keys()])
      if (!this.#unsettled.has(delegation) && !isLive(delegation)) this.erase(delegation)
  }

  #read(): void {
    this.#file = this.#disk.openFile(this.#path, 'write')
    this.#slots = Math.ceil(this.#file.size() / slotBytes)
    for (let slot = 0; slot < this.#slots; slot++) {
      const bytes = Buffer.alloc(slotBytes)
      this.#file.readAt(bytes, slot * slotBytes)
      if (!bytes.subarray(0, 4).equals(mark)) {
        if (bytes.toString('latin1', 0, 3) === 'BSK')
          throw new NewerFormat(this.#path, `has a key of form ${bytes.toString('hex', 3, 4)}`)
        this.#free.push(slot)
        continue
      }
      const seed = Buffer.from(bytes.subarray(20, endOfSeed))
      this.#keys.set(bytes.toString('hex', 4, 20), { ...keyOf(seed), slot })
      bytes.fill(0)
      seed.fill(0)
    }
  }

  #write(slot: number, bytes: Buffer): void {
    const isNew = this.#file === undefined
    this.#file ??= this.#disk.openFile(this.#path, 'create')
    this.#file.writeAt(bytes, slot * slotBytes)
    this.#file.sync()
    if (isNew) this.#disk.syncDirectory(dirname(this.#path))
  }
}

/** A slot whose bytes are neither zeros nor a key of this form. */
export type DamagedSlot = {
  readonly slot: number
  /** As a start would call it; then a start is refused. */
  readonly isOfNewerForm: boolean
}

/** What differs from what is written in the file of the keys; only reads it. */
export function damagedSlots(disk: Disk, path: string): DamagedSlot[] {
  if (!disk.fileExists(path)) return []
  const bytes = disk.readWhole(path)
  const found: DamagedSlot[] = []
  for (let slot = 0; slot * slotBytes < bytes.length; slot++) {
    const own = bytes.subarray(slot * slotBytes, (slot + 1) * slotBytes)
    const isMarked = own.subarray(0, mark.length).equals(mark)
    const isEmpty = own.subarray(isMarked ? endOfSeed : 0).every((byte) => byte === 0)
    if (own.length === slotBytes && isEmpty) continue
    found.push({ slot, isOfNewerForm: !isMarked && own.toString('latin1', 0, 3) === 'BSK' })
  }
  bytes.fill(0)
  return found
}

/** Empties a slot, as if its delegation had ended. */
export function emptySlot(disk: Disk, path: string, slot: number): void {
  const file = disk.openFile(path, 'write')
  file.writeAt(Buffer.alloc(slotBytes), slot * slotBytes)
  file.sync()
  file.close()
}

function keyOf(seed: Buffer): SignInKey {
  const key: KeyObject = privateKeyOf(seed)
  return {
    publicKey: rawPublicKeyOf(key).toString('base64url'),
    sign: (bytes) => sign(null, bytes, key),
  }
}
