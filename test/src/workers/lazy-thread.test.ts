/** A thread started by its first request: requests while it gets ready wait in line, and none forever. */

import { afterEach, expect, test, vi } from 'vitest'
import { Link, type Port } from '../../../actors/kernel/link.ts'
import type { Supervised } from '../../../actors/kernel/supervisor.ts'
import { systemClock } from '../../../src/clock.ts'
import { machine } from '../../../src/platform.ts'
import { LazyThread } from '../../../src/workers/lazy-thread.ts'

const linkOf = (port: Port, onAsk?: (body: unknown, id: number) => void) =>
  new Link({
    port,
    openMax: 3,
    patienceMs: 5_000,
    now: () => 0,
    timers: systemClock,
    ...(onAsk === undefined ? {} : { onAsk }),
  })

const busy = 'overloaded, 1 s'

let ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends) end()
  ends = []
})

/** A lazy thread whose far end is here and answers requests from the moment that `answering` settles. */
function late({
  answering = Promise.resolve(),
  starts = () => Promise.resolve({}),
}: {
  answering?: Promise<void>
  starts?: () => Promise<object>
} = {}) {
  const heard: unknown[] = []
  const clock = { now: 0 }
  let births = 0
  let die = (): void => {}
  const thread = new LazyThread({
    name: 'late',
    file: new URL('file:///late.ts'),
    data: (front) => front,
    channel: machine.channel,
    link: (port) => linkOf(port),
    now: () => clock.now,
    supervise: ({ startData, mayRestart, onFatal }) => {
      expect(mayRestart()).toBe(true)
      births++
      die = () => onFatal('late', { name: 'Damage', message: 'it keeps dying', stack: '' })
      const far: Link = linkOf(startData().data as Port, (body, id) => {
        heard.push(body)
        void answering.then(() => far.answer(id, body))
      })
      ends.push(() => far.close())
      return { name: 'late', start: starts, stop: () => Promise.resolve() } as unknown as Supervised
    },
  })
  ends.push(() => thread.close())
  const ask = (body: number) =>
    new Promise<number | string>((resolve) =>
      thread.ask<number>(body, (answer) =>
        resolve(typeof answer === 'number' ? answer : `${answer.refusal.code}, ${answer.refusal.retryAfter} s`),
      ),
    )
  return { thread, heard, clock, ask, births: () => births, die: () => die() }
}

test('requests before it is ready are answered in their order, and those that find no room immediately', async () => {
  const gate = Promise.withResolvers<void>()
  const { heard, ask } = late({ answering: gate.promise })
  const early = [1, 2, 3].map(ask)
  expect(await ask(4)).toBe(busy)
  gate.resolve()
  expect(await Promise.all(early)).toEqual([1, 2, 3])
  expect(await ask(5)).toBe(5)
  expect(heard).toEqual([1, 2, 3, 5])
})

test('a thread with work to do is started before any request, once, and answers like any other', async () => {
  const { thread, ask, births } = late()
  thread.wake()
  thread.wake()
  expect(births()).toBe(1)
  expect(await ask(1)).toBe(1)
  thread.wake()
  expect([await ask(2), births()]).toEqual([2, 1])
})

test('one that keeps dying pauses for a minute, logs it once, and the next later request restarts it', async () => {
  const { thread, clock, ask, births, die } = late()
  expect(await ask(1)).toBe(1)
  const open = ask(2)
  const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  die()
  expect([await open, thread.running]).toEqual([busy, undefined])
  const meanwhile: (number | string)[] = []
  for (clock.now of [0, 1_000, 59_999]) meanwhile.push(await ask(3))
  expect(meanwhile).toEqual(['overloaded, 60 s', 'overloaded, 59 s', busy])
  const lines = said.mock.calls.map(([line]) => JSON.parse(String(line)))
  said.mockRestore()
  expect(lines).toMatchObject([{ event: 'late.ended', problem: 'it keeps dying', answers_again_in_seconds: 60 }])
  expect(births()).toBe(1)
  clock.now = 60_000
  expect(await ask(4)).toBe(4)
  expect(births()).toBe(2)
})

test('one that dies before it is ready pauses as well', async () => {
  const { clock, ask, births } = late({
    starts: () => (births() === 1 ? Promise.reject(new Error('damage')) : Promise.resolve({})),
  })
  expect(await ask(1)).toBe(busy)
  for (clock.now of [1_000, 59_999]) expect(await ask(1)).toMatch('overloaded')
  expect(births()).toBe(1)
  clock.now = 60_000
  expect(await ask(2)).toBe(2)
})

test('a board that stops starts nothing, and a request after that is refused', async () => {
  const { thread, heard, ask } = late()
  await thread.stop(0)
  thread.wake()
  expect([await ask(1), heard]).toEqual([busy, []])
  expect(thread.running).toBeUndefined()
})
