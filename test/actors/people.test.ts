import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addresseesOf, Direct } from '../../actors/conversations/conversations.ts'
import { Packr } from '../../actors/kernel/msgpack.ts'
import { previousKeysMax } from '../../actors/kernel/results.ts'
import { People } from '../../actors/people/people.ts'
import { PostMarks } from '../../actors/posts/marks.ts'
import { Board, Changes } from '../../actors/records/board.ts'
import { Columns } from '../../actors/records/columns.ts'
import { Handles, isReserved, skeletonOf } from '../../actors/records/handles.ts'
import { type BoardRecord, type FactRecord, RecordType, type Signed } from '../../actors/records/record.ts'

const letters = [...'abcdefghijklmnopqrstuvwxyz0123456789_-']
const handle = fc
  .array(fc.constantFrom(...letters), { minLength: 2, maxLength: 12 })
  .map((all) => all.join(''))
  .filter((text) => /^[a-z0-9]/.test(text))

/** Pairs that a quick reader takes for each other. */
const alike: readonly (readonly [string, string])[] = [
  ['0', 'o'],
  ['1', 'l'],
  ['1', 'i'],
  ['l', 'i'],
  ['5', 's'],
  ['rn', 'm'],
  ['vv', 'w'],
  ['_', '-'],
]

describe('handles', () => {
  test('replacing letters with ones that look alike, anywhere and often, keeps the skeleton', () => {
    const swaps = fc.array(fc.tuple(fc.constantFrom(...alike), fc.boolean(), fc.nat(12)), { maxLength: 8 })
    fc.assert(
      fc.property(handle, swaps, (text, all) => {
        let changed = text
        for (const [[a, b], back, from] of all) {
          const [sought, put] = back ? [b, a] : [a, b]
          const at = changed.indexOf(sought, from % changed.length)
          if (at >= 0) changed = changed.slice(0, at) + put + changed.slice(at + sought.length)
        }
        expect(skeletonOf(changed)).toBe(skeletonOf(text))
        const handles = new Handles()
        handles.set(text, 'x')
        expect(handles.confusedWith(changed)).toBe(text)
      }),
    )
  })

  test('two handles of unmistakable letters are confusable only if they are equal', () => {
    const plain = fc.stringMatching(/^[abcdefghjkopqtuxyz2346789]{2,12}$/)
    fc.assert(
      fc.property(plain, plain, (a, b) => {
        expect(skeletonOf(a) === skeletonOf(b)).toBe(a === b)
      }),
    )
  })

  test('a reserved name is reserved in every disguise, with any separators', () => {
    for (const text of ['broadside', 'br0ad5ide', 'broad-side', 'b-r-o-a-d-s-1-d-e', 'adm1n', 'adrnin', 'roo7', 'ro0t'])
      expect([text, isReserved(text)]).toEqual([text, text !== 'roo7'])
  })
})

test('whom a post addresses is read from its signed bytes', () => {
  const read = (command: object) => {
    const signed = Buffer.from(JSON.stringify({ version: 1, service: 's', command }))
    const { to, handles } = addresseesOf({ by: { key: signed, sig: signed, signed } })
    return [to, ...handles]
  }
  expect(read({ text: 'nobody' })).toEqual([''])
  expect(read({ text: 'a "to":"x" in words' })).toEqual([''])
  expect(read({ text: 'hi @ada, @ben! (@cleo) @ada', to: 'ff' })).toEqual(['ff', 'ada', 'ben', 'cleo'])
  expect(read({ text: 'mail a@b.example, path/@x, @@y, @z_, @Up' })).toEqual(['', 'z_'])
  expect(read({ text: Array.from({ length: 20 }, (_, n) => `@h${n}`).join(' ') })).toHaveLength(1 + 8)
})

const ids = Array.from({ length: 5 }, (_, n) => Buffer.alloc(32, n + 1))
const keyText = (n: number) => Buffer.alloc(32, n).toString('base64url')

function by(command: object): Signed {
  const signed = Buffer.from(JSON.stringify({ version: 1, service: 's', command }))
  return { key: Buffer.alloc(32, 9), sig: Buffer.alloc(64), signed }
}

function act(op: string, author: number, facts: object, room = '@registry', command: object = {}): FactRecord {
  return {
    type: RecordType.act,
    room,
    at: 7,
    author: ids[author]!,
    op,
    facts: facts as FactRecord['facts'],
    by: by(command),
  }
}

const person = fc.nat(ids.length - 1)
const hexOf = (n: number) => ids[n]!.toString('hex')

