/** What a board remembers for retries: for its full retention time, however much arrives, in memory or on the shelf. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Board } from '../../../actors/records/board.ts'
import { Columns } from '../../../actors/records/columns.ts'
import { RetryMemory, type Shelf } from '../../../actors/records/retry-memory.ts'
import { nonceSeconds, RetryGuard, requestSeconds, type WriteLetter } from '../../../actors/records/write.ts'
import { MemoryShelf } from '../../support/memory-shelf.ts'

const span = 100
const shelvedAt = 8

type Step = { readonly wait: number; readonly adds: number; readonly packs: boolean; readonly isFull: boolean }
const steps = fc.array(
  fc.record({ wait: fc.nat({ max: 3 * span }), adds: fc.nat({ max: 30 }), packs: fc.boolean(), isFull: fc.boolean() }),
  { maxLength: 40 },
)

const fresh = (shelf: Shelf) => new RetryMemory({ spanSeconds: span, shelf, name: () => 'some' })

function kept(memory: RetryMemory) {
  const columns = new Columns()
  const packed = structuredClone(memory.pack(columns))
  return { packed, columns: new Columns(columns.all.map((each) => each.slice())) }
}

/** What a stop and a start restore of it. */
function restarted(memory: RetryMemory, shelf: MemoryShelf, at: number): RetryMemory {
  const { packed, columns } = kept(memory)
  const again = fresh(shelf)
  shelf.used.clear()
  expect(again.restore(packed, columns, at)).toBe(true)
  for (const name of shelf.tables.keys()) if (!shelf.used.has(name)) shelf.tables.delete(name)
  return again
}

test('whatever arrives, wherever it is stored and however often restored, is retained for its time and not forever', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all: readonly Step[]) => {
      const shelf = new MemoryShelf(shelvedAt)
      let memory = fresh(shelf)
      let now = 1_790_000_000
      const added: { place: number; at: number }[] = []
      for (const { wait, adds, packs, isFull } of all) {
        now += wait
        shelf.isFull = isFull
        if (packs) memory = restarted(memory, shelf, now)
        for (let n = 0; n < adds; n++) {
          const place = added.length + 1
          memory.add(place * 7_919, place, now)
          added.push({ place, at: now })
        }
        // Half of the time, entries in flight to the shelf have arrived when they are looked up.
        if (adds % 2 === 0) await undefined
        const found = added.filter(({ place }) => memory.find(place * 7_919, (each) => each === place))
        expect(found).toEqual(expect.arrayContaining(added.filter(({ at }) => now - at < span)))
        if (adds > 0) expect(found.filter(({ at }) => now - at >= 3 * span)).toEqual([])
      }
      memory.add(0, 1, now + 2 * span)
      await new Promise((done) => setImmediate(done))
      expect([...shelf.tables.keys()]).toEqual([])
    }),
    { numRuns: 60 },
  )
})

test('a snapshot whose tables the shelf has lost is usable only after they expired', async () => {
  const [shelf, at] = [new MemoryShelf(shelvedAt), 1_790_000_000]
  const memory = fresh(shelf)
  for (let place = 1; place <= 3 * shelvedAt; place++) memory.add(place * 7_919, place, at)
  await new Promise((done) => setImmediate(done))
  expect(shelf.tables.size).toBe(3)
  const { packed, columns } = kept(memory)
  expect(fresh(shelf).restore(packed, columns, at)).toBe(true)
  shelf.tables.delete(`some-${2 * shelvedAt}`)
  expect(fresh(shelf).restore(packed, columns, at + 2 * span - 1)).toBe(false)
  expect(fresh(shelf).restore(packed, columns, at + 2 * span)).toBe(true)
})

describe('a shard', () => {
  const at = 1_790_000_000
  const unread = (): never => {
    throw new Error('nothing here is read again')
  }
  const share = 20
  const made = () => new RetryGuard(new Board(), unread, { requestIds: share, nonces: share })
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
  /** Everybody in `uses` has used that many request ids, and as many nonces long ago. */
  function usedBy(uses: ReadonlyMap<string, number>): RetryGuard {
    const acceptance = made()
    let seq = 0
    for (const [author, count] of uses)
      for (let n = 0; n < count; n++) acceptance.remember(use(author, n, `r${n}`), ++seq, at - 2 * nonceSeconds)
    return acceptance
  }
  function restored(acceptance: RetryGuard): RetryGuard {
    const columns = new Columns()
    const packed = acceptance.pack(columns)
    const again = made()
    expect(again.restore(packed, new Columns(columns.all), at)).toBe(true)
    return again
  }

  test('only the identity that has used up its share is refused, until a generation expires', () => {
    const acceptance = usedBy(new Map([[identity(1), share]]))
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

  test('an identity allowed several times the limits has as many shares', () => {
    const acceptance = usedBy(new Map([[identity(1), share]]))
    const raised = (factor: number) => acceptance.judge({ ...letter(identity(1), 'fresh', at), factor }, at, at)
    expect([raised(1), raised(2), raised(Number.POSITIVE_INFINITY)]).toMatchObject([
      { refusal: { code: 'quota_exhausted' } },
      undefined,
      undefined,
    ])
  })

  test('nonces are shared in the same way, and by the clock that a client can see', () => {
    const acceptance = made()
    for (let n = 0; n < share; n++) acceptance.remember(use(identity(1), n, ''), n + 1, at)
    const spent = { refusal: { code: 'quota_exhausted', retryAfter: nonceSeconds } }
    expect(judged(acceptance, identity(1), '')).toMatchObject(spent)
    expect(judged(acceptance, identity(2), '')).toBeUndefined()
    // The clock was set back by 100 s: the board's time stands still until the clock catches up.
    expect(acceptance.judge(letter(identity(1), '', at - 90), at + 10, at - 90)).toMatchObject({
      refusal: { retryAfter: nonceSeconds + 90 },
    })
    expect(judged(acceptance, identity(1), '', at + nonceSeconds)).toBeUndefined()
  })
})
