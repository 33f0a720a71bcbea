import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { formatAddCheckpoint, parseAddCheckpoint } from '../../../src/log/witness/add-checkpoint.ts'
import { WitnessRound } from '../../../src/log/witness/round.ts'
import { Witness } from '../../../src/log/witness/witness.ts'
import { formatCheckpoint, openCheckpoint } from '../../../storage/checkpoint.ts'
import { privateKeyOf, rawPublicKeyOf } from '../../../storage/ed25519.ts'
import { machineDisk } from '../../../storage/machine-disk.ts'
import { consistencyPathOf, leafHash, type NodeReader, nodeHash, rootOf } from '../../../storage/merkle.ts'
import { formatVkey, KEY_TYPE, parseVkey, signNote, type VerifierKey } from '../../../storage/note.ts'
import { createNoteKey } from '../../../storage/note-signer.ts'
import { parsePolicy } from '../../../storage/tlog-policy.ts'
import { patience } from '../../support/patience.ts'
import { scratchDirectory } from '../../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000 })

const origin = 'board.example/log/2026a'
const logKey = createNoteKey(origin, Buffer.alloc(32, 0x11))
const otherKey = createNoteKey(origin, Buffer.alloc(32, 0x22))

/** Node hashes of a log whose entries are bytes; from leaf `fork` on they differ. */
function nodesOf(fork = Number.POSITIVE_INFINITY): NodeReader {
  const read: NodeReader = (level, index) =>
    level === 0
      ? leafHash(Buffer.of(index, index >= fork ? 1 : 0))
      : nodeHash(read(level - 1, 2 * index), read(level - 1, 2 * index + 1))
  return read
}

const headOf = (size: number, { fork, key = logKey }: { fork?: number; key?: typeof logKey } = {}): string =>
  signNote(formatCheckpoint({ origin, size, root: rootOf(nodesOf(fork), size) }), key.signer)

const request = (old: number, size: number, of: { fork?: number; key?: typeof logKey } = {}): string =>
  formatAddCheckpoint({
    old,
    path: old === 0 || old >= size ? [] : consistencyPathOf(nodesOf(of.fork), old, size),
    checkpoint: headOf(size, of),
  })

const keyOf = (vkey: string): VerifierKey => {
  const parsed = parseVkey(vkey)
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.value
}

function newWitness(directory = scratchDirectory(), now = () => 1_790_000_000): Witness {
  const logs = [{ key: keyOf(logKey.vkey), url: undefined }]
  return new Witness({
    disk: machineDisk,
    directory,
    name: 'witness.example/w1',
    seed: Buffer.alloc(32, 0x33),
    logs,
    now,
  })
}

describe('a witness', () => {
  test('signs each larger consistent head once it is on disk, and nothing else', () => {
    const directory = scratchDirectory()
    const witness = newWitness(directory)
    const first = witness.addCheckpoint(request(0, 3))
    expect(first.status).toBe(200)
    const key = keyOf(witness.vkey)
    expect(key.type).toBe(KEY_TYPE.cosignature)
    const signed = openCheckpoint(`${headOf(3)}${first.body}`, keyOf(logKey.vkey), [key])
    expect(signed.ok && signed.value.signedBy.map(({ name }) => name)).toEqual([origin, 'witness.example/w1'])
    expect(witness.addCheckpoint(request(3, 8)).status).toBe(200)
    expect(witness.addCheckpoint(request(8, 8)).status).toBe(200)
    expect(witness.addCheckpoint(request(3, 8))).toEqual({ status: 409, body: '8\n' })
    expect(witness.addCheckpoint(request(0, 9))).toEqual({ status: 409, body: '8\n' })
    expect(newWitness(directory).addCheckpoint(request(3, 8))).toEqual({ status: 409, body: '8\n' })
    expect(newWitness(directory).addCheckpoint(request(8, 20)).status).toBe(200)
  })

  test('answers every wrong request as the table says', () => {
    const witness = newWitness()
    expect(witness.addCheckpoint(request(0, 5)).status).toBe(200)
    expect(witness.addCheckpoint('nonsense').status).toBe(400)
    expect(witness.addCheckpoint(request(5, 8).replace('old 5', 'old 05')).status).toBe(400)
    expect(witness.addCheckpoint(formatAddCheckpoint({ old: 9, path: [], checkpoint: headOf(5) })).status).toBe(400)
    expect(witness.addCheckpoint(request(5, 8, { key: otherKey })).status).toBe(403)
    expect(witness.addCheckpoint(request(5, 8).replaceAll(origin, 'board.example/log/2027a')).status).toBe(404)
    expect(witness.addCheckpoint(request(5, 8, { fork: 2 })).status).toBe(422)
    expect(witness.addCheckpoint(request(5, 5, { fork: 2 })).status).toBe(422)
    const withProof = formatAddCheckpoint({ old: 0, path: [Buffer.alloc(32)], checkpoint: headOf(3) })
    expect(newWitness().addCheckpoint(withProof).status).toBe(422)
    expect(witness.addCheckpoint(request(5, 8)).status).toBe(200)
  })

  test('parses a request as it was written', () => {
    const parsed = parseAddCheckpoint(request(3, 8))
    expect(parsed.ok && formatAddCheckpoint(parsed.value)).toBe(request(3, 8))
  })
})

