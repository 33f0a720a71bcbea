/** `broadside keygen`: creates a signing key. */
import { type Command, exitCodes, print, UsageError } from './command-line.ts'
import { createKeyFile, createNatsKeyFile, createReplicaKeyFile } from './key-file.ts'
import { keyFileDefault } from './shared-options.ts'

export const keygenCommand: Command = {
  name: 'keygen',
  summary: 'Makes a signing key (Ed25519) in a file that only you can read. It is your identity: keep a copy.',
  usage: `keygen [FILE] [--nats | --replica]`,
  optionHelp: [
    ['--nats', 'make a key for REPLICATE_KEY_FILE or REPLICATE_SYSTEM_KEY_FILE instead; FILE has to be given'],
    ['--replica', 'make a secret for REPLICA_KEY_FILE instead; FILE has to be given'],
  ],
  example: 'broadside keygen broadside-key.json',
  options: { nats: { type: 'boolean' }, replica: { type: 'boolean' } },
  positionals: { min: 0, max: 1 },
  async run(args, terminal) {
    const [given] = args.positionals
    if (args.flag('nats')) {
      if (given === undefined) throw new UsageError('keygen --nats needs the name of a file.')
      const nkey = await createNatsKeyFile(given)
      print(terminal, { key_file: given, nkey }, `key file    ${given}\npublic key  ${nkey}\n`)
      return exitCodes.ok
    }
    if (args.flag('replica')) {
      if (given === undefined) throw new UsageError('keygen --replica needs the name of a file.')
      createReplicaKeyFile(given)
      print(terminal, { key_file: given }, `key file    ${given}\n`)
      return exitCodes.ok
    }
    const path = given ?? keyFileDefault
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
