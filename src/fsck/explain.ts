/** `fsck --explain`: for each finding, a sentence that says what is damaged, what the consequences are, and what to do. */
import type { Finding } from './log.ts'

type Explanation = {
  /** Where such a finding is. Paths that its text names for other reasons do not count. */
  readonly where?: RegExp
  /** And what it says. */
  readonly what?: RegExp
  readonly sentence: string
}

/** The journal ends too early. Other damage in its newest file may have intact frames after it. */
const endsEarly =
  /found (the end of the file|the footer|zeros|an incomplete frame|no valid one), though .* holds frame \d+|was written when frame \d+ of the log was durable/
/** What to do about a log whose newest file is damaged, on a board with one shard; as the rest of a sentence. */
export const remadeLog =
  'move the damaged file away, delete log/feed-snapshots, log/durable, search and tools, which are derived from other files, and start the board: it makes the same entries again. If that start is refused, run broadside restored --lost.'

const logLost =
  'The newest part of the public log is missing. A start is refused, but no record is lost. If a copy has the files of log/ that are missing or cut off, put them back. Then delete log/feed-snapshots, log/durable, search and tools, which are derived from other files, and start the board: with one shard, it adds the missing entries. If that start is refused, run broadside restored --lost: the log ends here, and the records that it does not cover begin the next one.'

const logEntries =
  'Entries of the public log differ from what was written. Other proofs and exports are not affected. Keep these files, and restore the newest backup of the whole data directory.'

/** The first match is used. */
const explanations: readonly Explanation[] = [
  { where: /\blog(\/\d{20}\.log at byte \d+)?$/, what: endsEarly, sentence: logLost },
  { what: /signed log in .* is missing/, sentence: logLost },
  {
    where: /shard-\d\d\//,
    what: endsEarly,
    sentence:
      'The newest records of a shard are missing, or an older copy of its files replaced newer ones. A start is refused. Restore the newest files of this directory from a copy that has all of them. If there is none, and the board has one shard, broadside restored --lost --cut-damage keeps everything before what is missing, and says first what that is. Otherwise restore the newest backup of the whole data directory, and give up what is missing from that with broadside restored --lost.',
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
    where: /log\/\d{20}\.log/,
    sentence: `The public log is damaged. Restore the file of this name from a backup: a sealed segment of the log never changes. Until then, a running board rebuilds an entry of a sealed segment from its record, and other proofs and exports are not affected. If no backup has the file and it is the newest of the log, no record is lost. With one shard, ${remadeLog} With several shards, run broadside restored --lost --cut-damage: the log ends before the damage, and the next one begins with the records that it does not cover. If it is an older file, and a start is refused, restore the newest backup of the whole data directory.`,
  },
  {
    where: /\/witness\/[0-9a-f]{64}$/,
    sentence:
      'What this board has signed as a witness of another log is damaged, or its key keys/witness.key is. No post is lost. Restore both from the newest backup.',
  },
  { where: /^log frame \d+|^nodes/, sentence: logEntries },
  { what: /its checkpoint/, sentence: logEntries },
  {
    where: /shard-\d\d|^shard \d+ frame/,
    sentence:
      'Records of the board are damaged. In a sealed segment, only the damaged record itself is lost, as long as a complete snapshot is newer: it is a tombstone in lists and an unreadable line in exports. Restore the file of this name from a backup, where it is the same unless texts in it were redacted since: a start that has lost its snapshots would have to replay these records, and is refused. If the newest segment is damaged, every start is refused. If no backup has it, and the board has one shard, broadside restored --lost --cut-damage keeps everything before the damage, and says first what is lost. Otherwise restore the newest backup of the whole data directory.',
  },
]

const byKind: Readonly<Record<Finding['kind'], string>> = {
  damage:
    'Something that was acknowledged is missing. Keep these files, and restore the newest backup of the whole data directory.',
  derived: 'This is derived from other files, so nothing is lost. It is rebuilt when needed, or now with --repair.',
  start: 'A start is refused. Do what the finding says.',
}

export function explanationOf({ kind, where, what }: Finding): string {
  if (kind === 'derived' && notDerived.test(where)) return smallFile
  if (kind === 'derived') return what.startsWith('torn-tail') || what.startsWith('headerless') ? tail : byKind.derived
  const found =
    kind === 'damage'
      ? explanations.find((each) => each.where?.test(where) !== false && each.what?.test(what) !== false)
      : undefined
  return found?.sentence ?? byKind[kind]
}

const notDerived = /\/(sign-in\.keys|(stream-seal|clock-accepted|deliveries|missing-attachments)\.json)$/
const smallFile = 'No post is lost. The finding says what is. What cannot be used is removed with --repair.'

const tail =
  'The end of a write that was never acknowledged. Nothing is lost: the next start saves it in lost+tail and truncates the file.'
