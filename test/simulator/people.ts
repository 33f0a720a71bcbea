/** Those who use a board, each with keys to move to, and the commands that they sign. */
import { createHash } from 'node:crypto'
import { type Signer, signerFromSeed } from '../../src/format/signer.ts'
import { commandId, type FieldValue, signingBytes } from '../../src/format/signing.ts'

export type Fields = { readonly operation: string } & { readonly [field: string]: FieldValue }

/** `body`: as it is sent. */
export type Signed = { readonly id: string; readonly sha256: string; readonly body: Buffer }

export type Person = {
  readonly name: string
  readonly id: string
  readonly keys: readonly Signer[]
  /** Place of the key that the board takes. */
  key: number
}

const keysEach = 4
const names = ['olga', 'ada', 'ben', 'cai', 'dot', 'eve', 'fay', 'gus', 'hal', 'ida']

/** Keys cost more than all else, and are the same in every run. */
const signers = new Map<string, Signer>()

export function signerOf(name: string): Signer {
  const known = signers.get(name) ?? signerFromSeed(createHash('sha256').update(`simulated ${name}`).digest())
  signers.set(name, known)
  return known
}

/** The first is the operator of the board. */
export function makePeople(): Person[] {
  return names.map((name) => {
    const keys = Array.from({ length: keysEach }, (_, key) => signerOf(`${name} ${key}`))
    return { name, id: keys[0]!.id, keys, key: 0 }
  })
}

type Signing = { readonly serviceId: string; readonly timestamp: number; readonly nonce: string }

/** `proves`: a second key signs the same bytes, as a proof that it agrees. */
export function signed(fields: Fields, signer: Signer, { serviceId, ...stamp }: Signing, proves?: Signer): Signed {
  const command = { ...fields, public_key: signer.publicKey, ...stamp }
  const bytes = signingBytes(serviceId, command)
  const { eventId: id, sha256 } = commandId(bytes)
  const proof = proves === undefined ? {} : { proof: proves.sign(bytes).toString('base64url') }
  const body = { ...command, ...proof, signature: signer.sign(bytes).toString('base64url') }
  return { id, sha256, body: Buffer.from(JSON.stringify(body)) }
}
