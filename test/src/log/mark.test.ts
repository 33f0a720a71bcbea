/** Where the high-water mark stands, whatever way its directory was named, and what becomes of one that stood in the directory. */
import { cpSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readConfig } from '../../../src/config.ts'
import { MarkKeeper, markText, RolledBack, readMarks } from '../../../src/log/mark.ts'
import { integrate, openLog, writePosts } from '../../support/posts-on-disk.ts'
import { scratchDirectory } from '../../support/scratch.ts'

test.each(['/var/lib/board', '/var/lib/board/', '/var/lib/board//', '/var/lib/./board/.'])(
  'the mark of %s stands beside it',
  (given) => {
    for (const { dataDirectory, markFile } of [readConfig('', { DATA_DIR: given }), readConfig(given, {})]) {
      expect(dataDirectory).toBe('/var/lib/board')
      expect(markFile).toBe('/var/lib/board.mark')
    }
  },
)

test('a directory given to a command comes before DATA_DIR, and MARK_FILE before both', () => {
  const env = { DATA_DIR: '/var/lib/board', MARK_FILE: '/mnt/mark' }
  expect(readConfig('/srv/other/', env)).toMatchObject({ dataDirectory: '/srv/other', markFile: '/mnt/mark' })
})

/** A log of the first of four posts, and the mark of its newest head as it was kept in the directory itself. */
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

test('a mark that was left in the directory is heard like the one beside it', () => {
  const { place, inside } = markedInside(3)
  const opened = (dataDirectory: string) => openLog(dataDirectory, undefined, readMarks({ ...place, dataDirectory }))
  opened(place.dataDirectory).close()
  const copy = `${place.dataDirectory}.copy`
  cpSync(place.dataDirectory, copy, { recursive: true })
  integrate({ directory: place.dataDirectory, posts: 4 })
  const log = opened(place.dataDirectory)
  expect(log.newest.size).toBe(4)
  const ahead = markText([log.vkey], log.newest.checkpoint)
  log.close()
  writeFileSync(join(copy, '.mark'), ahead)
  expect(() => opened(copy)).toThrow(RolledBack)
  renameSync(join(copy, '.mark'), place.markFile)
  expect(() => opened(copy)).toThrow(RolledBack)
  expect(existsSync(inside)).toBe(true)
})

test('it goes when what it knows stands beside the directory, and not before', async () => {
  const { place, inside, vkey, newest } = markedInside(3)
  const nowhere = new MarkKeeper({ ...place, markFile: join(place.dataDirectory, 'missing', 'mark') }, [vkey])
  nowhere.note(newest.checkpoint)
  await nowhere.close()
  expect(existsSync(inside)).toBe(true)
  const keeper = new MarkKeeper(place, [vkey])
  expect(existsSync(inside)).toBe(true)
  keeper.note(newest.checkpoint)
  await keeper.close()
  expect(existsSync(inside)).toBe(false)
  expect(readMarks(place)).toEqual([markText([vkey], newest.checkpoint)])
})

test('a mark that MARK_FILE puts into the directory stays', async () => {
  const { place, inside, vkey, newest } = markedInside(1)
  const keeper = new MarkKeeper({ ...place, markFile: inside }, [vkey])
  keeper.note(newest.checkpoint)
  await keeper.close()
  expect(readMarks({ ...place, markFile: inside })).toHaveLength(1)
})
