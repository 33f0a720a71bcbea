/** The delivery thread alone, with a main thread that does not answer, or refuses its requests. */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { MessageChannel } from 'node:worker_threads'
import { expect, test, vi } from 'vitest'
import { Link } from '../../../actors/kernel/link.ts'
import { systemClock } from '../../../src/clock.ts'
import { machine } from '../../../src/platform.ts'
import type { HookView } from '../../../src/webhooks/reads.ts'
import type { DeliveryAsk, DeliveryThread } from '../../../src/workers/delivery.ts'
import { scratchDirectory } from '../../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000 })

/** Started with the test at the other end of its channel. */
function delivering() {
  const file = new URL('../../../src/workers/delivery.ts', import.meta.url)
  const front = new MessageChannel()
  const data: DeliveryThread = {
    ...{
      directory: scratchDirectory(),
      sources: 2,
      cursorKey: randomBytes(32),
      epoch: { generation: '', layout: '' },
      serviceId: '',
    },
    ...{ address: 'http://127.0.0.1', loopback: true, limitsOn: false, scale: 0.001, suspended: [], headSize: 0 },
    ...{ turns: new Int32Array(new SharedArrayBuffer(4)), front: front.port2 },
  }
  const thread = machine.startThread(file, { name: 'delivery', data, ports: [front.port2], youngGenerationMb: 16 })
  const gone = new Promise<number>((resolve) => thread.onExit(resolve))
  const stopped = () => {
    thread.send({ kind: 'stop' }, [])
    return gone
  }
  return { port: front.port1, stopped }
}

test('a stop while it is being sent the list of hooks ends it, without waiting for an answer', async () => {
  const { port, stopped } = delivering()
  await once(port, 'message')
  expect(await stopped()).toBe(0)
})

test('a subscription whose end is refused is left alone until its end is requested again', async () => {
  const hook: HookView = {
    ...{ hook: 'over', form: 'mcp', url: 'https://x.example/in', kinds: ['room.post'], filter: { room: 'lobby' } },
    ...{ sealed: '', tag: '', marks: [1, 1], expires: 1, owner: 'aa'.repeat(32), epoch: 5, createdAt: 0 },
    ...{ former: undefined, wakes: 0, redeliveries: [] },
  }
  const answers: Partial<Record<DeliveryAsk[0], unknown>> = {
    now: [9, 9],
    hooks: { hooks: [hook], next: 5, more: false },
    end: { code: 'storage_full', message: '' },
  }
  const asked: DeliveryAsk[0][] = []
  const { port, stopped } = delivering()
  await new Promise<void>((resolve) => {
    const link: Link = new Link({
      ...{ port, openMax: 100, patienceMs: 300_000, now: systemClock.monotonicMs, timers: systemClock },
      // Requests to sources get no answer: it keeps catching up.
      onAsk: (body, id) => {
        const [kind] = body as DeliveryAsk
        asked.push(kind)
        if (answers[kind] !== undefined) link.answer(id, answers[kind])
        if (asked.filter((each) => each === 'end').length === 2) resolve()
      },
      onTell: () => {},
    })
  })
  expect(asked).not.toContain('own')
  expect(await stopped()).toBe(0)
})
