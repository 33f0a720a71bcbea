/** The keys that are given to `broadside restore`: whether they are those of the backup, before anything is written. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { nameOf } from '../../actors/log/book.ts'
import { decodeLogFrame } from '../../actors/log/frame.ts'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import type { Disk } from '../../storage/disk.ts'
import { JournalReader } from '../../storage/journal.ts'
import { JournalEnd } from '../../storage/journal-copy.ts'
import { parseVkey } from '../../storage/note.ts'
import { createNoteKey } from '../../storage/note-signer.ts'
import { fingerprintOf, logDirectory, logKeyFile, readFacts } from '../board-directory.ts'
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
    const secret = Buffer.from(disk.readWhole(file).toString('latin1').trim(), 'hex')
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
  const checkpoint = newestCheckpoint(disk, backup)
  const log = checkpoint.slice(0, checkpoint.indexOf('\n'))
  const logKey = logKeyFile('', log === origin ? '' : nameOf(log)).slice('keys/'.length)
  const hasSigned = (secret: Buffer): boolean => {
    const key = parseVkey(createNoteKey(log, secret).vkey)
    return key.ok && openCheckpoint(checkpoint, key.value).ok
  }
  return [
    { name: 'board.key', isRight: isOf(prints?.board), ifLost: '' },
    { name: 'cursor.key', isRight: isOf(prints?.cursor), ifLost: lost('cursor.key', 'broadside rekey --lost') },
    ...(checkpoint === ''
      ? []
      : [{ name: logKey, isRight: hasSigned, ifLost: lost(logKey, 'broadside restored --lost') }]),
  ]
}

/** '' if nothing was signed. */
function newestCheckpoint(disk: Disk, backup: string): string {
  const directory = logDirectory(backup)
  const end = new JournalEnd(disk, directory)
  end.advance()
  end.close()
  const log = JournalReader.open(disk, directory)
  try {
    log.advance(end.seq)
    const frame = log.read(end.seq)
    return frame === undefined ? '' : decodeLogFrame(frame).checkpoint
  } finally {
    log.close()
  }
}
