/** The delivery thread is notified of every possible change to somebody's hooks, even if its outcome is unknown. */

import { expect, test } from 'vitest'
import type { ShardAnswer } from '../../../actors/records/answer.ts'
import type { WriteLetter } from '../../../actors/records/write.ts'
import { hooksOf } from '../../../actors/webhooks/decide.ts'
import { plans } from '../../../src/board/plans.ts'
import type { Asked, Services } from '../../../src/command/plan.ts'
import type { Actors } from '../../../src/command/ports.ts'
import type { Verified } from '../../../src/command/verified.ts'
import { CursorSealer } from '../../../src/format/cursor.ts'
import { machine } from '../../../src/platform.ts'
import { Throttle } from '../../../src/rates/throttle.ts'
import { McpEvents } from '../../../src/webhooks/mcp-events.ts'
import { type EngineAsk, WebhookService } from '../../../src/webhooks/service.ts'

const owner = 'aa'.repeat(32)
const refused: ShardAnswer = { ok: false, refusal: { code: 'not_found', message: '' } }
const overloaded: ShardAnswer = { ok: false, refusal: { code: 'overloaded', message: '' } }
const done: ShardAnswer = { ok: true, reply: {} }

/** A desk whose shard gives this answer to every letter; those in `empty` wait until the test has them decided. */
function deskAt(answer: ShardAnswer | undefined, delivers?: (ask: EngineAsk) => unknown) {
  const asked: EngineAsk[] = []
  const empty: [actor: string, give: (answer: ShardAnswer | undefined) => void][] = []
  const later: (() => void)[] = []
  const cursorKey = Buffer.alloc(32)
  const hooks = [{ hook: 'h1', form: 'webhook', expires: 0, epoch: 1, delegation: 'd' }]
  const actors = {
    shards: 1,
    write: ({ op, to }: WriteLetter, give: (answer: ShardAnswer | undefined) => void) =>
      op === 'nothing' ? empty.push([to, give]) : give(answer),
    readPrivate: (_shard: number, _request: unknown, give: (found: object) => void) =>
      give({ ok: true, value: { hooks, ends: [] } }),
  } as unknown as Actors
  const engine = async (ask: EngineAsk) => {
    asked.push(ask)
    if (delivers !== undefined) return delivers(ask)
    return ask[0] === 'verify' ? { ok: true } : true
  }
  const webhooks = new WebhookService({
    ...{
      actors,
      cursors: new CursorSealer(cursorKey),
      cursorKey,
      epoch: { generation: '', layout: '' },
      loopback: false,
      wallSeconds: () => 0,
    },
    ...{ engine: engine as never, isRunning: () => true, source: async () => ({ now: 1, next: 1 }) as never },
    later: (callback) => void later.push(callback),
  })
  const told = () => asked.filter(([kind]) => kind === 'changed')
  /** The delivery thread is notified once everything sent before is decided, however often that is unknown at first. */
  const expectToldBehind = () => {
    for (const answer of [undefined, overloaded, done]) {
      expect([told(), later.length]).toEqual([[], 0])
      const [actor, give] = empty.shift()!
      expect(actor).toBe(hooksOf(owner))
      give(answer)
      later.shift()?.()
    }
    expect([told(), later.length, empty.length]).toEqual([[['changed', owner]], 0, 0])
  }
  return { webhooks, told, empty, expectToldBehind }
}

test('the delivery thread learns of an end, or a subscription, that had no answer', async () => {
  for (const op of ['hook.end', 'hook.subscribe'] as const) {
    const { webhooks, expectToldBehind } = deskAt(undefined)
    expect(await webhooks.say(op, owner, { hook: 'h1' })).toBeUndefined()
    expectToldBehind()
  }
})

test.each(['webhook.create', 'webhook.delete', 'webhook.redeliver'] as const)(
  'the delivery thread learns of a %s that had no answer',
  async (operation) => {
    const { webhooks, told, expectToldBehind } = deskAt(undefined)
    const data = { url: 'https://hooks.example.org/in', kinds: ['mention'] }
    const command = { operation, target: 'h1' }
    const source = { via: 'command', address: '127.0.0.1' }
    const verified = { command, data, signer: { id: owner }, sha: Buffer.alloc(32), source } as unknown as Verified
    const throttle = new Throttle({ on: false, now: () => 0, factors: { ofIdentity: () => 1, ofAddress: () => 1 } })
    const services = { hooks: webhooks, random: machine.random, throttle, operators: new Set() } as unknown as Services
    const found = await new Promise((resolve) => plans[operation]!.ask!(verified, services, resolve))
    const { settle } = found as Asked
    settle?.(refused)
    expect(told()).toEqual([])
    settle?.(undefined)
    expectToldBehind()
    settle?.(done)
    expect(told()).toHaveLength(2)
  },
)

test('many without an answer are one notification, when the last of them is decided', () => {
  const { webhooks, told, empty } = deskAt(undefined)
  for (let n = 0; n < 3; n++) webhooks.unsure(owner)
  expect(empty).toHaveLength(1)
  empty.shift()![1](done)
  // Two of them may have been sent after that letter.
  expect([told(), empty.length]).toEqual([[], 1])
  empty.shift()![1](done)
  expect([told(), empty.length]).toEqual([[['changed', owner]], 0])
})

test('a delivery that nobody can look up now is not reported as unknown', async () => {
  const command = { operation: 'webhook.redeliver', target: 'h1' }
  const verified = { command, data: { event: 'evt_1' }, signer: { id: owner } } as unknown as Verified
  const asked = (answer: boolean | undefined) =>
    new Promise((resolve) => {
      const hooks = deskAt(refused, () => answer).webhooks
      plans['webhook.redeliver']!.ask!(verified, { hooks } as unknown as Services, resolve)
    })
  expect(await asked(undefined)).toBeUndefined()
  expect(await asked(true)).toMatchObject({ args: {} })
  expect(await asked(false)).toMatchObject({ args: { barred: ['not_found', expect.any(String), 'data.event', 0] } })
})

test('a logout whose subscriptions could not be ended is not confirmed until they have ended', async () => {
  const signedOut = (answer: ShardAnswer) => {
    const { webhooks, told } = deskAt(answer)
    const options = { webhooks, read: () => {}, isSuspended: () => false, endOf: () => 0, calls: undefined }
    return { out: new McpEvents(options).signedOut(owner, 'd'), told }
  }
  for (const code of ['overloaded', 'storage_full'] as const) {
    await expect(signedOut({ ok: false, refusal: { code, message: '' } }).out).rejects.toMatchObject({
      data: { limit: code },
    })
  }
  const { out, told } = signedOut({ ok: true, reply: { ended: true } } as unknown as ShardAnswer)
  await out
  expect(told()).toEqual([['changed', owner]])
})
