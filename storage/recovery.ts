/**
 * Opens a journal after any crash: decides what is kept, what is cut, and what is refused as damage.
 *
 * A frame counts as durable once its sync has returned. The last segment is walked from its start; at the first bad
 * frame X, everything after it is searched for whole frames:
 *
 *   some later frame says that X was durable      damage: refuse, touch nothing
 *   a snapshot, the signed log or the durable mark reaches X or further   the same, wherever the frames end
 *   bytes, but no frame that says so              a torn tail that was never acknowledged: save it aside, cut it
 *   nothing but zeros                             preallocated space (journal.ts): cut it, there is nothing to save
 *
 * A segment that is not the last, or has a footer, was durable as a whole, so any bad byte in it is damage. The remains
 * of a crash in the middle of a roll are valid: a sealed last segment, with or without an index; zeros after its
 * footer; and a newest file that is empty or has no complete header. (The header is synced before any frame is written
 * after it.)
 */
import { join } from 'node:path'
import { CHAIN_START, type Chain } from './chain.ts'
import { Damage, type Disk, type DiskFile, DiskFull } from './disk.ts'
import { type Durable, markedDurable, newestDurable } from './durable-mark.ts'
import { decodeFrame, type FoundFrame, FRAME_HEADER_BYTES, FRAME_MAGIC, readSeq } from './frame.ts'
import type { LiveIndex } from './live-index.ts'
import { SealedSegment } from './sealed-segment.ts'
import {
  checkSegmentHeader,
  JOURNAL_ID_BYTES,
  listSegments,
  type Predecessor,
  readSegmentHeader,
  SEGMENT_HEADER_BYTES,
  segmentPath,
} from './segment.ts'
import { isBlank, sealedDamage, type Walk, walkSegment } from './walk.ts'

/** Cut tails that are retained for an operator; the oldest is removed first. */
const savedTailsMax = 16

const copyBytes = 1024 * 1024

export type RecoveryEvent =
  /** `saved` is the file with the cut bytes, or empty if the disk had no space for it. */
  {
    readonly kind: 'tail-cut'
    readonly path: string
    readonly offset: number
    readonly bytes: number
    readonly saved: string
  }

export type ActiveSegment = {
  readonly file: DiskFile
  readonly live: LiveIndex
  readonly chain: Chain
  /** From the segment's header. */
  readonly seed: number
  readonly isOld: boolean
}

export type Recovered = {
  readonly journalId: Buffer
  readonly sealed: readonly { readonly firstSeq: number; readonly count: number }[]
  /** Chain hash of the last sealed segment. */
  readonly chain: Buffer
  /** Undefined if the next segment has yet to be created. */
  readonly active: ActiveSegment | undefined
}

type Recovery = {
  readonly disk: Disk
  readonly random: (bytes: number) => Buffer
  readonly directory: string
  /** The newest frame of the journal with this id that something derived from it says was durable. */
  readonly knownDurable: (journalId: Buffer) => Durable
  readonly report: (event: RecoveryEvent) => void
}

/** Recovers a journal and makes it safe to append to. Throws Damage, DiskFull, SyncFailed or a system error. */
export function recover(recovery: Recovery): Recovered {
  const { disk, directory } = recovery
  disk.makeDirectory(directory)
  removeLeftovers(recovery)
  const firsts = listSegments(disk, directory, 'log')
  const newest = firsts.pop()
  if (newest === undefined) return emptyJournal(recovery)
  const sealed: { firstSeq: number; count: number }[] = []
  let before: Predecessor = { journalId: undefined, nextSeq: 1, chain: CHAIN_START }
  for (const firstSeq of firsts) {
    before = checkSealed(recovery, firstSeq, before)
    sealed.push({ firstSeq, count: before.nextSeq - firstSeq })
  }
  return recoverNewest(recovery, newest, { sealed, before })
}

function emptyJournal({ disk, random, directory }: Recovery): Recovered {
  const orphan = listSegments(disk, directory, 'idx')[0]
  if (orphan !== undefined) {
    const path = segmentPath(directory, orphan)
    throw new Damage({ path, offset: 0, expected: 'the segment of this index', found: 'no file' })
  }
  return { journalId: random(JOURNAL_ID_BYTES), sealed: [], chain: CHAIN_START, active: undefined }
}

// Temporary files left by replacements that a crash interrupted.
function removeLeftovers({ disk, directory }: Recovery): void {
  for (const name of disk.listFiles(directory)) {
    if (name.endsWith('.idx.tmp')) disk.removeFile(join(directory, name))
  }
}

function checkSealed(recovery: Recovery, firstSeq: number, before: Predecessor): Predecessor {
  if (firstSeq !== before.nextSeq) throw gap(recovery, before.nextSeq, firstSeq)
  const segment = SealedSegment.open(recovery, firstSeq)
  try {
    checkSegmentHeader(segment.file, segment.header, before)
    return { journalId: segment.facts.journalId, nextSeq: segment.lastSeq + 1, chain: segment.facts.chain }
  } finally {
    segment.close()
  }
}

