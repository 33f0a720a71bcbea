/** Delegates as the front caches them: uncertain ones are queried again, and nobody learns of a revocation too late. */

import { expect, test, vi } from 'vitest'
import type { ToldDelegation } from '../../../actors/delegations/delegations.ts'
import { systemClock } from '../../../src/clock.ts'
import { type Delegate, Delegates } from '../../../src/command/delegates.ts'
import type { TakeReply } from '../../../src/command/ports.ts'
import { queryRegistry } from '../../../src/delegations/plans.ts'
import { replyWith } from '../../../src/reads/read.ts'

const told = (id: string, more: Partial<ToldDelegation> = {}): ToldDelegation => ({
  ...{ id, identity: 'owner', key: `key of ${id}`, scopes: ['board:post'], expires: 2_000 },
  ...{ published: false, ended: false, unread: false, by: '', sig: '', signed: '', ...more },
})

test('after a lost answer they are stale until the registry reports them, however often it fails to', async () => {
  vi.useFakeTimers()
  const delegates = new Delegates({ ...systemClock, wallSeconds: () => 1_000 })
  let registry: readonly ToldDelegation[] | undefined = [told('a'), told('b')]
  await delegates.begin((give) => give(registry))
  expect(delegates.isStale).toBe(false)
  const ended: Delegate[] = []
  delegates.onEnd((those) => ended.push(...those))
  // Its shard dies with the end of one and the creation of another decided, and nobody notified.
  registry = undefined
  delegates.refresh()
  expect(delegates.isStale).toBe(true)
  await vi.advanceTimersByTimeAsync(1_000)
  delegates.refresh()
  expect([delegates.isStale, delegates.isKeyOver('key of a'), ended]).toEqual([true, false, []])
  registry = [told('a', { ended: true }), told('b', { published: true }), told('c')]
  await vi.advanceTimersByTimeAsync(1_000)
  expect([delegates.isStale, delegates.isKeyOver('key of a'), delegates.isActive('a')]).toEqual([false, true, false])
  expect(ended.map(({ id }) => id)).toEqual(['a'])
  expect([delegates.of('key of b')!.isPublished, delegates.of('key of c')!.id]).toEqual([true, 'c'])
  vi.useRealTimers()
})

test('a delegation that the disk does not return is refused until it does, and delays no other', async () => {
  vi.useFakeTimers()
  const delegates = new Delegates({ ...systemClock, wallSeconds: () => 1_000 })
  let registry = [told('a', { unread: true }), told('b')]
  const ended: Delegate[] = []
  delegates.onEnd((those) => ended.push(...those))
  await delegates.begin((give) => give(registry))
  const over = () => [delegates.isStale, delegates.isKeyOver('key of a'), delegates.isKeyOver('key of b')]
  expect(over()).toEqual([false, true, false])
  await vi.advanceTimersByTimeAsync(200_000)
  expect(over()).toEqual([false, true, false])
  // Decisions of another machine are queried soon all the same.
  registry = [...registry, told('c')]
  delegates.renew()
  await vi.advanceTimersByTimeAsync(200)
  expect(delegates.isActive('c')).toBe(true)
  const signed = Buffer.from('signed').toString('base64url')
  registry = [told('a', { signed }), told('b')]
  await vi.advanceTimersByTimeAsync(61_000)
  expect(over()).toEqual([false, false, false])
  expect(delegates.of('key of a')!.proof.signed.toString()).toBe('signed')
  expect(delegates.activeOf('owner').map(({ id }) => id)).toEqual(['b', 'c', 'a'])
  registry = [told('a', { ended: true }), told('b', { unread: true })]
  delegates.refresh()
  expect(over()).toEqual([false, true, false])
  expect(ended.map(({ id }) => id)).toEqual(['a'])
  vi.useRealTimers()
})

test('an answer lost during a query is queried again', async () => {
  const delegates = new Delegates({ ...systemClock, wallSeconds: () => 1_000 })
  const asked: ((found: readonly ToldDelegation[]) => void)[] = []
  const begun = delegates.begin((give) => void asked.push(give))
  asked.shift()!([told('a')])
  await begun
  delegates.refresh()
  delegates.refresh()
  asked.shift()!([told('a')])
  expect([delegates.isStale, asked.length]).toEqual([true, 1])
  asked.shift()!([told('a', { ended: true })])
  expect([delegates.isStale, delegates.isKeyOver('key of a'), asked.length]).toEqual([false, true, 0])
})

test('the registry is queried after every command that it has not yet decided', () => {
  // Like a shard that waits for the log: commands wait in its mailbox, reads are answered immediately.
  const mailbox: (() => void)[] = []
  let isFull = true
  let known = [told('a')]
  const actors: Parameters<typeof queryRegistry>[0] = {
    shards: 1,
    write: (_letter, answer) => {
      const give: TakeReply = answer
      if (isFull) return answer({ ok: false, refusal: { code: 'overloaded', message: '' } }, undefined)
      mailbox.push(() => give({ ok: true, reply: {} }, undefined))
    },
    readPrivate: (_shard, _request, answer) => answer({ ok: true, reply: replyWith(JSON.stringify(known)), until: 0 }),
  }
  const heard: (readonly ToldDelegation[] | undefined)[] = []
  queryRegistry(actors, 'delegation.known', (found) => heard.push(found))
  expect(heard).toEqual([undefined])
  isFull = false
  mailbox.push(() => {
    known = [told('a', { ended: true })]
  })
  queryRegistry(actors, 'delegation.known', (found) => heard.push(found))
  expect(heard).toEqual([undefined])
  for (const decide of mailbox) decide()
  expect(heard).toEqual([undefined, [told('a', { ended: true })]])
})

test('a revocation waits for commands in flight, blocks the key meanwhile, and unblocks it if refused', () => {
  const delegates = new Delegates({ ...systemClock, wallSeconds: () => 1_000 })
  delegates.add(told('a'))
  const delegate = delegates.find('a')!
  const answered = delegates.sent(delegate)
  const then = vi.fn()
  const release = delegates.hold([delegate], then)
  expect([delegates.isOver(delegate), delegates.isActive('a'), then.mock.calls.length]).toEqual([true, true, 0])
  answered()
  expect(then).toHaveBeenCalledTimes(1)
  release()
  expect(delegates.isOver(delegate)).toBe(false)
})
