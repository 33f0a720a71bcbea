/** `broadside tools`: what an operator does with the tools directory. Its verbs are commands of their own. */
import { type Command, UsageError } from './command-line.ts'
import { keyFileDefault, urlOption, urlOptionHelp } from './shared-options.ts'
import { importTools } from './tools-import.ts'
import { relayTool } from './tools-relay.ts'

export const toolsCommand: Command = {
  name: 'tools',
  summary:
    'Takes a list of tools into the directory of a running board, signed by its operator. FILE: JSON lines or one JSON ' +
    'document: flat rows (id, kind, type, name, …), items of an x402 Bazaar, services of the MPP directory, or server.json ' +
    'of the MCP Registry. Rows keep their ids, so the same list again changes only what is new. With relay: lets the wallet ' +
    'of the board pay for a tool, at the price and to the payees that it names now.',
  usage: 'tools import FILE [options]\n       broadside tools relay ID [options]',
  optionHelp: [
    urlOptionHelp,
    ['--key FILE', `the operator's key (default ${keyFileDefault})`],
    ['--source TEXT', 'what the list is called where it does not say so (default: the name of the file)'],
    ['--max-price DOLLARS', 'relay: what a call may cost (default: what the listing says)'],
    ['--payee ADDRESSES', 'relay: who may be paid, with commas (default: whom the tool asks to pay now)'],
    ['--off', 'relay: the wallet pays for it no longer'],
    ['--list', 'name every row that was not taken, not only the first ten'],
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
    throw new UsageError(`tools knows no "${verb}". See: broadside tools --help`)
  },
}
