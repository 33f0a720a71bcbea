/**
 * Checks the small files of a data directory, which no journal and no snapshot covers. Each is parsed as the board parses it.
 *
 * Most of them have no checksum: a changed byte that leaves one of them valid is not found.
 */
import { join } from 'node:path'
import { type Disk, unlessUnreadable } from '../../storage/disk.ts'
import { followerFile, readSecret, replicationFile, signInKeysFile, UnusableDirectory } from '../board-directory.ts'
import { acceptedAt, acceptedFile } from '../clock-jumps.ts'
import { storedHeadProblem, witnessDirectory, witnessKeyFile } from '../log/witness/witness.ts'
import { lostActsFile, readLostActs } from '../lost-acts-file.ts'
import { missingAttachmentsFile, missingAttachmentsIn } from '../replication/attachments.ts'
import { Halted } from '../replication/halted.ts'
import { sealFile, sealIn } from '../replication/stream-seal.ts'
import { handOverBegun, streamStateIn } from '../replication/writer.ts'
import { damagedSlots, emptySlot } from '../sign-in/sign-in-keys.ts'
import { leaderPositionsFile, leaderPositionsIn } from '../webhooks/leader-positions.ts'
import type { Finding } from './log.ts'

type Checked = {
  readonly disk: Disk
  /** The data directory. */
  readonly path: string
  /** The data directory whose keys sign for this one. */
  readonly keysIn: string
  readonly onFinding: (finding: Finding) => void
}

export function checkSmallFiles(checked: Checked): void {
  checkStart(checked)
  checkRebuilt(checked)
  checkSignIns(checked)
  checkWitness(checked)
}

/** Files without which a start is refused. */
function checkStart(checked: Checked): void {
  const { disk, path, onFinding } = checked
  const files: readonly (readonly [where: string, read: () => unknown])[] = [
    [lostActsFile(path), () => readLostActs(disk, path)],
    [replicationFile(path), () => checkHandOver(checked, streamStateIn(disk, path))],
  ]
  for (const [where, read] of files) {
    try {
      unlessUnreadable(read, (what) => onFinding({ kind: 'start', where, what }))
    } catch (error) {
      if (!(error instanceof UnusableDirectory || error instanceof Halted)) throw error
      onFinding({ kind: 'start', where, what: error.message })
    }
  }
}

/** A board that has begun to hand over does not start either: another box may already accept writes. */
function checkHandOver({ disk, path, onFinding }: Checked, state: ReturnType<typeof streamStateIn>): void {
  if (state?.handsOver === true && !disk.fileExists(followerFile(path)))
    onFinding({ kind: 'start', where: replicationFile(path), what: handOverBegun })
}

/** Files that the board writes again if they cannot be used. */
function checkRebuilt({ disk, path, onFinding }: Checked): void {
  const files: readonly (readonly [where: string, read: () => unknown, consequence: string])[] = [
    [
      sealFile(path),
      () => sealIn(disk, path),
      'the board begins new keys of the stream, and followers ask it for the rest',
    ],
    [acceptedFile(path), () => acceptedIn(disk, path), 'nothing was accepted with broadside clock accept'],
    [leaderPositionsFile(path), () => leaderPositionsIn(disk, path), 'it is saved again when the leader answers'],
    [
      missingAttachmentsFile(path),
      () => missingAttachmentsIn(disk, path),
      'this follower does not know which attachments it has yet to fetch; those it lacks are reported here too',
    ],
  ]
  for (const [where, read, consequence] of files) {
    if (!disk.fileExists(where) || unlessUnreadable(read) !== undefined) continue
    const what = `it cannot be used: ${consequence}`
    onFinding({ kind: 'derived', where, what, rebuild: () => disk.removeFile(where) })
  }
}

function acceptedIn(disk: Disk, path: string): number | undefined {
  try {
    return acceptedAt(disk, path)
  } catch {
    return undefined
  }
}

function checkSignIns({ disk, path, onFinding }: Checked): void {
  const where = signInKeysFile(path)
  const slots = unlessUnreadable(
    () => damagedSlots(disk, where),
    (what) => onFinding({ kind: 'start', where, what }),
  )
  for (const { slot, isOfNewerForm } of slots ?? []) {
    const key = `key ${slot + 1} of the sign-ins`
    if (isOfNewerForm)
      onFinding({
        kind: 'start',
        where,
        what: `${key} is damaged, or of a newer release. To give up all sign-ins, remove this file`,
      })
    else
      onFinding({
        kind: 'derived',
        where,
        what: `${key} is damaged: the one who uses it has to sign in again`,
        rebuild: () => emptySlot(disk, where, slot),
      })
  }
}

/** What a witness has signed. A follower has no witness. */
function checkWitness({ disk, path, keysIn, onFinding }: Checked): void {
  const directory = witnessDirectory(path)
  const keyFile = witnessKeyFile(keysIn)
  if (!disk.fileExists(directory) || !disk.fileExists(keyFile) || disk.fileExists(followerFile(path))) return
  const heads = disk.listFiles(directory).filter((name) => /^[0-9a-f]{64}$/.test(name))
  if (heads.length === 0) return
  let seed: Buffer
  try {
    seed = readSecret(disk, keyFile)
  } catch (error) {
    if (!(error instanceof UnusableDirectory)) throw error
    return onFinding({ kind: 'start', where: keyFile, what: error.message })
  }
  for (const name of heads) {
    const where = join(directory, name)
    let problem: string | undefined
    const text = unlessUnreadable(
      () => disk.readWhole(where).toString('utf8'),
      (unreadable) => {
        problem = unreadable
      },
    )
    problem ??= storedHeadProblem(name, text ?? '', seed)
    if (problem !== undefined)
      onFinding({
        kind: 'damage',
        where,
        what: `the newest head that this witness has signed, or its key, differs from what was written: ${problem}`,
      })
  }
}
