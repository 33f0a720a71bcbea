/** Decides which texts are visible, and makes texts safe to show inside a message. */

export function printable(text: string, charactersMax = 64): string {
  return text.slice(0, charactersMax).replace(/[^\x20-\x7e]/g, '?')
}

/** Spells characters that are invisible, or that change the direction of a line, as JSON and patterns do: `\u202e`. */
export function spellUnseen(text: string): string {
  return text.replace(
    /[\u007f-\u00a0\u00ad\u061c\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]/g,
    (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

const seen = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]/u

/**
 * Whether a text shows nothing. This is the only place that defines what counts as white space.
 *
 * It includes White_Space of Unicode, everything invisible by design (Default_Ignorable_Code_Point: zero-width and direction marks,
 * variation selectors, Hangul fillers), and the blank braille pattern. Control characters other than white space are excluded, since pages
 * and terminals show each by its number.
 */
export function isBlank(text: string): boolean {
  return !seen.test(text)
}
