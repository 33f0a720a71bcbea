/** `broadside fsck`: checks a data directory that no board is using. */
import { restoreBackup } from '../failure.ts'
import { machine } from '../platform.ts'
import { boardSettings, settingsHelp, settingsOptions } from './board-settings.ts'
import { type Command, commandError, exitCodes, print } from './command-line.ts'
import { Progress } from './progress.ts'
import { grouped, inertLine } from './terminal.ts'

/** More lines than this would tell a person nothing new. */
const findingsShownMax = 50

export const fsckCommand: Command = {
  name: 'fsck',
  summary:
    'Recomputes every entry, root and checkpoint of a stopped board from its files, and reports what differs and where.',
  usage: 'fsck [--data DIR] [--signatures] [--repair] [--explain]',
  optionHelp: [
    ...settingsHelp,
    ['--explain', 'explain what each finding damages, what the consequences are, and what to do'],
    [
      '--signatures',
      'check who signed each record too: authors, delegations, moves to other keys (60 microseconds each)',
    ],
    [
      '--repair',
      'rebuild derived data that differs (node hashes, indexes), and remove bad snapshots; changes nothing if there is damage',
    ],
  ],
  example: 'broadside fsck --data ./data --explain',
  options: {
    ...settingsOptions,
    signatures: { type: 'boolean' },
    repair: { type: 'boolean' },
    explain: { type: 'boolean' },
  },
  positionals: { min: 0, max: 0 },
  async run(args, terminal) {
    const { dataDirectory: path, markFile } = await boardSettings(args)
    const [{ checkBoard }, { explanationOf }, { incompleteProblem, readFacts }, { lockDirectory }, { chooseBackend }] =
      await Promise.all([
        import('../fsck/fsck.ts'),
        import('../fsck/explain.ts'),
        import('../board-directory.ts'),
        import('../../storage/lock.ts'),
        import('../verify/backends.ts'),
      ])
    const backend = args.flag('signatures') ? chooseBackend() : undefined
    const hasMark = machine.disk.fileExists(markFile)
    const progress = new Progress({ terminal, unit: 'log frames' })
    let shown = 0
    const repaired: string[] = []
    const lock = await Promise.resolve()
      .then(() => readFacts(machine.disk, path))
      .then(() => lockDirectory(path, { reader: !args.flag('repair') }))
      .catch((error: unknown) => {
        throw commandError(error)
      })
    try {
      const result = checkBoard({
        disk: machine.disk,
        path,
        markFile,
        verify:
          backend === undefined ? undefined : (signature, message, key) => backend.verify(signature, message, key),
        onProgress: (done, total) => progress.update(done, total),
        onFinding: (finding) => {
          const { kind, where, what } = finding
          const meaning = args.flag('explain') ? explanationOf(finding) : undefined
          const row = { finding: kind, where, what, ...(meaning !== undefined && { meaning }) }
          if (++shown <= findingsShownMax || terminal.json !== undefined)
            print(
              terminal,
              row,
              `${kind.padEnd(8)} ${inertLine(`${where}: ${what}`)}\n${meaning === undefined ? '' : `         ${meaning}\n`}`,
            )
        },
        ...(args.flag('repair') && { onRepaired: ({ where }) => repaired.push(where) }),
      })
      progress.clear()
      for (const where of repaired.slice(0, findingsShownMax)) terminal.out(`repaired ${where}\n`)
      if (shown > findingsShownMax) terminal.out(`…and ${grouped(shown - findingsShownMax)} more.\n`)
      print(
        terminal,
        { ...result, findings: shown, repaired, signatures: backend !== undefined, mark: hasMark },
        `${grouped(result.frames)} frames, ${grouped(result.bytes)} bytes, ${grouped(result.leaves)} leaves checked.\n`,
      )
      if (result.damages > 0) {
        terminal.out(
          `${grouped(result.damages)} ${result.damages === 1 ? 'damaged place' : 'damaged places'}: this board no longer has everything it acknowledged. Keep these files. ${args.flag('explain') ? 'Do what is said below each finding, from the first one on.' : `Run it again with --explain, which says what to do about each finding. Only if it says so, ${restoreBackup}.`}\n`,
        )
        return exitCodes.unverified
      }
      if (result.refusals > 0) {
        terminal.out(
          'Nothing that was acknowledged is missing, but the board cannot start here until this is repaired.\n',
        )
        return exitCodes.failed
      }
      terminal.out(
        shown === 0
          ? 'Everything agrees.\n'
          : `Nothing that was acknowledged is missing; only derived data differs${remaining(shown, repaired.length, args.flag('repair'))}\n`,
      )
      const incomplete = incompleteProblem(machine.disk, path)
      if (incomplete !== undefined) terminal.out(`It does not start yet: ${inertLine(incomplete)}\n`)
      if (backend === undefined) terminal.out('Who signed the records was not checked: --signatures does that.\n')
      if (!hasMark)
        terminal.out(
          `There is no mark at ${inertLine(markFile)}, so an older copy of the directory would look the same.\n`,
        )
      return exitCodes.ok
    } finally {
      lock.release()
    }
  },
}

function remaining(found: number, repaired: number, isRepair: boolean): string {
  if (repaired === found) return ', and it was repaired.'
  const tail = 'is cut off at the next start'
  if (isRepair) return `: ${repaired} of ${found} were repaired; the rest was never acknowledged and ${tail}.`
  return `: it is rebuilt when needed, or now with --repair. A tail that was never acknowledged ${tail}.`
}
