/** `broadside tools`: what an operator does with the tools directory. Its verbs are separate commands. */

import { systemClock } from '../clock.ts'
import { readConfig } from '../config.ts'
import { microsOf } from '../money/price.ts'
import { createOutgoing } from '../outgoing/request.ts'
import { challengesOf, requestIn } from '../payments/mpp.ts'
import { isObject, plainText, x402DemandOf } from '../payments/x402.ts'
import { release } from '../release.ts'
import { BadAnswer, BoardClient } from './client.ts'
import {
  type Arguments,
  type Command,
  CommandFailed,
  type ExitCode,
  exitCodes,
  print,
  type Terminal,
  UsageError,
} from './command-line.ts'
import { openKeyFile } from './key-file.ts'
import { capabilitiesToSign } from './known-boards.ts'
import { keyFileOf, keyOptionHelp, urlOf, urlOption, urlOptionHelp } from './shared-options.ts'
import { signCommand } from './sign.ts'
import { inertLine } from './terminal.ts'
import { importTools } from './tools-import.ts'

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
    keyOptionHelp,
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

const addressPattern = /^0x[0-9a-fA-F]{40}$/
const payeesMax = 8

/**
 * `broadside tools relay`: lets the wallet of a board pay for a tool. The tool's current price and payee are fetched from this machine, so
 * that the operator signs what they have seen: a price or payee that changes later is not paid.
 */
export async function relayTool(target: string, args: Arguments, terminal: Terminal): Promise<ExitCode> {
  const { signer } = await openKeyFile(keyFileOf(args))
  const client = new BoardClient({ url: urlOf(args), connections: 1 })
  try {
    const { serviceId } = await capabilitiesToSign(client, terminal)
    const terms = args.flag('off') ? { relay: false } : { relay: true, ...(await termsOf(target, args, client)) }
    const data = JSON.stringify({ schema: 1, ...terms })
    const command = { operation: 'tools.relay', target, data }
    const { body } = signCommand(command, { signer, serviceId, nowSeconds: terminal.clock.wallSeconds() })
    await client.command(body)
    print(
      terminal,
      { tool: target, ...terms },
      'payees' in terms
        ? `${inertLine(target)} is paid for, up to ${terms.max_price} dollars a call, to ${terms.payees.join(', ')}.\n`
        : `${inertLine(target)} is no longer paid for.\n`,
    )
    return exitCodes.ok
  } finally {
    client.close()
  }
}

async function termsOf(
  target: string,
  args: Arguments,
  client: BoardClient,
): Promise<{ max_price: string; payees: readonly string[] }> {
  const { tool } = await client.read(`/api/tool?id=${encodeURIComponent(target)}`)
  if (!isObject(tool)) throw new BadAnswer(client.url, '/api/tool shows no tool')
  const max_price = args.text('max-price') ?? plainText(tool.price)
  if ((microsOf(max_price) ?? 0) === 0)
    throw new CommandFailed('The listing names no price. Set the most that a call may cost: --max-price 0.01')
  const given = args.text('payee')?.split(',') ?? []
  const payees = given.length > 0 ? given : await payeesOf(plainText(tool.link), plainText(tool.method))
  const bad = payees.find((each) => !addressPattern.test(each))
  if (bad !== undefined) throw new CommandFailed(`"${inertLine(bad)}" is not an address of 0x and 40 hex digits.`)
  return { max_price, payees }
}

/** As named in listings. */
const methods: ReadonlySet<string> = new Set(['', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'])

/** The payees that the tool names now. */
async function payeesOf(url: string, method: string): Promise<readonly string[]> {
  if (!URL.canParse(url) || !methods.has(method))
    throw new CommandFailed(
      `The listing has no address that can be asked for the payee ("${inertLine(`${method} ${url}`.trim())}"). Name the payee: --payee 0x…`,
    )
  const outgoing = createOutgoing({
    timers: systemClock,
    loopback: readConfig().loopback,
    userAgent: `Broadside/${release} (cli)`,
  })
  const answer = await outgoing.request({ url, method: method === '' ? 'GET' : method })
  outgoing.close()
  const x402 = answer.ok ? (x402DemandOf(answer)?.accepts.map(({ payTo }) => payTo) ?? []) : []
  const mpp = answer.ok ? challengesOf(answer).map((challenge) => requestIn(challenge)?.recipient) : []
  const found = [...new Set([...x402, ...mpp].map(plainText))].filter((each) => addressPattern.test(each))
  if (found.length > 0) return found.slice(0, payeesMax)
  const seen = answer.ok ? `it answered ${answer.status}` : answer.reason
  throw new CommandFailed(`The tool does not name a payee (${seen}). Name the address: --payee 0x…`)
}
