/** A bounded map is compared with a naive list. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BoundedMap } from '../../storage/bounded-map.ts'

type Step = { readonly do: 'set' | 'get' | 'touch' | 'delete' | 'evictIfFull' | 'clear'; readonly key: number }

const step: fc.Arbitrary<Step> = fc.record({
  do: fc.oneof(
    { weight: 8, arbitrary: fc.constant('set' as const) },
    {
      weight: 6,
      arbitrary: fc.constantFrom('get' as const, 'touch' as const, 'delete' as const, 'evictIfFull' as const),
    },
    { weight: 1, arbitrary: fc.constant('clear' as const) },
  ),
  key: fc.nat(9),
})

class Plain {
  entries: [key: number, value: string][] = []
  readonly max: number

  constructor(max: number) {
    this.max = max
  }

  get(key: number): string | undefined {
    return this.entries.find(([each]) => each === key)?.[1]
  }

  delete(key: number): boolean {
    const isThere = this.get(key) !== undefined
    this.entries = this.entries.filter(([each]) => each !== key)
    return isThere
  }

  evictIfFull(): string | undefined {
    return this.entries.length < this.max ? undefined : this.entries.shift()![1]
  }

  set(key: number, value: string): string | undefined {
    this.delete(key)
    const evicted = this.evictIfFull()
    this.entries.push([key, value])
    return evicted
  }

  touch(key: number): string | undefined {
    const value = this.get(key)
    if (value !== undefined) this.set(key, value)
    return value
  }
}

test('the least recently set or touched entry is evicted, whatever came before', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 60 }), (max, steps) => {
      const map = new BoundedMap<number, string>(max)
      const plain = new Plain(max)
      for (const [at, { do: what, key }] of steps.entries()) {
        if (what === 'clear') {
          map.clear()
          plain.entries = []
        } else if (what === 'set') expect(map.set(key, `${at}`)).toBe(plain.set(key, `${at}`))
        else if (what === 'evictIfFull') expect(map.evictIfFull()).toBe(plain.evictIfFull())
        else expect(map[what](key)).toBe(plain[what](key))
        expect([...map]).toEqual(plain.entries)
        expect([...map.values()]).toEqual(plain.entries.map(([, value]) => value))
        expect([map.size, map.has(key)]).toEqual([plain.entries.length, plain.get(key) !== undefined])
      }
    }),
    { numRuns: 1_000 },
  )
})
