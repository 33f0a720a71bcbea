/**
 * Turns the directory of a board that was replaced into a follower's. Frames after the message with which the other board began
 * were never acknowledged, and are cut from its journals. Those of the shards are saved in their `lost+tail`. Those of the log
 * are not, because they contain signatures that nobody may see.
 *
 * If this is interrupted at any step, it is repeated: until follower.json exists, the board may not start.
 */
import { Diverged } from '../../storage/copied-frames.ts'
import { cutJournal } from '../../storage/cut-journal.ts'
import type { Disk } from '../../storage/disk.ts'
import { logDirectory, readFacts, shardDirectories, UnusableDirectory } from '../board-directory.ts'
import type { Clock } from '../clock.ts'
import type { Config, ReplicationSettings } from '../config.ts'
import { forgetDerived } from '../derived-files.ts'
import { journalEnd } from '../log/covered.ts'
import type { BatchHeader } from './batch.ts'
import { openLogIn } from './copied-journals.ts'
import { becomeFollower } from './follower-directory.ts'
import { Halted, Outdated, rejoinAdvice } from './halted.ts'
import { type Ends, JournalsOut } from './journals-out.ts'
import type { BoardStream, OpenStream } from './open-stream.ts'
import { streamStateIn } from './writer.ts'

type Wanted = {
  readonly disk: Disk
  readonly clock: Clock
  readonly config: Pick<Config, 'dataDirectory' | 'segmentBytesMax'>
  readonly settings: ReplicationSettings
  readonly openStream: OpenStream
  readonly report: (level: 'info' | 'warn', event: string, facts: Readonly<Record<string, unknown>>) => void
}

/**
 * Whether another board has replaced the one in this directory, which is then a follower's; false if it still leads. The caller
 * holds its lock. Throws Halted, Diverged, UnusableDirectory, UnfitServers, and errors of the network.
 */
export async function standDown(wanted: Wanted): Promise<boolean> {
  const { disk, config, settings } = wanted
  const { dataDirectory: path } = config
  const state = streamStateIn(disk, path)
  if (state === undefined)
    throw new UnusableDirectory(
      `${path} contains a board that is not in the stream, so the stream cannot tell whether it leads. Only if no other box leads this board, start it with broadside serve, which publishes it. A follower needs an empty directory: choose another DATA_DIR.`,
    )
  const stream = await wanted.openStream(wanted, settings, readFacts(disk, path).service_id, 'refuse')
  let header: BatchHeader | undefined
  try {
    header = await beginningAfter(stream, state.epoch, state.leader)
  } finally {
    await stream.close()
  }
  if (header === undefined) return false
  cutTo(wanted, header)
  return true
}

/** The message with which another board began after this one; undefined if none did. */
async function beginningAfter(stream: BoardStream, epoch: number, leader: string): Promise<BatchHeader | undefined> {
  const headerOf = async (seq: number): Promise<BatchHeader | undefined> => (await stream.read(seq))?.header
  const { firstSeq, lastSeq } = await stream.state()
  const newest = lastSeq === 0 ? undefined : await headerOf(lastSeq)
  if (lastSeq > 0 && newest === undefined) throw new Outdated()
  if (newest === undefined || (newest.leader === leader && newest.epoch === epoch)) return undefined
  // Epochs only grow, so a binary search finds the first message with a later one.
  let [from, to] = [firstSeq, lastSeq]
  while (from < to) {
    const middle = Math.floor((from + to) / 2)
    const found = await headerOf(middle)
    if (found !== undefined && found.epoch > epoch) to = middle
    else from = middle + 1
  }
  const first = await headerOf(to)
  if (first === undefined || to === firstSeq || first.epoch <= epoch)
    throw new Halted(
      'The stream no longer has the message with which another board replaced this one, because it keeps messages for 48 hours. Create a new follower in an empty directory.',
    )
  return first
}

function cutTo({ disk, config, report }: Wanted, { journals }: BatchHeader): void {
  const { dataDirectory: path, segmentBytesMax } = config
  const facts = readFacts(disk, path)
  const shards = shardDirectories(path, facts.shards)
  const directories = [...shards, logDirectory(path)]
  const lasts = journals.map(({ first }) => first - 1)
  const ends: Ends = { shards: lasts.slice(0, -1), log: lasts.at(-1)! }
  if (
    directories.length !== journals.length ||
    directories.some((directory, n) => journalEnd(disk, directory) < lasts[n]!) ||
    !isSame(new JournalsOut(disk, { shards, log: logDirectory(path) }, ends, ends), journals)
  )
    throw new Diverged(
      `Another box leads, and ${path} lacks some of what this box wrote: was an old copy restored? ${rejoinAdvice}`,
    )
  forgetDerived(disk, path, directories)
  for (const [index, directory] of directories.entries()) {
    const { rolls } = journals[index]!
    const last = lasts[index]!
    cutJournal(disk, directory, { last, isSealed: rolls.includes(last + 1), isKept: directory !== logDirectory(path) })
  }
  const log = openLogIn({ disk, path, segmentBytesMax, facts, report })
  const { identities } = log
  log.close()
  becomeFollower(disk, path, identities)
  report('info', 'replication.stood_down', { frames: lasts })
}

function isSame(here: JournalsOut, journals: BatchHeader['journals']): boolean {
  const { places } = here
  here.close()
  return places.every(({ id, chain }, index) => id === journals[index]!.id && chain === journals[index]!.chain)
}
