import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { ConnectionCount } from '../../../src/http/connection-count.ts'
import { connectionsMaxOf, portOptions } from '../../../src/http/engine.ts'
import { descriptorsMax, softLimitIn } from '../../../storage/machine-disk.ts'
import { descriptorsForSegments } from '../../../storage/sealed-segments.ts'

test('connections leave descriptors for the files of the board, half of them where there are few', () => {
  expect([64, 1_024, 20_000, 1_048_576].map(connectionsMaxOf)).toEqual([32, 512, 17_132, 1_036_160])
  expect(connectionsMaxOf(Number.POSITIVE_INFINITY)).toBe(Number.POSITIVE_INFINITY)
})

test('all readers of old segments together fit into what connections leave, and the board has some to spare', () => {
  for (const descriptors of [1_024, 4_096, 20_000, 65_536, 1_048_576]) {
    const left = descriptors - connectionsMaxOf(descriptors)
    expect(left - descriptorsForSegments(descriptors)).toBeGreaterThanOrEqual(Math.min(1_152, left * 0.3))
  }
})

test('the soft limit is the one that counts, and it may be unknown', () => {
  const lines = 'Max processes             7                    8                    processes \n'
  const files = 'Max open files            1024                 524288               files     \n'
  expect(softLimitIn(lines + files)).toBe(1_024)
  expect(softLimitIn(lines)).toBe(Number.POSITIVE_INFINITY)
  expect(softLimitIn(files.replace('1024     ', 'unlimited'))).toBe(Number.POSITIVE_INFINITY)
})

test('the limit of open files of its process bounds a board', () => {
  expect(portOptions(new ConnectionCount(), systemClock).connectionsMax).toBe(connectionsMaxOf(descriptorsMax()))
})
