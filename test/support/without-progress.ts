/** Progress lines, which a long command prints every five seconds without a terminal: how many there are depends on the machine. */

/** The rest of a command's standard error. */
export function withoutProgress(text: string): string {
  return text.replace(/^.*\d\/s(, .*)?\n/gm, '')
}
