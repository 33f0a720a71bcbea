/** Lists by latest activity: any position is found without a walk, and a page costs a bounded amount. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { byActivity, looksPerPage } from '../../../actors/reading.ts'
import { type Active, ByActivity } from '../../../actors/records/board.ts'

type Thing = Active<Thing> & { readonly name: number }
const thing = (name: number): Thing => ({ name, version: 0, newer: undefined, older: undefined })

test('below any version, the list equals a sort, whatever was touched how often', () => {
  const touches = fc.array(fc.tuple(fc.nat(40), fc.nat(2)), { maxLength: 4_000 })
  fc.assert(
    fc.property(touches, fc.double({ min: 0, max: 1, noNaN: true }), (touched, share) => {
      const list = new ByActivity<Thing>()
      const things = new Map<number, Thing>()
      let version = 1
      for (const [name, step] of touched) {
        const each = things.get(name) ?? thing(name)
        things.set(name, each)
        version += step
        list.touch(each, version)
      }
      const below = Math.ceil(share * (version + 1))
      const expected = [...things.values()].filter((each) => each.version < below).map((each) => each.version)
      const found = [...list.below(below)]
      expect(found.map((each) => each.version)).toEqual(expected.sort((a, b) => b - a))
      expect(new Set(found).size).toBe(found.length)
    }),
    { numRuns: 200 },
  )
})

test('a page with few matches ends after a bounded number of looks, and the next one continues there', () => {
  const list = new ByActivity<Thing>()
  const count = 2 * looksPerPage + 10
  for (let name = 0; name < count; name++) list.touch(thing(name), name + 1)
  let looks = 0
  const accept = ({ name }: Thing) => {
    looks++
    return name === 5
  }
  const found: number[] = []
  const looksOfPages: number[] = []
  for (let below: number | undefined = Number.POSITIVE_INFINITY; below !== undefined; ) {
    looks = 0
    const page: { entries: Thing[]; next: number | undefined } = byActivity(list, { limit: 20, below, accept })
    found.push(...page.entries.map(({ name }) => name))
    looksOfPages.push(looks)
    below = page.next
  }
  expect([found, looksOfPages]).toEqual([[5], [looksPerPage, looksPerPage, 10]])
})
