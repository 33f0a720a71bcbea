/** Hooks against a model, in any order of events; and again from a snapshot and a replay. */

import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { deciders } from '../../actors/deciders.ts'
import type { AnyWriteName } from '../../actors/operations.ts'
import type { BoardRecord } from '../../actors/records/record.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import { State } from '../../actors/state.ts'
import { hooksOf } from '../../actors/webhooks/decide.ts'
import { overlapSeconds, rotationOverlapSeconds } from '../../actors/webhooks/webhooks.ts'

const owner = createHash('sha256').update('owner').digest('hex')
const limit = 3
const ttl = 100

type Step =
  | { readonly op: 'subscribe'; readonly name: number; readonly secret: string }
  | { readonly op: 'unsubscribe'; readonly name: number }
  | { readonly op: 'create' }
  | { readonly op: 'delete' | 'wake' | 'rotate'; readonly at: number }
  | { readonly op: 'wait'; readonly seconds: number }

const name = fc.nat(4)
const steps = fc.array(
  fc.oneof(
    fc.record({ op: fc.constant('subscribe' as const), name, secret: fc.constantFrom('a', 'b') }),
    fc.record({ op: fc.constant('unsubscribe' as const), name }),
    fc.constant<Step>({ op: 'create' }),
    fc.record({ op: fc.constantFrom('delete' as const, 'wake' as const, 'rotate' as const), at: fc.nat(4) }),
    fc.record({ op: fc.constant('wait' as const), seconds: fc.constantFrom(1, ttl - 1, ttl, overlapSeconds) }),
  ),
  { maxLength: 60 },
)

type Known = { id: string; form: string; expires: number; tag: string; former: string; mark: number; wakes: number }

