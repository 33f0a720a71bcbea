/** The log as read from its files, where the derived file of node hashes is wrong in places that a start does not check. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { expect, test } from 'vitest'
import { logDirectory, nodesFile } from '../../../src/board-directory.ts'
import { nodesIn } from '../../../storage/tree-layout.ts'
import { integrate, openLog, writePosts } from '../../support/posts-on-disk.ts'
import { scratchDirectory } from '../../support/scratch.ts'

test('a witness is never sent a wrong path, whatever the file of hashes holds', () => {
  const directory = scratchDirectory()
  const posts = 300
  writePosts({ directory, posts })
  integrate({ directory, posts })
  const paths = () => {
    const log = openLog(directory)
    const found = [1, 100, 256, 299, 300].map((from) => log.consistency(log.origin, from))
    log.close()
    return found
  }
  const sound = paths()
  // All hashes of the first 256 leaves except their common root: the right edge stays correct.
  const file = openSync(nodesFile(logDirectory(directory)), 'r+')
  writeSync(file, Buffer.alloc((nodesIn(256) - 1) * 32, 7), 0, undefined, 0)
  closeSync(file)
  expect(paths()).toEqual(sound)
})
