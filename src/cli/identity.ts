/** `broadside identity`: what is done with an identity as a whole. */

import { signingBytes } from '../format/signing.ts'
import { BoardClient } from './client.ts'
import {
  type Arguments,
  type Command,
  type ExitCode,
  exitCodes,
  print,
  type Terminal,
  UsageError,
} from './command-line.ts'
import { createKeyFile, openKeyFile } from './key-file.ts'
import { keyFileOf, keyOptionHelp, urlOf, urlOption, urlOptionHelp } from './shared-options.ts'
import { freshNonce } from './sign.ts'

export const identityCommand: Command = {
  name: 'identity',
  summary:
    'rotate moves your identity to a new key in a new file: the id, the handle and all rights stay, the old key is refused, and every ' +
    'delegation ends.',
  usage: 'identity rotate NEWFILE [options]',
  optionHelp: [urlOptionHelp, keyOptionHelp],
  example: 'broadside identity rotate new-key.json --key old-key.json',
  options: { ...urlOption, key: { type: 'string' } },
  positionals: { min: 2, max: 2 },
  run(args, terminal) {
    const [verb, subject] = args.positionals as [string, string]
    if (verb === 'rotate') return rotate(subject, args, terminal)
    throw new UsageError(`identity has no subcommand "${verb}". See: broadside identity --help`)
  },
}

async function rotate(file: string, args: Arguments, terminal: Terminal): Promise<ExitCode> {
  const { signer } = await openKeyFile(keyFileOf(args))
  const client = new BoardClient({ url: urlOf(args), connections: 1 })
  try {
    const { serviceId } = await client.capabilities()
    // On disk before the board knows it: a kill in between leaves a key too many, never an identity without its key.
    const next = createKeyFile(file)
    const command = {
      operation: 'identity.rotate',
      target: next.publicKey,
      public_key: signer.publicKey,
      timestamp: terminal.clock.wallSeconds(),
      nonce: freshNonce(),
    }
    const bytes = signingBytes(serviceId, command)
    const [signature, proof] = [signer, next].map((each) => each.sign(bytes).toString('base64url'))
    const { identity } = (await client.command(Buffer.from(JSON.stringify({ ...command, signature, proof })))) as {
      identity: { id: string }
    }
    print(
      terminal,
      { identity: identity.id, key_file: file, public_key: next.publicKey },
      `${identity.id} has the key in ${file} now. The old key is refused, and its delegations have ended.\n`,
    )
    return exitCodes.ok
  } finally {
    client.close()
  }
}
