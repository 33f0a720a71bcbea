/**
 * Compaction: removes redacted and expired texts from the disk.
 *
 * The payload of a frame is replaced by a stub of the same length. No frame moves, so indexes stay valid and readers
 * that have the old file open read at the same positions. The stub begins with the SHA-256 of the original payload, so
 * every chain hash still holds (chain.ts), and ends in zeros. Only sealed segments are rewritten; the owner seals the
 * active one first.
 *
 *   stub payload   digest 32 | key 16 if KEYED | bytes that the owner retains | zeros up to the old length
 *
 * A segment is copied to `<name>.log.compact` and synced, renamed over the old one, and the directory synced. A kill at
 * any moment leaves either the old file or the new one, complete. The next pass, or opening the journal, removes a
 * leftover copy; a copy that runs out of space is removed immediately.
 *
 * Tails that recovery cut off and saved (`lost+tail/`, recovery.ts) may hold the same texts. `removeSavedTails` runs
 * before the rewrite, so a pass that was killed starts with it again.
 */
import { join } from 'node:path'
import { payloadDigest } from './chain.ts'
import { Damage, type Disk, type DiskFile, DiskFull } from './disk.ts'
import { DIGEST_BYTES, encodeFrame, FOOTER, type FoundFrame, faultText, KEY_BYTES, keyOffset, STUB } from './frame.ts'
import { FrameWindow } from './frame-window.ts'
import { readFooter, readSegmentHeader, SEGMENT_HEADER_BYTES, segmentPath } from './segment.ts'

const suffix = '.compact'
/** Bytes per step: a few milliseconds for a thread that has other work. */
const stepBytes = 4 * 1024 * 1024

export type CompactionStep = { readonly bytes: number; readonly of: number; readonly stubs: number }

type Compaction = {
  readonly disk: Disk
  readonly directory: string
  /** First seq of a sealed segment. */
  readonly firstSeq: number
  /**
   * The bytes of a frame to retain after digest and key, or undefined to leave the whole frame as it is. Called for
   * every frame that is not a stub yet. The stub must fit where the payload was.
   */
  readonly keep: (frame: FoundFrame) => Uint8Array | undefined
}

/**
 * Rewrites one sealed segment in steps of a few milliseconds. Returns how many frames became stubs; 0 if nothing was
 * written. Throws Damage if the segment is damaged, RangeError if a stub does not fit, DiskFull, SyncFailed or a system
 * error; the old file is then unchanged.
 */
export function* compactSegment(compaction: Compaction): Generator<CompactionStep, number, undefined> {
  const { disk, directory, firstSeq } = compaction
  const path = segmentPath(directory, firstSeq)
  const copy = `${path}${suffix}`
  const source = disk.openFile(path, 'read')
  let target: DiskFile | undefined
  try {
    const size = source.size()
    const header = readSegmentHeader(source)
    if (header?.firstSeq !== firstSeq || readFooter(source, size, header) === undefined)
      throw new Damage({ path, offset: 0, expected: `sealed segment ${firstSeq}`, found: 'no valid one' })
    disk.removeFile(copy)
    const { seed } = header
    const window = new FrameWindow(source, { limit: size, seed })
    let stubs = 0
    let sinceStep = 0
    for (let at = SEGMENT_HEADER_BYTES; at < size; ) {
      const frame = window.at(at)
      if (frame.frameBytes === undefined)
        throw new Damage({ path, offset: at, expected: 'a frame', found: faultText(frame) })
      const kept = frame.type === FOOTER || (frame.flags & STUB) !== 0 ? undefined : compaction.keep(frame)
      if (kept !== undefined) {
        if (target === undefined) {
          target = disk.openFile(copy, 'create')
          copyInto(target, source, size)
        }
        target.writeAt(stubFrame(frame, kept, seed), at)
        stubs++
      }
      at += frame.frameBytes
      sinceStep += frame.frameBytes
      if (sinceStep < stepBytes) continue
      sinceStep = 0
      yield { bytes: at, of: size, stubs }
    }
    if (target === undefined) return 0
    target.sync()
    target.close()
    disk.renameDurable(copy, path)
    return stubs
  } catch (error) {
    // Frees its space. Removing the name is not enough: the file is closed below, and would occupy the space until then.
    if (error instanceof DiskFull) disk.removeUnsynced(copy)
    throw error
  } finally {
    target?.close()
    source.close()
  }
}

/** Removes copies that a kill left behind. */
export function removeUnfinished(disk: Disk, directory: string): void {
  for (const name of disk.listFiles(directory))
    if (name.endsWith(`.log${suffix}`)) disk.removeFile(join(directory, name))
}

/** The complete stub frame that replaces `frame`. */
function stubFrame(frame: FoundFrame, kept: Uint8Array, seed: number): Buffer {
  const key = keyOffset(frame.flags) === undefined ? 0 : KEY_BYTES
  const payload = Buffer.alloc(frame.payload.length)
  if (DIGEST_BYTES + key + kept.length > payload.length)
    throw new RangeError(`the stub of frame ${frame.seq} would be larger than the frame`)
  payload.set(payloadDigest(frame.flags, frame.payload), 0)
  payload.set(frame.payload.subarray(0, key), DIGEST_BYTES)
  payload.set(kept, DIGEST_BYTES + key)
  const bytes = Buffer.allocUnsafe(frame.frameBytes)
  const { type, flags, seq, durableSeq, peerSeq } = frame
  encodeFrame(bytes, 0, { type, flags: flags | STUB, payload }, { seq, durableSeq, peerSeq, seed })
  return bytes
}

function copyInto(target: DiskFile, source: DiskFile, size: number): void {
  const chunk = Buffer.allocUnsafe(Math.min(size, stepBytes))
  for (let at = 0; at < size; at += chunk.length) {
    const filled = source.readAt(chunk.subarray(0, Math.min(chunk.length, size - at)), at)
    target.writeAt(chunk.subarray(0, filled), at)
  }
}
