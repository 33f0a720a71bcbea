import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { verifyJournal } from '../../storage/fsck-journal.ts'
import { Journal } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { numberedFrame } from '../support/frames.ts'
import { scratchDirectory } from '../support/scratch.ts'

// Thousands of syncs and several processes take a while on a busy disk.
vi.setConfig({ testTimeout: 300_000 })

const appenderPath = fileURLToPath(new URL('../support/appender.ts', import.meta.url))

/** Lets a process append until it has acknowledged `acks` batches, kills it, and returns the last acknowledged seq. */
async function appendAndKill(directory: string, options: { batchSize: number; acks: number }): Promise<number> {
  const appender = spawn(process.execPath, [appenderPath, directory, String(options.batchSize)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  appender.stdout.on('data', (chunk) => {
    said += chunk
    if (said.split('\n').length > options.acks) appender.kill('SIGKILL')
  })
  await once(appender, 'close')
  return Number(said.trim().split('\n').at(-1))
}

test('after kill -9 at any moment every acknowledged frame is there, round after round', async () => {
  const directory = scratchDirectory()
  let acknowledged = 0
  for (let round = 0; round < 8; round++) {
    acknowledged = await appendAndKill(directory, { batchSize: 1 + ((round * 5) % 17), acks: 3 + round * 9 })
    const journal = Journal.open({ disk: machineDisk, directory, segmentBytesMax: 16 * 1024 })
    expect(journal.nextSeq).toBeGreaterThan(acknowledged)
    let seq = 1
    for (const frame of journal.scan(1)) {
      expect(frame.seq).toBe(seq)
      if (!frame.payload.equals(numberedFrame(seq).payload)) throw new Error(`frame ${seq} is another`)
      seq++
    }
    expect(seq).toBe(journal.nextSeq)
    journal.close()
    const problems: unknown[] = []
    verifyJournal(machineDisk, directory, (problem) => problems.push(problem))
    expect(problems).toEqual([])
  }
  expect(acknowledged).toBeGreaterThan(100)
})
