/**
 * The full check of a journal: rereads every byte of every segment and checks it against everything that the segment
 * states about itself.
 *
 * A damaged or unreadable frame does not end the check: it searches for the next whole frame, and the footer says what
 * the next segment must follow. Nothing is changed. The problems are reported to an operator. `Journal.open` repairs
 * what is derived or was never acknowledged; `rebuildSegmentIndex` repairs a single index.
 */
import { framesAround, type Gap } from './around-damage.ts'
import { CHAIN_START } from './chain.ts'
import { Damage, type Disk, type DiskFile, FailedRead, failedAt, readError, unlessUnreadable } from './disk.ts'
import { type Durable, markedDurable, newestDurable } from './durable-mark.ts'
import { FOOTER } from './frame.ts'
import { damageAfter, headerWasDurable } from './recovery.ts'
import { buildIndex } from './sealed-index.ts'
import { SealedSegment } from './sealed-segment.ts'
import {
  checkSegmentHeader,
  footerOf,
  indexPath,
  listSegments,
  type Predecessor,
  readSegmentHeader,
  type SegmentHeader,
  segmentPath,
} from './segment.ts'
import { sealedDamage, type Walk, walkSegment } from './walk.ts'

/**
 * `damage`: durable bytes are not what was written. `torn-tail`: bytes after the last frame of the last segment that
 * nothing proves to have been durable; cut at the next start. `index`: missing or wrong, and rebuilt when needed.
 * `no-file`: something other than a file has the name of an index, and the board refuses to start. `headerless`: a newest
 * segment without a header.
 */
export type JournalProblem = {
  readonly kind: 'damage' | 'torn-tail' | 'index' | 'no-file' | 'headerless'
  readonly path: string
  readonly offset: number
  readonly expected: string
  readonly found: string
  /** First seq of the segment concerned. */
  readonly firstSeq: number
  /** For damage: the newest frame that it makes unreadable, as far as known. */
  readonly through: number
}

export type JournalCheck = {
  readonly segments: number
  readonly frames: number
  readonly bytes: number
  /** Number of problems of the kind `damage`. */
  readonly damages: number
  readonly nextSeq: number
  /** Undefined if no segment has a readable header. */
  readonly journalId: Buffer | undefined
  /** Chain hash of the newest segment; undefined if damage hides it. */
  readonly chain: Buffer | undefined
}

/**
 * Checks headers, CRCs, seqs, chain hashes, footers and indexes of all segments in `directory`. If damage hides what a
 * segment must follow, it is checked against its own header. Nothing may be appended to the journal during the check.
 */
export function verifyJournal(
  disk: Disk,
  directory: string,
  onProblem: (problem: JournalProblem) => void,
  knownDurable: (journalId: Buffer) => Durable = () => ({ seq: 0, by: '' }),
): JournalCheck {
  // If the directory is gone, so are all segments; the caller can tell from other files.
  const firsts = disk.fileExists(directory) ? listSegments(disk, directory, 'log') : []
  const total = { segments: firsts.length, frames: 0, bytes: 0, damages: 0 }
  const report = (problem: JournalProblem) => {
    if (problem.kind === 'damage') total.damages++
    onProblem(problem)
  }
  let before: Before = { journalId: undefined, nextSeq: 1, chain: CHAIN_START }
  for (const [i, firstSeq] of firsts.entries()) {
    const position = i === firsts.length - 1 ? 'newest' : 'older'
    if (before.nextSeq !== undefined && firstSeq !== before.nextSeq) {
      report(gap(directory, before.nextSeq, firstSeq))
      before = { ...before, chain: undefined }
    }
    const known = (id: Buffer) => newestDurable(knownDurable(id), markedDurable(disk, directory, id))
    const checkedFile = { path: segmentPath(directory, firstSeq), position, knownDurable: known } as const
    const next = firsts[i + 1]
    const through = next === undefined ? firstSeq : next - 1
    const checked = verifyFile(disk, checkedFile, { ...before, nextSeq: firstSeq, through }, report)
    if (!checked) {
      const lost = next === undefined && before.journalId !== undefined ? known(before.journalId).seq : 0
      const nextSeq = next ?? Math.max(firstSeq, lost + 1)
      before = { ...before, nextSeq, chain: next === undefined && lost < firstSeq ? before.chain : undefined }
      continue
    }
    verifyIndex(disk, directory, checked, report)
    total.frames += checked.frames
    total.bytes += checked.bytes
    before = checked
  }
  return { ...total, nextSeq: before.nextSeq ?? firsts.at(-1) ?? 1, journalId: before.journalId, chain: before.chain }
}

