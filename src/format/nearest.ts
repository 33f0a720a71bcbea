/** Finds the known word that a wrong one was probably meant to be, for the sentence of a refusal. */

/** With more edits than this, the two words are unrelated. */
const editsMax = 3

/** Longest word compared: no known name is longer, a word may have 2 MiB, and the cost grows with the square. */
const lengthMax = 64

/** The closest of `names` within a few edits (fewer for short words), ignoring case and separators; or undefined. */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  if (word.length > lengthMax) return undefined
  const plain = simplified(word)
  let best: string | undefined
  let bestEdits = Math.min(editsMax, Math.floor(plain.length / 3)) + 1
  for (const name of names) {
    const known = simplified(name)
    // Each extra letter is an edit.
    if (Math.abs(known.length - plain.length) >= bestEdits) continue
    const edits = editsBetween(plain, known, bestEdits)
    if (edits >= bestEdits) continue
    bestEdits = edits
    best = name
  }
  return best
}

/** `replyTo`, `reply-to` and `reply_to` are one word. */
function simplified(word: string): string {
  return word.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/**
 * Optimal string alignment distance: an edit inserts, deletes or replaces a letter, or swaps two neighbors, as in `pots` for `post`. Stops
 * counting at `enough` edits.
 */
function editsBetween(from: string, to: string, enough: number): number {
  let before: number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let line = 1; line <= from.length; line++) {
    const next = [line]
    for (let column = 1; column <= to.length; column++) {
      const replaced = row[column - 1]! + (from[line - 1] === to[column - 1] ? 0 : 1)
      const isSwap = from[line - 1] === to[column - 2] && from[line - 2] === to[column - 1]
      const swapped = isSwap ? before[column - 2]! + 1 : Number.POSITIVE_INFINITY
      next.push(Math.min(replaced, swapped, row[column]! + 1, next[column - 1]! + 1))
    }
    // A swap continues from two rows before.
    if (Math.min(...next) >= enough && Math.min(...row) >= enough) return enough
    before = row
    row = next
  }
  return row[to.length]!
}
