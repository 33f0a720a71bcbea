/** Slots for deliveries: bounded in total and for each host, in order for each hook, and no host delays another. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { HostQueues } from '../../../src/webhooks/host-queues.ts'

type Job = { readonly host: string; readonly number: number }

/** HostQueues whose requests end when they are told to. */
function hall(slots: number, perHost: number) {
  const flying: { job: Job; end: (good: boolean) => void }[] = []
  const started: Job[] = []
  const lanes = new HostQueues<Job>({
    slots,
    perHost,
    run: (job, done) => {
      started.push(job)
      flying.push({ job, end: done })
    },
  })
  const end = (at: number, good: boolean) => {
    const [each] = flying.splice(at, 1)
    each!.end(good)
  }
  return { lanes, flying, started, end }
}

test('hosts that answer get all slots though many others never do', () => {
  const { lanes, flying, started, end } = hall(8, 4)
  for (let n = 0; n < 40; n++) lanes.add(`dead-${n}`, { host: `dead-${n}`, number: 0 })
  for (let n = 0; n < 40; n++) lanes.add(`dead-${n}`, { host: `dead-${n}`, number: 1 })
  // Each of the dead had its first chance; from then on they share half.
  for (let n = 0; n < 40; n++) end(0, false)
  for (let n = 0; n < 20; n++) lanes.add('alive', { host: 'alive', number: n })
  for (let n = 0; n < 20; n++) {
    const at = flying.findIndex(({ job }) => job.host === 'alive')
    expect(at).toBeGreaterThanOrEqual(0)
    end(at, true)
  }
  expect(started.filter(({ host }) => host === 'alive')).toHaveLength(20)
  expect(flying.every(({ job }) => job.host !== 'alive')).toBe(true)
  expect(flying.length).toBeLessThanOrEqual(4)
})

test('the slots and the share per host are never exceeded, order is kept for each, and everything is sent', () => {
  const step = fc.record({
    host: fc.integer({ min: 0, max: 5 }),
    ends: fc.integer({ min: 0, max: 3 }),
    good: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const { lanes, flying, started, end } = hall(6, 3)
      const check = () => {
        expect(flying.length).toBeLessThanOrEqual(6)
        expect(lanes.inFlight).toBe(flying.length)
        for (let host = 0; host < 6; host++)
          expect(flying.filter(({ job }) => job.host === String(host)).length).toBeLessThanOrEqual(3)
      }
      for (const [number, { host, ends, good }] of steps.entries()) {
        lanes.add(String(host), { host: String(host), number })
        check()
        for (let n = 0; n < ends && flying.length > 0; n++) end(0, good)
        check()
      }
      while (flying.length > 0) end(0, true)
      expect(started).toHaveLength(steps.length)
      for (let host = 0; host < 6; host++) {
        const own = started.filter((job) => job.host === String(host)).map(({ number }) => number)
        expect(own).toEqual([...own].sort((a, b) => a - b))
      }
    }),
    { numRuns: 60 },
  )
})

test('a queue of requests that end synchronously empties, however long it is', () => {
  const waiting = 20_000
  let ran = 0
  let end: ((answered: boolean) => void) | undefined
  const lanes = new HostQueues<number>({
    slots: 1,
    perHost: 1,
    run: (_, done) => {
      if (ran++ === 0) end = done
      else done(true)
    },
  })
  for (let n = 0; n < waiting; n++) lanes.add('host', n)
  end!(true)
  expect([ran, lanes.inFlight]).toEqual([waiting, 0])
})
