/** What a leader sends its followers from its files. */
import { expect, test } from 'vitest'
import { decodeLogFrame } from '../../../actors/log/frame.ts'
import { logDirectory, shardDirectory } from '../../../src/board-directory.ts'
import { Copies, type FramesAnswer } from '../../../src/replication/copies.ts'
import type { FrameShares } from '../../../src/replication/journals-out.ts'
import type { JournalPlace } from '../../../storage/copied-frames.ts'
import type { Disk } from '../../../storage/disk.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { integrate, openLog, writePosts } from '../../support/posts-on-disk.ts'
import { scratchDirectory } from '../../support/scratch.ts'

/** The place of a new follower. */
const nothing: JournalPlace = { id: '0'.repeat(32), last: 0, chain: '0'.repeat(64) }

/** `opened`: the number of files opened so far. */
function copiesOf(posts: number) {
  const directory = scratchDirectory()
  writePosts({ directory, posts })
  integrate({ directory, posts })
  const { journal } = openLog(directory)
  const log = journal.nextSeq - 1
  const { last } = decodeLogFrame(journal.read(log)!).ranges[0]!
  journal.close()
  let opened = 0
  const disk: Disk = {
    ...machineDisk,
    openFile: (path, mode) => {
      opened++
      return machineDisk.openFile(path, mode)
    },
  }
  const directories = { log: logDirectory(directory), shards: [shardDirectory(directory, 0)] }
  const ends = { log, shards: [last] }
  return { copies: new Copies(disk, directories, ends), ends, opened: () => opened }
}

function sharesIn(answer: FramesAnswer): FrameShares {
  if (answer === undefined || 'problem' in answer) throw new Error(`no frames were given: ${answer?.problem}`)
  return answer
}

test('a follower that missed an answer gets it again, without another read of a file', () => {
  const { copies, opened } = copiesOf(40)
  const first = sharesIn(copies.after([nothing, nothing]))
  expect(first.journals[0]!.last).toBeGreaterThan(40)
  const before = opened()
  expect(copies.after([nothing, nothing])).toEqual(first)
  expect(opened()).toBe(before)
  // A text may have been removed meanwhile, so the files are read.
  copies.rewritten(0)
  expect(copies.after([nothing, nothing])).toEqual(first)
  expect(opened()).toBeGreaterThan(before)
  expect(copies.after(first.journals)).toBeUndefined()
  copies.close()
})

test('a follower that is some answers behind another gets those, without another read of a file', () => {
  const { copies, opened, ends } = copiesOf(40)
  const answers: FrameShares[] = []
  let places: readonly JournalPlace[] = [nothing, nothing]
  for (const grown of [{ log: 0, shards: [10] }, { log: 0, shards: [20] }, { log: 0, shards: [30] }, ends]) {
    copies.advance(grown)
    const answer = sharesIn(copies.after(places))
    answers.push(answer)
    places = answer.journals
  }
  const before = opened()
  places = [nothing, nothing]
  for (const answer of answers) {
    expect(copies.after(places)).toBe(answer)
    places = answer.journals
  }
  expect(copies.after(places)).toBeUndefined()
  expect(opened()).toBe(before)
  copies.close()
})
