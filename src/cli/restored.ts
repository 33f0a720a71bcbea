/**
 * `broadside restored`: declares that a data directory contains a restored backup, so that clients that have seen newer data are notified.
 *
 * It begins a new recovery epoch (`generation`): cursors of updates expire, so that copies begin again; works in progress are
 * `recovery_required` until their worker confirms them. With `--lost`, the log ends too (restored-lost.ts).
 */

import { beginEpoch, readFacts, restoredFile } from '../board-directory.ts'
import type { Config } from '../config.ts'
import { machine } from '../platform.ts'
import { boardSettings, settingsHelp, settingsOptions } from './board-settings.ts'
import {
  type Command,
  CommandFailed,
  commandError,
  exitCodes,
  print,
  type Terminal,
  UsageError,
} from './command-line.ts'

const noEpochBegun = 'No recovery epoch was begun.'

export const restoredCommand: Command = {
  name: 'restored',
  summary:
    'Declares that the directory of a stopped board was restored from a backup, and begins another recovery epoch. Cursors of followers expire, and workers have 72 hours to confirm unfinished work. Run it once, before the first start on the newest backup. If the board signed more after the backup, that log cannot continue: with --lost it ends where the backup does, its key is removed (and may be lost already), all delegations and sign-ins end, and a new log begins, whose first entry says so. Environment: as for serve (DATA_DIR, MARK_FILE).',
  usage: 'restored [--data DIR] [--lost [--apply-from COPY] [--last-log NAME] [--vkey VKEY] [--cut-damage] [--yes]]',
  optionHelp: [
    ...settingsHelp,
    ['--lost', 'what was written after the backup is lost: end the log here and begin a new one'],
    [
      '--apply-from COPY',
      'with --lost: a mirror or an export of the lost board. The next start repeats what it shows as redacted after the backup',
    ],
    ['--last-log NAME', 'with --lost: the newest log of the lost board, such as 2026c, if it had closed logs since'],
    [
      '--vkey VKEY',
      'with --lost: the public key of the log, if its key file is lost and neither MARK_FILE nor a closed log names it',
    ],
    [
      '--cut-damage',
      'with --lost: the end of a journal is damaged, and no backup has it. Cut off what is damaged, and what comes after it; says first what that is',
    ],
    ['--yes', 'with --lost: do not ask'],
  ],
  example: 'broadside restored --data ./data',
  options: {
    ...settingsOptions,
    lost: { type: 'boolean' },
    'apply-from': { type: 'string' },
    'last-log': { type: 'string' },
    vkey: { type: 'string' },
    'cut-damage': { type: 'boolean' },
    yes: { type: 'boolean' },
  },
  positionals: { min: 0, max: 0 },
  async run(args, terminal) {
    const lastLog = args.text('last-log')
    const isOfLost =
      args.flag('yes') ||
      args.flag('cut-damage') ||
      ['apply-from', 'last-log', 'vkey'].some((name) => args.text(name) !== undefined)
    if (isOfLost && !args.flag('lost'))
      throw new UsageError('--apply-from, --last-log, --vkey, --cut-damage and --yes go with --lost.')
    if (lastLog !== undefined && !/^\d{4}[a-z]$/.test(lastLog))
      throw new UsageError('--last-log is a year and a letter, such as 2026c.')
    const config = await boardSettings(args)
    const [{ lockDirectory }, { cutDamage, pendingCut }, { restoreLost }, { refuseUnlessAlone }] = await Promise.all([
      import('../../storage/lock.ts'),
      import('./cut-damage.ts'),
      import('./restored-lost.ts'),
      import('../replication/writer.ts'),
    ])
    try {
      readFacts(machine.disk, config.dataDirectory)
      const lock = await lockDirectory(config.dataDirectory)
      try {
        refuseUnlessAlone(machine.disk, config.dataDirectory, { canStart: false })
        const isCutPending = pendingCut(machine.disk, config.dataDirectory) !== undefined
        if (isCutPending && !args.flag('cut-damage'))
          throw new CommandFailed(
            `"broadside restored --lost --cut-damage" was begun in ${config.dataDirectory}: run it again to complete it.`,
          )
        if (!args.flag('lost')) return await continueLog(config, terminal)
        const copy = args.text('apply-from')
        const vkey = args.text('vkey')
        const isConfirmed = args.flag('yes')
        if (args.flag('cut-damage') && !cutDamage(machine.disk, config.dataDirectory, isConfirmed, terminal))
          return exitCodes.failed
        return await restoreLost({ config, copy, lastLog, vkey, isConfirmed, platform: machine }, terminal)
      } finally {
        lock.release()
      }
    } catch (error) {
      throw commandError(error, noEpochBegun)
    }
  },
}

/** The log continues, because nothing was signed after the backup. */
async function continueLog(config: Config, terminal: Terminal): Promise<0> {
  const [{ SignedLog }, { readMarks }, { checkProofs, newerThanLog }, { pendingLoss }] = await Promise.all([
    import('../log/signed-log.ts'),
    import('../log/mark.ts'),
    import('../log/covered.ts'),
    import('./restored-lost.ts'),
  ])
  const { dataDirectory } = config
  const { origin, generation, shards } = readFacts(machine.disk, dataDirectory)
  if (pendingLoss(machine.disk, dataDirectory) !== undefined)
    throw new CommandFailed(`"broadside restored --lost" was begun in ${dataDirectory}: run it again to complete it.`)
  checkProofs(machine.disk, dataDirectory, shards)
  const marks = readMarks(machine.disk, config)
  const log = SignedLog.open({
    disk: machine.disk,
    dataDirectory,
    origin,
    segmentBytesMax: config.segmentBytesMax,
    marks,
    begin: () => {
      throw new CommandFailed(`${dataDirectory} contains no signed log: nothing was published that could expire.`)
    },
    report: () => {},
  })
  const { size, ranges } = log.newest
  log.close()
  const tail = newerThanLog(machine.disk, dataDirectory, ranges)
  const begun = beginEpoch(machine.disk, dataDirectory, { generation: machine.random(16).toString('hex') })
  machine.disk.removeFile(restoredFile(dataDirectory))
  print(
    terminal,
    { ended: generation, generation: begun.generation, size, records_not_covered: tail, has_mark: marks.length > 0 },
    `The recovery epoch ${generation} has ended, ${begun.generation} begins with the next start.\n` +
      `The log continues after its ${size} entries. If larger heads were published, readers who kept one can prove it.\n` +
      (marks.length > 0 ? '' : noMarkWords(config.markFile, size)) +
      tailWords(tail, ranges.length),
  )
  return exitCodes.ok
}

/** Without a mark, only the host knows that nothing was signed after the backup. */
function noMarkWords(markFile: string, size: number): string {
  return (
    `There is no mark at ${markFile}, so nothing here shows whether the board signed more than these ${size} entries.\n` +
    'If the mark of the old directory still exists, set MARK_FILE to it and run this again before the first start.\n'
  )
}

/** Describes records in the journals that the log does not cover: the copy was made while the board was running, or power was lost. */
function tailWords(records: number, shards: number): string {
  if (records === 0) return ''
  const made = `The journals have ${records} records that the log does not cover. The next start makes their entries`
  return shards === 1
    ? `${made}, the same as before.\n`
    : `${made}, perhaps in another order than before: if the board published them, use broadside restored --lost instead, before any start.\n`
}
