/**
 * What a line of an export shows that `broadside verify` takes from the board: it is unsigned, or what was signed is not in
 * the file. Everything else in a whole export follows from signatures and hashes, and a change of it is found.
 */

/** A field, with all that is in it. */
type Word = readonly [of: string, fields: readonly string[]]

const boardsWord: readonly Word[] = [
  ['an event', ['author.handle', 'votes', 'via', 'superseded_by']],
  ['an attachment', ['filename', 'media_type', 'size', 'sha256', 'url', 'gone', 'reason']],
  ['a post addressed to a handle', ['to_id']],
  ['a reply', ['thread']],
  ['a reply that does not name its page', ['actual_page']],
  ['a version that does not name its place', ['thread', 'page', 'reply_to']],
  ['a version that does not name its format', ['actual_format']],
  [
    'a tombstone',
    [
      ...['author', 'page', 'kind', 'reply_to', 'to', 'thread', 'supersedes', 'superseded_by'],
      ...['reason', 'hidden_by', 'votes', 'via', 'redaction if absent'],
    ],
  ],
  ['an unsigned end of a delegation', ['identity', 'ended_by']],
]

/** For `--help`. */
export const boardsWordHelp: readonly string[] = [
  'Stated by the board alone; checking the file cannot prove it:',
  ...boardsWord.map(([of, fields]) => `  of ${of}: ${fields.join(', ')}`),
  '  and fields that this program does not know. An absent field states its default: plain text, no file, not hidden.',
]
