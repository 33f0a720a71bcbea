/** How a shard finds the texts that must leave the disk: a few frames at a time, each of them once. */

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { State } from '../../../actors/state.ts'
import { systemClock } from '../../../src/clock.ts'
import { Compactor } from '../../../src/workers/compactor.ts'
import { FailedRead } from '../../../storage/disk.ts'
import { type Journal, STUB } from '../../../storage/journal.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { patience } from '../../support/patience.ts'
import { scratchDirectory } from '../../support/scratch.ts'

const frames = 1_000

/** A shard after its start: all of these were redacted, every third is already a stub. */
function shard({ written = Number.POSITIVE_INFINITY, stubs = (seq: number) => seq % 3 !== 0 } = {}) {
  const events = Array.from({ length: frames }, (_, slot) => slot)
  const place = (slot: number) => slot + 1
  const said = {
    tails: ['1.bin'],
    reads: [] as number[],
    compacted: [] as number[][],
    rewritten: 0,
    destroyed: [] as number[][],
    mostAtOnce: 0,
    written,
    fails: false,
    /** In a segment that is not sealed yet, and may not be. */
    growing: new Set<number>(),
    /** What the disk says of a frame in place of it. */
    unreadable: new Map<number, Error>(),
    damaged: [] as number[],
  }
  const directory = scratchDirectory()
  const tails = join(directory, 'lost+tail')
  mkdirSync(tails)
  writeFileSync(join(tails, '1.bin'), 'words')
  let atOnce = 0
  const journal = {
    read(seq: number) {
      if (atOnce++ === 0) setImmediate(() => (atOnce = 0))
      said.mostAtOnce = Math.max(said.mostAtOnce, atOnce)
      said.reads.push(seq)
      const error = said.unreadable.get(seq)
      if (error !== undefined) throw error
      return seq > said.written ? undefined : { flags: stubs(seq) ? STUB : 0 }
    },
    mayCompact: (seq: number) => !said.growing.has(seq),
    *compact(seqs: ReadonlySet<number>, _keep: unknown, onDamage: (damage: Error, left: number[]) => void) {
      said.tails = readdirSync(tails)
      if (said.fails) throw Object.assign(new Error('no space'), { name: 'DiskFull' })
      said.compacted.push([...seqs])
      if (said.damaged.length > 0) onDamage(damage, said.damaged)
      yield {}
      return seqs.size
    },
  }
  const commands: number[] = []
  const state = {
    board: { events: { place } },
    marks: { removedTextSlots: () => events },
    mail: { redactedActs: () => commands },
    people: { redactedActs: () => [] },
  }
  const compactor = new Compactor({
    disk: machineDisk,
    report: () => {},
    shard: 0,
    journal: journal as unknown as Journal,
    state: state as unknown as State,
    directory,
    everySeconds: 0.01,
    clock: systemClock,
    onRewritten: () => said.rewritten++,
    onDestroyed: (slots) => said.destroyed.push([...slots]),
  })
  return { said, events, commands, compactor }
}

const damage = Object.assign(new Error('is damaged'), { name: 'Damage' })

const thirds = Array.from({ length: Math.floor(frames / 3) }, (_, n) => 3 * (n + 1))

test('after a start each frame is read once, a few between two turns; then only new ones', async () => {
  const { said, events, commands, compactor } = shard()
  await vi.waitFor(() => expect(said.compacted).toEqual([thirds]), patience)
  expect(said.reads).toHaveLength(frames)
  expect(said.mostAtOnce).toBeLessThanOrEqual(128)
  events.push(frames + 1)
  commands.push(frames + 51)
  await vi.waitFor(() => expect(said.compacted).toEqual([thirds, [frames + 2]]), patience)
  expect(said.reads.slice(frames)).toEqual([frames + 2, frames + 51])
  compactor.close()
})

test('a frame that is not written yet is examined again, and one that a full disk kept is retried', async () => {
  const { said, compactor } = shard({ written: frames - 10 })
  said.fails = true
  await vi.waitFor(() => expect(said.reads.length).toBeGreaterThan(frames), patience)
  expect(said.compacted).toEqual([])
  said.written = frames
  said.fails = false
  await vi.waitFor(() => expect(said.compacted.flat().sort((a, b) => a - b)).toEqual(thirds), patience)
  compactor.close()
})

test('frames in the active segment of a copy of a journal wait until it is sealed', async () => {
  const { said, compactor } = shard()
  for (const seq of [6, 7]) said.growing.add(seq)
  await vi.waitFor(() => expect(said.compacted).toEqual([thirds.filter((seq) => seq !== 6)]), patience)
  said.growing.clear()
  await vi.waitFor(() => expect(said.compacted.at(-1)).toEqual([6]), patience)
  compactor.close()
})

test('readers are notified of rewritten segments before the disk is full: they hold the room that the others need', async () => {
  const { said, compactor } = shard()
  said.fails = true
  await vi.waitFor(() => expect(said.rewritten).toBeGreaterThan(0), patience)
  expect([said.compacted, said.destroyed]).toEqual([[], []])
  compactor.close()
})

test('after a start readers reopen once, though nothing is left to do: the last run may have died before it notified them', async () => {
  const { said, events, compactor } = shard({ stubs: () => true })
  await vi.waitFor(() => expect(said.rewritten).toBe(1), patience)
  events.push(frames + 1)
  await vi.waitFor(() => expect(said.reads).toContain(frames + 2), patience)
  expect([said.rewritten, said.compacted, said.destroyed]).toEqual([1, [], []])
  compactor.close()
})

test('posts that lost their texts are reported, those of a failed pass too; saved tails go first', async () => {
  const { said, events, compactor } = shard()
  said.fails = true
  await vi.waitFor(() => expect(said.tails).toEqual([]), patience)
  expect(said.destroyed).toEqual([])
  said.fails = false
  const slots = thirds.map((seq) => seq - 1)
  await vi.waitFor(() => expect(said.destroyed).toEqual([slots]), patience)
  events.push(frames + 1)
  await vi.waitFor(() => expect(said.destroyed).toEqual([slots, [frames + 1]]), patience)
  compactor.close()
})

test('an unreadable text affects no other: a damaged one is left, any other is examined again', async () => {
  const { said, events, compactor } = shard()
  said.unreadable.set(3, damage)
  said.unreadable.set(6, Object.assign(new Error('EIO: i/o error, read'), { syscall: 'read' }))
  said.unreadable.set(9, new FailedRead({ path: '/d/1.log', offset: 64, expected: 'frame 9', frame: 9 }))
  await vi.waitFor(() => expect(said.compacted).toEqual([thirds.slice(3)]), patience)
  said.unreadable.clear()
  events.push(frames + 1)
  await vi.waitFor(
    () =>
      expect(
        said.compacted
          .slice(1)
          .flat()
          .sort((a, b) => a - b),
      ).toEqual([6, 9, frames + 2]),
    patience,
  )
  compactor.close()
})

test('texts of a damaged segment are not taken for destroyed', async () => {
  const { said, compactor } = shard()
  said.damaged = [3, 9]
  const slots = thirds.map((seq) => seq - 1)
  await vi.waitFor(() => expect(said.destroyed).toEqual([slots.filter((slot) => slot !== 2 && slot !== 8)]), patience)
  compactor.close()
})
