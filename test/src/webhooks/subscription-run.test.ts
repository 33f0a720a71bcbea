/** The position of a hook: whatever it was sent and whenever it is killed, it continues with what was not done. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { HookKind } from '../../../actors/webhooks/kind-names.ts'
import type { Signal } from '../../../src/webhooks/payloads/signals.ts'
import { pendingOf } from '../../../src/webhooks/pending.ts'
import type { HookView } from '../../../src/webhooks/reads.ts'
import { wantedBy } from '../../../src/webhooks/subscription-index.ts'
import { HookRun, queueMax } from '../../../src/webhooks/subscription-run.ts'

const owner = 'aa'.repeat(32)
const view: HookView = {
  hook: 'h1',
  form: 'webhook',
  url: 'https://hooks.example.org/in',
  kinds: ['room.post', 'reply', 'mention'],
  filter: { room: 'lobby' },
  sealed: '',
  tag: '',
  marks: [1, 1],
  expires: 0,
  owner,
  epoch: 5,
  createdAt: 0,
  former: undefined,
  wakes: 0,
  redeliveries: [],
}

const signalAt = (
  position: number,
  kinds: readonly HookKind[],
  room = 'lobby',
  to: readonly string[] = [],
): Signal => ({
  ...{ position, at: 0, kinds, room, page: 'main', kind: 'note', subject: String(position), item: 0, state: '', to },
  handles: [],
})

const kindsFor = (by: HookView, signal: Signal) => wantedBy(by, pendingOf(0, signal)).map(({ kind }) => kind)

test('a hook gets what it subscribed to, once for each kind', () => {
  const all: HookKind[] = ['room.post', 'reply', 'mention', 'inbox.item']
  expect(kindsFor(view, signalAt(1, all))).toEqual(['room.post'])
  expect(kindsFor(view, signalAt(1, all, 'lobby', [owner]))).toEqual(['room.post', 'reply', 'mention'])
  expect(kindsFor(view, signalAt(1, all, 'other', [owner]))).toEqual(['reply', 'mention'])
  const paged = { ...view, filter: { room: 'lobby', page: 'main', kind: 'request' } }
  expect(kindsFor(paged, signalAt(1, all))).toEqual([])
  expect(kindsFor(paged, { ...signalAt(1, all), kind: 'request' })).toEqual(['room.post'])
  const work = { ...view, kinds: ['work.open', 'work.update'], filter: { work_id: '7' } }
  expect(kindsFor(work, signalAt(7, ['work.open', 'work.update']))).toEqual(['work.open', 'work.update'])
  expect(kindsFor(work, signalAt(8, ['work.open', 'work.update']))).toEqual(['work.open'])
})

test('a hook that was created without the read scope gets nothing from a shard', () => {
  const closed: HookView = { ...view, publicOnly: true }
  const change = signalAt(1, ['room.post', 'mention'], 'lobby', [owner])
  const heard = (by: HookView, source: number) => wantedBy(by, pendingOf(source, change)).map(({ kind }) => kind)
  expect([heard(closed, 0), heard(closed, 1)]).toEqual([['room.post', 'mention'], []])
  expect(heard(view, 1)).toEqual(['room.post', 'mention'])
})

/** Events in two sources, and how many kinds of each the hook gets. */
const events = fc.array(fc.tuple(fc.integer({ min: 0, max: 1 }), fc.integer({ min: 0, max: 3 })), { maxLength: 200 })

test('kills anywhere lose nothing, keep the order in each source, and repeat nothing stored as done', () => {
  fc.assert(
    fc.property(events, fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 20 }), (told, deaths) => {
      // The journal of each source: signals by position.
      const journals: { position: number; kinds: HookKind[] }[][] = [[], []]
      for (const [source, count] of told) {
        const journal = journals[source]!
        journal.push({ position: 1 + journal.length * 2, kinds: view.kinds.slice(0, count) as HookKind[] })
      }
      const ends = journals.map((journal) => 1 + journal.length * 2)
      const done: string[][] = [[], []]
      let place: ReturnType<HookRun['place']> | undefined
      for (const until of [...deaths, Number.POSITIVE_INFINITY]) {
        const run = new HookRun(view, place, ends)
        let delivered = 0
        while (delivered < until) {
          for (const source of [...run.behind]) {
            let isFull = false
            for (const { position, kinds } of journals[source]!) {
              if (position < run.positions[source]! || isFull) continue
              isFull = !run.offer(pendingOf(source, signalAt(position, kinds)))
            }
            if (!isFull) run.caughtUp(source, ends[source]!, ends[source]!)
          }
          expect(run.queue.length).toBeLessThanOrEqual(queueMax)
          const first = run.queue.shift()
          if (first === undefined) break
          done[first.source]!.push(`${first.signal.position} ${first.nth}`)
          delivered++
        }
        place = run.place(ends)
      }
      journals.forEach((journal, source) => {
        const wanted = journal.flatMap(({ position, kinds }) => kinds.map((_, nth) => `${position} ${nth}`))
        expect(done[source]).toEqual(wanted)
      })
      expect(place?.idle).toBe(true)
    }),
    { numRuns: 200 },
  )
})

test('a head of the log that waits before older posts does not move the position past them', () => {
  const all: HookView = { ...view, kinds: ['log.checkpoint', 'room.post'], marks: [3, 1] }
  const run = new HookRun(all, undefined, [9, 1])
  run.queue.push({ source: 0, signal: signalAt(9, []), kind: 'log.checkpoint', nth: 0, named: undefined })
  expect(run.place([9, 1])).toMatchObject({ idle: false, marks: [3, 1] })
  run.offer(pendingOf(0, signalAt(3, ['room.post'])))
  run.offer(pendingOf(0, signalAt(5, ['room.post'])))
  expect([run.marks([9, 1]), run.marks([9, 1], 2)]).toEqual([
    [3, 1],
    [5, 1],
  ])
})

test('a hook created ahead of the position its sources are read to begins there after a kill too', () => {
  const made: HookView = { ...view, marks: [5, 5] }
  const run = new HookRun(made, undefined, [2, 9])
  for (const source of [0, 1]) run.caughtUp(source, 9 - source, [2, 8][source]!)
  expect(run.isIdle).toBe(true)
  const ahead = run.place([2, 9])
  expect(new HookRun(made, ahead, [2, 9], [20, 20]).positions).toEqual([9, 9])
  // Nothing is written when they are read past it, and then it is where they are.
  const later = new HookRun(made, ahead, [30, 40], [50, 50])
  expect([later.positions, later.behind]).toEqual([[30, 40], []])
})

test('another life of the same id begins at its own start, not where the previous one was', () => {
  const place = { ...new HookRun(view, undefined, [9, 9]).place([9, 9]), idle: true, epoch: 4 }
  expect(new HookRun(view, place, [9, 9]).positions).toEqual([1, 1])
  expect(new HookRun(view, { ...place, epoch: 5 }, [9, 9]).positions).toEqual([9, 9])
  // A restored copy knows less than the position that was stored beside it.
  expect(new HookRun({ ...view, marks: [50, 50] }, undefined, [9, 9], [9, 9]).positions).toEqual([9, 9])
})
