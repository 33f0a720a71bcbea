/**
 * Walks through all frames of a segment and checks everything that the segment says about itself. Recovery, index
 * rebuilds and the full check all use this function; the scrubber, which reads slowly, uses its steps.
 */
import { Chain } from './chain.ts'
import { Damage, type DiskFile, FailedRead, failedAt } from './disk.ts'
import { FOOTER, type FoundFrame, faultText, type NoFrame } from './frame.ts'
import { FrameWindow } from './frame-window.ts'
import { LiveIndex } from './live-index.ts'
import { footerOf, type SegmentHeader } from './segment.ts'

export type Walk = {
  readonly live: LiveIndex
  /** From the segment's header. */
  readonly seed: number
  /** Chain hash of the segment up to the last good frame. */
  readonly chain: Buffer
  /** For a writer that continues where the walk ended. */
  readonly running: Chain
  /** Highest seq that a good frame states to be durable. */
  readonly provenSeq: number
  readonly stop: WalkStop
}

/**
 * `end`: the file ends after a frame, or has only zeros from there on: preallocated space (journal.ts). `sealed`: a
 * footer agrees with everything before it; `end` is the position after it. `fault`: no next frame at `live.end`. `contradiction`:
 * a complete, valid footer there contradicts the frames before it, which no crash can cause.
 */
type WalkStop =
  | { readonly kind: 'end' }
  | { readonly kind: 'sealed'; readonly end: number }
  | { readonly kind: 'fault'; readonly found: string }
  | { readonly kind: 'contradiction'; readonly expected: string; readonly found: string }

const blankStepBytes = 64 * 1024

/**
 * Walks the segment of `size` bytes after its (checked) header. A failed read throws FailedRead, or ends the walk as a
 * fault. The latter is for reports only: nothing may be cut there.
 */
export function walkSegment(
  file: DiskFile,
  header: SegmentHeader,
  size: number,
  unread: 'throws' | 'is a fault' = 'throws',
): Walk {
  const live = new LiveIndex(header.firstSeq)
  const running = new Chain(header.previousChain)
  const window = new FrameWindow(file, { limit: size, seed: header.seed })
  let provenSeq = 0
  let stop: WalkStop | undefined
  while (!stop) {
    if (live.end === size) {
      stop = { kind: 'end' }
      break
    }
    const frame = walkedFrame(window, file, live, size)
    if (frame instanceof FailedRead) {
      if (unread === 'throws') throw frame
      stop = { kind: 'fault', found: frame.found }
    } else if (frame === 'blank') {
      stop = { kind: 'end' }
    } else {
      stop = stepOver(frame, live, running)
      if (frame.frameBytes !== undefined && stop?.kind !== 'fault') provenSeq = Math.max(provenSeq, frame.durableSeq)
    }
  }
  return { live, seed: header.seed, chain: running.digest(), running, provenSeq, stop }
}

/** What follows the frames so far: a frame, no frame, or only zeros. */
function walkedFrame(
  window: FrameWindow,
  file: DiskFile,
  live: LiveIndex,
  size: number,
): FoundFrame | NoFrame | FailedRead | 'blank' {
  try {
    const frame = window.at(live.end)
    return frame.frameBytes === undefined && isBlank(file, live.end, size) ? 'blank' : frame
  } catch (error) {
    const failed = failedAt({ path: file.path, offset: live.end, expected: `frame ${live.nextSeq}` }, error)
    if (failed instanceof FailedRead) return failed
    throw failed
  }
}

/** Treats what is at `live.end` as the next frame. Returns undefined if the walk continues after it. */
export function stepOver(frame: FoundFrame | NoFrame, live: LiveIndex, running: Chain): WalkStop | undefined {
  if (frame.frameBytes === undefined || frame.seq !== live.nextSeq || frame.durableSeq >= frame.seq)
    return { kind: 'fault', found: describe(frame) }
  if (frame.type === FOOTER) return footerStop(frame, live, running)
  running.add(frame.seq, frame.type, frame.flags, frame.payload)
  live.add(frame.frameBytes, frame.flags, frame.payload)
  return undefined
}

/** Whether a file of `size` bytes has only zeros from `position` on. */
export function isBlank(file: DiskFile, position: number, size: number): boolean {
  const zeros = Buffer.alloc(Math.min(blankStepBytes, Math.max(0, size - position)))
  const bytes = Buffer.allocUnsafe(zeros.length)
  for (let at = position; at < size; at += bytes.length) {
    const count = file.readAt(bytes.subarray(0, size - at), at)
    if (bytes.compare(zeros, 0, count, 0, count) !== 0) return false
  }
  return true
}

function footerStop(frame: FoundFrame, live: LiveIndex, running: Chain): WalkStop {
  const footer = footerOf(frame)
  const chain = running.digest()
  if (!footer) return { kind: 'contradiction', expected: 'a footer', found: `${frame.payload.length} bytes of payload` }
  if (footer.count !== live.count)
    return { kind: 'contradiction', expected: `count ${live.count}`, found: String(footer.count) }
  if (!footer.chain.equals(chain)) {
    const expected = `chain hash ${chain.toString('hex')} of the frames`
    return { kind: 'contradiction', expected, found: `${footer.chain.toString('hex')} in the footer` }
  }
  return { kind: 'sealed', end: live.end + frame.frameBytes }
}

/** Describes what was found where another frame was expected. */
export function describe(frame: FoundFrame | NoFrame): string {
  if (frame.frameBytes !== undefined) return `frame ${frame.seq} (durable ${frame.durableSeq})`
  return faultText(frame)
}

const endOfFile = 'the end of the file'

/** Why a walked segment of `size` bytes is not an intact sealed one, or undefined if it is. */
export function sealedDamage(
  path: string,
  { stop, live }: Pick<Walk, 'stop' | 'live'>,
  size: number,
): Damage | undefined {
  const at = live.end
  switch (stop.kind) {
    case 'end':
      return new Damage({
        path,
        offset: at,
        expected: 'a frame or the footer',
        found: at === size ? endOfFile : 'zeros',
      })
    case 'fault':
      return new Damage({ path, offset: at, expected: `frame ${live.nextSeq}`, found: stop.found })
    case 'contradiction':
      return new Damage({ path, offset: at, expected: stop.expected, found: stop.found })
    case 'sealed':
      if (stop.end === size) return undefined
      return new Damage({
        path,
        offset: stop.end,
        expected: endOfFile,
        found: `${size - stop.end} more bytes`,
      })
  }
}
