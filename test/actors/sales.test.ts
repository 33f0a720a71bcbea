/** The memory of sales is bounded: the oldest and the expired ones go first. */
import { expect, test } from 'vitest'
import { type FactRecord, RecordType } from '../../actors/records/record.ts'
import { type SaleFacts, Sales, salesActor } from '../../actors/sales/sales.ts'

const begun = (sales: Sales, n: number, { at = 1_000, expires = 2_000 } = {}) => {
  const facts: SaleFacts = { key: `key ${n}`, sent: `sent ${n}`, json: '{}', expires }
  const act: FactRecord = {
    type: RecordType.act,
    room: salesActor,
    at,
    author: Buffer.alloc(32),
    op: 'sale.begun',
    facts,
  }
  sales.acts['sale.begun']!(act as FactRecord<never>, { id: Buffer.alloc(16), change: 0, leaf: 0, shard: 1, seq: n })
}

test('the oldest makes room, and one that is restarted is not the oldest', () => {
  const sales = new Sales(3)
  for (const n of [1, 2, 3, 1, 4]) begun(sales, n)
  expect([1, 2, 3, 4].map((n) => sales.find(`key ${n}`, 1_000)?.begun.seq)).toEqual([1, undefined, 3, 4])
})

test('an expired sale is not found, and is eventually forgotten', () => {
  const sales = new Sales()
  begun(sales, 0)
  expect([sales.find('key 0', 1_999) === undefined, sales.find('key 0', 2_000)]).toEqual([false, undefined])
  for (let n = 1; n < 600; n++) begun(sales, n, { at: 2_000, expires: 3_000 })
  expect(sales.pack()).toHaveLength(599)
  for (let n = 600; n < 1_100; n++) begun(sales, n, { at: 3_000, expires: 4_000 })
  expect(sales.pack().every(([, , expires]) => expires === 4_000)).toBe(true)
})
