/** A disk counts as slow when several short reads in a row take long, and for a second after that. */
import { expect, test } from 'vitest'
import { ReadPace } from '../../storage/read-pace.ts'

/** A pace after that many reads with these durations and sizes, and the time then. */
function paced(reads: number, ms: number, bytes = 4_096, pace = new ReadPace(), from = 0) {
  let now = from
  for (let n = 0; n < reads; n++) {
    pace.note(bytes, now, now + ms)
    now += ms
  }
  return { pace, now }
}

test('reads from memory are not slow, nor are a few during which the thread waited for a core', () => {
  const { pace, now } = paced(1_000, 0.005)
  expect(pace.isSlow(now)).toBe(false)
  for (let round = 0; round < 100; round++) {
    paced(3, 5, 4_096, pace, now)
    paced(20, 0.005, 4_096, pace, now)
    expect(pace.isSlow(now)).toBe(false)
  }
})

test('seven reads of a tenth of a millisecond make the disk slow, until a second after the last of them', () => {
  expect([1, 2, 3].map((reads) => paced(reads, 0.1).pace.isSlow(0.5))).toEqual([false, false, false])
  const { pace, now } = paced(7, 0.1)
  expect([now, now + 999, now + 1_001].map((time) => pace.isSlow(time))).toEqual([true, true, false])
})

test('long reads are ignored', () => {
  const { pace, now } = paced(100, 3, 1_048_576)
  expect(pace.isSlow(now)).toBe(false)
})
