/** A caller's own word inside a message: short, and without anything that a terminal would obey. */
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
