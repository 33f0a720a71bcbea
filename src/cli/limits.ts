/** `broadside limits`: shows whose rates and quotas an operator has raised, and raises them. */
import { BoardClient } from './client.ts'
import { type Arguments, type Command, exitCodes, print, UsageError } from './command-line.ts'
import { openKeyFile } from './key-file.ts'
import { capabilitiesToSign } from './known-boards.ts'
import { keyFileOf, keyOptionHelp, urlOf, urlOption, urlOptionHelp } from './shared-options.ts'
import { type CommandFields, signCommand } from './sign.ts'
import { inertLine } from './terminal.ts'

/** One grant as the board reports it; a grant from the settings has no time. */
type Grant = {
  readonly target: string
  readonly factor?: number
  readonly reason?: string
  readonly expires_at?: number
}

export const limitsCommand: Command = {
  name: 'limits',
  summary:
    'Lists the raised rates and quotas of a running board, and raises them temporarily, signed by its operator. TARGET: ' +
    'an identity id, an address, or a network such as 192.0.2.0/24 or 2001:db8::/32. An identity with a grant is counted ' +
    'separately from its network.',
  usage:
    'limits list [options]\n       broadside limits grant TARGET [options]\n       broadside limits revoke TARGET [options]',
  optionHelp: [
    urlOptionHelp,
    keyOptionHelp,
    ['--factor N', 'grant: multiple of the limits, from 2 (default: no rate or quota applies)'],
    ['--hours N', 'grant: for how long (default 24)'],
    ['--reason TEXT', 'grant and revoke: why, for operators to read'],
  ],
  example: 'broadside limits grant 192.0.2.0/24 --factor 10 --hours 48 --key operator.json',
  options: {
    ...urlOption,
    key: { type: 'string' },
    factor: { type: 'string' },
    hours: { type: 'string' },
    reason: { type: 'string' },
  },
  positionals: { min: 1, max: 2 },
  async run(args, terminal) {
    const [verb, target] = args.positionals as [string, string?]
    const isList = verb === 'list'
    if (!isList && verb !== 'grant' && verb !== 'revoke')
      throw new UsageError(`limits has no subcommand "${verb}". See: broadside limits --help`)
    if (isList !== (target === undefined))
      throw new UsageError(isList ? 'limits list takes no TARGET.' : `limits ${verb} needs a TARGET.`)
    const show = (grant: Grant) => print(terminal, grant, `${lineOf(grant)}\n`)
    const { signer } = await openKeyFile(keyFileOf(args))
    const client = new BoardClient({ url: urlOf(args), connections: 1 })
    try {
      const { serviceId } = await capabilitiesToSign(client, terminal)
      const send = (fields: CommandFields) =>
        client.command(signCommand(fields, { signer, serviceId, nowSeconds: terminal.clock.wallSeconds() }).body)
      if (target === undefined) {
        for (const grant of await inForce(send)) show(grant)
        return exitCodes.ok
      }
      const reason = args.text('reason')
      const common = { target, ...(reason === undefined ? {} : { reason }) }
      if (verb === 'revoke') {
        await send({ operation: 'limits.revoke', ...common })
        print(terminal, { target, revoked: true }, `${inertLine(target)} has the default limits again.\n`)
        return exitCodes.ok
      }
      const { grant } = (await send({ operation: 'limits.grant', ...common, ...termsOf(args) })) as { grant: Grant }
      show(grant)
      return exitCodes.ok
    } finally {
      client.close()
    }
  },
}

function termsOf(args: Arguments): { readonly ttl: number; readonly data: string } {
  const hours = args.integer('hours', { fallback: 24, min: 1, max: 87_600 })
  const factor =
    args.text('factor') === undefined ? undefined : args.integer('factor', { fallback: 2, min: 2, max: 1_000 })
  const terms = factor === undefined ? { exempt: true } : { factor }
  return { ttl: hours * 3_600, data: JSON.stringify({ schema: 1, ...terms }) }
}

async function inForce(send: (fields: CommandFields) => Promise<Record<string, unknown>>): Promise<Grant[]> {
  const found: Grant[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await send({ operation: 'limits.list', limit: 200, ...(cursor === undefined ? {} : { cursor }) })
    const { grants, configured, next_cursor } = page as {
      grants: readonly Grant[]
      configured: readonly Grant[]
      next_cursor?: string
    }
    if (cursor === undefined) found.push(...configured)
    found.push(...grants)
    if (next_cursor === undefined) return found
    cursor = next_cursor
  }
}

function lineOf({ target, factor, reason, expires_at: end }: Grant): string {
  const much = factor === undefined ? 'no limits' : `${factor} times the limits`
  const until = end === undefined ? 'by the settings of the board' : `until ${new Date(end * 1000).toISOString()}`
  return inertLine(`${target}  ${much}, ${until}${reason === undefined ? '' : `  (${reason})`}`)
}
