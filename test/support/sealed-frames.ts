/** Where the frames of a journal's sealed segments are, so that a test can change a byte of one. */
import { framesAround } from '../../storage/around-damage.ts'
import { FOOTER, type Frame } from '../../storage/frame.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { listSegments, readSegmentHeader, SEGMENT_HEADER_BYTES, segmentPath } from '../../storage/segment.ts'

export type FrameLocation = {
  readonly path: string
  /** Of its first byte. */
  readonly offset: number
  /** Its length, with its header. */
  readonly bytes: number
}

/** In order. The payload of a frame is a view that the next step overwrites. Throws if one is damaged. */
export function* sealedFrames(journal: string): Generator<FrameLocation & { readonly frame: Frame }, void, void> {
  for (const first of listSegments(machineDisk, journal, 'log').slice(0, -1)) {
    const path = segmentPath(journal, first)
    const file = machineDisk.openFile(path, 'read')
    try {
      let offset = SEGMENT_HEADER_BYTES
      for (const frame of framesAround(file, readSegmentHeader(file)!)) {
        if ('gap' in frame) throw new Error(`${path} is damaged`)
        if (frame.type !== FOOTER) yield { path, offset, bytes: frame.frameBytes, frame }
        offset += frame.frameBytes
      }
    } finally {
      file.close()
    }
  }
}
