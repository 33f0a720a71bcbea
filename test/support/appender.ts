/**
 * A process that keeps appending to the journal in argv[2], argv[3] frames at a time, and prints each seq after `append` returned. Tests
 * kill it.
 */

import { writeSync } from 'node:fs'
import { Journal } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { numberedFrame } from './frames.ts'

const journal = Journal.open({ disk: machineDisk, directory: process.argv[2]!, segmentBytesMax: 16 * 1024 })
const batchSize = Number(process.argv[3])
for (;;) {
  const first = journal.nextSeq
  journal.append(Array.from({ length: batchSize }, (_, i) => numberedFrame(first + i)))
  writeSync(1, `${journal.nextSeq - 1}\n`)
}
