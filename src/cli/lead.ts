/** `broadside lead`: a stopped follower replaces its leader. */
import { machine } from '../platform.ts'
import { boardSettings, settingsHelp, settingsOptions } from './board-settings.ts'
import { type Command, CommandFailed, exitCodes, print } from './command-line.ts'
import { warningsOn, withStoppedBoard } from './stopped-board.ts'

export const leadCommand: Command = {
  name: 'lead',
  summary:
    'Makes a stopped follower the leader: it applies everything in the stream, and from then on the stream accepts nothing from the previous leader. It is done only where nothing can be lost by it: the previous leader has handed over (broadside hand-over), or acknowledges by quorum. If it is killed at any moment, run it again.',
  usage: 'lead [--data DIR]',
  optionHelp: settingsHelp,
  example: 'broadside lead --data ./copy',
  notes: [
    'It needs the settings of a board that publishes (REPLICATE, REPLICATE_KEY_FILE, REPLICATE_SYSTEM_KEY_FILE, REPLICATE_ACK), and in',
    'the directory of the follower a copy of the leader’s keys directory, mode 0600.',
  ],
  options: settingsOptions,
  positionals: { min: 0, max: 0 },
  async run(args, terminal) {
    const config = await boardSettings(args)
    const { dataDirectory, lead: settings } = config
    if (settings === undefined) throw new CommandFailed(needsStream('lead'))
    const [{ takeLead }, { openStream }, { adoptLeaderPositions, removeLeaderPositions }] = await Promise.all([
      import('../replication/lead.ts'),
      import('../replication/open-stream.ts'),
      import('../webhooks/leader-positions.ts'),
    ])
    const { epoch, seq } = await withStoppedBoard(dataDirectory, async () => {
      const takeDeliveries = (path: string) => adoptLeaderPositions(machine.disk, path)
      const led = await takeLead({
        ...machine,
        config,
        settings,
        openStream,
        takeDeliveries,
        report: warningsOn(terminal),
      })
      removeLeaderPositions(machine.disk, dataDirectory)
      return led
    })
    print(
      terminal,
      { data: dataDirectory, epoch, message: seq },
      `This board leads from message ${seq} of the stream on, with epoch ${epoch}. Start it with broadside serve, and send writes to it.\n`,
    )
    return exitCodes.ok
  },
}

export function needsStream(command: string): string {
  return `broadside ${command} needs the stream: set REPLICATE, REPLICATE_KEY_FILE and REPLICATE_SYSTEM_KEY_FILE as on a board that publishes.`
}
