/** What a board remembers for retries: for its whole time, however much came, and never so that it stays full for ever. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Board } from '../../../actors/records/board.ts'
import { Columns } from '../../../actors/records/columns.ts'
import { RetryMemory } from '../../../actors/records/retry-memory.ts'
import { nonceSeconds, RetryGuard, requestSeconds, type WriteLetter } from '../../../actors/records/write.ts'

const span = 100
const countMax = 8

type Step = { readonly wait: number; readonly wants: number; readonly packs: boolean }
const steps = fc.array(
  fc.record({ wait: fc.nat({ max: 3 * span }), wants: fc.nat({ max: 12 }), packs: fc.boolean() }),
  { maxLength: 60 },
)

function fresh(): RetryMemory {
  return new RetryMemory({ spanSeconds: span, countMax })
}

/** What a stop and a start make of it. */
function restarted(memory: RetryMemory): RetryMemory {
  const columns = new Columns()
  const packed = memory.pack(columns)
  const again = fresh()
  again.restore(packed, new Columns(columns.all))
  return again
}

test('whatever comes and however often it is packed: all is kept for its time, and room comes when it was said to come', () => {
  fc.assert(
    fc.property(steps, (all: readonly Step[]) => {
      let memory = fresh()
      let now = 1_790_000_000
      const added: { place: number; at: number }[] = []
      for (const { wait, wants, packs } of all) {
        now += wait
        if (packs) memory = restarted(memory)
        for (let n = 0; n < wants; n++) {
          const room = memory.roomAt(now)
          if (room > now) {
            expect(room - now).toBeLessThanOrEqual(span)
            expect(restarted(memory).roomAt(room - 1)).toBeGreaterThan(room - 1)
            expect(restarted(memory).roomAt(room)).toBe(room)
            break
          }
          const place = added.length + 1
          memory.add(place * 7_919, place, now)
          added.push({ place, at: now })
        }
        const kept = added.filter(({ place }) => memory.find(place * 7_919, (each) => each === place))
        expect(kept).toEqual(expect.arrayContaining(added.filter(({ at }) => now - at < span)))
        expect(kept.length).toBeLessThanOrEqual(2 * countMax)
      }
    }),
    { numRuns: 60 },
  )
})