describe('a log that offers its heads', () => {
  const servers: Server[] = []
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    }
  })

  /** Serves `judge` as a witness at its own address. */
  async function serve(judge: (body: string) => { status: number; body: string } | undefined): Promise<string> {
    const server = createServer((asked, response) => {
      const chunks: Buffer[] = []
      asked.on('data', (chunk: Buffer) => chunks.push(chunk))
      asked.on('end', () => {
        const given = judge(Buffer.concat(chunks).toString())
        if (given !== undefined) response.writeHead(given.status).end(given.body)
      })
    })
    servers.push(server)
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  type Asked = { fork?: number; kept?: string; timeoutMs?: number }
  function roundOf(
    witnesses: readonly { key: VerifierKey; url: string }[],
    { fork, kept = '', timeoutMs = patience.timeout }: Asked = {},
  ) {
    const rollbacks: string[] = []
    const round = new WitnessRound({
      witnesses: witnesses.map((witness, n) => ({ name: `w${n}`, ...witness })),
      consistency: (from, to) => Promise.resolve(consistencyPathOf(nodesOf(fork), from, to)),
      onRollback: (problem) => rollbacks.push(problem),
      kept,
      onPublished: () => {},
      now: () => 1_790_000_000,
      timers: systemClock,
      timeoutMs,
      paceMs: 1,
    })
    return { round, rollbacks }
  }

  test('serves the cosignatures of those who signed, and learns the size that each of them has', async () => {
    const witness = newWitness()
    witness.addCheckpoint(request(0, 3))
    const url = await serve((body) => witness.addCheckpoint(body))
    const key = keyOf(witness.vkey)
    const { round } = roundOf([{ key, url }])
    await round.first(headOf(8))
    const opened = openCheckpoint(round.published, keyOf(logKey.vkey), [key])
    expect(opened.ok && opened.value.signedBy).toHaveLength(2)
    round.note(headOf(20))
    await vi.waitFor(() => expect(round.published).toContain('\n20\n'), patience)
    expect(openCheckpoint(round.published, keyOf(logKey.vkey), [key]).ok).toBe(true)
    await round.close()
  })

  test('is not held up by witnesses that are dead, silent, lying or verbose, and serves none of their lines', async () => {
    const honest = newWitness()
    const key = keyOf(honest.vkey)
    const lie = await serve((body) => {
      const given = newWitness().addCheckpoint(body)
      return { ...given, body: given.body.replace(/.{8}\n$/, 'AAAAAAA=\n') }
    })
    const witnesses = [
      { key, url: 'http://127.0.0.1:9' },
      { key, url: await serve(() => undefined) },
      { key, url: lie },
      { key, url: await serve(() => ({ status: 200, body: 'x'.repeat(1_000_000) })) },
      { key, url: await serve(() => ({ status: 500, body: '' })) },
      { key, url: await serve(() => ({ status: 409, body: '2\n' })) },
      { key, url: await serve((body) => honest.addCheckpoint(body)) },
    ]
    // The silent one is waited for until the timeout; if the honest one took longer than that, both get more time.
    const served = async (timeoutMs: number) => {
      const { round, rollbacks } = roundOf(witnesses, { timeoutMs })
      await round.first(headOf(8))
      await round.close()
      expect(rollbacks).toEqual([])
      return round
    }
    let round = await served(2_500)
    if (round.standings.at(-1)!.answer === 'silent') round = await served(20_000)
    const opened = openCheckpoint(round.published, keyOf(logKey.vkey), [key])
    expect(opened.ok && opened.value.signedBy).toHaveLength(2)
    expect(round.published.trimEnd().split('\n')).toHaveLength(6)
  })

  test('serves cosignatures from before a restart while the head is the same, even if the witness is away', async () => {
    const witness = newWitness()
    const key = keyOf(witness.vkey)
    const first = roundOf([{ key, url: await serve((body) => witness.addCheckpoint(body)) }])
    await first.round.first(headOf(8))
    const kept = first.round.published
    expect(first.round.standings).toMatchObject([
      { answer: 'signed', problem: '', signedSize: 8, signedAt: 1_790_000_000 },
    ])
    await first.round.close()
    const away = roundOf([{ key, url: 'http://127.0.0.1:9' }], { kept })
    await away.round.first(headOf(8))
    expect(away.round.published).toBe(kept)
    expect(away.round.standings).toMatchObject([{ answer: 'silent', signedSize: 8 }])
    expect(away.round.isComplete).toBe(true)
    await away.round.first(headOf(9))
    expect(away.round.published).toBe(headOf(9))
    expect(away.round.isComplete).toBe(false)
    await away.round.close()
    // A line that was altered on disk is not served.
    const changed = kept.replace(/.{8}\n$/, 'AAAAAAA=\n')
    const broken = roundOf([{ key, url: 'http://127.0.0.1:9' }], { kept: changed })
    await broken.round.first(headOf(8))
    expect(broken.round.published).toBe(headOf(8))
    await broken.round.close()
  })

  test('reports the outcome of each answer', async () => {
    const key = keyOf(newWitness().vkey)
    const answers = [
      [400, 'nonsense\n', 'refused', 'it answered 400'],
      [403, '', 'refused', 'it answered 403'],
      [404, '', 'refused', 'it answered 404'],
      [409, 'soon\n', 'refused', 'it answered 409 without its size'],
      [409, '03\n', 'refused', 'it answered 409 without its size'],
      [409, '0\n', 'refused', 'names the size 0 that it was offered'],
      [422, '', 'refused', 'it answered 422'],
      [429, '', 'refused', 'it answered 429'],
      [500, '', 'refused', 'it answered 500'],
      [200, '', 'false', 'its signature does not verify'],
      [200, 'no signature line\n', 'false', 'its signature does not verify'],
    ] as const
    const witnesses = await Promise.all(
      answers.map(async ([status, body]) => ({ key, url: await serve(() => ({ status, body })) })),
    )
    const { round, rollbacks } = roundOf(witnesses)
    await round.first(headOf(8))
    expect(round.standings.map(({ answer, problem }) => [answer, problem])).toEqual(
      answers.map(([, , answer, problem]) => [answer, expect.stringContaining(problem)]),
    )
    expect([round.published, rollbacks]).toEqual([headOf(8), []])
    await round.close()
  })

  test('offers only the newest of the heads that arrive meanwhile, and serves none that was not offered', async () => {
    const witness = newWitness()
    const offered: number[] = []
    const url = await serve((body) => {
      offered.push(Number(new RegExp(`${origin}\n(\\d+)\n`).exec(body)![1]))
      return witness.addCheckpoint(body)
    })
    const { round } = roundOf([{ key: keyOf(witness.vkey), url }])
    await round.first(headOf(3))
    for (let size = 4; size <= 20; size++) round.note(headOf(size))
    expect(round.published).toContain('\n3\n')
    await vi.waitFor(() => expect(round.published).toContain('\n20\n'), patience)
    expect(offered).toEqual([3, 20])
    await round.close()
  })

  test('offers the same head again now and then, so that its cosigned time is fresh', async () => {
    let seconds = 1_790_000_000
    const witness = newWitness(scratchDirectory(), () => seconds)
    const round = new WitnessRound({
      witnesses: [{ name: 'w', key: keyOf(witness.vkey), url: await serve((body) => witness.addCheckpoint(body)) }],
      consistency: () => Promise.reject(new Error('the same size needs no proof')),
      onRollback: () => {},
      kept: '',
      onPublished: () => {},
      now: () => seconds,
      timers: systemClock,
      paceMs: 1,
      refreshMs: 5,
    })
    await round.first(headOf(8))
    seconds += 600
    await vi.waitFor(() => expect(round.standings[0]!.signedAt).toBe(seconds), patience)
    await round.close()
  })

  test('learns from a witness that it has signed a larger or a different head', async () => {
    const ahead = newWitness()
    ahead.addCheckpoint(request(0, 9))
    const url = await serve((body) => ahead.addCheckpoint(body))
    const key = keyOf(ahead.vkey)
    const behind = roundOf([{ key, url }])
    await behind.round.first(headOf(8))
    expect(behind.rollbacks).toEqual([
      expect.stringContaining('w0 has signed a head of 9 entries of this log, which has 8'),
    ])
    const forked = roundOf([{ key, url }], { fork: 2 })
    await forked.round.first(headOf(9, { fork: 2 }))
    expect(forked.rollbacks).toEqual([expect.stringContaining('has signed a different root for the same size')])
  })
})

