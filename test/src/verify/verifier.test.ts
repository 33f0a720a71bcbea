import { generateKeyPairSync, sign } from 'node:crypto'
import fc from 'fast-check'
import { Piscina } from 'piscina'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { machine } from '../../../src/platform.ts'
import {
  type BackendName,
  chooseBackend,
  type SignatureItem,
  verdictBadKey,
  verdictBadSignature,
  verdictGood,
} from '../../../src/verify/backends.ts'
import { judgeBatch, packBatch, unpackBatch } from '../../../src/verify/batch.ts'
import {
  type Checks,
  ChecksHere,
  SharedChecks,
  type Verdict,
  Verifier,
  type VerifierEvent,
} from '../../../src/verify/verifier.ts'
import { patience } from '../../support/patience.ts'

const { privateKey, publicKey: publicKeyObject } = generateKeyPairSync('ed25519')
const publicKey = publicKeyObject.export({ format: 'der', type: 'spki' }).subarray(12)
const identityKey = Buffer.from(`01${'00'.repeat(31)}`, 'hex')

function signed(text: string | Buffer): SignatureItem {
  const message = Buffer.from(text)
  return { message, publicKey, signature: sign(undefined, message, privateKey) }
}

function ask(verifier: Checks, item: SignatureItem): Promise<Verdict> {
  return new Promise((resolve) => verifier.verify(item.signature, item.publicKey, item.message, resolve))
}

const good = signed('good')
const badKey = { ...good, publicKey: identityKey }
const badSignature = { ...good, message: Buffer.from('other') }

describe('a letter', () => {
  const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
  const items = fc.array(
    fc.record({ signature: bytes(64), publicKey: bytes(32), message: fc.uint8Array({ maxLength: 300 }) }),
    { maxLength: 70 },
  )

  test('is unpacked as it was packed', () => {
    fc.assert(
      fc.property(items, (packed) => {
        const plain = (item: SignatureItem) => [item.signature, item.publicKey, item.message].map((part) => [...part])
        expect(unpackBatch(packBatch(packed)).map(plain)).toEqual(packed.map(plain))
      }),
      { numRuns: 50 },
    )
  })

  test('cut or lengthened anywhere is refused, not misread', () => {
    const letter = packBatch([good, badKey])
    for (let size = 0; size < letter.byteLength; size += 1) {
      expect(() => unpackBatch(letter.slice(0, size))).toThrow(RangeError)
    }
    const longer = new Uint8Array(letter.byteLength + 1)
    longer.set(new Uint8Array(letter))
    expect(() => unpackBatch(longer.buffer)).toThrow(RangeError)
  })

  test('accepts no signature or key of another length', () => {
    expect(() => packBatch([{ ...good, signature: good.signature.subarray(1) }])).toThrow(RangeError)
    expect(() => packBatch([{ ...good, publicKey: good.signature }])).toThrow(RangeError)
  })

  test('is judged item by item, in order', () => {
    const verdicts = judgeBatch(chooseBackend(), unpackBatch(packBatch([badKey, good, badSignature, good])))
    expect([...verdicts]).toEqual([verdictBadKey, verdictGood, verdictBadSignature, verdictGood])
  })
})

