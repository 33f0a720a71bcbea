/** The progress lines that a long command prints every five seconds where nobody watches: whether there are any depends on the machine. */

/** Everything else that a command printed to standard error. */
export function withoutProgress(words: string): string {
  return words.replace(/^.*\d\/s(, .*)?\n/gm, '')
}
