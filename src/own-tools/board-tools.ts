/** Built-in tools that query the board: its verifier, its search, its log key and its name. */

import { openCheckpoint } from '../../storage/checkpoint.ts'
import { leafHash } from '../../storage/merkle.ts'
import { verifyInclusion } from '../../storage/merkle-verify.ts'
import { parseVkey } from '../../storage/note.ts'
import { parseProofFile } from '../../storage/proof-file.ts'
import { commandId, FIELD_ORDER, identityId, type SignableCommand, signingBytes } from '../format/signing.ts'
import { parseStrictText } from '../format/strict-json.ts'
import { decodedBase64, givenBytes } from './here.ts'
import { BadInput, type Input, type Output, readJson } from './own-tool.ts'

/** What these tools may query. */
export type BoardAccess = {
  readonly serviceId: string
  /** Verifier key of this board's log. */
  readonly vkey: string
  readonly verify: (
    signature: Buffer,
    publicKey: Buffer,
    message: Buffer,
    callback: (verdict: 'good' | 'bad_key' | 'bad_signature' | 'overloaded') => void,
  ) => void
  /** `events.list` of public events, as its JSON; a text says why not. `from`: the network of the caller. */
  readonly search: (args: Readonly<Record<string, string | number>>, from: string) => Promise<string | Found>
}

export type Found = {
  readonly events: readonly {
    readonly event_id: string
    readonly room: string
    readonly author: { readonly id: string; readonly handle?: string }
    readonly created_at: number
    readonly text?: string
  }[]
  readonly has_more: boolean
}

/** By id. */
export const boardTools: Readonly<
  Record<string, (input: Input, board: BoardAccess, from: string) => Output | Promise<Output>>
> = {
  'broadside:verify-signature': verifySignature,
  'broadside:verify-proof': verifyProof,
  'broadside:search': search,
  'broadside:sign-bytes': signBytes,
}

/** The board is too busy to answer. */
export class Busy extends Error {
  override name = 'Busy'
}

async function verifySignature(input: Input, { verify }: BoardAccess): Promise<Output> {
  const key = fixedBytes(String(input.public_key), 32, 'public_key')
  const signature = fixedBytes(String(input.signature), 64, 'signature')
  const message = givenBytes(input)
  const verdict = await new Promise<string>((resolve) => verify(signature, key, message, resolve))
  if (verdict === 'overloaded') throw new Busy()
  const identity = identityId(key)
  if (verdict === 'good') return { valid: true, identity }
  const why =
    verdict === 'bad_key' ? 'the key is not a canonical, torsion-free Ed25519 key' : 'the signature does not match'
  return { valid: false, identity, why }
}

/** Hex, or base64 in either alphabet. */
function fixedBytes(text: string, length: number, name: string): Buffer {
  const bytes = new RegExp(`^[0-9a-f]{${length * 2}}$`).test(text)
    ? Buffer.from(text, 'hex')
    : decodedBase64(text, name)
  if (bytes.length !== length) throw new BadInput(`${name} has ${length} bytes, in hex or base64url`)
  return bytes
}

type Claim = {
  readonly entry: Buffer | undefined
  readonly index: number
  readonly path: readonly Uint8Array[]
  readonly checkpoint: string
}

function verifyProof(input: Input, { vkey }: BoardAccess): Output {
  const key = parseVkey(input.vkey === undefined ? vkey : String(input.vkey))
  if (!key.ok) throw new BadInput(`vkey is not a verifier key: ${key.problem}`)
  const claim = claimOf(String(input.proof))
  if (typeof claim === 'string') return { valid: false, why: claim }
  const entry = input.entry === undefined ? claim.entry : decodedBase64(String(input.entry), 'entry')
  if (entry === undefined) throw new BadInput('the proof contains no entry: give the one to prove as entry')
  const opened = openCheckpoint(claim.checkpoint, key.value)
  if (!opened.ok) return { valid: false, why: `the checkpoint does not verify: ${opened.problem}` }
  const { size, root, origin } = opened.value
  const leaf = leafHash(entry)
  const facts = { origin, index: claim.index, tree_size: size, leaf_hash: leaf.toString('hex') }
  if (verifyInclusion(claim.index, size, leaf, claim.path, root)) return { valid: true, ...facts }
  return { valid: false, why: 'the path does not lead from the entry to the root that the checkpoint signs', ...facts }
}

function claimOf(proof: string): Claim | string {
  if (!proof.trimStart().startsWith('{')) {
    const parsed = parseProofFile(proof)
    if (!parsed.ok) return `the proof cannot be read: ${parsed.problem}`
    const { extra, ...rest } = parsed.value
    return { ...rest, entry: extra === undefined ? undefined : Buffer.from(extra) }
  }
  const outer = readJson(proof, 'proof') as Record<string, unknown>
  const { entry, leaf_index, inclusion_path, checkpoint } = (outer.data ?? outer) as Record<string, unknown>
  const isPath = (path: unknown): path is string[] =>
    Array.isArray(path) && path.length <= 63 && path.every((each) => /^[0-9a-f]{64}$/.test(String(each)))
  if (!Number.isSafeInteger(leaf_index) || !isPath(inclusion_path) || typeof checkpoint !== 'string')
    return 'the JSON has no leaf_index, inclusion_path and checkpoint as log.proof answers them'
  return {
    entry: typeof entry === 'string' ? decodedBase64(entry, 'entry') : undefined,
    index: leaf_index as number,
    path: inclusion_path.map((each) => Buffer.from(each, 'hex')),
    checkpoint,
  }
}

const snippetChars = 280

async function search({ query, room, limit = 10 }: Input, { search: ask }: BoardAccess, from: string): Promise<Output> {
  const named = room === undefined ? {} : { room: String(room) }
  const found = await ask({ query: String(query), limit: Number(limit), ...named }, from)
  if (typeof found === 'string') throw new BadInput(found)
  const results = found.events.map(({ event_id, room: at, author, created_at, text = '' }) => ({
    event_id,
    room: at,
    author: author.handle ?? author.id,
    created_at,
    text: [...text].slice(0, snippetChars).join(''),
    url: `/e/${event_id}`,
  }))
  return { results, text_is_untrusted: true, has_more: found.has_more }
}

function signBytes({ command }: Input, { serviceId }: BoardAccess): Output {
  const parsed = parseStrictText(String(command))
  if (!parsed.ok) throw new BadInput(`command is not strict JSON: ${parsed.message}`)
  const fields = parsed.value
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    throw new BadInput('command must be one JSON object')
  const { signature: _, proof: __, ...signed } = fields as Record<string, unknown>
  if (typeof signed.operation !== 'string') throw new BadInput('command needs operation, a string')
  for (const [name, value] of Object.entries(signed)) {
    if (!(FIELD_ORDER as readonly string[]).includes(name))
      throw new BadInput(`a command has no field ${name.slice(0, 64)}`)
    const isList = Array.isArray(value) && value.every((each) => typeof each === 'string')
    if (typeof value !== 'string' && typeof value !== 'number' && !isList)
      throw new BadInput(`${name} must be a string, an integer or a list of strings`)
  }
  const bytes = signingBytes(serviceId, signed as SignableCommand)
  const { eventId, sha256 } = commandId(bytes)
  return { signing_bytes: bytes.toString('utf8'), length: bytes.length, sha256, event_id: eventId }
}
