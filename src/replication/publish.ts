/** Publishes one message to the stream, and waits until its outcome is known. */
import { isSamePart, type Part } from './batch.ts'
import { Deposed } from './halted.ts'
import type { BoardStream } from './open-stream.ts'

type Wanted = {
  readonly stream: Pick<BoardStream, 'isChecked' | 'check' | 'publish' | 'read' | 'state'>
  readonly part: Part
  /** The number of the newest message before it. */
  readonly after: number
  readonly report: (level: 'warn', event: string, facts: Readonly<Record<string, unknown>>) => void
  /** Waits that long, or until publishing is given up. */
  readonly pause: (ms: number) => Promise<void>
  readonly isAborted: () => boolean
}

const retryFirstMs = 200
const retryMaxMs = 2_000

/**
 * Resolves when the message is the next one of the stream. Only an acknowledgment with its number is success. Anything else
 * proves nothing, so the same bytes are published again with the same expectation, until they are acknowledged or the message
 * with that number is read. If that is the board's own, it is success; if it is another's, another board writes.
 *
 * Throws Deposed, Foreign, UnfitServers, StreamAway, and errors of the network, after which the message may be there or still
 * arrive.
 */
export async function publishNext({ stream, part, after, report, pause, isAborted }: Wanted): Promise<void> {
  for (let waitMs = retryFirstMs; ; waitMs = Math.min(waitMs * 2, retryMaxMs)) {
    if (!stream.isChecked) await stream.check()
    const done = await stream.publish(part, after)
    if ('seq' in done && done.seq === after + 1) return
    report('warn', 'replication.unacknowledged', { expected: after + 1, ...done })
    const there = await stream.read(after + 1)
    if (there !== undefined && isSamePart(there, part)) return
    if (there !== undefined && there.header.leader !== part.header.leader) throw new Deposed()
    // A server that had lost the stream's leadership reported an earlier end.
    if (there !== undefined) throw new Error(`the stream already has message ${after + 1}`)
    const { lastSeq } = await stream.state()
    if (lastSeq !== after) throw new Error(`the newest message of the stream is ${lastSeq}, not ${after}`)
    await pause(waitMs)
    if (isAborted()) throw new Error('stopped')
  }
}
