/** A flipped bit anywhere in the files of a board: the full check runs to its end, and names the file. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkBoard, type Finding } from '../../../src/fsck/fsck.ts'
import { markText } from '../../../src/log/mark.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { integrate, openLog, writePosts } from '../../support/posts-on-disk.ts'
import { scratchDirectory } from '../../support/scratch.ts'

const segmentBytesMax = 1_536
/** Divides no length that repeats in the files. */
const stride = 449
const footerBytes = 64

test('one bit anywhere in a journal of several segments, its index or the tree is reported, and hides nothing else', () => {
  const directory = scratchDirectory()
  const posts = 40
  writePosts({ directory, posts, textBytes: 10, segmentBytesMax })
  let head = ''
  const onHead = (_size: number, checkpoint: string) => {
    head = checkpoint
  }
  integrate({ directory, posts, segmentBytesMax, entriesPerFrameMax: 4, onHead })
  const log = openLog(directory, segmentBytesMax)
  const { vkey } = log
  log.close()
  const markFile = join(scratchDirectory(), 'mark')
  writeFileSync(markFile, markText([vkey], head))
  const check = (): Finding[] => {
    const findings: Finding[] = []
    const onFinding = (finding: Finding) => findings.push(finding)
    checkBoard({ disk: machineDisk, path: directory, markFile, onFinding, onProgress: () => {}, verify: undefined })
    return findings
  }
  expect(check()).toEqual([])
  const files = ['shard-00', 'log'].flatMap((part) =>
    readdirSync(join(directory, part)).map((name) => join(directory, part, name)),
  )
  expect(files.filter((file) => file.endsWith('.log')).length).toBeGreaterThan(5)
  for (const file of files.filter((each) => /\.(log|idx|bin)$/.test(each))) {
    const bytes = readFileSync(file)
    const places = [...bytes.keys()].filter((at) => at % stride === 0 || at === bytes.length - footerBytes)
    for (const at of places) {
      const changed = Buffer.from(bytes)
      changed[at] = changed[at]! ^ (1 << (at % 8))
      writeFileSync(file, changed)
      const named = check().filter(({ where }) => where.startsWith(file))
      expect([file, at, named.length > 0]).toEqual([file, at, true])
    }
    writeFileSync(file, bytes)
  }
  expect(check()).toEqual([])
})
