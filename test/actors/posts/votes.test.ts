/** Votes and their sums are as they were cast, while their columns and their table grow, and after a snapshot. */
import { expect, test } from 'vitest'
import { type Value, Votes } from '../../../actors/posts/votes.ts'
import { SeededRandom } from '../../support/seeded-random.ts'

test('votes and sums agree with a list of all votes at each size', () => {
  const chance = new SeededRandom('votes that grow')
  const cast = new Map<string, Value>()
  let votes = new Votes()
  const expectAll = () => {
    const sums = new Map<number, [up: number, down: number]>()
    for (const [key, value] of cast) {
      const [event, voter] = key.split(' ').map(Number) as [number, number]
      expect(votes.of(event, voter)).toBe(value)
      const [up, down] = sums.get(event) ?? [0, 0]
      sums.set(event, [up + Number(value === 1), down + Number(value === -1)])
    }
    for (const [event, [up, down]] of sums) expect(votes.sums(event)).toEqual({ up, down, score: up - down })
    expect(votes.of(1_000_000, 1)).toBe(0)
  }
  for (let n = 1; n <= 20_000; n++) {
    const [event, voter] = [chance.below(400), chance.below(60)]
    const value = ([1, -1, 0] as const)[chance.below(3)]!
    votes.set(event, voter, { value, hour: n })
    cast.set(`${event} ${voter}`, value)
    expect(votes.cast(event, voter)).toEqual({ value, hour: value === 0 ? expect.any(Number) : n })
    if (n % 1_500 === 0) expectAll()
    if (n !== 7_000) continue
    const kept = votes.pack().map((bytes) => bytes.slice())
    votes = new Votes()
    votes.restore([kept[0]!, kept[1]!, kept[2]!])
    expectAll()
  }
  expectAll()
})