describe('the verifier', () => {
  let verifier: Verifier
  beforeAll(async () => {
    verifier = await Verifier.start({ startPool: machine.startPool, threads: 2 })
  })
  afterAll(() => verifier.close())

  test('names the backend its threads use', () => {
    expect(verifier.backend).toBe(chooseBackend().name)
  })

  test('gives each of a thousand mixed signatures its own verdict, once', async () => {
    const kinds: readonly [SignatureItem, Verdict][] = [
      [good, 'good'],
      [badKey, 'bad_key'],
      [badSignature, 'bad_signature'],
      [signed(''), 'good'],
      [signed('x'.repeat(5_000)), 'good'],
    ]
    const asked = Array.from({ length: 1_000 }, (_, index) => kinds[(index * 7 + (index >> 3)) % kinds.length]!)
    const answers = await Promise.all(asked.map(([item]) => ask(verifier, item)))
    expect(answers).toEqual(asked.map(([, expected]) => expected))
    expect(verifier.waiting).toBe(0)
  })

  test('accepts views into a larger buffer, and leaves the bytes where they are', async () => {
    const large = Buffer.concat([Buffer.alloc(7), good.signature, good.publicKey, good.message])
    const before = Buffer.from(large)
    const item = {
      signature: large.subarray(7, 71),
      publicKey: large.subarray(71, 103),
      message: large.subarray(103),
    }
    expect(await ask(verifier, item)).toBe('good')
    expect(large.equals(before)).toBe(true)
  })

  test('accepts messages of megabytes beside small ones', async () => {
    const large = signed(Buffer.alloc(2_097_152, 7))
    const bent = { ...large, message: Buffer.alloc(2_097_152, 8) }
    const answers = await Promise.all([good, large, bent, large, good].map((item) => ask(verifier, item)))
    expect(answers).toEqual(['good', 'good', 'bad_signature', 'good', 'good'])
  })

  test('answers a wrong length immediately', () => {
    const told: Verdict[] = []
    verifier.verify(good.signature.subarray(1), publicKey, good.message, (verdict) => told.push(verdict))
    verifier.verify(good.signature, publicKey.subarray(1), good.message, (verdict) => told.push(verdict))
    expect(told).toEqual(['bad_signature', 'bad_key'])
  })

  test('may be called again from inside a callback', async () => {
    const told: Verdict[] = []
    await new Promise<void>((resolve) => {
      const again = (verdict: Verdict) => {
        told.push(verdict)
        if (told.length === 100) resolve()
        else verifier.verify(good.signature, publicKey, good.message, again)
      }
      again('good')
    })
    expect(new Set(told)).toEqual(new Set(['good']))
  })
})

describe('bounds', () => {
  test('a full queue answers overloaded immediately; accepted items are still answered', async () => {
    const verifier = await Verifier.start({ startPool: machine.startPool, threads: 1, waitingItemsMax: 5 })
    const asked = Array.from({ length: 50 }, () => ask(verifier, good))
    const answers = await Promise.all(asked)
    // Two batches of one go to the thread immediately, five wait, and the others get their answer now.
    expect(answers.filter((answer) => answer === 'good')).toHaveLength(7)
    expect(answers.filter((answer) => answer === 'overloaded')).toHaveLength(43)
    expect(await ask(verifier, good)).toBe('good')
    await verifier.close()
  })

  test('waiting bytes are bounded too', async () => {
    const verifier = await Verifier.start({ startPool: machine.startPool, threads: 1, waitingBytesMax: 10_000 })
    const large = signed('x'.repeat(4_000))
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(verifier, large)))
    expect(answers.filter((answer) => answer === 'good')).toHaveLength(4)
    expect(await ask(verifier, large)).toBe('good')
    await verifier.close()
  })
})