describe('a policy', () => {
  test('a file that is none is not quoted, because it may be a key file that was named by mistake', () => {
    const policy = parsePolicy(`{"seed":"${'5a'.repeat(32)}"}`)
    expect(policy).toEqual({
      ok: false,
      problem: 'line 1: a line must begin with log, witness, group or quorum',
    })
  })

  const w1 = newWitnessKey('witness.example/w1', 1)
  const w2 = newWitnessKey('witness.example/w2', 2)
  const w3 = newWitnessKey('witness.example/w3', 3)
  const text = [
    '# what we trust',
    `log ${logKey.vkey} https://board.example/log/2026a`,
    `witness a ${w1} https://one.example`,
    `witness b ${w2}`,
    `witness c ${w3} https://three.example`,
    'group two 2 a b c',
    'group outer all two a',
    'quorum outer',
  ]

  test('says which cosignatures are enough', () => {
    const policy = parsePolicy(text.join('\n'))
    if (!policy.ok) throw new Error(policy.problem)
    const [a, b, c] = policy.value.witnesses.map(({ key }) => key) as [VerifierKey, VerifierKey, VerifierKey]
    expect(policy.value.isMet([a, b])).toBe(true)
    expect(policy.value.isMet([a, c])).toBe(true)
    expect(policy.value.isMet([b, c])).toBe(false)
    expect(policy.value.isMet([a])).toBe(false)
    expect(policy.value.logs[0]!.url).toBe('https://board.example/log/2026a')
    const none = parsePolicy(`log ${logKey.vkey}\nquorum none\n`)
    expect(none.ok && none.value.isMet([])).toBe(true)
  })

  test('that is invalid is refused with its line', () => {
    for (const [at, line, problem] of [
      [1, 'log nonsense', 'line 2: '],
      [4, `witness a ${w2}`, 'the name a is already used'],
      [5, 'group two 4 a b c', 'cannot require "4"'],
      [5, 'group two 2 a b x', 'is named x'],
      [7, 'quorum nobody', 'is named nobody'],
      [7, 'quota 3', 'must begin with log'],
      [7, '', 'quorum'],
    ] as const) {
      const wrong = parsePolicy(text.with(at, line).join('\n'))
      expect(wrong.ok).toBe(false)
      expect(!wrong.ok && wrong.problem).toContain(problem)
    }
  })
})

function newWitnessKey(name: string, fill: number): string {
  const publicKey = rawPublicKeyOf(privateKeyOf(Buffer.alloc(32, fill)))
  return formatVkey({ name, type: KEY_TYPE.cosignature, publicKey })
}
