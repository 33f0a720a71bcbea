/** `broadside fsck`: checks a data directory that no board is using. */
import { type Command, CommandFailed } from './command-line.ts'

export const fsckCommand: Command = {
  name: 'fsck',
  summary: 'Recomputes every entry and root of a stopped board from its files, and says what differs and where.',
  usage: 'fsck [--data DIR]',
  optionHelp: [['--data DIR', 'the board’s directory (default ./data)']],
  example: 'broadside fsck --data ./data',
  options: { data: { type: 'string' } },
  positionals: { min: 0, max: 0 },
  async run() {
    throw new CommandFailed('fsck is not there yet.')
  },
}
