/** How a leader lets followers wait for frames, on a fake clock. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { AwaitedFrames } from '../../../src/replication/awaited-frames.ts'
import type { FramesAnswer } from '../../../src/replication/copies.ts'

const [places, withinMs] = [[], 2_000]
const batch: FramesAnswer = { journals: [], payload: Buffer.from('frames') }

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A leader whose reads of frames are answered by the test. */
function leader() {
  const reads: ((found: FramesAnswer | 'busy') => void)[] = []
  const frames = new AwaitedFrames({ clock: systemClock, frames: (_places, answer) => void reads.push(answer) })
  const answers: (FramesAnswer | 'busy')[] = []
  frames.ask(places, withinMs, (found) => answers.push(found))
  return { frames, reads, answers }
}

test('frames that exist, and a fault, are answered at once', () => {
  const { frames, reads, answers } = leader()
  reads[0]!(batch)
  frames.ask(places, withinMs, (found) => answers.push(found))
  reads[1]!('busy')
  expect(answers).toEqual([batch, 'busy'])
})

test('a follower that has everything gets the next frames as soon as they exist', () => {
  const { frames, reads, answers } = leader()
  reads[0]!(undefined)
  vi.advanceTimersByTime(withinMs - 1)
  expect([reads.length, answers.length]).toEqual([1, 0])
  frames.moved()
  reads[1]!(batch)
  expect(answers).toEqual([batch])
  vi.advanceTimersByTime(withinMs)
  expect([reads.length, answers.length]).toEqual([2, 1])
})

test('frames that come while the journals are being read are not missed', () => {
  const { frames, reads, answers } = leader()
  frames.moved()
  reads[0]!(undefined)
  reads[1]!(batch)
  expect(answers).toEqual([batch])
})

test('without new frames the answer is that there are none, after the time that was asked for', () => {
  const { frames, reads, answers } = leader()
  reads[0]!(undefined)
  vi.advanceTimersByTime(withinMs - 1)
  expect(answers).toEqual([])
  vi.advanceTimersByTime(1)
  expect(answers).toEqual([undefined])
  frames.moved()
  expect(reads.length).toBe(1)
})

test('several moves without frames for this follower do not prolong its wait', () => {
  const { frames, reads, answers } = leader()
  reads[0]!(undefined)
  for (let moves = 1; moves < 4; moves++) {
    vi.advanceTimersByTime(withinMs / 4)
    frames.moved()
    reads[moves]!(undefined)
  }
  expect(answers).toEqual([])
  vi.advanceTimersByTime(withinMs / 4)
  expect(answers).toEqual([undefined])
})

test('once the leader stops, followers that wait are answered, and no other waits', () => {
  const { frames, reads, answers } = leader()
  reads[0]!(undefined)
  frames.close()
  reads[1]!(undefined)
  expect(answers).toEqual([undefined])
  frames.ask(places, withinMs, (found) => answers.push(found))
  reads[2]!(undefined)
  expect(answers).toEqual([undefined, undefined])
})
