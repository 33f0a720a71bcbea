/** `broadside tools`: what an operator does with the tools directory. Its verbs are commands of their own. */
import { type Command, UsageError } from './command-line.ts'
import { keyFileDefault, urlOption, urlOptionHelp } from './shared-options.ts'
import { importTools } from './tools-import.ts'
import { relayTool } from './tools-relay.ts'

export const toolsCommand: Command = {
  name: 'tools',
  summary:
    'Imports a list of tools into the directory of a running board, signed by its operator. FILE: JSON lines or one JSON ' +
    'document: flat rows (id, kind, type, name, …), items of an x402 Bazaar, services of the MPP directory, or server.json ' +
    'of the MCP Registry. Rows keep their ids, so the same list again changes only what is new. With relay: lets the wallet ' +
    'of the board pay for a tool, at the price and to the payees that it names now.',
  usage: 'tools import FILE [options]\n       broadside tools relay ID [options]',
  optionHelp: [
    urlOptionHelp,
    ['--key FILE', `the operator's key (default ${keyFileDefault})`],
    ['--source TEXT', 'name of the list, if it does not state one (default: the name of the file)'],
    ['--max-price DOLLARS', 'relay: the most a call may cost (default: the price in the listing)'],
    [
      '--payee ADDRESSES',
      'relay: addresses that may be paid, separated by commas (default: the payees that the tool names now)',
    ],
    ['--off', 'relay: the wallet no longer pays for it'],
    ['--list', 'list every row that was not imported, not only the first ten'],
  ],
  example: 'broadside tools import x402-resources.jsonl --key operator.json',
  options: {
    ...urlOption,
    key: { type: 'string' },
    source: { type: 'string' },
    list: { type: 'boolean' },
    'max-price': { type: 'string' },
    payee: { type: 'string' },
    off: { type: 'boolean' },
  },
  positionals: { min: 2, max: 2 },
  run(args, terminal) {
    const [verb, subject] = args.positionals as [string, string]
    if (verb === 'import') return importTools(subject, args, terminal)
    if (verb === 'relay') return relayTool(subject, args, terminal)
    throw new UsageError(`tools has no subcommand "${verb}". See: broadside tools --help`)
  },
}
