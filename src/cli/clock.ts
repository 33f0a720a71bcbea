/** `broadside clock accept`: the operator confirms that the machine's clock is right after a jump. */
import { acceptClock } from '../clock-jumps.ts'
import { machine } from '../platform.ts'
import { boardSettings, settingsHelp, settingsOptions } from './board-settings.ts'
import { type Command, commandError, exitCodes, print, UsageError } from './command-line.ts'

export const clockCommand: Command = {
  name: 'clock',
  summary:
    'Confirms that the clock of this machine is right. A board whose clock has jumped reports it and suspends the time-outs of works until this is run, until the clocks agree again, or for 24 hours. The board may be running. A stopped one has to start within the hour.',
  usage: 'clock accept [--data DIR]',
  optionHelp: [...settingsHelp],
  example: 'broadside clock accept --data ./data',
  options: { ...settingsOptions },
  positionals: { min: 1, max: 1 },
  async run(args, terminal) {
    if (args.positionals[0] !== 'accept') throw new UsageError('The only action is "accept".')
    const { dataDirectory } = await boardSettings(args)
    const at = terminal.clock.wallSeconds()
    try {
      const { readFacts } = await import('../board-directory.ts')
      readFacts(machine.disk, dataDirectory)
      acceptClock(machine.disk, dataDirectory, at)
    } catch (error) {
      throw commandError(error)
    }
    print(
      terminal,
      { accepted: at },
      `Accepted: it is ${new Date(at * 1_000).toISOString()}. A running board applies this within seconds, a stopped one if it starts within the hour.\n`,
    )
    return exitCodes.ok
  },
}
