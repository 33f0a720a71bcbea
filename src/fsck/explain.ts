/** `fsck --explain`: for each finding, a sentence that says what is damaged, what the consequences are, and what to do. */
import type { Finding } from './log.ts'

type Explanation = {
  /** Where such a finding is. Paths that its text names for other reasons do not count. */
  readonly where?: RegExp
  /** Or what it says. */
  readonly what?: RegExp
  readonly sentence: string
}

/** The first match is used. */
const explanations: readonly Explanation[] = [
  {
    what: /was written when frame \d+ of the log was durable|is newer than the journals|found the (end of the file|footer), though .* holds frame \d+/,
    sentence:
      'The files are from different times: an older copy replaced newer files. A start is refused, because other entries would be signed under sizes that are already published. Restore all newer files, or restore the newest backup as a whole; broadside restored --lost gives up what is missing.',
  },
  {
    what: /has no journal, but/,
    sentence:
      'All records of a shard are missing, perhaps because its volume is not mounted. A start is refused. Mount the volume, or restore the directory of this name from the newest backup; if the log covers more than that, restore the newest backup of the whole data directory.',
  },
  {
    what: /head of \d+ was signed|that were signed and published|was closed, and/,
    sentence:
      'The mark file next to the directory is from a newer log than this one. A start is refused. Restore the newest data directory, or give up what is missing with broadside restored --lost.',
  },
  {
    what: /its file .* (is missing|has other content)/,
    sentence:
      'An attachment is lost, but no post is. Readers of the attachment get an error. Copy the file of this name from a backup.',
  },
  {
    what: /^damage: expected (segment \d|first seq|journal |previous chain)/,
    sentence:
      'A file of a journal is missing, or another one is in its place. A start is refused. Restore the file of this name from a backup of this board, or restore the newest backup of the whole data directory.',
  },
  {
    where: /log\/\d{20}\.log|^log frame \d+|^nodes/,
    what: /signed log in .* is missing|its checkpoint/,
    sentence:
      'The public log is damaged. A running board rebuilds an entry of a sealed segment from its record, and other proofs and exports are not affected; if the newest segment is damaged, a start is refused. Keep these files, and restore the newest backup of the whole data directory.',
  },
  {
    where: /shard-\d\d|^shard \d+ frame/,
    sentence:
      'Records of the board are damaged. In a sealed segment, only the damaged record itself is lost, as long as a complete snapshot is newer: it is a tombstone in lists and an unreadable line in exports. Restore the file of this name from a backup, where it is the same unless texts in it were redacted since: a start that has lost its snapshots would have to replay these records, and is refused. If the newest segment is damaged, every start is refused: restore the newest backup of the whole data directory.',
  },
]

const byKind: Readonly<Record<Finding['kind'], string>> = {
  damage:
    'Something that was acknowledged is missing. Keep these files, and restore the newest backup of the whole data directory.',
  derived: 'This is derived from other files, so nothing is lost. It is rebuilt when needed, or now with --repair.',
  start: 'Nothing is lost, but a start is refused. Do what the finding says.',
}

export function explanationOf({ kind, where, what }: Finding): string {
  if (kind === 'derived') return what.startsWith('torn-tail') || what.startsWith('headerless') ? tail : byKind.derived
  const found =
    kind === 'damage'
      ? explanations.find((each) => each.where?.test(where) === true || each.what?.test(what) === true)
      : undefined
  return found?.sentence ?? byKind[kind]
}

const tail =
  'The end of a write that was never acknowledged. Nothing is lost: the next start saves it in lost+tail and truncates the file.'
