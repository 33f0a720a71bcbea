/** `broadside rekey`: changes the key with which a stopped board seals its secrets. */
import { replaceCursorKey } from '../board-directory.ts'
import { machine } from '../platform.ts'
import { boardSettings, settingsHelp, settingsOptions } from './board-settings.ts'
import { type Command, exitCodes, print } from './command-line.ts'
import { withStoppedBoard } from './stopped-board.ts'

export const rekeyCommand: Command = {
  name: 'rekey',
  summary:
    'Replaces keys/cursor.key of a stopped board, which seals cursors, read tokens and secrets of webhooks and receive URLs. All cursors and read tokens expire. Sealed secrets stay readable with the old key, which is kept as keys/cursor-N.key: their owners should change those that a thief can open. With --lost the old key is gone: webhooks send nothing, and receive URLs with a signature accept nothing, until their owners create new secrets.',
  usage: 'rekey [--data DIR] [--lost]',
  optionHelp: [
    ...settingsHelp,
    ['--lost', 'keys/cursor.key is missing, or is not the one of this board; refused if it is here'],
  ],
  example: 'broadside rekey --data ./data',
  options: { ...settingsOptions, lost: { type: 'boolean' } },
  positionals: { min: 0, max: 0 },
  async run(args, terminal) {
    const { dataDirectory } = await boardSettings(args)
    const isLost = args.flag('lost')
    const { refuseUnlessAlone } = await import('../replication/writer.ts')
    await withStoppedBoard(dataDirectory, async () => {
      refuseUnlessAlone(machine.disk, dataDirectory, { canStart: !isLost })
      replaceCursorKey(machine.disk, dataDirectory, isLost, machine.random)
    })
    const secrets = isLost
      ? 'Webhooks send nothing, and receive URLs with a signature accept nothing, until their owners create new secrets.\n'
      : 'Webhooks and receive URLs keep working. Tell their owners to change their secrets: with the old key and the journals a thief can open them.\n'
    print(
      terminal,
      { data: dataDirectory, lost: isLost },
      `keys/cursor.key is replaced. All cursors and read tokens have expired.\n${secrets}Back up keys/ again, encrypted.\n`,
    )
    return exitCodes.ok
  },
}
