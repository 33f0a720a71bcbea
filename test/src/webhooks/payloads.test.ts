/** Event data is requested in batches, and an answer is reused only while it is the newest. */

import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { Payloads } from '../../../src/webhooks/payload-batches.ts'
import type { HooksAsk } from '../../../src/webhooks/payloads/answer.ts'
import type { Payload } from '../../../src/webhooks/payloads/payload-request.ts'
import { noSignal, type Pending } from '../../../src/webhooks/pending.ts'
import type { HookView } from '../../../src/webhooks/reads.ts'

const post = (subject: string, source = 0): Pending => ({
  ...{ source, signal: { ...noSignal, subject }, kind: 'room.post', nth: 0, named: undefined },
})
const reader = (owner: string) => ({ owner, filter: { room: 'lobby' } }) as unknown as HookView

/** A source that answers when it is told to, and numbers its answers. */
function desk() {
  const asked: string[][] = []
  const answers: (() => void)[] = []
  let [turn, time] = [0, 0]
  const payloads = new Payloads({
    address: '',
    ask: (_source, ask: HooksAsk) => {
      const subjects = (ask[2] as readonly { subject: string }[]).map(({ subject }) => subject)
      const number = asked.push(subjects)
      return new Promise((resolve) =>
        answers.push(() => resolve(subjects.map((subject) => ({ data: `${subject} ${number}` })))),
      )
    },
    soon: systemClock.soon,
    turn: () => turn,
    now: () => time,
    fault: () => {},
  })
  const get = (pending: Pending, owner = 'ada') =>
    new Promise<string>((resolve) =>
      payloads.get(pending, reader(owner), (payload: Payload | undefined) =>
        resolve(payload !== undefined && 'data' in payload ? payload.data : ''),
      ),
    )
  /** Answers all pending requests. */
  const answer = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    for (const each of answers.splice(0)) each()
  }
  return { payloads, asked, get, answer, pass: (ms: number) => (time += ms), happen: () => turn++ }
}

test('concurrent requests for a post are one query, whose answer is valid until the next event', async () => {
  const { payloads, asked, get, answer, pass, happen } = desk()
  const first = [get(post('a'), 'ada'), get(post('a'), 'bob'), get(post('b'), 'bob')]
  await answer()
  expect(await Promise.all(first)).toEqual(['a 1', 'a 1', 'b 1'])
  expect(asked).toEqual([['a', 'b']])
  expect(await get(post('a'), 'eve')).toBe('a 1')
  for (const [n, change] of [happen, () => payloads.forget(), () => pass(100)].entries()) {
    change()
    const again = get(post('a'))
    await answer()
    expect(await again).toBe(`a ${n + 2}`)
    expect(await get(post('a'))).toBe(`a ${n + 2}`)
  }
})

test('data requested before something happened is delivered, and not cached', async () => {
  for (const isTold of [true, false]) {
    const { payloads, get, answer, happen } = desk()
    const old = get(post('a'))
    await new Promise((resolve) => setImmediate(resolve))
    if (isTold) happen()
    else payloads.forget()
    await answer()
    expect(await old).toBe('a 1')
    const next = get(post('a'))
    await answer()
    expect(await next).toBe('a 2')
  }
})

test('private data that waits for a hook is left out if the hook may no longer have it', async () => {
  const { payloads, asked } = desk()
  const closed = { ...reader('ada'), publicOnly: true } as HookView
  const given = await new Promise((resolve) => payloads.get(post('a', 1), closed, resolve))
  expect([given, asked]).toEqual([{ skip: true }, []])
})

test('data of a private room is requested each time, for each reader', async () => {
  const { asked, get, answer } = desk()
  for (const owners of [['ada', 'bob'], ['ada']]) {
    const told = owners.map((owner) => get(post('a', 1), owner))
    await answer()
    await Promise.all(told)
  }
  expect(asked).toEqual([['a', 'a'], ['a']])
})
