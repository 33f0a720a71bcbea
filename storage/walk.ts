/**
 * One walk through all frames of a segment, checking everything that a segment says about itself. Recovery, the
 * rebuilding of an index and the full check all use this function; the scrubber, which reads slowly, uses its steps.
 */
import { Chain } from './chain.ts'
import { Damage, type DiskFile, FailedRead, failedAt } from './disk.ts'
import { FOOTER, type FoundFrame, type NoFrame } from './frame.ts'
import { FrameWindow } from './frame-window.ts'
import { LiveIndex } from './live-index.ts'
import { footerOf, type SegmentHeader } from './segment.ts'

export type Walk = {
  readonly live: LiveIndex
  /** Of the segment's header. */
  readonly seed: number
  /** Chain hash of the segment up to the last good frame. */
  readonly chain: Buffer
  /** For the writer that goes on where the walk ended. */
  readonly running: Chain
  /** Highest seq that some good frame calls durable. */
  readonly provenSeq: number
  readonly stop: WalkStop
}

/**
 * `end`: the file ends after a frame, or holds nothing but zeros from there on: space that was allocated in advance
 * (journal.ts). `sealed`: a footer agrees with all before it; `end` is the position after it. `fault`: no next frame at
 * `live.end`. `lie`: a whole, valid footer there that contradicts the frames before it, which no crash can cause.
 */
type WalkStop =
  | { readonly kind: 'end' }
  | { readonly kind: 'sealed'; readonly end: number }
  | { readonly kind: 'fault'; readonly found: string }
  | { readonly kind: 'lie'; readonly expected: string; readonly found: string }

const blankStepBytes = 64 * 1024

/**
 * Walks the segment of `size` bytes after its (checked) header. What the disk does not give back throws FailedRead, or ends the walk as a
 * fault: for a report only, as nothing may be cut there.
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

/** What is after the frames so far: a frame, none, or nothing but zeros. */
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

/** Takes what is at `live.end` for the next frame. Undefined: the walk goes on after it. */
export function stepOver(frame: FoundFrame | NoFrame, live: LiveIndex, running: Chain): WalkStop | undefined {
  if (frame.frameBytes === undefined || frame.seq !== live.nextSeq || frame.durableSeq >= frame.seq)
    return { kind: 'fault', found: describe(frame) }
  if (frame.type === FOOTER) return footerStop(frame, live, running)
  running.add(frame.seq, frame.type, frame.flags, frame.payload)
  live.add(frame.frameBytes, frame.flags, frame.payload)
  return undefined
}

/** Whether a file of `size` bytes holds nothing but zeros from `position` on. */
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
  if (!footer) return { kind: 'lie', expected: 'a footer', found: `${frame.payload.length} bytes of payload` }
  if (footer.count !== live.count) return { kind: 'lie', expected: `count ${live.count}`, found: String(footer.count) }
  if (!footer.chain.equals(chain)) {
    const expected = `chain hash ${chain.toString('hex')} of the frames`
    return { kind: 'lie', expected, found: `${footer.chain.toString('hex')} in the footer` }
  }
  return { kind: 'sealed', end: live.end + frame.frameBytes }
}

/** What is where another frame was expected. */
export function describe(frame: FoundFrame | NoFrame): string {
  if (frame.frameBytes !== undefined) return `frame ${frame.seq} (durable ${frame.durableSeq})`
  return frame.fault === 'short' ? 'an incomplete frame' : `a wrong ${frame.fault}`
}

const endOfFile = 'the end of the file'

/** What makes a walked segment of `size` bytes not a sound sealed one, or undefined. */
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
    case 'lie':
      return new Damage({ path, offset: at, expected: stop.expected, found: stop.found })
    case 'sealed':
      if (stop.end === size) return undefined
      return new Damage({
        path,
        offset: stop.end,
        expected: endOfFile,
        found: `${size - stop.end} bytes more`,
      })
  }
}
