/** The transfers on the page of a work match the ledger: each credit once, in the direction it went. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Moved, postingsOf } from '../../../actors/works/market/ledger.ts'
import type { Batch } from '../../../actors/works/market/table.ts'
import { type Move, movesOf } from '../../../src/works/transfers.ts'

const [requester, worker] = ['a'.repeat(64), 'b'.repeat(64)]
const work: Moved = {
  id: '1'.repeat(32),
  simulated: false,
  requester,
  worker,
  amount: 40,
  fee: 2,
  hold: '2'.repeat(32),
  bond: '3'.repeat(32),
  bond_amount: 4,
}
const movedBy = (of: Moved, moving: { percent?: number }, ...batches: readonly Batch[]): Move[] =>
  movesOf(
    batches.map((batch, n) => ({
      transfers: postingsOf([batch], of, { cause: String(n), at: 0, bond: of.bond_amount, ...moving }),
    })),
  ).flat()
const words = (moves: readonly Move[]): string[] =>
  moves.map(({ from, to, amount }) =>
    `${amount} ${from} > ${to}`.replaceAll(`user:${requester}`, 'requester').replaceAll(`user:${worker}`, 'worker'),
  )

test('credits of an accepted work enter and leave escrow once', () => {
  expect(words(movedBy(work, {}, 'hold', 'release'))).toEqual([
    '42 requester > escrow',
    '40 escrow > worker',
    '2 escrow > fees',
  ])
})

test('credits of a cancelled, split, raised or disputed work return to where they came from', () => {
  expect(words(movedBy(work, {}, 'hold', 'refund'))).toEqual(['42 requester > escrow', '42 escrow > requester'])
  expect(words(movedBy(work, { percent: 50 }, 'hold', 'split'))).toEqual([
    '42 requester > escrow',
    '21 escrow > requester',
    '20 escrow > worker',
    '1 escrow > fees',
  ])
  expect(words(movedBy(work, {}, 'bond', 'bond_lost'))).toEqual(['4 worker > escrow', '4 escrow > fees'])
  expect(words(movedBy(work, {}, 'bond', 'bond_back'))).toEqual(['4 worker > escrow', '4 escrow > worker'])
  const raised = { amount: 50, fee: 3 }
  const higher = { ...work, ...raised }
  const moves = movesOf([
    { transfers: postingsOf(['hold'], work, { cause: 'a', at: 0 }) },
    { transfers: postingsOf(['raise'], work, { cause: 'b', at: 0, raised }) },
    { transfers: postingsOf(['split'], higher, { cause: 'c', at: 0, percent: 10 }) },
  ]).flat()
  expect(words(moves)).toEqual([
    '42 requester > escrow',
    '42 escrow > requester',
    '53 requester > escrow',
    '48 escrow > requester',
    '5 escrow > worker',
  ])
})

test('nothing is left in escrow, nor comes from nowhere, whatever the ruling', () => {
  const ends = fc.constantFrom<Batch[]>('release', 'refund', 'split')
  const amounts = { amount: fc.integer({ min: 1, max: 1_000_000 }), fee: fc.integer({ min: 0, max: 50_000 }) }
  fc.assert(
    fc.property(
      ends,
      fc.record({ ...amounts, simulated: fc.boolean() }),
      fc.nat(100),
      fc.constantFrom('bond_back' as const, 'bond_lost' as const, undefined),
      (end, given, percent, bond) => {
        const disputed: Batch[] = bond === undefined ? [] : ['bond']
        const ended: Batch[] = bond === undefined ? [] : [bond]
        const moves = movedBy({ ...work, ...given }, { percent }, 'hold', ...disputed, end, ...ended)
        const nets = new Map<string, number>()
        for (const { from, to, amount } of moves) {
          expect([from === to, amount > 0]).toEqual([false, true])
          nets.set(from, (nets.get(from) ?? 0) - amount)
          nets.set(to, (nets.get(to) ?? 0) + amount)
        }
        expect(nets.get('escrow') ?? 0).toBe(0)
        // Credits created for practice are all burned again; for other works none are created.
        expect(nets.get('mint') ?? 0).toBe(0)
      },
    ),
  )
})
