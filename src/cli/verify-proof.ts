/**
 * Checks one proof offline: the answer of `/api/log/proof`, or a C2SP tlog-proof file.
 *
 * Every step is recomputed from the bytes (RFC 9162 section 2.1.3.2): entry -> leaf hash -> path -> root -> the checkpoint's root -> the
 * log's signature. Returns the facts shown to a person; throws Unverified with the failing step.
 */
import { hash } from 'node:crypto'
import { parseEntry } from '../../actors/records/entry.ts'
import { decodeBase64 } from '../../storage/base64.ts'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import { leafHash } from '../../storage/merkle.ts'
import { verifyInclusion } from '../../storage/merkle-verify.ts'
import { parseVkey, type VerifierKey } from '../../storage/note.ts'
import { parseProofFile } from '../../storage/proof-file.ts'
import { type Fields, recordOf, textOf } from '../export-check/signed-line.ts'
import { Unverified } from './command-line.ts'

export type ProvenFacts = {
  readonly eventId: string
  readonly index: number
  readonly size: number
  readonly pathHashes: number
  readonly origin: string
  /** True if the signed bytes were included and hash to the entry's command line. */
  readonly hasSignedBytes: boolean
}

/** `proof` = the `data` of `/api/log/proof`. */
export function verifyProofJson(proof: Fields, logKey: VerifierKey): ProvenFacts {
  const entry = decodeBase64(textOf(proof.entry))
  if (entry === undefined) throw new Unverified('The entry is not canonical base64.')
  const leaf = leafHash(entry)
  if (leaf.toString('hex') !== proof.leaf_hash) throw new Unverified('The entry does not hash to leaf_hash.')
  if (!Number.isSafeInteger(proof.leaf_index)) throw new Unverified('leaf_index is not the number of a leaf.')
  const path = hashesOf(proof.inclusion_path)
  const facts = verifySteps({
    entry,
    leaf,
    index: proof.leaf_index as number,
    path,
    checkpoint: textOf(proof.checkpoint),
    logKey,
    signedBytes: proof.signed_payload === undefined ? undefined : Buffer.from(textOf(proof.signed_payload)),
  })
  if (proof.event_id !== facts.eventId)
    throw new Unverified('The entry belongs to a different event than event_id names.')
  if (proof.tree_size !== facts.size) throw new Unverified('tree_size is not the size that the checkpoint signs.')
  if (proof.root_hash !== facts.root.toString('hex'))
    throw new Unverified('root_hash is not the root that the checkpoint signs.')
  const { origin, vkey } = recordOf(proof.log)
  if (origin !== undefined && origin !== facts.origin)
    throw new Unverified('log.origin is not the log of the checkpoint.')
  if (vkey !== undefined && !isOf(logKey, textOf(vkey)))
    throw new Unverified('log.vkey is not the key that the checkpoint was checked with.')
  return facts
}

function isOf({ name, publicKey }: VerifierKey, vkey: string): boolean {
  const parsed = parseVkey(vkey)
  return parsed.ok && parsed.value.name === name && parsed.value.publicKey.equals(publicKey)
}

/** A tlog-proof file whose `extra` is the entry. */
export function verifyProofText(file: Uint8Array, logKey: VerifierKey): ProvenFacts {
  const parsed = parseProofFile(file)
  if (!parsed.ok) throw new Unverified(`The proof file cannot be read: ${parsed.problem}.`)
  const { extra, index, path, checkpoint } = parsed.value
  if (extra === undefined) {
    throw new Unverified('The proof file contains no entry in its "extra" line, so there is nothing to prove.')
  }
  const entry = Buffer.from(extra)
  return verifySteps({ entry, leaf: leafHash(entry), index, path, checkpoint, logKey, signedBytes: undefined })
}

type Steps = {
  readonly entry: Buffer
  readonly leaf: Buffer
  readonly index: number
  readonly path: readonly Uint8Array[]
  readonly checkpoint: string
  readonly logKey: VerifierKey
  readonly signedBytes: Buffer | undefined
}

function verifySteps({
  entry,
  leaf,
  index,
  path,
  checkpoint,
  logKey,
  signedBytes,
}: Steps): ProvenFacts & { root: Buffer } {
  const lines = parseEntry(entry)
  const eventId = lines?.get('event')
  const command = lines?.get('command')
  if (eventId === undefined || command === undefined)
    throw new Unverified('The entry is not in the format of a Broadside board.')
  if (command.slice(0, 32) !== eventId) throw new Unverified('The event id is not the first half of the command hash.')
  if (signedBytes !== undefined && hash('sha256', signedBytes) !== command) {
    throw new Unverified('The signed bytes do not hash to the command line of the entry.')
  }
  const opened = openCheckpoint(checkpoint, logKey)
  if (!opened.ok) throw new Unverified(`The checkpoint does not verify: ${opened.problem}.`)
  const { size, root, origin } = opened.value
  if (!verifyInclusion(index, size, leaf, path, root)) {
    throw new Unverified('The path does not lead from the entry to the root that the checkpoint signs.')
  }
  return { eventId, index, size, pathHashes: path.length, origin, hasSignedBytes: signedBytes !== undefined, root }
}

function hashesOf(value: unknown): Buffer[] {
  if (!Array.isArray(value) || value.length > 63)
    throw new Unverified('inclusion_path is not a list of at most 63 hashes.')
  return value.map((text: unknown) => {
    if (typeof text !== 'string' || !/^[0-9a-f]{64}$/.test(text)) {
      throw new Unverified('A hash of inclusion_path is not 64 hex digits.')
    }
    return Buffer.from(text, 'hex')
  })
}
