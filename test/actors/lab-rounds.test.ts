/** The plan of the lab's daily round: everybody once, spread over the day, one machine after the other. */

import { expect, test } from 'vitest'
import { daySeconds } from '../../actors/kernel/day.ts'
import { momentOf, Rounds } from '../../actors/tools/tools.ts'

const day = 20_700
const midnight = day * daySeconds

/** `hosts` machines with the listings divided among them. */
function grounds(listings: number, hosts: number) {
  const entries = Array.from({ length: listings }, (_, n) => ({ id: `t${n}`, host: `h${n % hosts}`, lookedDay: 0 }))
  const asked = new Map<string, number>()
  return { entries, asked, version: 0, invited: () => entries, lastAsked: (host: string) => asked.get(host) ?? 0 }
}

test('each listing is probed once a day, evenly spread, and no machine twice within the gap', () => {
  const all = grounds(500, 400)
  const rounds = new Rounds<(typeof all.entries)[number]>()
  const hours = Array.from({ length: 24 }, () => 0)
  for (let now = midnight; now < midnight + daySeconds; now += 30) {
    const due = rounds.due(all, { seed: 's', gapSeconds: 60, now }, 4)
    expect(due.length).toBeLessThanOrEqual(4)
    for (const entry of due) {
      expect(now).toBeGreaterThanOrEqual(momentOf(entry.id, day, 's'))
      expect(now - (all.asked.get(entry.host) ?? 0)).toBeGreaterThanOrEqual(60)
      expect(entry.lookedDay).toBe(0)
      entry.lookedDay = day
      all.asked.set(entry.host, now)
      hours[Math.floor((now - midnight) / 3_600)]!++
    }
  }
  expect(hours.reduce((sum, count) => sum + count, 0)).toBe(500)
  expect(Math.max(...hours)).toBeLessThan(50)
})

test('probe times follow from the day and from a secret of the board', () => {
  const moments = [momentOf('t', day, 'a'), momentOf('t', day, 'b'), momentOf('t', day + 1, 'a') - daySeconds]
  expect(new Set(moments).size).toBe(3)
})

test('missed probes are due immediately, the longest due first, and a busy machine delays nobody else', () => {
  const all = grounds(10, 5)
  const rounds = new Rounds<(typeof all.entries)[number]>()
  const now = midnight + daySeconds - 1
  const walk = { seed: 's', gapSeconds: 60, now }
  const order = [...all.entries].sort((a, b) => momentOf(a.id, day, 's') - momentOf(b.id, day, 's'))
  expect(rounds.due(all, walk, 1)).toEqual([order[0]])
  all.asked.set(order[0]!.host, now - 1)
  expect(rounds.due(all, walk, 9).map(({ host }) => host)).not.toContain(order[0]!.host)
  expect(rounds.due(all, walk, 9)).toHaveLength(4)
  all.entries.push({ id: 'new', host: 'new', lookedDay: 0 })
  expect(rounds.due(all, walk, 9)).toHaveLength(4)
  all.version++
  expect(rounds.due(all, walk, 9)).toHaveLength(5)
  expect(rounds.due(all, { ...walk, now: now - 2 * daySeconds }, 9).length).toBeLessThanOrEqual(5)
})