describe('a shard whose memory is full', () => {
  const at = 1_790_000_000
  const author = 'a'.repeat(64)
  const unread = (): never => {
    throw new Error('nothing here is read again')
  }
  const letter = (nonce: string, requestId: string, timestamp: number): WriteLetter => ({
    op: 'post',
    to: 'lobby',
    id: new Uint8Array(16),
    sha: new Uint8Array(32),
    author,
    by: { key: new Uint8Array(32), sig: new Uint8Array(64), signed: Buffer.from('{"command":{}}') },
    timestamp,
    nonce,
    requestId,
    via: 'command',
    limited: 0,
    rotated: false,
    suspended: false,
    operator: false,
    args: {},
  })
  /** It has taken so many commands, with a request id or without, a second apart. */
  function full(count: number, requestId: (n: number) => string): RetryGuard {
    const acceptance = new RetryGuard(new Board(), unread, countMax)
    for (let n = 0; n < count; n++) {
      const use = {
        to: 'lobby',
        author,
        nonce: `n${n}`,
        requestId: requestId(n),
        id: new Uint8Array(16),
        isEvent: true,
      }
      acceptance.remember(use, n + 1, at + n * nonceSeconds)
    }
    return acceptance
  }
  const judged = (acceptance: RetryGuard, requestId: string, now: number) =>
    acceptance.judge(letter(`fresh ${now}`, requestId, now), now, now)
  function restored(acceptance: RetryGuard): RetryGuard {
    const columns = new Columns()
    const packed = acceptance.pack(columns)
    const again = new RetryGuard(new Board(), unread, countMax)
    again.restore(packed, new Columns(columns.all))
    return again
  }

  test('of request ids takes commands without one, and says when it takes others', () => {
    const acceptance = full(countMax, (n) => `r${n}`)
    const now = at + (countMax - 1) * nonceSeconds + 1
    expect(judged(acceptance, '', now)).toBeUndefined()
    const refused = { refusal: { code: 'overloaded', field: 'request_id', retryAfter: at + requestSeconds - now } }
    expect(judged(acceptance, 'fresh', now)).toMatchObject(refused)
    expect(judged(restored(acceptance), 'fresh', now)).toMatchObject(refused)
    expect(judged(acceptance, 'fresh', at + requestSeconds - 1)).toMatchObject({ refusal: { retryAfter: 1 } })
    for (const later of [at + requestSeconds, at + 2 * requestSeconds, at + 365 * requestSeconds]) {
      expect(judged(restored(acceptance), 'fresh', later)).toBeUndefined()
      expect(judged(acceptance, 'fresh', later)).toBeUndefined()
    }
  })

  test('of nonces says when it takes more, by the clock that a client can see', () => {
    const acceptance = new RetryGuard(new Board(), unread, countMax)
    for (let n = 0; n < countMax; n++)
      acceptance.remember(
        { to: 'lobby', author, nonce: `n${n}`, requestId: '', id: new Uint8Array(16), isEvent: true },
        n + 1,
        at,
      )
    const wait = { refusal: { code: 'overloaded', retryAfter: nonceSeconds - 10 } }
    expect(judged(acceptance, '', at + 10)).toMatchObject(wait)
    // The clock was set back by 100 s: time stands still here until it is there again.
    expect(acceptance.judge(letter('x', '', at - 90), at + 10, at - 90)).toMatchObject({
      refusal: { retryAfter: nonceSeconds + 90 },
    })
    expect(judged(restored(acceptance), '', at + nonceSeconds)).toBeUndefined()
  })
})