describe('shared with the calling thread', () => {
  const kinds: readonly [SignatureItem, Verdict][] = [
    [good, 'good'],
    [badKey, 'bad_key'],
    [badSignature, 'bad_signature'],
  ]

  const start = (besides: () => Promise<Verifier>) =>
    new SharedChecks(new ChecksHere(chooseBackend()), besides, systemClock)

  /** Checks that many in one turn; returns how many verdicts were there immediately, and all of them. */
  async function burst(shared: Checks, asked: readonly SignatureItem[]) {
    let told = 0
    const verdicts = asked.map(
      (item) =>
        new Promise<Verdict>((resolve) =>
          shared.verify(item.signature, item.publicKey, item.message, (verdict) => {
            told++
            resolve(verdict)
          }),
        ),
    )
    const atOnce = told
    return { atOnce, verdicts: await Promise.all(verdicts), told }
  }

  test('a lone signature has its verdict immediately, turn after turn, and starts no thread', async () => {
    const begin = vi.fn(() => Verifier.start({ startPool: machine.startPool, threads: 1 }))
    const shared = start(begin)
    for (const [item, expected] of kinds) {
      expect(await burst(shared, [item])).toMatchObject({ atOnce: 1, verdicts: [expected] })
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(begin).not.toHaveBeenCalled()
    await shared.close()
  })

  test('many in one turn each get their own verdict, most of them from a thread that is started once', async () => {
    const begin = vi.fn(() => Verifier.start({ startPool: machine.startPool, threads: 1, waitingItemsMax: 200 }))
    const shared = start(begin)
    const asked = Array.from({ length: 150 }, (_, index) => kinds[(index * 7 + (index >> 3)) % kinds.length]!)
    const items = asked.map(([item]) => item)
    await vi.waitFor(async () => {
      const { atOnce, verdicts } = await burst(shared, items)
      expect(verdicts).toEqual(asked.map(([, expected]) => expected))
      expect(atOnce).toBeGreaterThan(0)
      expect(atOnce).toBeLessThan(75)
    }, patience)
    expect(begin).toHaveBeenCalledTimes(1)
    await shared.close()
  })

  test('without that thread every signature is checked in the calling one', async () => {
    const beside = await Verifier.start({ startPool: machine.startPool, threads: 1 })
    await beside.close()
    for (const begin of [() => Promise.resolve(beside), () => Promise.reject(new Error('no thread'))]) {
      const shared = start(begin)
      for (let turn = 0; turn < 3; turn++) {
        const { verdicts } = await burst(
          shared,
          Array.from({ length: 100 }, () => good),
        )
        expect(new Set(verdicts)).toEqual(new Set(['good']))
        await new Promise((resolve) => setImmediate(resolve))
      }
      await shared.close()
    }
  })
})

describe('start and end', () => {
  test('close answers everything that was accepted, then refuses', async () => {
    const verifier = await Verifier.start({ startPool: machine.startPool, threads: 1 })
    const asked = Array.from({ length: 500 }, () => ask(verifier, good))
    await verifier.close()
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['good']))
    expect(await ask(verifier, good)).toBe('overloaded')
  })

  test('each backend can be requested by name', async () => {
    for (const backend of ['noble', 'openssl'] as const) {
      const verifier = await Verifier.start({ startPool: machine.startPool, threads: 1, backend })
      expect(verifier.backend).toBe(backend)
      const answers = await Promise.all([good, badKey, badSignature].map((item) => ask(verifier, item)))
      expect(answers).toEqual(['good', 'bad_key', 'bad_signature'])
      await verifier.close()
    }
  })

  test('a thread that finds no backend prevents the start, and says so', async () => {
    const starting = Verifier.start({ startPool: machine.startPool, threads: 2, backend: 'abacus' as BackendName })
    await expect(starting).rejects.toThrow('no Ed25519 backend works here')
  })

  test('when a thread dies its signatures are answered overloaded, and a new thread takes over', async () => {
    const events: VerifierEvent[] = []
    let pool: Piscina | undefined
    const run = vi.spyOn(Piscina.prototype, 'run').mockImplementationOnce(function (this: Piscina, ...given) {
      pool = this
      return this.run(...given)
    })
    const verifier = await Verifier.start({
      startPool: machine.startPool,
      threads: 1,
      backend: 'noble',
      report: (event) => events.push(event),
    })
    run.mockRestore()
    // Hashing 16 MiB in JavaScript keeps the thread busy far longer than it takes to end it.
    const large = signed(Buffer.alloc(16_777_216, 7))
    const asked = [large, large].map((item) => ask(verifier, item))
    await pool!.threads[0]!.terminate()
    expect(await Promise.all(asked)).toEqual(['overloaded', 'overloaded'])
    expect(new Set(events.map((event) => event.kind))).toEqual(new Set(['verify_thread_died']))
    expect(await ask(verifier, good)).toBe('good')
    expect(verifier.waiting).toBe(0)
    await verifier.close()
  })
})
