/**
 * The one request between a log and its witness (C2SP tlog-witness, add-checkpoint): how it is written and read.
 *
 *   old <size>
 *   <base64 of a consistency hash>      0 to 63 lines
 *                                       one empty line
 *   <signed checkpoint>
 */
import { decodeBase64, encodeBase64 } from '../../../storage/base64.ts'
import { parseCount } from '../../../storage/checkpoint.ts'
import { HASH_BYTES } from '../../../storage/merkle.ts'
import { type Parsed, unreadable } from '../../../storage/parsed.ts'

type AddCheckpoint = {
  /** The size that the witness knows; 0 if it knows none. */
  readonly old: number
  readonly path: readonly Uint8Array[]
  /** The signed note. */
  readonly checkpoint: string
}

const pathHashesMax = 63

export function formatAddCheckpoint({ old, path, checkpoint }: AddCheckpoint): string {
  return `old ${old}\n${path.map((hash) => `${encodeBase64(hash)}\n`).join('')}\n${checkpoint}`
}

export function parseAddCheckpoint(text: string): Parsed<AddCheckpoint> {
  const split = text.indexOf('\n\n')
  if (split < 0) return unreadable('an empty line precedes the checkpoint')
  const [first = '', ...lines] = text.slice(0, split).split('\n')
  const old = first.startsWith('old ') ? parseCount(first.slice(4)) : undefined
  if (old === undefined) return unreadable('the first line is "old <size>"')
  if (lines.length > pathHashesMax) return unreadable(`a proof has at most ${pathHashesMax} hashes`)
  const path: Buffer[] = []
  for (const line of lines) {
    const hash = decodeBase64(line)
    if (hash?.length !== HASH_BYTES) return unreadable('a line of the proof is not a hash')
    path.push(hash)
  }
  return { ok: true, value: { old, path, checkpoint: text.slice(split + 2) } }
}