type Older = { readonly sealed: { firstSeq: number; count: number }[]; readonly before: Predecessor }

function recoverNewest(recovery: Recovery, firstSeq: number, older: Older): Recovered {
  const { sealed, before } = older
  if (firstSeq !== before.nextSeq) throw gap(recovery, before.nextSeq, firstSeq)
  const file = recovery.disk.openFile(segmentPath(recovery.directory, firstSeq), 'write')
  try {
    const header = readSegmentHeader(file)
    const wasDurable = before.journalId !== undefined && recovery.knownDurable(before.journalId).seq >= firstSeq
    if (!header && !wasDurable && removeHeaderless(recovery, file, firstSeq)) {
      if (!before.journalId) return emptyJournal(recovery)
      return { journalId: before.journalId, sealed, chain: before.chain, active: undefined }
    }
    const { journalId } = checkSegmentHeader(file, header, before)
    const walk = walkSegment(file, header!, file.size())
    cutTail(recovery, file, walk, recovery.knownDurable(journalId))
    confirm(file, walk)
    recovery.disk.syncDirectory(recovery.directory)
    if (walk.stop.kind !== 'sealed') {
      return {
        journalId,
        sealed,
        chain: before.chain,
        active: { file, live: walk.live, chain: walk.running, seed: walk.seed, isOld: header!.isOld },
      }
    }
    file.close()
    return {
      journalId,
      sealed: [...sealed, { firstSeq, count: walk.live.count }],
      chain: walk.chain,
      active: undefined,
    }
  } catch (error) {
    file.close()
    throw error
  }
}

function gap(recovery: Recovery, expected: number, found: number): Damage {
  const path = segmentPath(recovery.directory, expected)
  return new Damage({ path, offset: 0, expected: 'a segment', found: `no file; the next one is segment ${found}` })
}

/** Whether a file without a valid header has nonzero bytes after it, which shows that the header was once durable. */
export function headerWasDurable(file: DiskFile): boolean {
  return !isBlank(file, SEGMENT_HEADER_BYTES, file.size())
}

/** Removes a newest file whose header never became durable. Returns false if the header was durable. */
function removeHeaderless(recovery: Recovery, file: DiskFile, firstSeq: number): boolean {
  if (headerWasDurable(file)) return false
  const bytes = readFrom(file, 0)
  if (bytes.length > 0) saveTail(recovery, file, { firstSeq, offset: 0, bytes })
  file.close()
  recovery.disk.removeFile(file.path)
  return true
}

/** The damage after the last good frame of the newest segment, or undefined if those bytes may be cut. */
export function damageAfter(file: DiskFile, walk: Walk, known: Durable): Damage | undefined {
  const { live, stop } = walk
  const size = file.size()
  if (live.nextSeq <= known.seq && stop.kind !== 'contradiction') {
    const found = `${foundAfter(walk, size)}, though ${known.by} holds frame ${known.seq}`
    return new Damage({ path: file.path, offset: live.end, expected: `frame ${live.nextSeq}`, found })
  }
  if (stop.kind === 'end') return undefined
  if (stop.kind === 'sealed' && isBlank(file, stop.end, size)) return undefined
  if (stop.kind !== 'fault') return sealedDamage(file.path, walk, size)
  const missing = live.nextSeq
  const bytes = readFrom(file, live.end)
  // A frame whose seq is impossible here proves nothing.
  const near = { from: missing, to: missing + bytes.length / FRAME_HEADER_BYTES }
  const proof = findFrame(
    bytes,
    { ...near, seed: walk.seed },
    (frame) => frame.durableSeq >= missing && frame.durableSeq < frame.seq,
  )
  if (!proof) return undefined
  const found = `${stop.found}, though the later frame ${proof.seq} states that it was durable`
  return new Damage({ path: file.path, offset: live.end, expected: `frame ${missing}`, found })
}

export type JournalEnding = {
  /** The last good frame before any damage of the newest segment. */
  readonly last: number
  /** The newest frame that is known to have been durable; 0 if that is unknown. */
  readonly known: number
  /** The damage that opening the journal would find in its newest segment; undefined if none is known. */
  readonly damage: Damage | undefined
}

/** How the newest segment of a journal ends; reads only. */
export function endingOf(disk: Disk, directory: string, knownDurable: (journalId: Buffer) => Durable): JournalEnding {
  const newest = disk.fileExists(directory) ? listSegments(disk, directory, 'log').at(-1) : undefined
  if (newest === undefined) return { last: 0, known: 0, damage: undefined }
  const path = segmentPath(directory, newest)
  const file = disk.openFile(path, 'read')
  try {
    const header = readSegmentHeader(file)
    if (header === undefined) {
      const facts = { path, offset: 0, expected: `the header of segment ${newest}`, found: 'no valid one' }
      return { last: newest - 1, known: 0, damage: headerWasDurable(file) ? new Damage(facts) : undefined }
    }
    const { journalId } = header
    const known = newestDurable(knownDurable(journalId), markedDurable(disk, directory, journalId))
    const walk = walkSegment(file, header, file.size())
    return { last: walk.live.nextSeq - 1, known: known.seq, damage: damageAfter(file, walk, known) }
  } finally {
    file.close()
  }
}

