/** What a text shows: nothing, or what is safe to show inside a message. */

export function printable(text: string, charactersMax = 64): string {
  return text.slice(0, charactersMax).replace(/[^\x20-\x7e]/g, '?')
}

/** Characters that are not seen, or that turn the direction of a line, as JSON and patterns spell them: `\u202e`. */
export function spellUnseen(text: string): string {
  return text.replace(
    /[\u007f-\u00a0\u00ad\u061c\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]/g,
    (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

const seen = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]/u

/**
 * Which texts show nothing: the one place that says what counts as white space.
 *
 * That is White_Space of Unicode, everything that is invisible by design (Default_Ignorable_Code_Point: zero-width and
 * direction marks, variation selectors, Hangul fillers), and the braille pattern without dots. Control characters beyond
 * white space are not among them: pages and terminals show each by its number.
 */
export function isBlank(text: string): boolean {
  return !seen.test(text)
}
