/**
 * A witness for other logs (C2SP tlog-witness): signs that a head is the largest consistent one it has seen.
 *
 * What it has seen is synced to disk before it answers: one file for each log, `<hex SHA-256 of the origin>`, with the newest checkpoint
 * and the cosignature. Requests about the same log are processed one at a time.
 */
import { createHash, sign } from 'node:crypto'
import { join } from 'node:path'
import { openCheckpoint, parseCheckpoint } from '../../../storage/checkpoint.ts'
import type { Disk } from '../../../storage/disk.ts'
import { privateKeyOf, rawPublicKeyOf } from '../../../storage/ed25519.ts'
import { EMPTY_ROOT } from '../../../storage/merkle.ts'
import { verifyConsistency } from '../../../storage/merkle-verify.ts'
import {
  cosignedBytes,
  formatNote,
  formatVkey,
  KEY_TYPE,
  keyIdOf,
  parseNote,
  parseVkey,
  type SignatureLine,
  verifyNote,
} from '../../../storage/note.ts'
import type { PolicyLog } from '../../../storage/tlog-policy.ts'
import { parseAddCheckpoint } from './add-checkpoint.ts'

export const witnessDirectory = (dataDirectory: string): string => join(dataDirectory, 'witness')
export const witnessKeyFile = (dataDirectory: string): string => join(dataDirectory, 'keys', 'witness.key')

type WitnessOptions = {
  readonly disk: Disk
  readonly directory: string
  /** Name of the witness, as in its vkey. */
  readonly name: string
  /** 32 bytes. */
  readonly seed: Buffer
  /** The logs it signs for. */
  readonly logs: readonly PolicyLog[]
  /** Unix seconds. */
  readonly now: () => number
}

type WitnessAnswer = { readonly status: 200 | 400 | 403 | 404 | 409 | 422; readonly body: string }

const noSize = { size: 0, root: EMPTY_ROOT }

export class Witness {
  readonly vkey: string
  readonly #options: WitnessOptions
  readonly #key: ReturnType<typeof privateKeyOf>
  readonly #keyId: number

  constructor(options: WitnessOptions) {
    this.#options = options
    this.#key = privateKeyOf(options.seed)
    const publicKey = rawPublicKeyOf(this.#key)
    this.vkey = formatVkey({ name: options.name, type: KEY_TYPE.cosignature, publicKey })
    this.#keyId = keyIdOf(options.name, KEY_TYPE.cosignature, publicKey)
    options.disk.makeDirectory(options.directory)
  }

  /** Processes one add-checkpoint request; a 200 has been synced. Throws DiskFull, SyncFailed. */
  addCheckpoint(body: string): WitnessAnswer {
    const request = parseAddCheckpoint(body)
    if (!request.ok) return answer(400, request.problem)
    const { old, path, checkpoint } = request.value
    const note = parseNote(checkpoint)
    if (!note.ok) return answer(400, note.problem)
    const origin = note.value.text.split('\n', 1)[0]!
    const known = this.#options.logs.filter(({ key }) => key.name === origin)
    if (known.length === 0) return answer(404, 'no log of this origin is witnessed here')
    const opened = known.map(({ key }) => openCheckpoint(checkpoint, key)).find(({ ok }) => ok)
    if (opened === undefined || !opened.ok) return answer(403, 'no trusted key of this log has signed the checkpoint')
    const { size, root } = opened.value
    if (old > size) return answer(400, 'old is greater than the size of the checkpoint')
    const seen = this.#seen(origin)
    if (old !== seen.size) return { status: 409, body: `${seen.size}\n` }
    const isConsistent =
      old === 0
        ? path.length === 0 && (size > 0 || root.equals(EMPTY_ROOT))
        : verifyConsistency(old, size, path, seen.root, root)
    if (!isConsistent) return answer(422, 'the proof does not lead from the head seen before to this one')
    const line = this.#cosign(note.value.text)
    const kept = formatNote(note.value.text, [...note.value.lines.slice(0, 1), line])
    this.#options.disk.writeAtomic(this.#file(origin), Buffer.from(kept))
    return { status: 200, body: formatNote('x\n', [line]).slice('x\n\n'.length) }
  }

  /** The newest cosigned checkpoint of the log whose origin has this SHA-256 (hex); undefined if none was seen. */
  newest(originHash: string): string | undefined {
    const { disk, directory } = this.#options
    const path = join(directory, originHash)
    return /^[0-9a-f]{64}$/.test(originHash) && disk.fileExists(path)
      ? disk.readWhole(path).toString('utf8')
      : undefined
  }

  #seen(origin: string): { size: number; root: Buffer } {
    const text = this.newest(hashOf(origin))
    if (text === undefined) return noSize
    const note = parseNote(text)
    const lines = note.ok ? note.value.text.split('\n') : []
    // Only this class writes it, atomically.
    return { size: Number(lines[1]), root: Buffer.from(lines[2] ?? '', 'base64') }
  }

  #file(origin: string): string {
    return join(this.#options.directory, hashOf(origin))
  }

  #cosign(text: string): SignatureLine {
    const seconds = BigInt(this.#options.now())
    const time = Buffer.alloc(8)
    time.writeBigUInt64BE(seconds)
    const signature = Buffer.concat([time, sign(null, cosignedBytes(Buffer.from(text), seconds), this.#key)])
    return { name: this.#options.name, keyId: this.#keyId, signature }
  }
}

/**
 * What is wrong with a file in which a witness with this key stores the newest checkpoint of a log; undefined if nothing is. `name`: of
 * the file.
 */
export function storedHeadProblem(name: string, text: string, seed: Buffer): string | undefined {
  const note = parseNote(text)
  if (!note.ok) return note.problem
  const checkpoint = parseCheckpoint(note.value.text)
  if (!checkpoint.ok) return checkpoint.problem
  if (hashOf(checkpoint.value.origin) !== name) return 'it is not of the log that its name says'
  const signer = note.value.lines.at(-1)?.name ?? ''
  const publicKey = rawPublicKeyOf(privateKeyOf(seed))
  const key = parseVkey(formatVkey({ name: signer, type: KEY_TYPE.cosignature, publicKey }))
  const signed = key.ok ? verifyNote(note.value, [key.value]) : key
  return signed.ok ? undefined : signed.problem
}

function answer(status: 400 | 403 | 404 | 422, problem: string): WitnessAnswer {
  return { status, body: `${problem}\n` }
}

function hashOf(origin: string): string {
  return createHash('sha256').update(origin).digest('hex')
}
