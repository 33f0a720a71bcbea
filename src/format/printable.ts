/** A caller's own word inside a message: short, and without anything that a terminal would obey. */
export function printable(text: string, charactersMax = 64): string {
  return text.slice(0, charactersMax).replace(/[^\x20-\x7e]/g, '?')
}
