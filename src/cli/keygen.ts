/** `broadside keygen`: makes a signing key. */
import { type Command, exitCodes, print } from './command-line.ts'
import { createKeyFile } from './key-file.ts'
import { keyFileDefault } from './shared-options.ts'

export const keygenCommand: Command = {
  name: 'keygen',
  summary: 'Makes a signing key (Ed25519) in a file that only you can read. It is your identity: keep a copy.',
  usage: `keygen [FILE]`,
  optionHelp: [],
  example: 'broadside keygen broadside-key.json',
  options: {},
  positionals: { min: 0, max: 1 },
  async run(args, terminal) {
    const path = args.positionals[0] ?? keyFileDefault
    const signer = createKeyFile(path)
    const { publicKey: public_key, id: identity } = signer
    print(
      terminal,
      { key_file: path, public_key, identity },
      `key file    ${path}\npublic key  ${public_key}\nidentity    ${identity}\n`,
    )
    return exitCodes.ok
  },
}
