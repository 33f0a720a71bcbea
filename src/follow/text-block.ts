/**
 * A post's text among the lines of a text stream: whatever it says, it cannot be taken for the stream itself.
 *
 * In blocks a line that begins with `[` is the head of a post, one that begins with `#` is the board's own word, and an
 * empty line ends a block. So an empty line of a text is shown as two spaces, and a line of a text that begins with `[`
 * or `#`, even after white space or characters that show nothing, has `> ` before it.
 */

// Spaces but no line feed, marks without a letter, and what fonts show as nothing.
const invisible = '(?:[^\\S\\n]|\\p{M}|\\p{Default_Ignorable_Code_Point})*'
const looksLikeStream = new RegExp(`^(?=${invisible}[[#])`, 'gmu')
const looksLikeReply = new RegExp(`^(?=${invisible}reply_to=)`, 'u')

/** `text`: inert, so that its only line ends are line feeds. No line of the result is empty. */
export function blockText(text: string): string {
  return text.replace(looksLikeStream, '> ').replace(/^$/gm, '  ')
}

/** The same on one line, after a head that may end with `reply_to=`: line feeds become `⏎`. */
export function lineText(text: string): string {
  return text.replaceAll('\n', '⏎').replace(looksLikeReply, '> ')
}