function foundAfter({ live, stop }: Walk, size: number): string {
  if (stop.kind === 'fault') return stop.found
  if (stop.kind === 'sealed') return 'the footer'
  return live.end === size ? 'the end of the file' : 'zeros'
}

/** Cuts bytes that were never acknowledged. Throws Damage if bytes after the last good frame were once durable. */
function cutTail(recovery: Recovery, file: DiskFile, walk: Walk, known: Durable): void {
  const damage = damageAfter(file, walk, known)
  if (damage) throw damage
  const { live, stop } = walk
  const end = stop.kind === 'sealed' ? stop.end : live.end
  if (end === file.size()) return
  const bytes = withoutZeros(readFrom(file, end))
  if (bytes.length > 0) saveTail(recovery, file, { firstSeq: live.firstSeq, offset: end, bytes })
  file.truncate(end)
}

/** Strips trailing zeros, which are preallocated space. */
function withoutZeros(bytes: Buffer): Buffer {
  let length = bytes.length
  while (length > 0 && bytes[length - 1] === 0) length--
  return bytes.subarray(0, length)
}

/**
 * Makes the walked frames durable. The last batch is written again. If a sync failed before this start, the kernel may
 * consider its pages clean, and a bare sync would vouch for bytes that never reached the disk.
 */
function confirm(file: DiskFile, walk: Walk): void {
  const { live, provenSeq, stop } = walk
  const start = provenSeq >= live.firstSeq ? live.offsetOf(Math.min(provenSeq + 1, live.nextSeq)) : 0
  const end = stop.kind === 'sealed' ? stop.end : live.end
  const chunk = Buffer.allocUnsafe(Math.min(copyBytes, Math.max(0, end - start)))
  for (let at = start; at < end; at += chunk.length) {
    const bytes = chunk.subarray(0, Math.min(chunk.length, end - at))
    file.readAt(bytes, at)
    file.writeAt(bytes, at)
  }
  file.sync()
}

/** The rest of a file from `offset`. */
export function readFrom(file: DiskFile, offset: number): Buffer {
  const bytes = Buffer.allocUnsafe(Math.max(0, file.size() - offset))
  return bytes.subarray(0, file.readAt(bytes, offset))
}

/** The first whole frame in `bytes` with a seq in the range `near` for which `wanted` is true. */
function findFrame(
  bytes: Buffer,
  near: { readonly from: number; readonly to: number; readonly seed: number },
  wanted: (frame: FoundFrame) => boolean,
): FoundFrame | undefined {
  for (let at = bytes.indexOf(FRAME_MAGIC); at !== -1; at = bytes.indexOf(FRAME_MAGIC, at + 1)) {
    if (at + FRAME_HEADER_BYTES > bytes.length) return undefined
    // The seq is compared first, so that a payload full of fake headers does not cost a CRC over the remaining bytes for each.
    const seq = readSeq(bytes, at + 8)
    if (seq < near.from || seq > near.to) continue
    const frame = decodeFrame(bytes, at, bytes.length, near.seed)
    if (frame.frameBytes !== undefined && wanted(frame)) return frame
  }
  return undefined
}

/** Bytes to be cut off the segment that begins with `firstSeq`, from `offset` on. */
export type Tail = { readonly firstSeq: number; readonly offset: number; readonly bytes: Buffer }

const savedTails = (directory: string): string => join(directory, 'lost+tail')

/** Deletes the tails that were cut off this journal and saved. Returns how many there were. */
export function removeSavedTails(disk: Disk, directory: string): number {
  const saved = savedTails(directory)
  const names = disk.fileExists(saved) ? disk.listFiles(saved) : []
  for (const name of names) disk.removeFile(join(saved, name))
  return names.length
}

/**
 * Saves a tail that is about to be cut off this journal, retaining the newest of the earlier ones. Returns the path, or
 * an empty string if the disk has no space for it.
 */
export function keepTail(disk: Disk, journal: string, { firstSeq, offset, bytes }: Tail): string {
  const directory = savedTails(journal)
  disk.makeDirectory(directory)
  const names = disk.listFiles(directory).filter((name) => /^\d{8}-/.test(name))
  for (const name of names.slice(0, Math.max(0, names.length - savedTailsMax + 1)))
    disk.removeFile(join(directory, name))
  const number = Number(names.at(-1)?.slice(0, 8) ?? 0) + 1
  const path = join(directory, `${String(number).padStart(8, '0')}-${firstSeq}-${offset}.bin`)
  try {
    disk.writeAtomic(path, bytes)
    return path
  } catch (error) {
    // The tail was never acknowledged: on a full disk starting matters more, and cutting the tail frees space.
    if (!(error instanceof DiskFull)) throw error
    return ''
  }
}

function saveTail(recovery: Recovery, file: DiskFile, tail: Tail): void {
  const saved = keepTail(recovery.disk, recovery.directory, tail)
  recovery.report({ kind: 'tail-cut', path: file.path, offset: tail.offset, bytes: tail.bytes.length, saved })
}
