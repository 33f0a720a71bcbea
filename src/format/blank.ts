/**
 * Which texts show nothing: the one place that says what counts as white space.
 *
 * That is White_Space of Unicode, everything that is invisible by design (Default_Ignorable_Code_Point: zero-width and
 * direction marks, variation selectors, Hangul fillers), and the braille pattern without dots. Control characters beyond
 * white space are not among them: pages and terminals show each by its number.
 */
const seen = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]/u

export function isBlank(text: string): boolean {
  return !seen.test(text)
}
