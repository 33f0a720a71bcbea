/** The keys that are given to `broadside restore`: whether they are those of the backup, before anything is written. */
import { existsSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { nameOf } from '../../actors/log/book.ts'
import { decodeLogFrame, hasSigned, type LogFrame } from '../../actors/log/frame.ts'
import type { Disk } from '../../storage/disk.ts'
import { JournalReader } from '../../storage/journal.ts'
import { JournalEnd } from '../../storage/journal-copy.ts'
import { createNoteKey } from '../../storage/note-signer.ts'
import { fingerprintOf, logDirectory, logKeyFile, readFacts, uncheckedSecret } from '../board-directory.ts'
import { CommandFailed } from './command-line.ts'

/** A key that the board needs. */
type Needed = {
  readonly name: string
  readonly isRight: (secret: Buffer) => boolean
  /** What to do if no copy of it is left. */
  readonly ifLost: string
}

/** The names of the key files in `keys`. Throws CommandFailed if they are not those of the board in this backup. */
export function checkGivenKeys(disk: Disk, backup: string, keys: string): readonly string[] {
  const names = existsSync(keys) ? readdirSync(keys).filter((name) => name.endsWith('.key')) : []
  if (!names.includes('board.key'))
    throw new CommandFailed(`${keys} has no board.key. Name the keys directory of the board, or a copy of it.`)
  for (const { name, isRight, ifLost } of neededFor(disk, backup)) {
    if (!names.includes(name)) continue
    const file = join(keys, name)
    const secret = uncheckedSecret(disk, file)
    if (secret.length !== 32 || !isRight(secret))
      throw new CommandFailed(
        `${file} is not the key of the board in this backup, and nothing was written. Name the copy of keys/ from the time of the backup with --keys.${ifLost}`,
      )
  }
  return names
}

/** Boards of older releases have no fingerprints, so any key may be theirs. */
function neededFor(disk: Disk, backup: string): readonly Needed[] {
  const { prints, origin } = readFacts(disk, backup)
  const isOf = (print: string | undefined) => (secret: Buffer) => print === undefined || fingerprintOf(secret) === print
  const lost = (name: string, command: string) =>
    ` If it is lost, move ${name} out of that directory, restore, and run ${command} before the first start.`
  const keys: Needed[] = [
    { name: 'board.key', isRight: isOf(prints?.board), ifLost: '' },
    { name: 'cursor.key', isRight: isOf(prints?.cursor), ifLost: lost('cursor.key', 'broadside rekey --lost') },
  ]
  const newest = newestLogFrame(disk, backup)
  if (newest === undefined) return keys
  const log = newest.checkpoint.slice(0, newest.checkpoint.indexOf('\n'))
  const name = basename(logKeyFile(backup, log === origin ? '' : nameOf(log)))
  const isRight = (secret: Buffer) => hasSigned(createNoteKey(log, secret).vkey, newest)
  return [...keys, { name, isRight, ifLost: lost(name, 'broadside restored --lost') }]
}

/** Undefined if nothing was signed. */
function newestLogFrame(disk: Disk, backup: string): LogFrame | undefined {
  const directory = logDirectory(backup)
  const end = new JournalEnd(disk, directory)
  end.advance()
  end.close()
  const log = JournalReader.open(disk, directory)
  try {
    log.advance(end.seq)
    const frame = log.read(end.seq)
    return frame === undefined ? undefined : decodeLogFrame(frame)
  } finally {
    log.close()
  }
}
