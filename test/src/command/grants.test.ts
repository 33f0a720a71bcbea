/** Raised limits as the front caches them: whose they are, until when, and which of several applies. */

import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { KnownGrants, type ToldGrant } from '../../../src/command/live-facts.ts'

const grant = (target: string, factor: number, expires = 1_000): ToldGrant => ({ target, factor, expires })
const identity = 'a'.repeat(64)

test('a grant applies until it ends, and the largest of several applies', () => {
  let now = 0
  const grants = new KnownGrants({ ...systemClock, wallSeconds: () => now })
  expect([grants.ofAddress('192.0.2.1'), grants.ofIdentity(identity)]).toEqual([1, 1])
  grants.add(grant('192.0.2.0/24', 3))
  grants.add(grant('192.0.2.1', 10, 500))
  grants.add(grant(identity, 0, 500))
  expect(['192.0.2.1', '192.0.2.2', '192.0.3.1'].map((each) => grants.ofAddress(each))).toEqual([10, 3, 1])
  expect(grants.ofIdentity(identity)).toBe(Number.POSITIVE_INFINITY)
  now = 500
  expect([grants.ofAddress('192.0.2.1'), grants.ofIdentity(identity)]).toEqual([3, 1])
  grants.add(grant('192.0.2.0/24', 2))
  expect(grants.ofAddress('192.0.2.1')).toBe(2)
  grants.end('192.0.2.0/24')
  expect(grants.ofAddress('192.0.2.1')).toBe(1)
})

test('a report of the registry replaces what was known, and is requested until it answers', async () => {
  const grants = new KnownGrants({ ...systemClock, wallSeconds: () => 0 })
  grants.add(grant('192.0.2.9', 9))
  const told = [undefined, [grant('192.0.2.1', 2)], [grant('192.0.2.2', 3)]]
  await grants.begin((take) => take(told.shift()))
  expect(['192.0.2.9', '192.0.2.1', '192.0.2.2'].map((each) => grants.ofAddress(each))).toEqual([1, 2, 1])
  grants.refresh()
  expect(['192.0.2.1', '192.0.2.2'].map((each) => grants.ofAddress(each))).toEqual([1, 3])
})
