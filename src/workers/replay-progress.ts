/** Reports the progress of a long replay: nothing for the first 2 s, and then every 2 s. */
import type { ThreadPlatform } from './thread.ts'

const quietMs = 2_000
/** The clock is not read at every frame. */
const framesBetween = 64

/** `journal`: whose frames are replayed. The returned function must be called after each frame, with its number. */
export function replayProgress(
  { clock, report }: Pick<ThreadPlatform, 'clock' | 'report'>,
  journal: string,
  frames: number,
): (seq: number) => void {
  let saidAt = clock.monotonicMs()
  return (seq) => {
    if (seq % framesBetween !== 0) return
    const now = clock.monotonicMs()
    if (now - saidAt < quietMs) return
    saidAt = now
    report('info', 'replaying', { journal, done: seq, frames })
  }
}
