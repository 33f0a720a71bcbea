/** Where the high-water mark is stored, however its directory was named, and what happens to one that is inside the directory. */

import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { readConfig } from '../../../src/config.ts'
import { explainFailure } from '../../../src/failure.ts'
import {
  type HighWaterMark,
  MarkKeeper,
  markPaceMs,
  markText,
  parseMark,
  RolledBack,
  readMarks,
} from '../../../src/log/mark.ts'
import type { Disk } from '../../../storage/disk.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { createNoteKey } from '../../../storage/note-signer.ts'
import { integrate, openLog, writePosts } from '../../support/posts-on-disk.ts'
import { scratchDirectory } from '../../support/scratch.ts'

/** A disk that blocks every write for as long as `stalled` does. */
const stalling = { stalled: Promise.resolve(), writing: 0, mostAtOnce: 0 }
const disk: Disk = {
  ...machineDisk,
  replaceLater: async (path, text) => {
    stalling.mostAtOnce = Math.max(stalling.mostAtOnce, ++stalling.writing)
    await stalling.stalled
    await machineDisk.replaceLater(path, text).finally(() => stalling.writing--)
  },
}
const platform = { disk, clock: systemClock }

test.each(['/var/lib/board', '/var/lib/board/', '/var/lib/board//', '/var/lib/./board/.'])(
  'the mark of %s is beside it',
  (given) => {
    for (const { dataDirectory, markFile } of [readConfig('', { DATA_DIR: given }), readConfig(given, {})]) {
      expect(dataDirectory).toBe('/var/lib/board')
      expect(markFile).toBe('/var/lib/board.mark')
    }
  },
)

test('a directory given to a command takes precedence over DATA_DIR, and MARK_FILE over both', () => {
  const env = { DATA_DIR: '/var/lib/board', MARK_FILE: '/mnt/mark' }
  expect(readConfig('/srv/other/', env)).toMatchObject({ dataDirectory: '/srv/other', markFile: '/mnt/mark' })
})

/** A log of the first of four posts, and the mark of its newest head as it was stored inside the directory. */
function markedInside(posts: number) {
  const dataDirectory = join(scratchDirectory(), 'board')
  mkdirSync(dataDirectory)
  writePosts({ directory: dataDirectory, posts: 4 })
  integrate({ directory: dataDirectory, posts })
  const log = openLog(dataDirectory)
  const { vkey, newest } = log
  log.close()
  const place = { dataDirectory, markFile: `${dataDirectory}.mark` }
  const inside = join(dataDirectory, '.mark')
  writeFileSync(inside, markText([vkey], newest.checkpoint))
  return { place, inside, vkey, newest }
}

test('a mark left inside the directory counts like the one beside it', () => {
  const { place, inside } = markedInside(3)
  const opened = (dataDirectory: string) =>
    openLog(dataDirectory, undefined, readMarks(machineDisk, { ...place, dataDirectory }))
  opened(place.dataDirectory).close()
  const copy = `${place.dataDirectory}.copy`
  cpSync(place.dataDirectory, copy, { recursive: true })
  integrate({ directory: place.dataDirectory, posts: 4 })
  const log = opened(place.dataDirectory)
  expect(log.newest.size).toBe(4)
  const ahead = markText([log.vkey], log.newest.checkpoint)
  log.close()
  writeFileSync(join(copy, '.mark'), ahead)
  // Its journal has the entry that the mark knows of: the log rebuilds it, identically.
  opened(copy).close()
  rmSync(join(copy, 'shard-00'), { recursive: true })
  expect(() => opened(copy)).toThrow(RolledBack)
  renameSync(join(copy, '.mark'), place.markFile)
  expect(() => opened(copy)).toThrow(RolledBack)
  expect(existsSync(inside)).toBe(true)
})

test('it is removed once the mark beside the directory covers it, and not before', async () => {
  const { place, inside, vkey, newest } = markedInside(3)
  const nowhere = new MarkKeeper({ ...place, markFile: join(place.dataDirectory, 'missing', 'mark') }, platform)
  nowhere.note([vkey], newest.checkpoint)
  await nowhere.close()
  expect(existsSync(inside)).toBe(true)
  const keeper = new MarkKeeper(place, platform)
  expect(existsSync(inside)).toBe(true)
  keeper.note([vkey], newest.checkpoint)
  await keeper.close()
  expect(existsSync(inside)).toBe(false)
  expect(readFileSync(place.markFile, 'utf8')).toBe(markText([vkey], newest.checkpoint))
  expect(readMarks(machineDisk, place)).toMatchObject([{ file: place.markFile, vkey, closed: [], size: newest.size }])
})