/** Rebuilds the index of a sealed segment from its frames. Throws Damage if they are not as they were written. */
export function rebuildSegmentIndex(disk: Disk, directory: string, firstSeq: number): void {
  const segment = SealedSegment.open(
    { disk, directory, keepIndex: (path, bytes) => disk.writeAtomic(path, bytes) },
    firstSeq,
  )
  try {
    segment.rebuildIndex()
  } finally {
    segment.close()
  }
}

/** What the next segment must follow, as far as known. */
type Before = {
  readonly journalId: Buffer | undefined
  readonly nextSeq: number | undefined
  readonly chain: Buffer | undefined
}

type Checked = Before & { readonly journalId: Buffer; readonly walk: Walk; readonly frames: number }
type Report = (problem: JournalProblem) => void

function gap(directory: string, expected: number, found: number): JournalProblem {
  const facts = { expected: `segment ${expected}`, found: `segment ${found} as the next file`, firstSeq: expected }
  return { kind: 'damage', path: segmentPath(directory, expected), offset: 0, ...facts, through: found - 1 }
}

type CheckedFile = {
  readonly path: string
  readonly position: 'newest' | 'older'
  readonly knownDurable: (journalId: Buffer) => Durable
}

/** `through`: the newest frame that the segment can have, or its first if that is unknown. */
type Following = Before & { readonly nextSeq: number; readonly through: number }

function verifyFile(
  disk: Disk,
  checkedFile: CheckedFile,
  before: Following,
  report: Report,
): (Checked & { readonly bytes: number }) | undefined {
  const file = unlessUnreadable(() => disk.openFile(checkedFile.path, 'read'))
  if (file === undefined) {
    report(noHeader('damage', checkedFile.path, readError, before))
    return undefined
  }
  try {
    const checked = verifySegment(file, checkedFile, before, report)
    return checked && { ...checked, bytes: file.size() }
  } finally {
    file.close()
  }
}

function verifySegment(
  file: DiskFile,
  { position, knownDurable }: CheckedFile,
  before: Following,
  report: Report,
): Checked | undefined {
  let found = 'no valid one'
  const header = unlessUnreadable(
    () => readSegmentHeader(file),
    () => (found = readError),
  )
  if (!header) {
    const known = before.journalId === undefined ? undefined : knownDurable(before.journalId)
    if (position === 'newest' && known !== undefined && known.seq >= before.nextSeq) {
      report(noHeader('damage', file.path, `${found}, though ${known.by} holds frame ${known.seq}`, before))
      return undefined
    }
    const isHeaderless =
      position === 'newest' && found !== readError && unlessUnreadable(() => headerWasDurable(file)) === false
    report(noHeader(isHeaderless ? 'headerless' : 'damage', file.path, found, before))
    return undefined
  }
  try {
    const expected: Predecessor = { ...before, chain: before.chain ?? header.previousChain }
    checkSegmentHeader(file, header, expected)
  } catch (error) {
    if (!(error instanceof Damage)) throw error
    report(problemOf(error, before.nextSeq, before.nextSeq))
  }
  const walk = walkSegment(file, header, file.size(), 'is a fault')
  const { stop, live } = walk
  const { journalId } = header
  const known = position === 'newest' ? knownDurable(journalId) : { seq: 0, by: '' }
  const damage =
    position === 'newest' ? damageOrFailedRead(file, walk, known) : sealedDamage(file.path, walk, file.size())
  const { count, nextSeq } = live
  // Durable frames occupy their seqs even if they are missing.
  const afterLost = nextSeq <= known.seq ? known.seq + 1 : undefined
  if (damage && stop.kind === 'fault') {
    const behind = readPastDamage(file, { header, walk, damage, position, report })
    return { journalId, walk, ...behind, nextSeq: behind.nextSeq ?? afterLost }
  }
  if (damage) {
    report(problemOf(damage, before.nextSeq, nextSeq))
    // Cut off at the end of a frame: how many frames are missing is unknown.
    if (stop.kind === 'end') return { journalId, walk, frames: count, nextSeq: afterLost, chain: undefined }
    // The segments after this one are missing.
    if (afterLost !== undefined) return { journalId, walk, frames: count, nextSeq: afterLost, chain: undefined }
    // A footer contradicts the frames: which of them the next segment follows is unknown.
    return { journalId, walk, frames: count, nextSeq, chain: stop.kind === 'contradiction' ? undefined : walk.chain }
  }
  if (stop.kind === 'fault') report(tornTail(file, header, { offset: live.end, seq: nextSeq, found: stop.found }))
  return { journalId, walk, frames: count, nextSeq, chain: walk.chain }
}

