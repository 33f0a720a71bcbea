/** Receive URLs against a model that remembers everything, in any order of events; and again from a snapshot and a replay. */

import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { deciders } from '../../actors/deciders.ts'
import { sizes } from '../../actors/kernel/limits.ts'
import type { AnyWriteName } from '../../actors/operations.ts'
import { receiversOf } from '../../actors/receive-urls/decide.ts'
import { dedupeSeconds } from '../../actors/receive-urls/receive-urls.ts'
import type { BoardRecord } from '../../actors/records/record.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import { State } from '../../actors/state.ts'

const owner = createHash('sha256').update('owner').digest('hex')

type Step =
  | { readonly op: 'create' }
  | { readonly op: 'deliver'; readonly at: number; readonly value: string }
  | { readonly op: 'rotate' | 'delete'; readonly at: number }
  | { readonly op: 'wait'; readonly seconds: number }

type Known = {
  id: string
  hash: string
  deleted: boolean
  items: number
  seen: Map<string, { item: number; at: number }>
}

const at = fc.nat(9)
const steps = fc.array(
  fc.oneof(
    fc.constant<Step>({ op: 'create' }),
    fc.tuple(at, fc.constantFrom('', 'a', 'b', 'c')).map(([at, value]): Step => ({ op: 'deliver', at, value })),
    fc.tuple(at, fc.constantFrom('rotate', 'delete')).map(([at, op]): Step => ({ op, at })),
    fc.constantFrom(1, 3_600, dedupeSeconds - 1, dedupeSeconds).map((seconds): Step => ({ op: 'wait', seconds })),
  ),
  { maxLength: 60 },
)

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')

test('decisions match the model, and a replay and a snapshot give the same', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const state = new State()
      const records: { record: BoardRecord; key: Uint8Array }[] = []
      const model: Known[] = []
      let now = 1_000
      let letters = 0
      const decide = (op: AnyWriteName, args: object) => {
        const sha = createHash('sha256').update(`letter ${++letters}`).digest()
        const letter = {
          op,
          to: receiversOf(owner),
          id: sha.subarray(0, 16),
          sha,
          author: owner,
          args,
        } as unknown as WriteLetter
        const decision = deciders[op]!({ state, board: state.board, now } as never, letter)
        if (decision.ok)
          for (const { record, key } of decision.records) {
            // A decision of a signed command has its signature, which is not examined here.
            const bare = { ...record, by: undefined } as unknown as BoardRecord
            records.push({ record: bare, key })
            state.apply(bare, key, { shard: 0, seq: records.length, change: records.length, leaf: 0 })
          }
        return { decision, id: sha.toString('hex', 0, 16) }
      }
      for (const step of all) {
        if (step.op === 'wait') {
          now += step.seconds
          continue
        }
        if (step.op === 'create') {
          const hash = hashOf(`secret ${letters}`)
          const chosen = { label: '', room: '', dedupe: 'x', sealed: '', allow: [], post: false, hash }
          const { decision, id } = decide('receiver.create', chosen)
          expect(decision.ok).toBe(model.filter(({ deleted }) => !deleted).length < sizes.receivers_per_identity)
          if (decision.ok) model.push({ id, hash, deleted: false, items: 0, seen: new Map() })
          continue
        }
        const known = model[step.at]
        if (known === undefined) continue
        if (step.op === 'deliver') {
          const args = {
            receiver: known.id,
            hash: known.hash,
            type: 't',
            headers: [],
            body: Buffer.from('x'),
            verified: false,
            dedupe: step.value,
          }
          const { decision } = decide('receiver.deliver', args)
          expect(decision.ok).toBe(!known.deleted)
          if (!decision.ok) continue
          const before = known.seen.get(step.value)
          const isAgain = step.value !== '' && before !== undefined && now - before.at < dedupeSeconds
          const item = isAgain ? before.item : ++known.items
          expect(decision.reply).toMatchObject({ item, ...(isAgain ? { duplicate: true } : {}) })
          if (!isAgain) known.seen.set(step.value, { item, at: now })
        } else if (step.op === 'rotate') {
          const hash = hashOf(`rotated ${letters}`)
          const { decision } = decide('receiver.rotate', { receiver: known.id, hash })
          expect(decision.ok).toBe(!known.deleted)
          if (decision.ok) known.hash = hash
        } else {
          const { decision } = decide('receiver.delete', { receiver: known.id })
          expect(decision.ok).toBe(!known.deleted)
          known.deleted = true
        }
      }
      const packed = JSON.stringify(state.receivers.pack())
      const replayed = new State()
      records.forEach(({ record, key }, n) => {
        replayed.apply(record, key, { shard: 0, seq: n + 1, change: n + 1, leaf: 0 })
      })
      expect(JSON.stringify(replayed.receivers.pack())).toBe(packed)
      expect(JSON.stringify(State.unpack(state.pack(null))!.state.receivers.pack())).toBe(packed)
      for (const { id, items, deleted } of model)
        expect(state.receivers.find(id)?.items.length ?? 0).toBe(deleted && items === 0 ? 0 : items)
    }),
    { numRuns: 150 },
  )
})
