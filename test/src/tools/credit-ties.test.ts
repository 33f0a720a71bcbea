/**
 * Which accepted works vouch for their worker: none that one person can fake with their own keys. From records as the market writes them.
 */
import { expect, test } from 'vitest'
import type { RecordPlace } from '../../../actors/records/core.ts'
import { siteOf } from '../../../actors/tools/listing.ts'
import { Directory } from '../../../src/tools/directory.ts'
import { ToolIndex } from '../../../src/tools/index.ts'
import { MarketHarness, type Person, someone } from '../../support/market/market-harness.ts'

const [ada, bob, cyd, dan] = ['ada', 'bob', 'cyd', 'dan'].map(someone) as [Person, Person, Person, Person]

class Board extends MarketHarness {
  constructor() {
    super()
    this.beginEpoch()
    for (const each of [ada, bob, cyd, dan]) this.grant(each, 10_000)
  }

  /** A work of `by` that `worker` did and that was accepted; the marks of their networks. */
  done(by: Person, worker: Person, { amount = 20, asked = 'home', from = 'away', more = {} } = {}): string {
    const work = this.work(by, amount, { from: asked, ...more })
    const marked = { from }
    expect(this.claim(worker, work, marked).refusal).toBeUndefined()
    expect(this.submit(worker, work, 1, 'result', marked).refusal).toBeUndefined()
    return work
  }

  accept(by: Person, work: string, from = 'home'): void {
    expect(this.workCommand('work.accept', by, work, { from }).refusal).toBeUndefined()
  }

  give(by: Person, target: Person): void {
    expect(this.command('credit.transfer', by, { target: target.id, amount: 1, cost: 1 }).refusal).toBeUndefined()
  }

  /** The directory of a board with these records, and one restored from its snapshot. */
  directories(): Directory[] {
    const made = () =>
      new Directory({
        index: new ToolIndex(),
        own: [],
        record: (_, seq) => this.records[seq - 1]!.record,
        now: this.now,
      })
    const [first, again] = [made(), made()]
    for (const { record, key, isPublic, seq } of this.records)
      if (isPublic) first.apply(record, { shard: 0, seq, id: key } as RecordPlace)
    again.restore(JSON.parse(JSON.stringify(first.pack())) as ReturnType<Directory['pack']>)
    return [first, again]
  }

  /** Names of those who vouch for a worker, and how many requesters are behind the name. */
  speakFor(worker: Person): readonly [vouchers: readonly string[], standing: number] {
    const found = this.directories().map((each) => {
      const vouchers = each.reviewer('s_none', worker.id).vouchers.map(({ requester }) => requester)
      return [vouchers, each.sources.standing(worker.id)] as const
    })
    expect(found[0]).toEqual(found[1])
    return found[0]!
  }
}

const standingOf = (works: number) => works / (works + 20)

test('an accepted work vouches for its worker, once per requester', () => {
  const t = new Board()
  const at = t.now
  for (let n = 0; n < 3; n++) t.accept(ada, t.done(ada, bob))
  expect(t.speakFor(bob)).toEqual([[ada.id], standingOf(1)])
  expect(t.directories()[0]!.reviewer('s_none', bob.id).vouchers).toEqual([{ requester: ada.id, at }])
  t.accept(cyd, t.done(cyd, bob, { amount: 1_000 }))
  expect(t.speakFor(bob)).toEqual([[cyd.id, ada.id], standingOf(2)])
  expect(t.speakFor(ada)).toEqual([[], 0])
})

test.each([
  ['has a smaller reward', (t: Board) => t.accept(ada, t.done(ada, bob, { amount: 19 }))],
  ['is simulated', (t: Board) => t.accept(ada, t.done(ada, bob, { more: { simulated: true } }))],
  ['was asked for from the network of its worker', (t: Board) => t.accept(ada, t.done(ada, bob, { asked: 'away' }))],
  ['was accepted from the network of its worker', (t: Board) => t.accept(ada, t.done(ada, bob), 'away')],
  [
    'was accepted by silence',
    (t: Board) => {
      t.done(ada, bob)
      t.now += 4 * 86_400
      t.tick()
    },
  ],
  ['is not accepted yet', (t: Board) => void t.done(ada, bob)],
  [
    'was rejected',
    (t: Board) => void t.workCommand('work.reject', ada, t.done(ada, bob), { reason: 'no '.repeat(20) }),
  ],
])('a work that %s does not vouch', (_what, happens) => {
  const t = new Board()
  happens(t)
  expect(t.speakFor(bob)).toEqual([[], 0])
})

test('another worker of the same work is not taken for the previous one', () => {
  const t = new Board()
  const work = t.work(ada, 20, { from: 'home' })
  t.claim(cyd, work, { from: 'home' })
  t.workCommand('work.release', cyd, work, { amount: 1, from: 'home' })
  t.claim(bob, work, { from: 'away' })
  t.submit(bob, work, 2, 'result', { from: 'away' })
  t.accept(ada, work)
  expect(t.speakFor(bob)[0]).toEqual([ada.id])
})

test.each([
  ['given by the worker', (t: Board) => t.give(bob, ada)],
  ['given to the worker', (t: Board) => t.give(ada, bob)],
  ['given over another', (t: Board) => [t.give(bob, cyd), t.give(cyd, ada)]],
  ['given over two others', (t: Board) => [t.give(bob, cyd), t.give(cyd, dan), t.give(dan, ada)]],
  ['given to both by one', (t: Board) => [t.give(cyd, ada), t.give(cyd, bob)]],
  ['paid back for a work', (t: Board) => t.accept(bob, t.done(bob, ada))],
  ['paid for a work of another, who gave them on', (t: Board) => [t.accept(bob, t.done(bob, cyd)), t.give(cyd, ada)]],
])('credits %s, before or after, tie a worker to the requester', (_what, happens) => {
  for (const isBefore of [true, false]) {
    const t = new Board()
    if (isBefore) happens(t)
    t.accept(ada, t.done(ada, bob))
    if (!isBefore) happens(t)
    expect(t.speakFor(bob)[0]).toEqual([])
  }
})

test('a worker paid by both, or who pays their own workers, is not tied', () => {
  const t = new Board()
  t.accept(ada, t.done(ada, bob))
  t.accept(ada, t.done(ada, cyd))
  t.accept(cyd, t.done(cyd, bob))
  expect(t.speakFor(bob)[0]).toEqual([cyd.id, ada.id])
})

test('direct ties cost standing as soon as they exist', () => {
  const t = new Board()
  t.accept(ada, t.done(ada, bob))
  expect(t.speakFor(bob)[1]).toBe(standingOf(1))
  t.give(bob, ada)
  expect(t.speakFor(bob)[1]).toBe(0)
})

test.each([
  ['api.tools.example', 'tools.example'],
  ['tools.example', 'tools.example'],
  ['a.b.tools.example', 'tools.example'],
  ['a.tools.co.uk', 'tools.co.uk'],
  ['a.tools.com.au', 'tools.com.au'],
  ['a.tools.io', 'tools.io'],
  ['a.xyz.io', 'xyz.io'],
  ['192.0.2.1', '192.0.2.1'],
  ['[2001:db8::1]', '[2001:db8::1]'],
  ['localhost', 'localhost'],
])('%s belongs to the site %s', (host, site) => {
  expect(siteOf(host)).toBe(site)
})