const peopleAct = fc.oneof(
  fc
    .record({ author: person, to: fc.nat(200) })
    .map(({ author, to }) => act('identity.rotate', author, { to: keyText(to), proof: 'p' })),
  fc
    .record({ author: person, target: person })
    .map(({ author, target }) => act('identity.suspend', author, { target: hexOf(target), reason: 'r' })),
  person.map((target) => act('identity.unsuspend', 0, { target: hexOf(target) })),
  fc
    .record({ author: person, description: fc.string() })
    .map(({ author, description }) =>
      act('identity.profile.set', author, {}, '@registry', { data: JSON.stringify({ schema: 1, description }) }),
    ),
)

const codec = new Packr({ useRecords: false })
const carried = (packed: unknown) => codec.unpack(codec.pack(packed)) as never

test('of an identity that has moved very often, the newest former keys are shown', () => {
  const board = new Board()
  const people = new People({ board, changes: new Changes(board.events), notifiesOf: () => true })
  const keys = Array.from({ length: previousKeysMax + 3 }, (_, n) => keyText(n))
  const rotations = keys.map((from, n) => ({
    ...{ id: String(n), identity: hexOf(n % 2 === 0 ? 0 : 1), from, to: `${from}+`, proof: 'p', at: 7 },
    ...{ change: n + 1, leaf: n, shard: 0, place: n + 1 },
  }))
  people.restore([[], rotations, [], [], [], []])
  expect(people.keysBefore(hexOf(0))).toEqual(keys.filter((_, n) => n % 2 === 0))
  people.restore([[], rotations.map((each) => ({ ...each, identity: hexOf(2) })), [], [], [], []])
  expect(people.keysBefore(hexOf(2))).toEqual(keys.slice(3))
})

test('people are unchanged by a snapshot', () => {
  fc.assert(
    fc.property(fc.array(peopleAct, { maxLength: 40 }), (acts) => {
      const board = new Board()
      const core = { board, changes: new Changes(board.events), notifiesOf: () => true }
      const people = new People(core)
      for (const [n, each] of acts.entries())
        people.acts[each.op]!(each as FactRecord<never>, {
          shard: 0,
          seq: n + 1,
          change: n + 1,
          leaf: n,
          id: Buffer.alloc(16, n),
        })
      const again = new People(core)
      again.restore(carried(people.pack()))
      expect(again.pack()).toEqual(people.pack())
      for (const n of ids.keys()) {
        expect(again.profile(hexOf(n))).toEqual(people.profile(hexOf(n)))
        expect(again.suspension(hexOf(n))).toEqual(people.suspension(hexOf(n)))
        expect(again.keysBefore(hexOf(n))).toEqual(people.keysBefore(hexOf(n)))
      }
      for (let n = 0; n < 200; n++) expect(again.identityOf(keyText(n))).toBe(people.identityOf(keyText(n)))
    }),
  )
})

test('conversations are unchanged by a snapshot', () => {
  const rooms = ['dm-one', 'dm-two', 'open']
  const step = fc.record({
    room: fc.constantFrom(...rooms),
    author: person,
    text: fc.constantFrom('plain', '@ada hello', 'to ben'),
    to: fc.boolean(),
    kind: fc.constantFrom('post', 'accept', 'decline', 'block'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const board = new Board()
      const core = { board, changes: new Changes(board.events), notifiesOf: () => true }
      const direct = new Direct(core, new PostMarks(core))
      let seq = 0
      const apply = (record: BoardRecord) => {
        seq++
        const id = Buffer.alloc(16)
        id.writeUInt32BE(seq, 0)
        const place = { shard: 0, seq, change: seq, leaf: 0, id }
        board.apply(record, id, place)
        if (record.type === RecordType.act) direct.acts[record.op]!(record as FactRecord<never>, place)
        if (record.type === RecordType.event) direct.onEvent(record, board.events.find(id))
      }
      for (const room of rooms) {
        const visibility = room === 'open' ? 'public' : 'private'
        const [owner, ...members] = ids
        apply({ type: RecordType.roomCreated, room, at: 1, visibility, owner: owner!, members, by: by({}) })
        if (visibility === 'private') apply(act('conversation.open', 0, { kind: 'dm' }, room))
      }
      for (const { room, author, text, to, kind } of steps) {
        if (kind !== 'post' && room !== 'open') apply(act('conversation.respond', author, { answer: kind }, room))
        if (kind !== 'post') continue
        const command = { text, ...(to ? { to: hexOf(1) } : {}) }
        const number = board.rooms.get(room)!.events.length + 1
        const event = {
          page: 'main',
          kind: 'note',
          seq: number,
          at: 2,
          author: ids[author]!,
          by: by(command),
          via: 'x',
        }
        apply({ type: RecordType.event, room, ...event })
      }
      const again = new Direct(core, new PostMarks(core))
      const columns = new Columns()
      again.restore(carried(direct.pack(columns)), columns)
      expect(again.pack(columns)).toEqual(direct.pack(columns))
      for (const n of ids.keys()) expect(again.conversationsOf(hexOf(n))).toEqual(direct.conversationsOf(hexOf(n)))
    }),
  )
})
