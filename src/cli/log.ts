/** `broadside log rotate`: closes the log of a stopped board, and begins a new one with a new key. */
import { machine } from '../platform.ts'
import { boardSettings, settingsHelp, settingsOptions } from './board-settings.ts'
import { type Command, exitCodes, print, UsageError } from './command-line.ts'
import { warningsOn, withStoppedBoard } from './stopped-board.ts'
import { grouped } from './terminal.ts'

export const logCommand: Command = {
  name: 'log',
  summary:
    'log rotate permanently closes the log of a stopped board and begins the next one under a new key. The closed log is served as before; its last entry names the next one, whose first entry names its end. With BASE_URL the next log is named after it.',
  usage: 'log rotate [--data DIR]',
  optionHelp: settingsHelp,
  example: 'broadside log rotate --data ./data',
  options: settingsOptions,
  positionals: { min: 1, max: 1 },
  async run(args, terminal) {
    if (args.positionals[0] !== 'rotate')
      throw new UsageError('log has one subcommand: rotate. Usage: broadside log rotate [--data DIR]')
    const config = await boardSettings(args)
    const [{ rotateLog }, { refuseUnlessAlone }] = await Promise.all([
      import('../log/rotation.ts'),
      import('../replication/writer.ts'),
    ])
    const now = terminal.clock.wallSeconds()
    const { closed, next } = await withStoppedBoard(config.dataDirectory, () => {
      refuseUnlessAlone(machine.disk, config.dataDirectory, { canStart: true })
      return rotateLog({ ...config, platform: machine, now, report: warningsOn(terminal) })
    })
    print(
      terminal,
      { closed: { log: closed.origin, size: closed.size }, next: { log: next.origin, vkey: next.vkey } },
      `${closed.origin} is closed with ${grouped(closed.size)} entries, and its key is removed.\n` +
        `${next.origin} follows it, with the key\n\n  ${next.vkey}\n\n` +
        'Readers who pinned the old key find the new one in the last entry of the old log. Give the new key to the witnesses of this log.\n',
    )
    return exitCodes.ok
  },
}
