import { hash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Columns, keepNarrow, longer, type Narrow, takeNarrow, widened } from '../../../actors/records/columns.ts'
import { type BoardRecord, RecordType } from '../../../actors/records/record.ts'
import { RetryMemory } from '../../../actors/records/retry-memory.ts'
import { State } from '../../../actors/state.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { loadNewest, save } from '../../../storage/snapshot.ts'
import { imageBytes } from '../../support/image-bytes.ts'
import { scratchDirectory } from '../../support/scratch.ts'

const key = Buffer.alloc(32, 7)
const ids = new Map<number, Buffer>()
function idOf(n: number): Buffer {
  const id = ids.get(n) ?? hash('sha256', `event ${n}`, 'buffer').subarray(0, 16)
  ids.set(n, id)
  return id
}
const authors = Array.from({ length: 5 }, (_, n) => hash('sha256', `author ${n}`, 'buffer'))

/** `unlisted`: frames of the journal before the first post that are not public changes. `columns`: those with their own array. */
const kinds = [
  { role: 'deciding', unlisted: 0, columns: 11 },
  { role: 'reading', unlisted: 0, columns: 13 },
  { role: 'reading', unlisted: 4, columns: 14 },
] as const
type Kind = (typeof kinds)[number]

/** Threads of ten, in two rooms. */
function post(state: State, n: number, { unlisted }: Kind): void {
  const facts = {
    type: RecordType.event,
    room: n % 2 === 0 ? 'even' : 'odd',
    page: `page ${n % 3}`,
    kind: 'note',
    seq: n,
    at: 1_000 + n,
    author: authors[n % 5],
    by: { key, sig: Buffer.alloc(64), signed: Buffer.alloc(0) },
    via: 'command',
    ...(n % 10 < 2 ? {} : { root: idOf(n - (n % 10) + (n % 2)), reply: idOf(n - 2) }),
  }
  state.apply(facts as BoardRecord, idOf(n), { shard: 0, seq: n + 3 + unlisted, change: n + 3, leaf: n })
}

/** A state with that many posts. */
function stateOf(posts: number, kind: Kind): State {
  const state = new State(undefined, kind.role)
  for (const [n, room] of ['even', 'odd'].entries())
    state.apply({ type: RecordType.roomCreated, room, at: 1, visibility: 'public' }, idOf(-n - 1), {
      shard: 0,
      seq: n + 1,
      change: n + 1,
      leaf: 0,
    })
  for (let n = 0; n < posts; n++) post(state, n, kind)
  return state
}

test.each(kinds)(
  'a state with arrays restored from a file continues as if it had never stopped: $role, $unlisted',
  (kind) => {
    const directory = scratchDirectory()
    const journalId = Buffer.alloc(16, 1)
    const counts = [8_191, 8_192, 8_193]
    for (const count of counts) {
      save(machineDisk, directory, { journalId, seq: count, ...stateOf(count, kind).pack('more') })
      const kept = loadNewest(machineDisk, directory, journalId)!
      expect(kept.columns.length).toBeGreaterThanOrEqual(kind.columns)
      const { state, more } = State.unpack(kept, kind.role)!
      expect(more).toBe('more')
      const whole = stateOf(count + 5_000, kind)
      for (let n = count; n < count + 5_000; n++) post(state, n, kind)
      const all = Array.from({ length: count + 5_000 }, (_, n) => n)
      expect(all.filter((n) => state.board.events.find(idOf(n)) !== n)).toEqual([])
      expect(imageBytes(state.pack('more')).equals(imageBytes(whole.pack('more')))).toBe(true)
    }
  },
)

test.each(kinds)(
  'a snapshot written in the background restores the state that it was made of: $role, $unlisted',
  (kind) => {
    for (const count of [10, 8_192, 20_000]) {
      const state = stateOf(count, kind)
      const before = imageBytes(state.pack('more')).toString('base64')
      const image = state.pack('more', new Columns([], true))
      for (let n = count; n < count + 25_000; n++) post(state, n, kind)
      const written = { ...image, columns: image.columns.map((column) => column.slice()) }
      const read = State.unpack(written, kind.role)!.state
      expect(imageBytes(read.pack('more')).toString('base64') === before).toBe(true)
    }
  },
)

test('a column of small numbers is as narrow as they are, wherever it is stored and read', () => {
  const number = fc.oneof(fc.constant(0), fc.nat(255), fc.nat(65_535), fc.nat(0xffff_ffff))
  fc.assert(
    fc.property(fc.array(number, { minLength: 1, maxLength: 400 }), fc.nat(400), (numbers, keptAt) => {
      let column: Narrow = new Uint8Array(16)
      for (const [at, value] of numbers.entries()) {
        if (at === keptAt) {
          const columns = new Columns()
          const kept = structuredClone(keepNarrow(column, at, columns))
          column = takeNarrow(kept, at, 16, new Columns(columns.all.map((each) => each.slice())))
        }
        if (at === column.length) column = longer(column, 2 * at)
        column = widened(column, value)
        column[at] = value
      }
      expect([...column.subarray(0, numbers.length)]).toEqual(numbers)
      const largest = Math.max(...numbers)
      expect(column.BYTES_PER_ELEMENT).toBeLessThanOrEqual(largest < 256 ? 1 : largest < 65_536 ? 2 : 4)
    }),
  )
})

test('a memory of nonces continues from its columns', () => {
  const memory = new RetryMemory({ spanSeconds: 100, name: () => '' })
  for (let n = 1; n <= 20_000; n++) memory.add(n * 7_919, n, Math.floor(n / 100))
  const columns = new Columns()
  const packed = memory.pack(columns)
  expect(columns.all.length).toBeGreaterThan(1)
  const again = new RetryMemory({ spanSeconds: 100, name: () => '' })
  again.restore(packed, new Columns(columns.all.map((each) => each.slice())), 200)
  for (let n = 20_001; n <= 30_000; n++) again.add(n * 7_919, n, Math.floor(n / 100))
  for (const n of [20_000, 20_001, 29_999, 30_000]) {
    expect(again.find(n * 7_919, (place) => place === n)).toBe(true)
    expect(again.find(n * 7_919 + 1, () => true)).toBe(false)
  }
})
