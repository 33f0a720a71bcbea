/**
 * Merges two edits of one text (diff3). Anyone who has the three texts can repeat it and must get the same result:
 *
 * 1. The texts are lines between line feeds. `diffArrays` of the package diff (Myers) gives the hunks of each edit against the
 *    base: which lines of the base are replaced by which lines.
 * 2. Hunks that overlap, or have no line between them, form one region (Khanna, Kunal, Pierce: A Formal Investigation of Diff3).
 * 3. A region that only one edit changed takes its lines. One that both changed is a conflict, unless both made the same change.
 *
 * The time depends on the number of changed lines, not on how often a line is repeated. This matters because the whole shard
 * waits for a merge.
 */
import { diffArrays } from 'diff/lib/diff/array.js'

/**
 * Lines removed and lines added by one edit. The time grows with its square: at the limit, both diffs take about 15 ms on one
 * core. The total number of lines needs no limit, because a document is small enough: one of 64 KiB takes 3 ms.
 */
const editedLinesMax = 250

/** Lines `start` to `end` (exclusive) of the base become `lines`. */
type Hunk = {
  readonly start: number
  readonly end: number
  readonly lines: readonly string[]
  readonly isCurrent: boolean
}

/** The merged text, or undefined if the edits touch or one of them changed too many lines. */
export function mergeTexts(base: string, current: string, edited: string): string | undefined {
  const lines = base.split('\n')
  const hunks = [hunksOf(lines, current, true), hunksOf(lines, edited, false)]
  if (hunks.includes(undefined)) return undefined
  const sorted = (hunks as Hunk[][]).flat().sort((a, b) => a.start - b.start || a.end - b.end)
  const merged: string[] = []
  let done = 0
  for (const region of regionsOf(sorted)) {
    const made = madeOf(lines, region)
    if (made === undefined) return undefined
    merged.push(...lines.slice(done, region.start), ...made)
    done = region.end
  }
  return [...merged, ...lines.slice(done)].join('\n')
}

function hunksOf(base: readonly string[], text: string, isCurrent: boolean): Hunk[] | undefined {
  const changes = diffArrays([...base], text.split('\n'), { maxEditLength: editedLinesMax })
  if (changes === undefined) return undefined
  const hunks: Hunk[] = []
  let at = 0
  let open: { start: number; end: number; lines: string[] } | undefined
  for (const { added, removed, value } of changes) {
    if (!added && !removed) {
      open = undefined
      at += value.length
      continue
    }
    if (open === undefined) {
      open = { start: at, end: at, lines: [] }
      hunks.push({ ...open, isCurrent })
    }
    if (added) open.lines.push(...value)
    else at += value.length
    open.end = at
    hunks[hunks.length - 1] = { ...open, isCurrent }
  }
  return hunks
}

type Region = { readonly start: number; readonly end: number; readonly hunks: readonly Hunk[] }

function regionsOf(sorted: readonly Hunk[]): Region[] {
  const regions: { start: number; end: number; hunks: Hunk[] }[] = []
  for (const hunk of sorted) {
    const last = regions.at(-1)
    if (last === undefined || hunk.start > last.end) regions.push({ start: hunk.start, end: hunk.end, hunks: [hunk] })
    else {
      last.hunks.push(hunk)
      last.end = Math.max(last.end, hunk.end)
    }
  }
  return regions
}

/** The lines of a region after both edits; undefined if they differ. */
function madeOf(base: readonly string[], { start, end, hunks }: Region): readonly string[] | undefined {
  const side = (isCurrent: boolean): string[] | undefined => {
    const own = hunks.filter((hunk) => hunk.isCurrent === isCurrent)
    if (own.length === 0) return undefined
    const made: string[] = []
    let at = start
    for (const hunk of own) {
      made.push(...base.slice(at, hunk.start), ...hunk.lines)
      at = hunk.end
    }
    return [...made, ...base.slice(at, end)]
  }
  const [current, edited] = [side(true), side(false)]
  if (current === undefined || edited === undefined) return current ?? edited
  const isSame = current.length === edited.length && current.every((line, n) => line === edited[n])
  return isSame ? current : undefined
}
