/** What a JSON text is built of, counted in one pass without reading it: JSON.parse takes a million brackets, what comes after it does not. */

/**
 * How deep a JSON text nests, how many members its objects have, and how many of `{ [ : ,` it has outside strings; of anything
 * else, numbers without a meaning.
 */
export function marksOf(text: string): { depth: number; members: number; marks: number } {
  let depth = 0
  let deepest = 0
  let members = 0
  let others = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (inString) {
      if (char === 0x5c) at++
      else if (char === 0x22) inString = false
    } else if (char === 0x22) inString = true
    else if (char === 0x7b || char === 0x5b) {
      deepest = Math.max(deepest, ++depth)
      others++
    } else if (char === 0x7d || char === 0x5d) depth--
    else if (char === 0x3a) members++
    else if (char === 0x2c) others++
  }
  return { depth: deepest, members, marks: members + others }
}

/** Members of all objects in what was read: fewer than the text has where a key is given twice. */
export function keysIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) return value.reduce<number>((sum, each) => sum + keysIn(each), 0)
  return Object.values(value).reduce<number>((sum, each) => sum + 1 + keysIn(each), 0)
}
