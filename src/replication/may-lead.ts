/**
 * Checks on a follower's own disk whether it could take over from its leader; nothing in the stream could change the result.
 * They are made before the follower closes its port to lead, to avoid closing it in vain.
 */
import type { Disk } from '../../storage/disk.ts'
import type { Config } from '../config.ts'
import { explainFailure } from '../failure.ts'
import { knowsMore, readMarks } from '../log/mark.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import { checkLogKey } from './follower-directory.ts'
import { refusedByMark } from './halted.ts'

type Follower = {
  readonly disk: Disk
  readonly config: Pick<Config, 'dataDirectory' | 'markFile'>
  /** Origin of the first log of the board. */
  readonly origin: string
  /** Every log of the board, oldest first. */
  readonly logs: readonly LogIdentity[]
  /** The newest head here. */
  readonly head: { readonly size: number; readonly checkpoint: string }
}

/**
 * An earlier run closed its port to lead after this message of the stream, and could not. Until this time it does not try
 * again, unless there is a newer message.
 */
export type RefusedLead = { readonly after: number; readonly problem: string; readonly untilMs: number }

/** The obstacle, as a sentence that names the fix; undefined if there is none here. */
export function keptFromLeading({ disk, config, origin, logs, head }: Follower): string | undefined {
  try {
    checkLogKey(disk, config.dataDirectory, logs.at(-1)!, origin)
    const vkeys = logs.map(({ vkey }) => vkey)
    const mark = readMarks(disk, config).find((each) => knowsMore(each, vkeys, head.checkpoint))
    if (mark === undefined) return undefined
    return refusedByMark(
      `the log has ${head.size} entries, but a head of ${mark.size} was signed and published`,
      mark.file,
    )
  } catch (error) {
    // Whatever it is, the follower continues to answer reads.
    return explainFailure(error).problem
  }
}
