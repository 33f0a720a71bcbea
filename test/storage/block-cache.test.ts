/** A block cache returns what was last read under each number, in the memory of a fixed number of blocks. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BlockCache } from '../../storage/block-cache.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'

const blocksMax = 4
const bytesMax = 16

type Step = { readonly do: 'use' | 'has' | 'fail' | 'clear'; readonly number: number; readonly length: number }

const step: fc.Arbitrary<Step> = fc.record({
  do: fc.oneof(
    { weight: 10, arbitrary: fc.constant('use' as const) },
    { weight: 2, arbitrary: fc.constantFrom('has' as const, 'fail' as const) },
    { weight: 1, arbitrary: fc.constant('clear' as const) },
  ),
  number: fc.nat(7),
  length: fc.constantFrom(4, 8, 16),
})

test('every block read is what was stored, the least recently used are evicted, and their memory is reused', () => {
  const memories = new Set<ArrayBufferLike>()
  let made = 0
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const cache = new BlockCache(blocksMax, bytesMax)
      const model = new BoundedMap<number, number[]>(blocksMax)
      memories.clear()
      for (const { do: what, number, length } of steps) {
        const found = cache.get(number)
        expect(found && [...found]).toEqual(model.touch(number))
        if (what === 'has') {
          expect(cache.has(number)).toBe(model.has(number))
        } else if (what === 'clear') {
          cache.clear()
          model.clear()
        } else if (found === undefined && what === 'fail') {
          const fails = () => {
            throw new Error('cannot be read')
          }
          expect(() => cache.read(number, length, fails)).toThrow('cannot be read')
          expect(cache.get(number)).toBeUndefined()
          model.evictIfFull()
        } else if (found === undefined) {
          const value = ++made
          const words = cache.read(number, length, (into) => {
            expect(into.length).toBe(length)
            new Uint32Array(into.buffer, into.byteOffset, length / 4).fill(value)
          })
          expect([...words]).toEqual(Array(length / 4).fill(value))
          model.set(number, [...words])
          memories.add(words.buffer)
        }
      }
      expect(memories.size).toBeLessThanOrEqual(blocksMax)
    }),
  )
})
