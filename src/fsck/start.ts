/**
 * Checks what a start needs besides sound journals: the keys, and that no mark of the log is ahead of this directory.
 *
 * Signed heads that are missing count as damage. Everything else here prevents a start but loses no data; the sentence is the one that the
 * start would show, and says what to do.
 */
import { closedLogs, decodeLogFrame } from '../../actors/log/frame.ts'
import { type Disk, isUnreadable } from '../../storage/disk.ts'
import { JournalReader } from '../../storage/journal.ts'
import { createNoteKey } from '../../storage/note-signer.ts'
import {
  type BoardFacts,
  boardKeyFile,
  cursorKeyFile,
  followerFile,
  logDirectory,
  logKeyFile,
  readSecret,
  UnusableDirectory,
} from '../board-directory.ts'
import { rootBeyond } from '../log/covered.ts'
import {
  checkMark,
  type HighWaterMark,
  type KnownLog,
  type MarkPlace,
  RolledBack,
  readMarks,
  UnusableMark,
} from '../log/mark.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import { knownOf } from '../replication/follower-directory.ts'
import type { Finding } from './log.ts'

type OnFinding = (finding: Finding) => void
type NamedLog = { readonly name: string; readonly origin: string }

/** Checks the board's own keys; a follower's are with its leader. */
export function checkKeys(disk: Disk, path: string, { prints }: BoardFacts, onFinding: OnFinding): void {
  if (disk.fileExists(followerFile(path))) return
  secretIn(disk, boardKeyFile(path), onFinding, prints?.board)
  secretIn(disk, cursorKeyFile(path), onFinding, prints?.cursor)
}

/**
 * The verifier key of the log that grows, by the keys in this directory; '' if they are unusable, which has been reported. `name`: of a log
 * after the first.
 */
export function vkeyIn(disk: Disk, path: string, { name, origin }: NamedLog, onFinding: OnFinding): string {
  const followed = knownOf(disk, path)
  if (followed?.log.origin === origin) return followed.log.vkey
  if (followed !== undefined) {
    const what = `it knows the key of ${followed.log.origin}, but the leader has rotated its log since; the heads of ${origin} are checked at each start`
    onFinding({ kind: 'start', where: followerFile(path), what })
    return ''
  }
  const secret = secretIn(disk, logKeyFile(path, name), onFinding)
  return secret === undefined ? '' : createNoteKey(origin, secret).vkey
}

function secretIn(disk: Disk, file: string, onFinding: OnFinding, print?: string): Buffer | undefined {
  try {
    return readSecret(disk, file, { print })
  } catch (error) {
    if (!(error instanceof UnusableDirectory) && !isUnreadable(error)) throw error
    onFinding({ kind: 'start', where: file, what: error.message })
    return undefined
  }
}

/** `logs`: every log of the board, oldest first. `through`: the last frame of their journal, which must be entirely sound. */
export function checkMarks(
  disk: Disk,
  place: MarkPlace,
  logs: readonly LogIdentity[],
  through: number,
  onFinding: OnFinding,
): void {
  let marks: HighWaterMark[]
  try {
    marks = readMarks(disk, place)
  } catch (error) {
    if (!(error instanceof UnusableMark) && !isUnreadable(error)) throw error
    return onFinding({ kind: 'start', where: place.markFile, what: error.message })
  }
  // The mark may belong to the log whose key is unknown, which has been reported.
  if (logs.some(({ vkey }) => vkey === '')) return
  if (through === 0) {
    const empty = logs.map(({ vkey }) => ({ vkey, size: 0, rootOf: () => Buffer.alloc(0) }))
    for (const mark of marks) compareMark(mark, empty, onFinding)
    return
  }
  const journal = JournalReader.open(disk, logDirectory(place.dataDirectory))
  journal.advance(through)
  try {
    const known = knownLogs(disk, place.dataDirectory, logs, journal, through)
    for (const mark of marks) compareMark(mark, known, onFinding)
  } finally {
    journal.close()
  }
}

function compareMark(mark: HighWaterMark, known: readonly KnownLog[], onFinding: OnFinding): void {
  try {
    checkMark(mark, known)
  } catch (error) {
    if (error instanceof UnusableMark) return onFinding({ kind: 'start', where: mark.file, what: error.message })
    if (!(error instanceof RolledBack)) throw error
    onFinding({ kind: 'damage', where: mark.file, what: error.message })
  }
}

function knownLogs(
  disk: Disk,
  directory: string,
  logs: readonly LogIdentity[],
  journal: JournalReader,
  through: number,
): KnownLog[] {
  const closed = closedLogs(journal)
  return logs.map(({ vkey }, at) => {
    const { first, last } = closed[at] ?? { first: (closed.at(-1)?.last ?? 0) + 1, last: through }
    const headOf = (seq: number) => decodeLogFrame(journal.read(seq)!)
    const isLost = closed[at]?.isLost === true
    const rootOf = (size: number) => rootAt(size, first, last, headOf)
    const known = { vkey, isLost, size: headOf(last).size, rootOf }
    if (closed[at] !== undefined) return known
    const beyond = (size: number) => rootBeyond(disk, directory, headOf(last), journal.scan(first, last), size)
    return { ...known, rootBeyond: beyond }
  })
}

/** Every signed head belongs to a frame, and sizes grow from frame to frame. Empty if none has this size. */
function rootAt(
  size: number,
  first: number,
  last: number,
  headOf: (seq: number) => { readonly size: number; readonly root: Uint8Array },
): Buffer {
  let [low, high] = [first, last]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (headOf(middle).size < size) low = middle + 1
    else high = middle
  }
  const found = headOf(low)
  return found.size === size ? Buffer.from(found.root) : Buffer.alloc(0)
}