describe('of one memory', () => {
  const at = 1_790_000_000
  const unread = (): never => {
    throw new Error('nothing here is read again')
  }
  const max = 80
  const share = { most: 20, scarce: 2 }
  const made = () => new RetryGuard(new Board(), unread, max, { requestIds: share, nonces: share })
  const identity = (n: number) => String(n).padStart(64, '0')
  const use = (author: string, n: number, requestId: string) => ({
    ...{ to: 'lobby', author, nonce: `n${n}`, requestId, id: new Uint8Array(16), isEvent: true },
  })
  const letter = (author: string, requestId: string, timestamp: number, via = 'command'): WriteLetter => ({
    ...{ op: 'post', to: 'lobby', id: new Uint8Array(16), sha: new Uint8Array(32), author },
    by: { key: new Uint8Array(32), sig: new Uint8Array(64), signed: Buffer.from('{"command":{}}') },
    ...{ timestamp, nonce: `of ${author} ${requestId}`, requestId, via, limited: 0, rotated: false, suspended: false },
    ...{ operator: false, args: {} },
  })
  const judged = (acceptance: RetryGuard, author: string, requestId: string, now = at) =>
    acceptance.judge(letter(author, requestId, now), now, now)
  /** Everybody in `uses` has used so many request ids, and as many nonces long ago. */
  function usedBy(uses: ReadonlyMap<string, number>): RetryGuard {
    const acceptance = made()
    let seq = 0
    for (const [author, count] of uses)
      for (let n = 0; n < count; n++) acceptance.remember(use(author, n, `r${n}`), ++seq, at - 2 * nonceSeconds)
    return acceptance
  }
  function restored(acceptance: RetryGuard, change = (packed: ReturnType<RetryGuard['pack']>) => packed): RetryGuard {
    const columns = new Columns()
    const packed = change(acceptance.pack(columns))
    const again = made()
    again.restore(packed, new Columns(columns.all))
    return again
  }

  test('an identity that has used up its share is refused alone, until the time of a generation is over', () => {
    const acceptance = usedBy(new Map([[identity(1), share.most]]))
    const wait = { retryAfter: requestSeconds - 2 * nonceSeconds, field: 'request_id' }
    for (const each of [acceptance, restored(acceptance)]) {
      expect(judged(each, identity(1), 'fresh')).toMatchObject({ refusal: { code: 'quota_exhausted', ...wait } })
      expect(judged(each, identity(1), '')).toBeUndefined()
      expect(judged(each, identity(2), 'fresh')).toBeUndefined()
      expect(each.judge(letter(identity(1), 'fresh', at, 'board'), at, at)).toBeUndefined()
    }
    const later = at + requestSeconds
    expect(judged(acceptance, identity(1), 'fresh', later)).toBeUndefined()
  })

  test('who may use several times the limits has as many shares', () => {
    const acceptance = usedBy(new Map([[identity(1), share.most]]))
    const raised = (factor: number) => acceptance.judge({ ...letter(identity(1), 'fresh', at), factor }, at, at)
    expect([raised(1), raised(2), raised(Number.POSITIVE_INFINITY)]).toMatchObject([
      { refusal: { code: 'quota_exhausted' } },
      undefined,
      undefined,
    ])
  })

  test('nonces are shared in the same way', () => {
    const acceptance = made()
    for (let n = 0; n < share.most; n++) acceptance.remember(use(identity(1), n, ''), n + 1, at)
    const spent = { refusal: { code: 'quota_exhausted', retryAfter: nonceSeconds } }
    expect(judged(acceptance, identity(1), '')).toMatchObject(spent)
    expect(judged(acceptance, identity(2), '')).toBeUndefined()
    expect(judged(acceptance, identity(1), '', at + nonceSeconds)).toBeUndefined()
  })

  test('the last quarter is for those who use it little, and only many of them fill it', () => {
    const busy = new Map([1, 2, 3].map((n) => [identity(n), share.most]))
    const scarce = usedBy(busy)
    for (const n of [1, 2, 3])
      expect(judged(scarce, identity(n), 'fresh')).toMatchObject({ refusal: { code: 'quota_exhausted' } })
    expect(judged(scarce, identity(4), 'fresh')).toBeUndefined()
    const two = usedBy(new Map([...busy, [identity(4), 1], [identity(5), share.scarce]]))
    expect(judged(two, identity(4), 'fresh')).toBeUndefined()
    expect(judged(two, identity(5), 'fresh')).toMatchObject({ refusal: { code: 'overloaded', field: 'request_id' } })
    const light = new Map(Array.from({ length: (max / 4 / share.scarce) | 0 }, (_, n) => [identity(n + 10), 2]))
    const full = usedBy(new Map([...busy, ...light]))
    expect(judged(full, identity(6), 'fresh')).toMatchObject({ refusal: { code: 'overloaded' } })
    expect(judged(full, identity(6), '')).toBeUndefined()
  })

  test('a snapshot of a release that counted nobody is taken over whole, and counting begins with it', () => {
    const acceptance = usedBy(new Map([[identity(1), share.most]]))
    const uncounted = restored(acceptance, ([seeds, nonces, requests, ...rest]) => {
      const older = ([startedAt, count, fingerprints, places]: (typeof nonces)[0]) =>
        [startedAt, count, fingerprints, places] as const
      return [seeds, [older(nonces[0]), older(nonces[1])], [older(requests[0]), older(requests[1])], ...rest]
    })
    expect(() => judged(uncounted, identity(1), 'r1')).toThrow('nothing here is read again')
    for (let n = 0; n < share.most; n++) {
      expect(judged(uncounted, identity(1), `fresh ${n}`)).toBeUndefined()
      uncounted.remember(use(identity(1), 100 + n, `fresh ${n}`), 1_000 + n, at)
    }
    expect(judged(uncounted, identity(1), 'one more')).toMatchObject({ refusal: { code: 'quota_exhausted' } })
  })
})
