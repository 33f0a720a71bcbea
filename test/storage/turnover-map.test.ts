import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { TurnoverMap } from '../../storage/turnover-map.ts'

/**
 * Prints the bytes of the heap after 20,000 entries of 1 KB have come and gone, and young objects were collected. The Map is last: V8
 * allocates directly in the old generation what it has often seen grow old.
 */
const measuring = `
  import { BoundedMap } from '${new URL('../../storage/bounded-map.ts', import.meta.url).href}'
  import { TurnoverMap } from '${new URL('../../storage/turnover-map.ts', import.meta.url).href}'
  function bytesHeldBy(map) {
    map.set(-1, {})
    for (let n = 0; n < 3; n++) gc({ type: 'major' })
    const before = process.memoryUsage().heapUsed
    for (let n = 0; n < 20_000; n++) {
      map.set(n, new Array(128).fill(n))
      map.delete(n - 16)
      if (n % 2_000 === 0) gc({ type: 'minor' })
    }
    for (let n = 0; n < 3; n++) gc({ type: 'minor' })
    return process.memoryUsage().heapUsed - before
  }
  console.log(JSON.stringify([new TurnoverMap(), new BoundedMap(64), new Map()].map(bytesHeldBy)))
`

test('removed entries are not retained by a map, though the map is old', () => {
  const words = ['--expose-gc', '--no-warnings', '--input-type=module', '--eval', measuring]
  const [turnover, bounded, plain] = JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8' }))
  expect(turnover).toBeLessThan(plain / 4)
  expect(bounded).toBeLessThan(plain / 4)
})

test('entries keep their order when the map is rebuilt', () => {
  const map = new TurnoverMap<number, string>()
  map.set(-2, 'oldest').set(-1, 'next')
  for (let n = 0; n < 5_000; n++) {
    map.set(n, 'passing')
    expect(map.delete(n)).toBe(true)
  }
  expect(map.delete(4)).toBe(false)
  map.set(7, 'newest')
  expect([...map]).toEqual([
    [-2, 'oldest'],
    [-1, 'next'],
    [7, 'newest'],
  ])
  expect([map.size, map.has(-1), map.get(-2)]).toEqual([3, true, 'oldest'])
})
