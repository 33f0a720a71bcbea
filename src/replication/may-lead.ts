/**
 * What keeps a follower from taking the place of its leader, as far as its own disk tells: nothing that the stream has could change it. It is
 * asked before the follower closes its port to lead, which would be in vain.
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

/** An earlier run gave up its port to lead after this message of the stream, and could not: until then it would not, unless there is a newer one. */
export type RefusedLead = { readonly after: number; readonly problem: string; readonly untilMs: number }

/** As a sentence that names the fix; undefined: nothing here does. */
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
    // Whatever it is, the follower goes on answering reads.
    return explainFailure(error).problem
  }
}
