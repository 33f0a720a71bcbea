import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { FairQueue, type FairQueueOptions } from '../../../src/search/fair-queue.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A queue whose pieces end when the test says so, and what became of each. */
class Bench {
  readonly queue: FairQueue
  /** Names of pieces in the order in which they started. */
  readonly begun: string[] = []
  /** Seconds after which the piece may be retried. */
  readonly refused = new Map<string, number>()
  readonly #ends = new Map<string, () => void>()
  readonly #gone = new Map<string, () => void>()

  constructor(options: Partial<FairQueueOptions> = {}) {
    this.queue = new FairQueue({
      now: () => Date.now(),
      timers: systemClock,
      runningMax: 8,
      runningOfSiteMax: 2,
      waitingOfNetworkMax: 4,
      waitingOfSiteMax: 12,
      waitingMax: 100,
      waitMsMax: 5_000,
      ...options,
    })
  }

  ask(name: string, address: string, signedIn?: string): void {
    this.queue.take(
      {
        address,
        ...(signedIn === undefined ? {} : { signedIn }),
        onGone: (callback) => void this.#gone.set(name, callback),
      },
      (done) => {
        this.begun.push(name)
        this.#ends.set(name, done)
      },
      (seconds) => void this.refused.set(name, seconds),
    )
  }

  /** Ends a piece after this duration. */
  end(name: string, ms = 0): void {
    vi.advanceTimersByTime(ms)
    this.#ends.get(name)!()
  }

  leave(name: string): void {
    this.#gone.get(name)!()
  }
}

test('one piece of a network runs at a time, and its others wait in order', () => {
  const bench = new Bench()
  for (const name of ['a1', 'a2', 'a3']) bench.ask(name, '192.0.2.1')
  bench.ask('b1', '192.0.2.2')
  expect(bench.begun).toEqual(['a1', 'b1'])
  bench.end('a1')
  expect(bench.begun).toEqual(['a1', 'b1', 'a2'])
  bench.end('b1')
  bench.end('a2')
  expect(bench.begun).toEqual(['a1', 'b1', 'a2', 'a3'])
})

test('networks take turns: a small request does not wait for all requests of a large user', () => {
  const bench = new Bench({ runningMax: 1 })
  for (const name of ['a1', 'a2', 'a3', 'a4']) bench.ask(name, '192.0.2.1')
  bench.ask('b1', '192.0.2.2')
  bench.ask('c1', '192.0.2.3')
  for (const name of ['a1', 'b1', 'c1', 'a2', 'a3']) bench.end(name)
  expect(bench.begun).toEqual(['a1', 'b1', 'c1', 'a2', 'a3', 'a4'])
})

test('an IPv6 network is a /64, and of the networks of one /48 a few are served at a time', () => {
  const bench = new Bench()
  bench.ask('one', '2001:db8:0:1::1')
  bench.ask('same network', '2001:db8:0:1::2')
  bench.ask('two', '2001:db8:0:2::1')
  bench.ask('three', '2001:db8:0:3::1')
  bench.ask('elsewhere', '2001:db8:1:3::1')
  expect(bench.begun).toEqual(['one', 'two', 'elsewhere'])
  bench.end('two')
  expect(bench.begun.at(-1)).toBe('three')
  bench.end('one')
  expect(bench.begun.at(-1)).toBe('same network')
  for (let n = 0; n < 30; n++) bench.ask(`more ${n}`, `2001:db8:0:${n.toString(16)}::2`)
  expect(bench.refused.size).toBe(18)
  bench.ask('elsewhere too', '2001:db8:2::1')
  expect(bench.begun.at(-1)).toBe('elsewhere too')
})

test('sign-ins that share an address take turns separately, a few at a time', () => {
  const bench = new Bench()
  for (const name of ['ada', 'ben', 'cleo']) bench.ask(name, '192.0.2.1', name)
  bench.ask('ada again', '192.0.2.1', 'ada')
  bench.ask('nobody', '192.0.2.2')
  expect(bench.begun).toEqual(['ada', 'ben', 'nobody'])
  bench.end('ada')
  bench.end('ben')
  expect(bench.begun).toEqual(['ada', 'ben', 'nobody', 'cleo', 'ada again'])
})

