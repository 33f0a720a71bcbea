/** `broadside delegate`: creates a key file for a delegate that acts for the signer, within the given scopes and time. */
import { scopes as allScopes } from '../../actors/kernel/operation.ts'
import { signingBytes } from '../format/signing.ts'
import { BoardClient } from './client.ts'
import { type Command, exitCodes, print, UsageError } from './command-line.ts'
import { createKeyFile, openKeyFile } from './key-file.ts'
import { capabilitiesToSign } from './known-boards.ts'
import { keyFileOf, keyOptionHelp, urlOf, urlOption, urlOptionHelp } from './shared-options.ts'
import { freshNonce } from './sign.ts'

const hoursDefault = 8
const hoursMax = 2_160

export const delegateCommand: Command = {
  name: 'delegate',
  summary:
    'Creates a key in a new file FILE that acts for you, with the scopes and for the time that you specify. An operator moderates ' +
    'in a browser with such a key (/moderate), for a day at most, and keeps their own key elsewhere.',
  usage: 'delegate FILE [options]',
  optionHelp: [
    urlOptionHelp,
    keyOptionHelp,
    ['--scopes LIST', `what it may do, separated by commas: ${allScopes.join(',')} (default board:read,board:post)`],
    ['--hours N', `how long, from 1 (default ${hoursDefault}; board:operate at most 24)`],
    ['--label TEXT', 'your own label for it'],
  ],
  example: 'broadside delegate operate.json --scopes board:read,board:moderate,board:operate --key operator.json',
  options: {
    ...urlOption,
    key: { type: 'string' },
    scopes: { type: 'string' },
    hours: { type: 'string' },
    label: { type: 'string' },
  },
  positionals: { min: 1, max: 1 },
  async run(args, terminal) {
    const file = args.positionals[0]!
    const scopes = (args.text('scopes') ?? 'board:read,board:post').split(',').map((each) => each.trim())
    const strange = scopes.find((each) => !allScopes.some((scope) => scope === each))
    if (strange !== undefined)
      throw new UsageError(`"${strange}" is not a scope. The scopes are: ${allScopes.join(', ')}.`)
    const ttl = args.integer('hours', { fallback: hoursDefault, min: 1, max: hoursMax }) * 3_600
    const { signer } = await openKeyFile(keyFileOf(args))
    const client = new BoardClient({ url: urlOf(args), connections: 1 })
    try {
      const { serviceId } = await capabilitiesToSign(client, terminal)
      const delegate = createKeyFile(file)
      const label = args.text('label')
      const command = {
        operation: 'delegation.create',
        target: delegate.publicKey,
        ttl,
        data: JSON.stringify({ schema: 1, scopes, ...(label === undefined ? {} : { label }) }),
        public_key: signer.publicKey,
        timestamp: terminal.clock.wallSeconds(),
        nonce: freshNonce(),
      }
      const bytes = signingBytes(serviceId, command)
      const [signature, proof] = [signer, delegate].map((each) => each.sign(bytes).toString('base64url'))
      await client.command(Buffer.from(JSON.stringify({ ...command, signature, proof })))
      print(
        terminal,
        { key_file: file, public_key: delegate.publicKey, scopes, ttl },
        `${file} acts for you: ${scopes.join(', ')}, for ${ttl / 3_600} h. End it with delegation.revoke.\n`,
      )
      return exitCodes.ok
    } finally {
      client.close()
    }
  },
}
