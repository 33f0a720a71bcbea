/** `broadside tools`: what an operator does with the tools directory. Its verbs are commands of their own. */
import { type Command, UsageError } from './command-line.ts'
import { keyFileDefault, urlOption, urlOptionHelp } from './shared-options.ts'
import { importTools } from './tools-import.ts'

export const toolsCommand: Command = {
  name: 'tools',
  summary:
    'Takes a list of tools into the directory of a running board, signed by its operator. FILE: JSON lines or one JSON ' +
    'document: flat rows (id, kind, type, name, …), items of an x402 Bazaar, services of the MPP directory, or server.json ' +
    'of the MCP Registry. Rows keep their ids, so the same list again changes only what is new.',
  usage: 'tools import FILE [options]',
  optionHelp: [
    urlOptionHelp,
    ['--key FILE', `the operator's key (default ${keyFileDefault})`],
    ['--source TEXT', 'what the list is called where it does not say so (default: the name of the file)'],
    ['--list', 'name every row that was not taken, not only the first ten'],
  ],
  example: 'broadside tools import x402-resources.jsonl --key operator.json',
  options: { ...urlOption, key: { type: 'string' }, source: { type: 'string' }, list: { type: 'boolean' } },
  positionals: { min: 2, max: 2 },
  run(args, terminal) {
    const [verb, subject] = args.positionals as [string, string]
    if (verb === 'import') return importTools(subject, args, terminal)
    throw new UsageError(`tools knows no "${verb}". See: broadside tools --help`)
  },
}