test('a network with too many or too slow pieces is refused with the time they need; no other is', () => {
  const bench = new Bench()
  bench.ask('slow', '192.0.2.1')
  for (let n = 0; n < 20; n++) {
    bench.ask(`more ${n}`, '192.0.2.9')
    if (bench.begun.includes(`more ${n}`)) bench.end(`more ${n}`, 4_000)
  }
  bench.ask('second', '192.0.2.1')
  bench.ask('third', '192.0.2.1')
  // Two are before it, each of which takes about four seconds by the measured average.
  expect([...bench.refused]).toEqual([['third', 8]])
  bench.ask('other', '192.0.2.2')
  expect(bench.begun).toContain('other')
})

test('a piece that has waited too long is refused, though nothing ends', () => {
  const bench = new Bench()
  bench.ask('stuck', '192.0.2.1')
  bench.ask('behind', '192.0.2.1')
  vi.advanceTimersByTime(4_999)
  expect(bench.refused.size).toBe(0)
  vi.advanceTimersByTime(2)
  expect([...bench.refused.keys()]).toEqual(['behind'])
  bench.end('stuck')
  bench.ask('next', '192.0.2.1')
  expect(bench.begun).toEqual(['stuck', 'next'])
})

test('a piece whose client has disconnected is not served, and nobody waits for it', () => {
  const bench = new Bench()
  for (const name of ['a1', 'a2', 'a3']) bench.ask(name, '192.0.2.1')
  bench.leave('a2')
  bench.end('a1')
  expect(bench.begun).toEqual(['a1', 'a3'])
  bench.leave('a3')
  bench.ask('a4', '192.0.2.1')
  expect(bench.begun).toEqual(['a1', 'a3'])
  bench.end('a3')
  expect(bench.begun).toEqual(['a1', 'a3', 'a4'])
  vi.advanceTimersByTime(60_000)
  expect(bench.refused.size).toBe(0)
})

test('in any order of requests, ends and disconnects everybody is served or gone, never two of one network at once', () => {
  const bench = new Bench({ runningMax: 3, waitingOfNetworkMax: 50, waitingOfSiteMax: 100 })
  const addresses = ['192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8:0:1::1', '2001:db8:0:2::1', '2001:db8:0:3::1']
  const at = new Map<string, string>()
  const ended = new Set<string>()
  const underWay = () => bench.begun.filter((name) => !ended.has(name))
  let state = 7
  const draw = (below: number) => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
  const gone = new Set<string>()
  for (let n = 0; n < 2_000; n++) {
    const what = draw(4)
    if (what < 2 && at.size - ended.size - gone.size < 60) {
      at.set(`p${n}`, addresses[draw(addresses.length)]!)
      bench.ask(`p${n}`, at.get(`p${n}`)!)
    } else if (what === 2) {
      const name = [...at.keys()].find((each) => !bench.begun.includes(each) && !gone.has(each))
      if (name !== undefined) gone.add(name)
      if (name !== undefined) bench.leave(name)
    } else {
      const [name] = underWay()
      if (name !== undefined) ended.add(name)
      if (name !== undefined) bench.end(name)
    }
    const networks = underWay().map((name) => at.get(name)!)
    expect(new Set(networks).size).toBe(networks.length)
    expect(networks.length).toBeLessThanOrEqual(3)
    expect(networks.filter((address) => address.includes(':')).length).toBeLessThanOrEqual(2)
  }
  for (let [name] = underWay(); name !== undefined; [name] = underWay()) {
    ended.add(name)
    bench.end(name)
  }
  expect(bench.refused.size).toBe(0)
  expect(ended.size + gone.size).toBe(at.size)
})
