/** Reads frames in order across segments, with large reads. The writer and the readers all scan through this function. */
import { Damage, type Disk, failedAt } from './disk.ts'
import { FOOTER, type FoundFrame, faultText, type NoFrame } from './frame.ts'
import { FrameWindow, frameBytesUsual, windowBytes } from './frame-window.ts'
import type { ScanPlace } from './sealed-segments.ts'

/**
 * Frames `from` to `through` (inclusive). The payload is a view that the next step overwrites: copy what you retain.
 * Holds one file open until the loop ends or is left by `break`, so do not abandon the iterator halfway. Throws Damage
 * at a frame that is not what was written, or that the disk fails to read (FailedRead).
 */
export function* scanFrames(scan: {
  disk: Disk
  placeOf: (seq: number) => ScanPlace
  from: number
  through: number
}): Generator<FoundFrame, void, undefined> {
  let seq = Math.max(1, scan.from)
  while (seq <= scan.through) {
    const place = scan.placeOf(seq)
    const last = Math.min(place.lastSeq, scan.through)
    const file = scan.disk.openFile(place.path, 'read')
    try {
      // Most scans read only the few frames of one batch: a full window each time would just create garbage.
      const { end, seed } = place
      const bytes = Math.min(windowBytes, end - place.offset, (last - seq + 1) * frameBytesUsual)
      const window = new FrameWindow(file, { limit: end, seed, bytes })
      for (let offset = place.offset; seq <= last; seq++) {
        const frame = frameAt(window, { path: place.path, offset, seq })
        if (frame.frameBytes === undefined || frame.seq !== seq || frame.type === FOOTER) {
          const found = frame.frameBytes === undefined ? faultText(frame) : `frame ${frame.seq}`
          throw new Damage({ path: place.path, offset, expected: `frame ${seq}`, found, frame: seq })
        }
        yield frame
        offset += frame.frameBytes
      }
    } finally {
      file.close()
    }
  }
}

function frameAt(
  window: FrameWindow,
  { path, offset, seq }: { readonly path: string; readonly offset: number; readonly seq: number },
): FoundFrame | NoFrame {
  try {
    return window.at(offset)
  } catch (error) {
    throw failedAt({ path, offset, expected: `frame ${seq}`, frame: seq }, error)
  }
}
