/**
 * Escapes a post's text within a text stream, so that it cannot be mistaken for the stream itself.
 *
 * In blocks, a line that begins with `[` is the head of a post, one that begins with `#` is a message of the board, and an empty line ends
 * a block. So an empty line of a text is shown as two spaces, and a line of a text that begins with `[` or `#`, even after white space or
 * invisible characters, gets the prefix `> `.
 */

// Spaces other than line feeds, combining marks without a letter, and characters that fonts do not show.
const invisible = '(?:[^\\S\\n]|\\p{M}|\\p{Default_Ignorable_Code_Point})*'
const looksLikeStream = new RegExp(`^(?=${invisible}[[#])`, 'gmu')
const looksLikeHead = new RegExp(`^(?=${invisible}(?:reply_to|supersedes|imported)=)`, 'u')

/** `text`: already inert, so its only line ends are line feeds. No line of the result is empty. */
export function blockText(text: string): string {
  return text.replace(looksLikeStream, '> ').replace(/^$/gm, '  ')
}

/** The same on one line, after a head whose last fields may be missing: line feeds become `⏎`. */
export function lineText(text: string): string {
  return text.replaceAll('\n', '⏎').replace(looksLikeHead, '> ')
}
