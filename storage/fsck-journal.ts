/**
 * The full check of a journal: every byte of every segment is read again and compared with what it claims.
 *
 * Nothing is changed. A person reads the problems; `Journal.open` repairs what is derived or was promised to nobody, and
 * `remakeIndex` an index alone.
 */
import { CHAIN_START } from './chain.ts'
import { Damage, type DiskFile, fileExists, openFile, readWhole, writeAtomic } from './disk.ts'
import { damageBehind, wasBorn } from './recovery.ts'
import { buildIndex } from './sealed-index.ts'
import { SealedSegment } from './sealed-segment.ts'
import {
  checkSegmentHeader,
  indexPath,
  listSegments,
  type Predecessor,
  readSegmentHeader,
  segmentPath,
} from './segment.ts'
import { sealedDamage, type Walk, walkSegment } from './walk.ts'

/**
 * `damage`: durable bytes are not what was written. `torn-tail`: bytes behind the last frame of the last segment that
 * nothing proves to have been durable; cut at the next start. `index`: missing or different, made again at the next start. `unborn`: a newest segment without header.
 */
export type JournalProblem = {
  readonly kind: 'damage' | 'torn-tail' | 'index' | 'unborn'
  readonly path: string
  readonly offset: number
  readonly expected: string
  readonly found: string
  /** Of the segment that it is about. */
  readonly firstSeq: number
}

export type JournalCheck = {
  readonly segments: number
  readonly frames: number
  readonly bytes: number
  /** Of the kind `damage`. */
  readonly damages: number
  readonly nextSeq: number
  /** Undefined: no segment has a header that can be read. */
  readonly journalId: Buffer | undefined
  /** Chain hash of all that was readable in order. */
  readonly chain: Buffer
}

/**
 * Checks headers, CRCs, seqs, chain hashes, footers and indexes of all segments in `directory`. A damaged segment does
 * not end the check: the next one is checked against its own header. The journal must not be appended to meanwhile.
 */
export function verifyJournal(directory: string, onProblem: (problem: JournalProblem) => void): JournalCheck {
  const firsts = listSegments(directory, 'log')
  const total = { segments: firsts.length, frames: 0, bytes: 0, damages: 0 }
  const tell = (problem: JournalProblem) => {
    if (problem.kind === 'damage') total.damages++
    onProblem(problem)
  }
  let before: Predecessor = { journalId: undefined, nextSeq: 1, chain: CHAIN_START }
  for (const [i, firstSeq] of firsts.entries()) {
    const position = i === firsts.length - 1 ? 'newest' : 'older'
    if (firstSeq !== before.nextSeq) tell(gap(directory, before.nextSeq, firstSeq))
    const file = openFile(segmentPath(directory, firstSeq), 'read')
    try {
      const checked = verifySegment(file, position, { ...before, nextSeq: firstSeq }, tell)
      if (!checked) {
        before = { ...before, nextSeq: firsts[i + 1] ?? firstSeq }
        continue
      }
      verifyIndex(directory, checked, tell)
      total.frames += checked.walk.live.count
      total.bytes += file.size()
      before = { journalId: checked.journalId, nextSeq: checked.walk.live.nextSeq, chain: checked.walk.chain }
    } finally {
      file.close()
    }
  }
  return { ...total, nextSeq: before.nextSeq, journalId: before.journalId, chain: before.chain }
}

/** Writes the index of a sealed segment again, from its frames. Throws Damage when they are not as they were written. */
export function remakeIndex(directory: string, firstSeq: number): void {
  const segment = SealedSegment.open({ directory, openFile, keepIndex: writeAtomic }, firstSeq)
  try {
    segment.rebuildIndex()
  } finally {
    segment.close()
  }
}

type Checked = { readonly journalId: Buffer; readonly walk: Walk }
type Tell = (problem: JournalProblem) => void

function gap(directory: string, expected: number, found: number): JournalProblem {
  const facts = { expected: `segment ${expected}`, found: `segment ${found} as the next file`, firstSeq: expected }
  return { kind: 'damage', path: segmentPath(directory, expected), offset: 0, ...facts }
}

function verifySegment(
  file: DiskFile,
  position: 'newest' | 'older',
  before: Predecessor,
  tell: Tell,
): Checked | undefined {
  const header = readSegmentHeader(file)
  if (!header) {
    const kind = position === 'newest' && !wasBorn(file) ? 'unborn' : 'damage'
    const facts = { expected: 'a segment header', found: 'none that is valid', firstSeq: before.nextSeq }
    tell({ kind, path: file.path, offset: 0, ...facts })
    return undefined
  }
  try {
    checkSegmentHeader(file, header, before)
  } catch (error) {
    if (!(error instanceof Damage)) throw error
    tell(problemOf(error, before.nextSeq))
  }
  const walk = walkSegment(file, header, file.size())
  const { stop, live } = walk
  const damage = position === 'newest' ? damageBehind(file, walk) : sealedDamage(file.path, walk, file.size())
  if (damage) {
    tell(problemOf(damage, before.nextSeq))
  } else if (stop.kind === 'fault') {
    const facts = { path: file.path, offset: live.end, expected: `frame ${live.nextSeq} or the end of the file` }
    tell({ kind: 'torn-tail', ...facts, found: stop.found, firstSeq: before.nextSeq })
  }
  return { journalId: header.journalId, walk }
}

function problemOf({ path, offset, expected, found }: Damage, firstSeq: number): JournalProblem {
  return { kind: 'damage', path, offset, expected, found, firstSeq }
}

// The same frames always give the same index, so comparing bytes compares everything.
function verifyIndex(directory: string, checked: Checked, tell: Tell): void {
  const { walk, journalId } = checked
  if (walk.stop.kind !== 'sealed') return
  const { firstSeq, count } = walk.live
  const expected = buildIndex(walk.live, { journalId, firstSeq, count, segmentBytes: walk.stop.end, chain: walk.chain })
  const path = indexPath(directory, firstSeq)
  const found = fileExists(path) ? readWhole(path) : undefined
  if (found?.equals(expected)) return
  const offset = found ? expected.findIndex((byte, i) => byte !== found[i]) : 0
  const facts = { expected: 'the index of the frames', found: found ? 'other bytes' : 'no file' }
  tell({ kind: 'index', path, offset: Math.max(0, offset), ...facts, firstSeq })
}