test('decisions match the model, and a replay and a snapshot give the same', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const state = new State()
      const records: { record: BoardRecord; key: Uint8Array }[] = []
      let model: Known[] = []
      let now = 1_000
      let letters = 0
      const apply = (to: State, { record, key }: (typeof records)[0], n: number) =>
        to.apply(record, key, { shard: 0, seq: n + 1, change: n + 1, leaf: 0 })
      const decide = (op: AnyWriteName, args: object) => {
        const sha = createHash('sha256').update(`letter ${++letters}`).digest()
        const letter = { op, to: hooksOf(owner), id: sha.subarray(0, 16), sha, author: owner, args }
        const decision = deciders[op]!({ state, board: state.board, now } as never, letter as unknown as WriteLetter)
        if (decision.ok)
          for (const { record, key, isPublic } of decision.records) {
            expect(isPublic).toBe(false)
            records.push({ record, key })
            apply(state, records.at(-1)!, records.length - 1)
          }
        return { decision, id: sha.toString('hex', 0, 16) }
      }
      const facts = { url: 'https://hooks.example.org/', kinds: ['mention'], filter: {}, sealed: 's', limit }
      const live = () => model.filter(({ expires }) => expires === 0 || expires > now)
      for (const step of all) {
        if (step.op === 'wait') now += step.seconds
        else if (step.op === 'create') {
          const isFull = live().length >= limit
          const args = { ...facts, form: 'webhook', tag: 't', secret: 'never kept', marks: [letters], expires: 0 }
          const { decision, id } = decide('webhook.create', args)
          expect(decision.ok).toBe(!isFull)
          if (!isFull)
            model.push({ id, form: 'webhook', expires: 0, tag: 't', former: '', mark: letters - 1, wakes: 0 })
        } else if (step.op === 'subscribe') {
          const id = `sub_${step.name}`
          const known = live().find((each) => each.id === id)
          const isFull = known === undefined && live().length >= limit
          const marks = [letters]
          const args = { ...facts, hook: id, form: 'mcp', tag: step.secret, marks, expires: now + ttl }
          const { decision } = decide('hook.subscribe', args)
          expect(decision.ok).toBe(!isFull)
          if (isFull) continue
          if (known === undefined) {
            model = model.filter((each) => each.id !== id)
            const fresh = { former: '', mark: marks[0]!, wakes: 0 }
            model.push({ id, form: 'mcp', expires: now + ttl, tag: step.secret, ...fresh })
          } else {
            if (known.tag !== step.secret) known.former = `${now + overlapSeconds}`
            Object.assign(known, { tag: step.secret, expires: now + ttl, wakes: known.wakes + 1 })
          }
        } else if (step.op === 'unsubscribe') {
          const id = `sub_${step.name}`
          const { decision } = decide('hook.end', { hook: id })
          expect(decision).toMatchObject({ ok: true, reply: { ended: model.some((each) => each.id === id) } })
          model = model.filter((each) => each.id !== id)
        } else if (step.op === 'rotate') {
          const known = model.filter(({ form }) => form === 'webhook')[step.at]
          const hook = known?.id ?? 'ff'.repeat(16)
          const tag = `r${letters}`
          const { decision } = decide('webhook.rotate', {
            hook,
            sealed: 's',
            tag,
            publicOnly: false,
            secret: 'never kept',
          })
          expect(decision.ok).toBe(known !== undefined)
          if (known === undefined) continue
          Object.assign(known, { tag, former: `${now + rotationOverlapSeconds}`, wakes: known.wakes + 1 })
        } else {
          const own = model.filter(({ form }) => form === 'webhook')
          const target = own[step.at]?.id ?? 'ff'.repeat(16)
          const op = step.op === 'delete' ? 'webhook.delete' : 'webhook.redeliver'
          const { decision } = decide(op, { hook: target, event: step.op === 'wake' ? 'evt_1' : '' })
          expect(decision.ok).toBe(own[step.at] !== undefined)
          if (step.op === 'delete') model = model.filter(({ id }) => id !== target)
          else if (own[step.at] !== undefined) own[step.at]!.wakes++
        }
      }
      const shown = (of: State) =>
        of.hooks.of(owner).map(({ facts: { hook, form, expires, tag, marks }, former, wakes }) => ({
          ...{ id: hook, form, expires, tag, mark: marks[0], wakes },
          former: former === undefined ? '' : `${former.until}`,
        }))
      expect(shown(state)).toEqual(model)
      const again = new State()
      for (const [n, each] of records.entries()) apply(again, each, n)
      expect(shown(again)).toEqual(model)
      const kept = State.unpack(state.pack('more'))!.state
      expect(shown(kept)).toEqual(model)
      expect(JSON.stringify(records)).not.toContain('never kept')
    }),
    { numRuns: 150 },
  )
})

test('ending an expired subscription does not end one that was granted again meanwhile', () => {
  const state = new State()
  let seq = 0
  const decide = (op: AnyWriteName, args: object, now: number) => {
    const letter = { op, to: hooksOf(owner), id: Buffer.alloc(16), sha: Buffer.alloc(32), author: owner, args }
    const decision = deciders[op]!({ state, board: state.board, now } as never, letter as unknown as WriteLetter)
    if (decision.ok)
      for (const { record, key } of decision.records)
        state.apply(record, key, { shard: 0, seq: ++seq, change: seq, leaf: 0 })
    return decision
  }
  const facts = { hook: 'sub_1', form: 'mcp', url: 'https://hooks.example.org/', kinds: ['mention'], filter: {}, limit }
  const subscribe = (now: number) => {
    const args = { ...facts, sealed: 's', tag: 't', marks: [1], expires: now + ttl }
    expect(decide('hook.subscribe', args, now).ok).toBe(true)
  }
  subscribe(1_000)
  const { epoch, wakes } = state.hooks.find('sub_1')!
  subscribe(1_000 + ttl - 1)
  const late = decide('hook.end', { hook: 'sub_1', epoch, wakes }, 1_000 + ttl)
  expect(late).toMatchObject({ ok: true, records: [], reply: { ended: false } })
  const end = decide('hook.end', { hook: 'sub_1', epoch, wakes: wakes + 1 }, 1_000 + 2 * ttl)
  expect([end, state.hooks.count]).toMatchObject([{ ok: true, reply: { ended: true } }, 0])
})
