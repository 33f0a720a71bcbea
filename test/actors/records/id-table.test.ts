/** Ids are found by their numbers while their table grows, during snapshots, and after the oldest were removed. */
import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { Columns } from '../../../actors/records/columns.ts'
import { IdTable, none } from '../../../actors/records/id-table.ts'
import { mixed } from '../../../storage/shelved-rows.ts'
import { SeededRandom } from '../../support/seeded-random.ts'

const idOf = (n: number) => hash('sha256', `id ${n}`, 'buffer').subarray(0, 16)

/** Every id from `first` to `end` has its number, and no other is there. */
function expectIds(table: IdTable, first: number, end: number): void {
  expect(table.count).toBe(end - first)
  for (let n = first; n < end; n++) if (table.find(idOf(n)) !== n - first) expect.fail(`id ${n} of ${first} to ${end}`)
  for (const n of [first - 1, first - 2, end, end + 1]) expect(table.find(idOf(n))).toBe(none)
}

test('all ids are found after any number of adds, and their bytes are unchanged', () => {
  const table = new IdTable(16)
  for (let n = 0; n < 3_000; n++) {
    expect(table.add(idOf(n))).toBe(n)
    if (n % 61 === 0 || n < 300) expectIds(table, 0, n + 1)
  }
  for (let n = 0; n < 3_000; n++) expect(table.hex(n)).toBe(idOf(n).toString('hex'))
})

test('a snapshot written while ids are added has those of its time, and continues', () => {
  const chance = new SeededRandom('a table and its snapshots')
  for (let round = 0; round < 60; round++) {
    const table = new IdTable(16)
    const before = chance.below(20_000)
    for (let n = 0; n < before; n++) table.add(idOf(n))
    const columns = new Columns([], true)
    const packed = table.pack(columns)
    // Written only now: its table has later numbers.
    for (let n = before; n < before + chance.below(3_000); n++) table.add(idOf(n))
    const restored = new IdTable(16)
    restored.restore(packed, new Columns(columns.all.map((bytes) => bytes.slice())))
    expectIds(restored, 0, before)
    for (let n = before; n < before + 500; n++) restored.add(idOf(n + 100_000))
    for (let n = before; n < before + 500; n++) expect(restored.find(idOf(n + 100_000))).toBe(n)
    expect(restored.find(idOf(before))).toBe(none)
  }
})

test('a table that an older release filled to three quarters continues', () => {
  const [, seed] = new IdTable(16).pack(new Columns())
  const cells = new Uint32Array(128).fill(none)
  const ids = Buffer.concat(Array.from({ length: 96 }, (_, n) => idOf(n)))
  for (let n = 0; n < 96; n++) {
    let cell = mixed(ids.readInt32LE(16 * n) ^ seed, ids.readInt32LE(16 * n + 4)) & 127
    while (cells[cell] !== none) cell = (cell + 1) & 127
    cells[cell] = n
  }
  const table = new IdTable(16)
  table.restore([96, seed, ids, new Uint8Array(cells.buffer)], new Columns())
  expectIds(table, 0, 96)
  for (let n = 96; n < 400; n++) table.add(idOf(n))
  expectIds(table, 0, 400)
})

test('the oldest ids are removed step by step while others are added', () => {
  const table = new IdTable(16)
  for (let n = 0; n < 30_000; n++) table.add(idOf(n))
  const steps = table.after(12_000)
  let added = 30_000
  let step = steps.next()
  for (; step.done !== true; step = steps.next()) for (let k = 0; k < 700; k++) table.add(idOf(added++))
  for (let k = 0; k < 900; k++) table.add(idOf(added++))
  step.value.addRest(table, 12_000)
  expectIds(step.value, 12_000, added)
  expectIds(table, 0, added)
})
