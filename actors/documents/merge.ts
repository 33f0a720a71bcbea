/**
 * Merging two edits of one text: `diff3Merge` of the package node-diff3 on the lines between line feeds, `excludeFalseConflicts`
 * as it is by default. Anybody who has the three texts can do the same and must get the same.
 *
 * Edits merge when they do not touch: at least one line that neither changed stands between them, or both made the same change.
 * The comparison takes lines times lines steps, and here all of a shard waits for it, so texts of many short lines are not merged.
 */
import { diff3Merge } from 'node-diff3'

/** Lines of the base times lines of either edit. On one core 16 million take about a tenth of a second. */
export const mergeStepsMax = 16_000_000

type Region = { readonly ok?: readonly string[]; readonly conflict?: object }

/** The merged text, or undefined: the edits touch, or the texts have too many lines. */
export function mergeTexts(base: string, current: string, edited: string): string | undefined {
  const [o, a, b] = [base, current, edited].map((text) => text.split('\n')) as [string[], string[], string[]]
  if (o.length * (a.length + b.length) > mergeStepsMax) return undefined
  const merged: string[] = []
  for (const { ok } of diff3Merge(a, o, b, { excludeFalseConflicts: true }) as readonly Region[]) {
    if (ok === undefined) return undefined
    for (const line of ok) merged.push(line)
  }
  return merged.join('\n')
}
