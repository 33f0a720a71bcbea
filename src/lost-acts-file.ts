/**
 * `lost-acts.json`: the redactions, takedowns, and key changes that a lost board made after the backup that replaces it. `broadside restored
 * --lost --apply-from` writes it, and the next start applies it (src/board/lost-acts.ts).
 */
import { hash } from 'node:crypto'
import { join } from 'node:path'
import type { Disk } from '../storage/disk.ts'
import { UnusableDirectory } from './board-directory.ts'
import { foreignJson } from './format/foreign-json.ts'
import type { Fields } from './format/signer.ts'

/** A key change of an identity: the command as sent, with both signatures. */
export type MovedKey = Fields & { readonly signature: string; readonly proof: string }

export type LostActs = {
  /** Unix seconds. The board signs its redactions with this time, so each is the same command on every attempt. */
  readonly at: number
  /** Ids of redacted events. The log of the lost board lists them; whoever redacted them had signed that there. */
  readonly redacted: readonly string[]
  /** Oldest first. */
  readonly moved: readonly MovedKey[]
  /** SHA-256 of files that were taken down everywhere. Absent if an older release wrote the file. */
  readonly takenDown?: readonly string[]
}

/** Present until a start has applied them. */
export const lostActsFile = (path: string) => join(path, 'lost-acts.json')

export function saveLostActs(disk: Disk, path: string, acts: LostActs): void {
  const text = JSON.stringify({ ...acts, check: checkOf(acts) })
  disk.writeAtomic(lostActsFile(path), Buffer.from(`${text}\n`), 0o600)
}

/** The checksum over the acts, in the order in which they are written. */
function checkOf(acts: object): string {
  return hash('sha256', JSON.stringify(acts)).slice(0, 16)
}

/** Undefined if there are none to apply. Throws UnusableDirectory. */
export function readLostActs(disk: Disk, path: string): LostActs | undefined {
  const file = lostActsFile(path)
  if (!disk.fileExists(file)) return undefined
  const { check, ...found }: Readonly<Record<string, unknown>> = Object(
    foreignJson(disk.readWhole(file).toString('utf8')),
  )
  // Older releases wrote no checksum.
  if (isLostActs(found) && (check === undefined || check === checkOf(found))) return found
  throw new UnusableDirectory(
    `${file} is damaged, or was not written by "broadside restored --lost --apply-from". Run that command again, or remove the file: then what was redacted after the backup stays readable.`,
  )
}

function isLostActs(value: unknown): value is LostActs {
  const { at, redacted, moved, takenDown = [] } = Object(value) as Partial<Record<keyof LostActs, unknown>>
  const isHash = (hash: unknown): boolean => typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash)
  const isId = (id: unknown): boolean => typeof id === 'string' && /^[0-9a-f]{32}$/.test(id)
  const isMove = (move: unknown): boolean => (Object(move) as Partial<Fields>).operation === 'identity.rotate'
  return (
    Number.isSafeInteger(at) &&
    Array.isArray(redacted) &&
    redacted.every(isId) &&
    Array.isArray(takenDown) &&
    takenDown.every(isHash) &&
    Array.isArray(moved) &&
    moved.every(isMove)
  )
}
