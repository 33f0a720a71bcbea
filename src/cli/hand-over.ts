/** `broadside hand-over`: a stopped board hands its leadership to one of its followers. */
import { machine } from '../platform.ts'
import { boardSettings, settingsHelp, settingsOptions } from './board-settings.ts'
import { type Command, CommandFailed, exitCodes, print } from './command-line.ts'
import { needsStream } from './lead.ts'
import { warningsOn, withStoppedBoard } from './stopped-board.ts'
import { inertLine } from './terminal.ts'

export const handOverCommand: Command = {
  name: 'hand-over',
  summary:
    'Hands the leadership of a stopped board to one of its followers. The stream gets everything that the board has, and a message that it writes no more. Then run broadside lead on a follower; this directory becomes that of a follower (broadside follow), and may lead again. If it is killed at any moment, run it again.',
  usage: 'hand-over [--data DIR]',
  optionHelp: settingsHelp,
  example: 'broadside hand-over --data ./data',
  options: settingsOptions,
  positionals: { min: 0, max: 0 },
  async run(args, terminal) {
    const config = await boardSettings(args)
    const { dataDirectory, lead: settings } = config
    if (settings === undefined) throw new CommandFailed(needsStream('hand-over'))
    const [{ handOver }, { openStream }] = await Promise.all([
      import('../replication/hand-over.ts'),
      import('../replication/open-stream.ts'),
    ])
    const tell = (problem: string) => terminal.err(`${inertLine(problem)}\n`)
    await withStoppedBoard(dataDirectory, () =>
      handOver({ platform: machine, config, settings, openStream, tell, report: warningsOn(terminal) }),
    )
    print(
      terminal,
      { data: dataDirectory },
      'The stream has everything of this board, and a message that it writes no more. Run broadside lead on a follower. This directory is now that of a follower: start it with broadside follow.\n',
    )
    return exitCodes.ok
  },
}
