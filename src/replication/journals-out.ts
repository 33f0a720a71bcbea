/** Reads batches from the journals' files, after they are synced. */
import { decodeLogFrame } from '../../actors/log/frame.ts'
import { Chain } from '../../storage/chain.ts'
import type { JournalPlace } from '../../storage/copied-frames.ts'
import { Damage, type Disk } from '../../storage/disk.ts'
import { bytesOf, type FoundFrame, MORE } from '../../storage/frame.ts'
import { JournalReader, journalIdIn } from '../../storage/journal.ts'
import { listSegments, readSegmentHeader, segmentPath } from '../../storage/segment.ts'
import { type Batch, type BatchHeader, emptyShare } from './batch.ts'

/** Frames to send to followers, and their description. */
export type FrameShares = Pick<Batch, 'payload'> & Pick<BatchHeader, 'journals' | 'files'>

/** The attachment that a frame of a shard names. */
export type NamedFile = { readonly name: string; readonly bytes: Uint8Array }

/** Reads it; undefined if the frame names none, or the file no longer exists. */
export type ReadNamed = (frame: FoundFrame) => NamedFile | undefined

/** The newest durable frame of each journal. */
export type Ends = { readonly log: number; readonly shards: readonly number[] }

export function isEnds(value: unknown): value is Ends {
  const { log, shards }: Readonly<Record<string, unknown>> = Object(value)
  return Number.isSafeInteger(log) && Array.isArray(shards) && shards.every(Number.isSafeInteger)
}

export type JournalDirectories = { readonly log: string; readonly shards: readonly string[] }

/** A batch holds at most this much plus one decision: five messages of the stream. */
const batchBytesUsual = 4 * 1024 * 1024

/** One journal, from the frame after `last` on. */
class JournalOut {
  readonly id: Buffer
  readonly reader: JournalReader
  readonly #disk: Disk
  readonly #directory: string
  readonly #readNamed: ReadNamed
  #chain: Chain
  #last: number
  #rolls: readonly number[] = []
  #first = 1
  #frames: Buffer[] = []
  #bytes = 0
  #files = new Map<string, Uint8Array>()
  #fileBytes = 0
  #publishedRoll = 0

  constructor(disk: Disk, directory: string, last: number, readNamed: ReadNamed) {
    const id = journalIdIn(disk, directory)
    if (id === undefined) throw new Error(`there is no journal in ${directory}`)
    this.id = id
    this.#disk = disk
    this.#directory = directory
    this.#readNamed = readNamed
    this.reader = JournalReader.open(disk, directory)
    this.reader.advance(last)
    this.#last = last
    this.#chain = this.#chainThrough(last)
  }

  get last(): number {
    return this.#last
  }

  get chain(): string {
    return this.#chain.digest().toString('hex')
  }

  /** Bytes of frames and attachments. */
  get bytes(): number {
    return this.#bytes + this.#fileBytes
  }

  /** Attachments named by the frames, by name. */
  get files(): ReadonlyMap<string, Uint8Array> {
    return this.#files
  }

