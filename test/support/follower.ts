/** A worker thread that follows a live journal: notified of a durable seq, it answers how many frames were correct. */

import { parentPort, workerData } from 'node:worker_threads'
import { JournalReader } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { keyOf, numberedFrame } from './frames.ts'

const reader = JournalReader.open(machineDisk, workerData as string)
let next = 1
parentPort!.on('message', (through: number) => {
  reader.advance(through)
  let good = 0
  for (const frame of reader.scan(next)) {
    const expected = numberedFrame(frame.seq)
    if (frame.type === expected.type && frame.payload.equals(expected.payload)) good++
  }
  const last = reader.read(through)
  const middle = Math.ceil(through / 2)
  const found = [1, middle, through].map((seq) => reader.findKey(keyOf(seq)) === seq)
  next = through + 1
  const beyond = reader.read(through + 1)
  parentPort!.postMessage({ good, last: last?.seq, found, beyond: beyond?.seq, unknown: reader.findKey(keyOf(0)) })
})
