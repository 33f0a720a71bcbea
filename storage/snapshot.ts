/**
 * Snapshots: the state of an owner at a journal position, so that a start replays only the tail.
 *
 * A snapshot is an optimisation, never truth: deleting all of them changes nothing but the time of a start. File
 * `<seq, 20 digits>.snapshot`, little-endian:
 *
 *   offset  bytes  field
 *        0      4  magic       "BSS" and version 1
 *        4     16  journal id
 *       20      8  seq         the state holds all frames up to this one
 *       28      4  crc         CRC-32 (IEEE) of bytes 0..28 and the state
 *       32      n  state
 */
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { Damage, fileExists, listFiles, makeDirectory, readWhole, removeFile, writeAtomic } from './disk.ts'
import { readSeq, writeSeq } from './frame.ts'

/** The one in use, and one more in case it turns out to be unreadable. */
const snapshotsKept = 2

const magicAndVersion = Buffer.from('BSS\x01', 'latin1')
const headerBytes = 32
const crcAt = 28

export type Snapshot = { readonly seq: number; readonly bytes: Buffer }

/**
 * Saves the state `bytes` after the durable frame `seq`, atomically, and removes all but the newest two.
 * Throws DiskFull, SyncFailed or a system error; the older snapshots then still stand.
 */
export function save(
  directory: string,
  snapshot: { readonly journalId: Buffer; readonly seq: number; readonly bytes: Uint8Array },
): void {
  makeDirectory(directory)
  const file = Buffer.alloc(headerBytes + snapshot.bytes.length)
  magicAndVersion.copy(file)
  snapshot.journalId.copy(file, 4)
  writeSeq(file, snapshot.seq, 20)
  file.set(snapshot.bytes, headerBytes)
  file.writeUInt32LE(checksum(file), crcAt)
  writeAtomic(pathOf(directory, snapshot.seq), file)
  for (const seq of snapshotSeqs(directory).slice(snapshotsKept)) removeFile(pathOf(directory, seq))
}

/**
 * The newest sound snapshot of this journal; broken ones and those of other journals are passed over.
 * `seqMax` is the last durable seq: a sound snapshot beyond it proves that the journal lost what it had acknowledged,
 * and throws Damage.
 */
export function loadNewest(directory: string, journalId: Buffer, seqMax: number): Snapshot | undefined {
  for (const seq of snapshotSeqs(directory)) {
    const path = pathOf(directory, seq)
    const file = readWhole(path)
    if (!isSound(file, journalId, seq)) continue
    if (seq > seqMax) {
      const expected = `a journal with frame ${seq}, which this snapshot holds`
      throw new Damage({ path, offset: 20, expected, found: `a journal that ends at ${seqMax}` })
    }
    return { seq, bytes: file.subarray(headerBytes) }
  }
  return undefined
}

/**
 * Every snapshot that no start would take. What a sound one holds is not compared with the frames it was made of.
 * `isDamage`: it is sound, and proves that the journal, which ends at `seqMax`, has lost frames.
 */
export function* badSnapshots(
  directory: string,
  journalId: Buffer,
  seqMax: number,
): Generator<{ readonly path: string; readonly problem: string; readonly isDamage: boolean }, void, undefined> {
  for (const seq of fileExists(directory) ? snapshotSeqs(directory) : []) {
    const path = pathOf(directory, seq)
    if (!isSound(readWhole(path), journalId, seq))
      yield { path, problem: 'its checksum, its journal or its number is another one', isDamage: false }
    else if (seq > seqMax)
      yield { path, problem: `it holds frame ${seq} of a journal that ends at ${seqMax}`, isDamage: true }
  }
}

function isSound(file: Buffer, journalId: Buffer, seq: number): boolean {
  if (file.length < headerBytes || !file.subarray(0, 4).equals(magicAndVersion)) return false
  if (file.readUInt32LE(crcAt) !== checksum(file)) return false
  return file.subarray(4, 20).equals(journalId) && readSeq(file, 20) === seq
}

function checksum(file: Buffer): number {
  return crc32(file.subarray(headerBytes), crc32(file.subarray(0, crcAt)))
}

function pathOf(directory: string, seq: number): string {
  return join(directory, `${String(seq).padStart(20, '0')}.snapshot`)
}

/** Newest first. */
function snapshotSeqs(directory: string): number[] {
  const names = listFiles(directory).filter((name) => /^\d{20}\.snapshot$/.test(name))
  return names.map((name) => Number(name.slice(0, 20))).reverse()
}
