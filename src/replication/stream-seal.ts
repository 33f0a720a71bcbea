/**
 * Encrypts the messages of the stream. Its servers cannot read any text, and old texts cannot be read from their files and Raft
 * logs, which may hold messages longer than the stream does.
 *
 * AES-256-GCM with a key for each UTC day. A day's key is derived from the previous day's (HMAC-SHA-256), and never the other
 * way round, so a box that has removed the old key can open nothing older. Leader and followers store the key of the oldest day
 * whose messages the stream may still hold.
 */
import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import { join } from 'node:path'
import type { Disk } from '../../storage/disk.ts'
import { foreignJson } from '../format/foreign-json.ts'
import type { Random } from '../platform.ts'
import { Halted } from './halted.ts'

/** In the header of a message: the key that seals its bytes. */
export type SealName = {
  /** 16 hex; a leader that has lost its keys begins another chain. */
  readonly chain: string
  /** UTC days since 1970. */
  readonly day: number
}

/** All keys from this day on can be derived from it. `key`: 64 hex. */
export type SealState = SealName & { readonly key: string }

/** How long the stream retains a message. */
export const keptSeconds = 48 * 3_600
const secondsOfDay = 86_400
/** A message published at the end of a day is retained until this many days later. */
const daysKept = Math.ceil(keptSeconds / secondsOfDay) + 1
/** How often a box checks whether a day is over. */
export const forgetEveryMs = 600_000
const nonceBytes = 12
const tagBytes = 16
/** Bytes that a seal adds to a message. */
export const sealBytes = nonceBytes + tagBytes
/** A day further away than this is not in this chain: a clock or a header was wrong. */
const daysAheadMax = 10_000

export const sealFile = (dataDirectory: string) => join(dataDirectory, 'stream-seal.json')

/** The state of the seal on disk; undefined if there is none. */
export function sealIn(disk: Disk, dataDirectory: string): SealState | undefined {
  const file = sealFile(dataDirectory)
  const found = disk.fileExists(file) ? foreignJson(disk.readWhole(file).toString('utf8')) : undefined
  return isSealState(found) ? found : undefined
}

export function isSealState(value: unknown): value is SealState {
  const { key }: Readonly<Record<string, unknown>> = Object(value)
  return isSealName(value) && typeof key === 'string' && /^[0-9a-f]{64}$/.test(key)
}

export function isSealName(value: unknown): value is SealName {
  const { chain, day }: Readonly<Record<string, unknown>> = Object(value)
  return typeof chain === 'string' && /^[0-9a-f]{16}$/.test(chain) && Number.isSafeInteger(day) && Number(day) >= 0
}

type StreamSealOptions = {
  readonly disk: Disk
  readonly dataDirectory: string
  /** Unix seconds. */
  readonly wallSeconds: () => number
  readonly random: Random
}

/** The header of a message, sent with it as JSON: the bytes can be opened only with this header. */
type Sealed = { readonly seal: SealName }

export class StreamSeal {
  readonly #options: StreamSealOptions
  #kept: SealState | undefined
  /** Message keys by day, derived from the stored state. */
  readonly #keys = new Map<number, Buffer>()

  constructor(options: StreamSealOptions) {
    this.#options = options
    refuseShared(options)
    this.#kept = sealIn(options.disk, options.dataDirectory)
    this.forget()
  }

  /** For a leader: begins a chain if there is none, or if a wrong clock has moved it into the future. */
  begin(): void {
    if (this.#kept !== undefined && this.#kept.day <= this.#oldestDay) return
    this.#keys.clear()
    const { random } = this.#options
    const chain = random(8).toString('hex')
    this.#keep({ chain, day: this.#oldestDay, key: random(32).toString('hex') })
  }

  /** Whether there is a chain of keys. */
  get isKnown(): boolean {
    return this.#kept !== undefined
  }

  /** For a follower: stores its leader's state. */
  take(state: SealState): void {
    this.#keys.clear()
    this.#keep(state)
    this.forget()
  }

  /** Removes the keys of days whose messages the stream no longer holds, from the disk too. */
  forget(): void {
    const kept = this.#kept
    const oldest = this.#oldestDay
    if (kept === undefined || kept.day >= oldest || oldest - kept.day > daysAheadMax) return
    for (const day of this.#keys.keys()) if (day < oldest) this.#keys.delete(day)
    this.#keep({ ...kept, day: oldest, key: chainKey(kept, oldest).toString('hex') })
  }

  /** The key name for a message sent now. If the clock was set back, it does not return to a day whose key is gone. */
  get now(): SealName {
    const { chain, day } = this.#known
    return { chain, day: Math.max(day, this.#today) }
  }

  /** Nonce, ciphertext, tag. */
  seal(header: Sealed, bytes: Uint8Array): Buffer {
    const nonce = this.#options.random(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', this.#keyOf(header.seal.day), nonce).setAAD(textOf(header))
    return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }

  /** Whether there is a key for it. */
  opens({ chain, day }: SealName): boolean {
    const kept = this.#kept
    return kept !== undefined && chain === kept.chain && day >= kept.day && day - kept.day <= daysAheadMax
  }

  /** Throws if it was not sealed this way. */
  open({ header, bytes: sealed }: { readonly header: Sealed; readonly bytes: Uint8Array }): Buffer {
    const end = sealed.length - tagBytes
    if (!this.opens(header.seal) || end < nonceBytes) throw new Error('there is no key for this message of the stream')
    const nonce = sealed.subarray(0, nonceBytes)
    const opened = createDecipheriv('aes-256-gcm', this.#keyOf(header.seal.day), nonce)
      .setAAD(textOf(header))
      .setAuthTag(sealed.subarray(end))
    try {
      return Buffer.concat([opened.update(sealed.subarray(nonceBytes, end)), opened.final()])
    } catch {
      throw new Error('a message of the stream was changed after it was sealed')
    }
  }

  get #known(): SealState {
    if (this.#kept === undefined) throw new Error('the seal of the stream was never begun')
    return this.#kept
  }

  get #today(): number {
    return Math.floor(this.#options.wallSeconds() / secondsOfDay)
  }

  get #oldestDay(): number {
    return this.#today - daysKept
  }

  #keyOf(day: number): Buffer {
    const known = this.#keys.get(day)
    if (known !== undefined) return known
    const key = derived(chainKey(this.#known, day), 'message')
    this.#keys.set(day, key)
    return key
  }

  #keep(state: SealState): void {
    const { disk, dataDirectory } = this.#options
    this.#kept = state
    disk.writeAtomic(sealFile(dataDirectory), Buffer.from(`${JSON.stringify(state)}\n`), 0o600)
  }
}

/** Anyone who can read the file can read every message that still exists anywhere. */
function refuseShared({ disk, dataDirectory }: StreamSealOptions): void {
  const file = sealFile(dataDirectory)
  if (disk.fileExists(file) && (disk.stat(file).mode & 0o077) !== 0)
    throw new Halted(`The key file ${file} can be read by others. Run: chmod 600 ${file}`)
}

function textOf(header: Sealed): Buffer {
  return Buffer.from(JSON.stringify(header))
}

/** The chain key of this day or a later one. */
function chainKey({ day, key }: SealState, wanted: number): Buffer {
  let found = Buffer.from(key, 'hex')
  for (let at = day; at < wanted; at++) found = derived(found, 'next day')
  return found
}

function derived(key: Uint8Array, use: string): Buffer<ArrayBuffer> {
  return Buffer.from(createHmac('sha256', key).update(use).digest())
}