function noHeader(
  kind: 'headerless' | 'damage',
  path: string,
  found: string,
  { nextSeq: firstSeq, through }: Following,
): JournalProblem {
  return { kind, path, offset: 0, expected: 'a segment header', found, firstSeq, through }
}

/** The damage after the last good frame. Bytes that the disk fails to read count as damage. */
function damageOrFailedRead(file: DiskFile, walk: Walk, known: Durable): Damage | undefined {
  try {
    return damageAfter(file, walk, known)
  } catch (error) {
    const { end: offset, nextSeq } = walk.live
    const failed = failedAt({ path: file.path, offset, expected: `frame ${nextSeq}` }, error)
    if (failed instanceof FailedRead) return failed
    throw failed
  }
}

type Damaged = {
  readonly header: SegmentHeader
  readonly walk: Walk
  /** The damage at which the walk ended. */
  readonly damage: Damage
  readonly position: 'newest' | 'older'
  readonly report: Report
}

/**
 * Reads on after damage: reports any further damage, counts the frames, and finds out from the footer what the next
 * segment must follow.
 */
function readPastDamage(
  file: DiskFile,
  { header, walk, damage, position, report }: Damaged,
): Pick<Checked, 'frames' | 'nextSeq' | 'chain'> {
  const { firstSeq } = header
  let frames = walk.live.count
  let nextSeq: number | undefined = walk.live.nextSeq
  /** In the newest segment: bad bytes that no frame so far states to have been durable. */
  let unproven: Gap[] = []
  const reportGap = ({ offset, seq, found, next }: Gap): void => {
    const isFirst = offset === damage.offset
    const more = next !== undefined && next.seq > seq + 1 ? `; the next whole frame is ${next.seq}` : ''
    const facts = { expected: `frame ${seq}`, found: `${isFirst ? damage.found : found}${more}` }
    // With no whole frame after it, the rest of the segment is lost.
    const through = next === undefined ? Number.POSITIVE_INFINITY : next.seq - 1
    report({ kind: 'damage', path: file.path, offset, ...facts, firstSeq, through })
  }
  for (const found of framesAround(file, header, { offset: walk.live.end, seq: walk.live.nextSeq })) {
    if ('gap' in found) {
      if (position === 'newest' && found.offset !== damage.offset) unproven.push(found)
      else reportGap(found)
      nextSeq = undefined
      continue
    }
    for (const gap of unproven) if (gap.seq <= found.durableSeq) reportGap(gap)
    unproven = unproven.filter((gap) => gap.seq > found.durableSeq)
    if (found.type === FOOTER) return { frames, nextSeq: found.seq, chain: footerOf(found)?.chain }
    frames++
    nextSeq = found.seq + 1
  }
  const [torn] = unproven
  if (torn !== undefined) {
    report(tornTail(file, header, torn))
    return { frames, nextSeq: torn.seq, chain: undefined }
  }
  return { frames, nextSeq, chain: undefined }
}

function tornTail(
  file: DiskFile,
  { firstSeq }: SegmentHeader,
  { offset, seq, found }: Pick<Gap, 'offset' | 'seq' | 'found'>,
): JournalProblem {
  const expected = `frame ${seq} or the end of the file`
  return { kind: 'torn-tail', path: file.path, offset, expected, found, firstSeq, through: seq }
}

function problemOf({ path, offset, expected, found }: Damage, firstSeq: number, through: number): JournalProblem {
  return { kind: 'damage', path, offset, expected, found, firstSeq, through }
}

// The same frames always give the same index, so comparing bytes compares everything.
function verifyIndex(disk: Disk, directory: string, checked: Checked, report: Report): void {
  const { walk, journalId } = checked
  if (walk.stop.kind !== 'sealed') return
  const { firstSeq, count } = walk.live
  const expected = buildIndex(walk.live, { journalId, firstSeq, count, segmentBytes: walk.stop.end, chain: walk.chain })
  const path = indexPath(directory, firstSeq)
  const facts = { path, expected: 'the index built from the frames', firstSeq, through: firstSeq }
  if (!disk.fileExists(path)) return report({ kind: 'index', offset: 0, ...facts, found: 'no file' })
  if (!disk.stat(path).isFile)
    return report({ kind: 'no-file', offset: 0, ...facts, found: 'not a regular file: move it out of the way' })
  const bytes = unlessUnreadable(() => disk.readWhole(path))
  if (bytes === undefined) return report({ kind: 'index', offset: 0, ...facts, found: readError })
  if (bytes.equals(expected)) return
  const offset = Math.max(
    0,
    expected.findIndex((byte, i) => byte !== bytes[i]),
  )
  report({ kind: 'index', offset, ...facts, found: 'different bytes' })
}
