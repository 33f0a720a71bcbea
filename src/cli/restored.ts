/**
 * `broadside restored`: a data directory holds a restored backup, and clients that have seen what it lacks must be notified.
 *
 * It begins another recovery epoch (`generation`): cursors of updates are expired, so that copies begin again; works in
 * progress are `recovery_required` until their worker confirms them.
 */

import { JournalEnd } from '../../storage/journal-copy.ts'
import { shardDirectory } from '../board-directory.ts'
import { explainFailure } from '../failure.ts'
import { machine } from '../platform.ts'
import { boardSettings, settingsHelp, settingsOptions } from './board-settings.ts'
import { type Command, CommandFailed, exitCodes, print } from './command-line.ts'

export const restoredCommand: Command = {
  name: 'restored',
  summary:
    'Declares that the directory of a stopped board was restored from a backup, and begins another recovery epoch. Cursors of followers expire, and workers have 72 hours to confirm unfinished work. Run it once, before the first start on the newest backup, and only if nothing newer can be found. If the mark or a witness knows of heads that the backup has not signed, that log cannot continue, and this command does not change that. Environment: as for serve (DATA_DIR, MARK_FILE).',
  usage: 'restored [--data DIR]',
  optionHelp: settingsHelp,
  example: 'broadside restored --data ./data',
  options: settingsOptions,
  positionals: { min: 0, max: 0 },
  async run(args, terminal) {
    const config = await boardSettings(args)
    const [
      { beginEpoch, readFacts, restoredFile, UnusableDirectory },
      { SignedLog },
      { readMarks },
      { lockDirectory },
    ] = await Promise.all([
      import('../board-directory.ts'),
      import('../log/signed-log.ts'),
      import('../log/mark.ts'),
      import('../../storage/lock.ts'),
    ])
    try {
      const { dataDirectory } = config
      const { origin, generation } = readFacts(machine.disk, dataDirectory)
      const lock = await lockDirectory(dataDirectory)
      try {
        const log = SignedLog.open({
          disk: machine.disk,
          dataDirectory,
          origin,
          segmentBytesMax: config.segmentBytesMax,
          marks: readMarks(machine.disk, config),
          begin: () => {
            throw new UnusableDirectory(
              `${dataDirectory} contains no signed log: nothing was published that could expire.`,
            )
          },
          report: () => {},
        })
        const { size, ranges } = log.newest
        log.close()
        refuseMixed(dataDirectory, ranges)
        const begun = beginEpoch(machine.disk, dataDirectory, machine.random)
        machine.disk.removeFile(restoredFile(dataDirectory))
        print(
          terminal,
          { ended: generation, generation: begun.generation, size },
          `The recovery epoch ${generation} has ended, ${begun.generation} begins with the next start.\n` +
            `The log continues after its ${size} entries. If larger heads were published, readers who kept one can prove it.\n`,
        )
        return exitCodes.ok
      } finally {
        lock.release()
      }
    } catch (error) {
      throw new CommandFailed(`${explainFailure(error).problem} No recovery epoch was begun.`)
    }
  },
}

type Covered = { readonly shard: number; readonly last: number }

/** A copy whose log is newer than its journals was made file by file. Throws CommandFailed. */
function refuseMixed(path: string, ranges: readonly Covered[]): void {
  for (const { shard, last } of ranges) {
    const journal = new JournalEnd(machine.disk, shardDirectory(path, shard))
    journal.advance()
    const { seq } = journal
    journal.close()
    if (seq < last)
      throw new CommandFailed(
        `The log of ${path} covers frame ${last} of shard ${shard}, whose journal ends at ${seq}: the log is newer than the journals, so this was copied file by file from a running board. Restore a copy that "broadside backup" made. No recovery epoch was begun.`,
      )
  }
}