  /** Begins the next batch, which will have no frame after `end`. */
  begin(end: number): void {
    this.reader.advance(end)
    this.#first = this.#last + 1
    this.#frames = []
    this.#bytes = 0
    this.#files = new Map()
    this.#fileBytes = 0
    const firsts = listSegments(this.#disk, this.#directory, 'log')
    this.#rolls = firsts.filter((first) => first >= this.#first && first > 1)
  }

  /** Takes the frames up to this one, and those that belong to the same decision. Returns false if they would be too many. */
  take(through: number, bytesLeft: number): boolean {
    const most = this.bytes + bytesLeft
    let isWhole = true
    if (through <= this.#last) return true
    for (const frame of this.reader.scan(this.#last + 1)) {
      if (isWhole && frame.seq > through) return true
      if (isWhole && this.bytes > most) return false
      this.add(frame)
      isWhole = (frame.flags & MORE) === 0
    }
    return this.#last >= through
  }

  add(frame: FoundFrame): void {
    if (this.#rolls.includes(frame.seq)) this.#chain = new Chain(this.#chain.digest())
    this.#chain.add(frame.seq, frame.type, frame.flags, frame.payload)
    const bytes = Buffer.from(bytesOf(frame))
    this.#frames.push(bytes)
    this.#bytes += bytes.length
    this.#last = frame.seq
    const named = this.#readNamed(frame)
    if (named === undefined || this.#files.has(named.name)) return
    this.#files.set(named.name, named.bytes)
    this.#fileBytes += named.bytes.length
  }

  /** Whether there is something to send: frames, or that the segment before the next frame is sealed. */
  get isNew(): boolean {
    return this.#last >= this.#first || this.#rolls.some((first) => first > this.#publishedRoll)
  }

  /** The batch's share of this journal. */
  share() {
    const rolls = this.#rolls.filter((first) => first <= this.#last + 1)
    this.#publishedRoll = rolls.at(-1) ?? this.#publishedRoll
    const place = { first: this.#first, last: this.#last, bytes: this.#bytes }
    return { share: { id: this.id.toString('hex'), ...place, chain: this.chain, rolls }, frames: this.#frames }
  }

  /** Computes the chain hash by reading the segment with this frame from its beginning. */
  #chainThrough(last: number): Chain {
    const first = listSegments(this.#disk, this.#directory, 'log').findLast((each) => each <= Math.max(1, last)) ?? 1
    const path = segmentPath(this.#directory, first)
    const file = this.#disk.openFile(path, 'read')
    try {
      const header = readSegmentHeader(file)
      if (header === undefined) throw new Damage({ path, offset: 0, expected: 'a segment header', found: 'none' })
      const chain = new Chain(header.previousChain)
      for (const frame of this.reader.scan(first, last)) chain.add(frame.seq, frame.type, frame.flags, frame.payload)
      return chain
    } finally {
      file.close()
    }
  }
}

export class JournalsOut {
  readonly #shards: readonly JournalOut[]
  readonly #log: JournalOut
  #ends: Ends

  /**
   * `directories`: of the journals. `ends`: how far they are durable now. `from`: the next batch begins after these frames.
   * `readNamed`: without it, batches have no attachments.
   */
  constructor(
    disk: Disk,
    directories: JournalDirectories,
    ends: Ends,
    from: Ends,
    readNamed: ReadNamed = () => undefined,
  ) {
    this.#ends = ends
    this.#log = new JournalOut(disk, directories.log, from.log, () => undefined)
    this.#shards = directories.shards.map(
      (directory, shard) => new JournalOut(disk, directory, from.shards[shard]!, readNamed),
    )
  }

  /** The places as a header names them: id and chain of each journal up to where the next batch begins. */
  get places(): JournalPlace[] {
    return [...this.#shards, this.#log].map(({ id, last, chain }) => ({ id: id.toString('hex'), last, chain }))
  }

  /** The newest frame of each journal that has been in a batch. */
  get taken(): Ends {
    return { log: this.#log.last, shards: this.#shards.map(({ last }) => last) }
  }

  advance(ends: Ends): void {
    this.#ends = ends
  }

  /** Sealed segments of this shard were rewritten, or the growing segment was sealed so that it can be. */
  rewritten(shard: number): void {
    this.#shards[shard]?.reader.reopen()
  }

  /** The next batch of durable frames; undefined if there are none. Throws Damage. */
  next(): FrameShares | undefined {
    const { log, shards } = this.#ends
    for (const [shard, out] of this.#shards.entries()) out.begin(shards[shard]!)
    this.#log.begin(log)
    if (this.#takeCovered()) {
      for (const [shard, out] of this.#shards.entries()) if (!out.take(shards[shard]!, this.#bytesLeft)) break
    }
    const outs = [...this.#shards, this.#log]
    if (!outs.some(({ isNew }) => isNew)) return undefined
    const taken = outs.map((out) => out.share())
    const named = outs.flatMap(({ files }) => [...files])
    const files = named.map(([name, { length }]) => ({ name, bytes: length }))
    return {
      journals: taken.map(({ share }) => share),
      ...(files.length === 0 ? {} : { files }),
      payload: Buffer.concat([...taken.flatMap(({ frames }) => frames), ...named.map(([, bytes]) => bytes)]),
    }
  }

  /** A batch without frames: it only says how far the stream has come. */
  get mark(): FrameShares {
    return { journals: this.places.map((place) => emptyShare(place)), payload: Buffer.alloc(0) }
  }

  close(): void {
    for (const { reader } of [...this.#shards, this.#log]) reader.close()
  }

  get #bytesLeft(): number {
    return batchBytesUsual - this.#shards.reduce((sum, { bytes }) => sum + bytes, this.#log.bytes)
  }

  /** Takes frames of the log, each after the frames that it covers. Returns false if the batch is full. */
  #takeCovered(): boolean {
    for (const frame of this.#log.reader.scan(this.#log.last + 1)) {
      for (const { shard, last } of decodeLogFrame(frame).ranges)
        if (!this.#shards[shard]!.take(last, this.#bytesLeft)) return false
      this.#log.add(frame)
      if (this.#bytesLeft < 0) return false
    }
    return true
  }
}
