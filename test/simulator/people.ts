/** The users of a board, each with keys to rotate to, and the commands that they sign. */
import { createHash } from 'node:crypto'
import { type PartReader, readOnThisThread } from '../../src/export-check/readers.ts'
import { type Signer, signerFromSeed } from '../../src/format/signer.ts'
import { commandId, type FieldValue, signingBytes } from '../../src/format/signing.ts'
import { chooseBackend, type Ed25519Backend } from '../../src/verify/backends.ts'
import { judgeBatch, unpackBatch } from '../../src/verify/batch.ts'

export type Fields = { readonly operation: string } & { readonly [field: string]: FieldValue }

/** `body`: as it is sent. */
export type Signed = { readonly id: string; readonly sha256: string; readonly body: Buffer }

export type Person = {
  readonly name: string
  readonly id: string
  readonly keys: readonly Signer[]
  /** Index of the key that the board accepts. */
  key: number
}

const keysEach = 4
const names = ['olga', 'ada', 'ben', 'cai', 'dot', 'eve', 'fay', 'gus', 'hal', 'ida']

/** Keys cost more than everything else, and are the same in every run. */
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

const backend = chooseBackend()

/** Signatures of one run. Those made here are valid without being verified, which would take a twentieth of a run. */
export class Signatures {
  readonly #made = new Map<string, { readonly message: Buffer; readonly publicKey: string }>()
  readonly #backend: Ed25519Backend = {
    ...backend,
    verify: (signature, message, publicKey) => {
      const made = this.#made.get(Buffer.from(signature).toString('latin1'))
      const isMade =
        made?.message.equals(message) === true && made.publicKey === Buffer.from(publicKey).toString('base64url')
      return isMade || backend.verify(signature, message, publicKey)
    },
  }

  /** Parses exports. */
  get reader(): PartReader {
    return readOnThisThread(this.#backend)
  }

  /** In base64url. */
  sign(signer: Signer, message: Buffer): string {
    const signature = signer.sign(message)
    this.#made.set(signature.toString('latin1'), { message, publicKey: signer.publicKey })
    return signature.toString('base64url')
  }

  /** The verdicts of a verifying thread on a batch. */
  judge(letter: ArrayBuffer): Uint8Array {
    return judgeBatch(this.#backend, unpackBatch(letter))
  }
}

type Signing = {
  readonly serviceId: string
  readonly timestamp: number
  readonly nonce: string
  readonly signatures: Signatures
}

/** `proves`: a second key signs the same bytes, as a proof of consent. */
export function signed(
  fields: Fields,
  signer: Signer,
  { serviceId, signatures, ...stamp }: Signing,
  proves?: Signer,
): Signed {
  const command = { ...fields, public_key: signer.publicKey, ...stamp }
  const bytes = signingBytes(serviceId, command)
  const { eventId: id, sha256 } = commandId(bytes)
  const proof = proves === undefined ? {} : { proof: signatures.sign(proves, bytes) }
  const body = { ...command, ...proof, signature: signatures.sign(signer, bytes) }
  return { id, sha256, body: Buffer.from(JSON.stringify(body)) }
}