test('a MARK_FILE inside of the data directory is refused with the reason, before anything is written', () => {
  for (const markFile of ['/var/lib/board/mark', '/var/lib/board/.mark', '/var/lib/board'])
    expect(() => readConfig('', { DATA_DIR: '/var/lib/board', MARK_FILE: markFile })).toThrow(
      /^MARK_FILE is \/var.* inside of DATA_DIR\. .*such as \/var\/lib\/board\.mark/,
    )
  for (const markFile of ['/var/lib/board-mark', '/var/lib/..mark', '/var/lib/other/mark'])
    expect(readConfig('/var/lib/board', { MARK_FILE: markFile })).toMatchObject({ markFile })
})

test('a mark with any one bit changed, truncated or empty is refused by name, and never treated as missing', () => {
  const { place, vkey, newest } = markedInside(1)
  rmSync(join(place.dataDirectory, '.mark'))
  const older = createNoteKey('elsewhere.example/log/2025a', Buffer.alloc(32, 5)).vkey
  const whole = Buffer.from(markText([older, vkey], newest.checkpoint))
  expect(parseMark(whole.toString())).toMatchObject({ ok: true, value: { vkey, closed: [older], size: 1 } })
  for (let at = 0; at < whole.length; at++) {
    const changed = Buffer.from(whole)
    changed[at]! ^= 1 << (at % 8)
    expect([at, parseMark(changed.toString()).ok]).toEqual([at, false])
    expect([at, parseMark(whole.toString('utf8', 0, at)).ok]).toEqual([at, false])
  }
  writeFileSync(place.markFile, 'precious notes\n')
  const refusal = (): unknown => {
    try {
      return readMarks(machineDisk, place)
    } catch (error) {
      return error
    }
  }
  const { problem } = explainFailure(refusal())
  expect(problem).toContain(`${place.markFile} should be the log's mark file, but cannot be parsed`)
  expect(problem).not.toContain('was restored: ')
  expect(readFileSync(place.markFile, 'utf8')).toBe('precious notes\n')
})

test('a mark cannot be a directory, nor be in a missing one', () => {
  const { place } = markedInside(1)
  expect(() => readMarks(machineDisk, { ...place, markFile: place.dataDirectory })).toThrow('it is not a file')
  const markFile = join(place.dataDirectory, 'missing', 'mark')
  expect(() => readMarks(machineDisk, { ...place, markFile })).toThrow(
    `the directory ${join(place.dataDirectory, 'missing')} does not exist`,
  )
})

test('a missing mark is reported if the log has entries', () => {
  const { place, vkey, newest } = markedInside(1)
  const reported = (marks: readonly HighWaterMark[]): string[] => {
    const events: string[] = []
    openLog(place.dataDirectory, undefined, marks, (_level, event) => events.push(event)).close()
    return events
  }
  const [mark] = readMarks(machineDisk, place) as [HighWaterMark]
  expect(reported([mark])).toEqual([])
  expect(reported([])).toEqual(['mark.missing'])
  expect(mark).toMatchObject({ vkey, size: newest.size })
})

test('a head that arrives while the disk blocks the mark of another waits for it', async () => {
  const { place, vkey, newest } = markedInside(3)
  const stall = Promise.withResolvers<void>()
  stalling.stalled = stall.promise
  stalling.mostAtOnce = 0
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const keeper = new MarkKeeper(place, platform)
    for (const checkpoint of ['an older head', 'a head', newest.checkpoint]) {
      keeper.note([vkey], checkpoint)
      await vi.advanceTimersByTimeAsync(markPaceMs)
    }
    const closed = keeper.close()
    stall.resolve()
    await closed
  } finally {
    vi.useRealTimers()
    stalling.stalled = Promise.resolve()
  }
  expect(stalling.mostAtOnce).toBe(1)
  expect(readMarks(machineDisk, place)).toMatchObject([{ vkey, size: newest.size }])
})
