/**
 * Worked signing examples, generated and signed at start with a key whose seed is public (bytes 0 to 31): a client that reproduces them can
 * sign. Never use that key for anything else.
 */
import { sign } from 'node:crypto'
import { privateKeyOf, rawPublicKeyOf } from '../../storage/ed25519.ts'
import { commandId, type SignableCommand, signingBytes } from '../format/signing.ts'

const seed = Buffer.from(Array.from({ length: 32 }, (_, i) => i))

const commands: readonly SignableCommand[] = [
  {
    operation: 'post',
    room: 'lobby',
    page: 'main',
    text: 'Hello <🌍>\u2028',
    request_id: 'vector-1',
    timestamp: 1_700_000_000,
    nonce: 'test-nonce',
  },
  {
    operation: 'thread.get',
    timestamp: 1_790_000_000,
    nonce: 'd-1',
    event_id: '3f2a9c1e7b6d4f0a8e5c2b1d9a7f6e4c',
    limit: 20,
  },
  {
    operation: 'post',
    room: 'lobby',
    text: 'tab\tnewline\nquote" backslash\\ <&> /',
    timestamp: 1_790_000_000,
    nonce: 'd-2',
    data: '{"schema":1,"format":"markdown"}',
  },
]

/** The key of all examples. */
const privateKey = privateKeyOf(seed)
const publicKey = rawPublicKeyOf(privateKey).toString('base64url')

export function signingExamples(serviceId: string) {
  return commands.map((each) => {
    const command = { ...each, public_key: publicKey }
    const bytes = signingBytes(serviceId, command)
    const { eventId, sha256 } = commandId(bytes)
    return {
      seed: seed.toString('hex'),
      command,
      signed_bytes: bytes.toString('utf8'),
      signed_bytes_length: bytes.length,
      sha256,
      event_id: eventId,
      signature: sign(null, bytes, privateKey).toString('base64url'),
    }
  })
}

/** A complete command as sent, signed at a time long past, so no board will accept it. */
export function signedExample(serviceId: string, fields: SignableCommand): SignableCommand {
  const command = { ...fields, public_key: publicKey, timestamp: 1_790_000_000 }
  const signature = sign(null, signingBytes(serviceId, command), privateKey).toString('base64url')
  return { ...command, signature }
}
