/** A thread of the append bench: opens its journals, then appends to them in turn until it is stopped. */

import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { Journal } from '../storage/journal.ts'
import { machineDisk } from '../storage/machine-disk.ts'

export type AppendTask = {
  readonly directory: string
  readonly journals: number
  readonly framesPerTurn: number
  readonly payloadBytes: number
}
export type AppendFound = {
  readonly posts: number
  readonly syncs: number
  readonly seconds: number
  /** Processor time of this thread alone. */
  readonly cpuUs: number
}

const task = workerData as AppendTask
const port = parentPort!
const journals = Array.from({ length: task.journals }, (_, n) =>
  Journal.open({ disk: machineDisk, directory: join(task.directory, String(n)) }),
)
const frame = { type: 1, flags: 0, payload: Buffer.alloc(task.payloadBytes, 'x') }
const turn = Array.from({ length: task.framesPerTurn }, () => frame)

function run(ms: number): AppendFound {
  const cpu = process.threadCpuUsage()
  const start = performance.now()
  let syncs = 0
  let elapsed = 0
  do {
    journals[syncs % journals.length]!.append(turn)
    syncs++
    elapsed = performance.now() - start
  } while (elapsed < ms)
  const used = process.threadCpuUsage(cpu)
  return { posts: syncs * turn.length, syncs, seconds: elapsed / 1000, cpuUs: used.user + used.system }
}

port.on('message', (ms: number) => port.postMessage(run(ms)))
port.postMessage('ready')
