/** Identities in columns: in any order of events they equal plain maps and lists, and a snapshot changes nothing. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Authors } from '../../../actors/records/authors.ts'
import { Columns } from '../../../actors/records/columns.ts'
import { has } from '../../../actors/records/slot-lists.ts'

const bytes = (text: string) => createHash('sha256').update(text).digest()
const idOf = (name: number) => bytes(`id ${name}`)
const keyOf = (name: number) => bytes(`key ${name}`)

type Known = { key: string; createdAt: number; lastSeen: number; version: number; posts: number[]; handle?: string }

function afterSnapshot(authors: Authors): Authors {
  const columns = new Columns()
  const packed = structuredClone(authors.pack(columns))
  const again = new Authors()
  again.restore(packed, new Columns(columns.all.map((each) => each.slice())))
  return again
}

function expectSame(authors: Authors, known: ReadonlyMap<number, Known>): void {
  expect(authors.size).toBe(known.size)
  for (const [name, { posts, handle, ...facts }] of known) {
    const author = authors.get(idOf(name).toString('hex'))!
    const { key, createdAt, lastSeen, version, events } = author
    expect({ key, createdAt, lastSeen, version }).toEqual(facts)
    expect(author.handle).toBe(handle)
    expect(authors.at(author.number).id).toBe(idOf(name).toString('hex'))
    expect(Array.from({ length: events.length }, (_, at) => events.at(at))).toEqual(posts)
    for (const slot of posts) expect([has(events, slot), events.lowerBound(slot)]).toEqual([true, posts.indexOf(slot)])
    expect(has(events, 1_000_000)).toBe(false)
  }
}

test('identities, their posts and their order equal those of a plain map, with a snapshot at any point', () => {
  const step = fc.record({ name: fc.nat(150), posts: fc.nat(3), more: fc.nat(2), what: fc.nat(40) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 1_500 }), fc.nat(1_500), (steps, snapshotAt) => {
      let authors = new Authors()
      const known = new Map<number, Known>()
      let [version, slot] = [1, 0]
      for (const [at, { name, posts, more, what }] of steps.entries()) {
        if (at === snapshotAt) authors = afterSnapshot(authors)
        version += more
        const number = authors.seen(idOf(name), keyOf(name), at, version)
        const each = known.get(name) ?? {
          key: keyOf(name).toString('base64url'),
          createdAt: at,
          posts: [],
          lastSeen: at,
          version,
        }
        known.set(name, Object.assign(each, { lastSeen: at, version }))
        for (let n = 0; n < posts; n++) {
          authors.posts.push(number, slot)
          each.posts.push(slot++)
        }
        if (what === 0) authors.at(number).handle = each.handle = `handle-${at}`
        if (what === 1) authors.at(number).key = each.key = keyOf(at).toString('base64url')
      }
      expectSame(authors, known)
      const order = [...known.values()].map((each) => each.version).sort((one, other) => other - one)
      expect([...authors.below(Number.POSITIVE_INFINITY)].map((each) => each.version)).toEqual(order)
      const middle = Math.ceil(version / 2)
      expect([...authors.below(middle)].map((each) => each.version)).toEqual(order.filter((each) => each < middle))
    }),
    { numRuns: 60 },
  )
})

test('an id is matched as a whole, and an invalid id names nobody', () => {
  const authors = new Authors()
  authors.seen(idOf(1), keyOf(1), 1, 1)
  const id = idOf(1).toString('hex')
  for (const text of ['', id.slice(1), `${id}00`, 'x'.repeat(64), `${id.slice(0, 62)}zz`, idOf(2).toString('hex')])
    expect([text, authors.has(text), authors.get(text)]).toEqual([text, false, undefined])
  expect(authors.has(id)).toBe(true)
})
