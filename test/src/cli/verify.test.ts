import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LeafClaims } from '../../../src/cli/leaf-claims.ts'
import { splitLines } from '../../../src/cli/lines.ts'
import { main } from '../../../src/cli/main.ts'
import { verifyCommand } from '../../../src/cli/verify.ts'
import { type ExportReport, verifyExport } from '../../../src/cli/verify-export.ts'
import { type PartReader, readOnThisThread, readOnThreads } from '../../../src/export-check/readers.ts'
import { machine } from '../../../src/platform.ts'
import { parseVkey } from '../../../storage/note.ts'
import { formatProofFile } from '../../../storage/proof-file.ts'
import { capturedTerminal } from './captured-terminal.ts'
import {
  ComposedExport,
  composedExport,
  composedLogKey,
  composedOrigin,
  composedServiceId,
  type Json,
  person,
} from './composed-export.ts'

const directory = mkdtempSync(join(tmpdir(), 'broadside-verify-'))
const pinned = ['--vkey', composedLogKey.vkey]
let files = 0

async function verifyBytes(bytes: Uint8Array | string, ...options: string[]) {
  files += 1
  const path = join(directory, `file-${files}`)
  writeFileSync(path, bytes)
  const terminal = capturedTerminal()
  const code = await main(['verify', path, ...options], terminal)
  return { code, ...terminal.said }
}

const text = (lines: readonly Json[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join('')

test('a good export verifies: signatures, ids, rotated keys, tombstones, leaves and the pinned checkpoint', async () => {
  const { code, out, err } = await verifyBytes(text(composedExport().lines()), ...pinned)
  expect(err).toBe('')
  expect(out).toMatch(/events +4\n/)
  expect(out).toMatch(/tombstones +1 /)
  expect(out).toMatch(/key rotations +1\n/)
  expect(out).toMatch(/signatures good +6\n/)
  expect(out).toMatch(
    /leaves +8; 6 are lines of this file, 2 other entries \(other kinds, and posts that the file leaves out\)\n/,
  )
  expect(out).toContain('verified, with the key you pinned')
  expect(out).not.toContain('numbers missing')
  expect(code).toBe(0)
})

test('a post that the file leaves out is one of the other entries, which the output and the help say', async () => {
  const lines = composedExport().lines()
  const left = lines.filter((_line, n) => n !== 0)
  const end = left.at(-1)!
  end.count = (end.count as number) - 1
  const { code, out } = await verifyBytes(text(left), ...pinned)
  expect([code, out]).toEqual([
    0,
    expect.stringContaining('5 are lines of this file, 3 other entries (other kinds, and posts that'),
  ])
  expect(out).toMatch(/^numbers missing +1 \(\S+ 1\): posts that expire have no line, and every other post of a room/m)
  expect(verifyCommand.notes!.join('\n')).toContain('It does not prove that a file has every post')
})

test('what is no export of messages is called what it is', async () => {
  const board = await verifyBytes('{"type":"board","version":1}\n{"type":"end","lines":1}\n', ...pinned)
  expect([board.code, board.err]).toEqual([
    3,
    expect.stringContaining(
      'line 1: this is the export of a whole board (stream=board), which only broadside import --as-it-was checks',
    ),
  ])
  const refusal = { ok: false, error: { code: 'not_found', message: 'the public log contains no event 00' } }
  const refused = await verifyBytes(JSON.stringify(refusal), ...pinned)
  expect([refused.code, refused.out, refused.err]).toEqual([
    3,
    '',
    expect.stringMatching(/contains no proof, but a refusal of the board: the public log contains no event 00\./),
  ])
})

test('threads give the same verdicts', async () => {
  expect(await verifyBytes(text(composedExport().lines()), ...pinned, '--threads', '2')).toMatchObject({ code: 0 })
  const lines = composedExport().lines()
  lines[0]!.signature = lines[1]!.signature
  const { code, err } = await verifyBytes(text(lines), ...pinned, '--threads', '2')
  expect(err).toContain('line 1: the author’s signature does not verify')
  expect(code).toBe(3)
})

describe('an export of many parts that threads read', () => {
  const made = new ComposedExport()
  const [ada, bob, newBob] = [person(1), person(2), person(3)]
  const long = 'a long text '.repeat(700)
  for (let n = 0; n < 40; n += 1) made.post(`${n} ${long}`, n % 2 === 0 ? ada : bob)
  made.rotate(bob, newBob)
  for (let n = 41; n < 80; n += 1)
    made.post(`${n} ${long}`, n % 2 === 0 ? ada : newBob, n % 2 === 0 ? {} : { id: bob.id })
  made.post('x'.repeat(200_000), ada)
  made.post('the last', ada)

  let reader: PartReader
  beforeAll(async () => {
    reader = await readOnThreads(2, machine.startPool)
  })
  afterAll(() => reader.close())

  const reportOf = async (lines: readonly Json[]): Promise<ExportReport> => {
    const file = async function* () {
      yield Buffer.from(text(lines))
    }
    const logKey = parseVkey(composedLogKey.vkey)
    if (!logKey.ok) throw new Error(logKey.problem)
    const options = { logKey: logKey.value, progress: () => {} }
    const report = await verifyExport({ ...options, lines: splitLines(file()), reader })
    expect(report).toEqual(await verifyExport({ ...options, lines: splitLines(file()), reader: readOnThisThread() }))
    return report
  }

  test('is valid', async () => {
    const whole = { lines: 111, events: 81, rotations: 1, signatures: 83, leaves: 82, failures: 0, isSignedByLog: true }
    expect(await reportOf(made.lines())).toMatchObject(whole)
  })

  const faults: readonly (readonly [string, (lines: Json[]) => void, number, string])[] = [
    [
      'its last event is another’s',
      (lines) => set(lines[81]!, { signature: lines[0]!.signature }),
      82,
      'does not verify',
    ],
    ['a place is that of the line before', (lines) => set(lines[60]!, { log: lines[59]!.log }), 61, 'is not leaf 59'],
    [
      'a key that was given up signs',
      (lines) => set(lines[41]!, { author: { ...(lines[41]!.author as Json), id: newBob.id } }),
      42,
      'author’s id',
    ],
    [
      'the rotation comes after what it explains',
      (lines) => void lines.splice(79, 0, ...lines.splice(40, 1)),
      41,
      'author’s id',
    ],
    ['an event is given twice', (lines) => void lines.splice(30, 0, lines[30]!), 0, 'counts 82 records; there are 83'],
    [
      'an event stands behind the leaves',
      (lines) => void lines.splice(83, 0, lines[30]!),
      84,
      'a record follows the leaves',
    ],
    ['an event stands behind the end', (lines) => void lines.push(lines[30]!), 0, 'a line follows the end line'],
  ]
  test.each(faults)('%s: the line is reported', async (_what, change, line, reason) => {
    const lines = made.lines()
    change(lines)
    const { first } = await reportOf(lines)
    expect(first).toEqual({ line: line === 0 ? lines.length : line, reason: expect.stringContaining(reason) })
  })
})

test('gzip is recognized by its bytes', async () => {
  const { code } = await verifyBytes(gzipSync(text(composedExport().lines())), ...pinned)
  expect(code).toBe(0)
})

test('a truncated export is reported, with what to do', async () => {
  const whole = gzipSync(text(composedExport().lines()))
  const { code, err } = await verifyBytes(whole.subarray(0, whole.length - 200), ...pinned)
  expect(err).toContain('cannot be read to its end (unexpected end of file). Get the complete file')
  expect(code).toBe(1)
})

test('without a key the output says plainly that the checkpoint’s signature was not checked, and verify fails', async () => {
  const { code, out, err } = await verifyBytes(text(composedExport().lines()))
  expect(out).toContain('signature NOT CHECKED')
  expect(err).toContain('NOT VERIFIED: no key was pinned')
  expect(code).toBe(3)
  const json = await verifyBytes(text(composedExport().lines()), '--json', ...pinned)
  expect([json.code, JSON.parse(json.out)]).toMatchObject([0, { events: 4, failures: 0, pinned: true, leaves: 8 }])
  const accepted = await verifyBytes(text(composedExport().lines()), '--unpinned')
  expect(accepted).toMatchObject({ code: 0, err: '' })
})

test('a filtered export reports that inclusion was not checked, and still checks signatures and ids', async () => {
  const lines = composedExport().lines().slice(0, 2)
  const good = await verifyBytes(text(lines), ...pinned)
  expect(good).toMatchObject({ code: 0, out: expect.stringContaining('NOT CHECKED: a filtered or paged export') })
  lines[1]!.signature = lines[0]!.signature
  expect(await verifyBytes(text(lines), ...pinned)).toMatchObject({ code: 3 })
})

/** Each tampering: what is done, the line that must be named (1-based; 0 = the file's last), a word of the reason. */
const other = composedExport()
const tamperings: readonly (readonly [string, (lines: Json[]) => void, number, string])[] = [
  ['a text is changed', (lines) => set(lines[0]!, { text: 'First' }), 1, 'text shown'],
  ['a text is changed in both places', (lines) => changePayload(lines[0]!, 'first', 'First'), 1, 'command_sha256'],
  [
    'a signature is another’s',
    (lines) => set(lines[0]!, { signature: lines[1]!.signature }),
    1,
    'signature does not verify',
  ],
  [
    'a signature is not canonical',
    (lines) => set(lines[0]!, { signature: `${String(lines[0]!.signature).slice(0, 85)}B` }),
    1,
    '86',
  ],
  ['an author is changed', (lines) => set(lines[0]!, { author: lines[1]!.author }), 1, 'a key other'],
  [
    'an author’s id is changed',
    (lines) => set(lines[0]!, { author: { ...(lines[0]!.author as Json), id: person(9).id } }),
    1,
    'author’s id',
  ],
  ['a room is changed', (lines) => set(lines[0]!, { room: 'attic' }), 1, 'room shown'],
  ['a reply is moved', (lines) => set(lines[1]!, { reply_to: lines[5]!.event_id }), 2, 'reply_to shown'],
  ['a seq is changed', (lines) => set(lines[0]!, { seq: 9 }), 1, 'is not leaf 0'],
  ['a time is changed', (lines) => set(lines[0]!, { created_at: 1 }), 1, 'is not leaf 0'],
  ['an event id is changed', (lines) => set(lines[0]!, { event_id: '0'.repeat(32) }), 1, 'event_id'],
  [
    'a place in the log is changed',
    (lines) => set(lines[0]!, { log: { ...(lines[0]!.log as Json), index: 1 } }),
    1,
    'is not leaf 1',
  ],
  [
    'a place is beyond the log',
    (lines) => set(lines[0]!, { log: { ...(lines[0]!.log as Json), index: 1e15 } }),
    1,
    'beyond',
  ],
  ['a tombstone’s room is changed', (lines) => set(lines[4]!, { room: 'attic' }), 5, 'is not leaf'],
  ['a tombstone keeps its text', (lines) => set(lines[4]!, { text: 'still here' }), 5, 'tombstone'],
  [
    'the rotation lacks the new key’s signature',
    (lines) => set(lines[2]!, { proof: lines[2]!.signature }),
    3,
    'new key’s',
  ],
  ['an end is put on it', (lines) => set(lines[0]!, { expires_at: 1 }), 1, 'expires_at, which no line'],
  ['a version is put on it', (lines) => set(lines[0]!, { version_id: '0'.repeat(32) }), 1, 'version_id, which no line'],
  ['an end is put on a tombstone', (lines) => set(lines[4]!, { expires_at: 1 }), 5, 'expires_at, which no line'],
  ['the rotation is gone', (lines) => dropRecord(lines, 2), 3, 'author’s id'],
  ['an event is gone', (lines) => void lines.splice(0, 1), 0, 'counts 6 records; there are 5'],
  ['a line is not JSON', (lines) => set(lines[1]!, { toJSON: () => undefined }), 2, 'not strict JSON'],
  ['a type is unknown', (lines) => set(lines[1]!, { type: 'note' }), 2, 'type'],
  ['a leaf is changed', (lines) => changeLeaf(lines, 2), 0, 'root of the leaves'],
  ['a leaf that a line names is changed', (lines) => changeLeaf(lines, 0), 1, 'is not leaf 0'],
  ['leaves are missing', (lines) => void lines.splice(7, 1), 8, 'the leaves begin at 6'],
  ['the log is another', (lines) => set(lines[6]!, { origin: 'else.example/log/2026a' }), 7, 'else.example'],
  ['the end is cut off', (lines) => void lines.pop(), 0, 'cut short'],
  ['a line follows the end', (lines) => void lines.push(lines[0]!), 0, 'follows the end'],
  ['the checkpoint covers fewer leaves', (lines) => fewerLeaves(lines), 0, 'checkpoint covers 7 leaves'],
  ['the checkpoint is not a note', (lines) => set(lines.at(-1)!, { checkpoint: 'x' }), 0, 'cannot be read'],
  ['the checkpoint’s signature is broken', (lines) => breakCheckpoint(lines), 0, 'does not verify'],
]

function set(line: Json, fields: Json): void {
  Object.assign(line, fields)
}

function changePayload(line: Json, from: string, to: string): void {
  line.text = to
  line.signed_payload = String(line.signed_payload).replace(from, to)
}

function dropRecord(lines: Json[], index: number): void {
  lines.splice(index, 1)
  lines.at(-1)!.count = (lines.at(-1)!.count as number) - 1
}

function changeLeaf(lines: Json[], index: number): void {
  const line = lines[6]!
  const hashes = Buffer.from(String(line.hashes), 'base64')
  hashes[index * 32] = hashes[index * 32]! ^ 1
  line.hashes = hashes.toString('base64')
}

function fewerLeaves(lines: Json[]): void {
  const smaller = composedExport()
  smaller.entries.pop()
  lines.at(-1)!.checkpoint = smaller.checkpoint()
}

function breakCheckpoint(lines: Json[]): void {
  const note = String(lines.at(-1)!.checkpoint)
  // The last base64 group carries signature bytes only.
  lines.at(-1)!.checkpoint = note.replace(/(.)(..\n)$/, (_, a: string, rest: string) => (a === 'A' ? 'B' : 'A') + rest)
}

test.each(tamperings)('%s: exit code 3 with the line and the reason', async (_, tamper, line, reason) => {
  const lines = other.lines()
  tamper(lines)
  const { code, err, out } = await verifyBytes(text(lines), ...pinned)
  expect(err).toContain(reason)
  expect(err).toMatch(new RegExp(`^NOT VERIFIED: .*, line ${line === 0 ? lines.length : line}: `))
  expect(out).not.toMatch(/failures +0\n/)
  expect(code).toBe(3)
})

test('a value that is not a string where one is required is a fault of its line, wherever it is', async () => {
  const odd = { toString: 1, valueOf: 1 }
  const lines = composedExport().lines()
  const payloads = [
    { service: odd, command: {} },
    { version: 1, service: composedServiceId, command: { operation: [odd] } },
  ]
  for (const payload of payloads) {
    const signed_payload = JSON.stringify(payload)
    const behindTheEnd = [...lines, { type: 'event', signed_payload }]
    expect((await verifyBytes(text(behindTheEnd), ...pinned)).err).toContain(
      `line ${behindTheEnd.length}: a line follows`,
    )
    const first = [{ ...lines[0], signed_payload }, ...lines.slice(1)]
    expect((await verifyBytes(text(first), ...pinned)).err).toMatch(/line 1: (the signed_payload|command_sha256)/)
  }
  const counted = lines.with(-1, { ...lines.at(-1), count: odd })
  expect((await verifyBytes(text(counted), ...pinned)).err).toContain(
    'the end line counts {"toString":1,"valueOf":1} records',
  )
  const leaves = lines.map((line) => (line.type === 'leaves' ? { ...line, start: odd } : line))
  expect((await verifyBytes(text(leaves), ...pinned)).err).toContain('the leaves begin at {"toString":1,"valueOf":1}')
})

test('a duplicate field is detected: another reader might take the first of the two', async () => {
  const twice = (json: string, first: string): string => json.replace('{', `{${first},`)
  const lines = text(other.lines())
  const reason = expect.stringContaining('line 1: the line is not strict JSON: key "text" is given twice')
  expect(await verifyBytes(twice(lines, '"text":"evil"'), ...pinned)).toMatchObject({ code: 3, err: reason })
  const inside = lines.replace('"author":{', '"author":{"handle":"a","handle":"b",')
  expect(await verifyBytes(inside, ...pinned)).toMatchObject({ code: 3 })
  const proof = JSON.stringify(other.proof(other.records[0]!), null, 2)
  const found = expect.stringContaining('key "event_id" is given twice')
  expect(await verifyBytes(twice(proof, '"event_id":"evil"'), ...pinned)).toMatchObject({ code: 3, err: found })
})

test('content of a line is reported on one line, inert and shortened', async () => {
  const hostile = `\u001b[31m\u202e\nfailures 0${'x'.repeat(100_000)}`
  const lines = other.lines()
  set(lines[0]!, { log: { ...(lines[0]!.log as Json), origin: hostile } })
  const { code, err } = await verifyBytes(text(lines), ...pinned)
  expect(code).toBe(3)
  expect(err.split('\n')).toEqual([expect.stringContaining('the log \\u{1b}[31m\\u{202e}\\u{a}failures 0xxx'), ''])
  expect(err.length).toBeLessThan(1_000)
})

test('a checkpoint by another log’s key of the same name is refused', async () => {
  const { createNoteKey } = await import('../../../storage/note-signer.ts')
  const { vkey } = createNoteKey(composedOrigin, Buffer.alloc(32, 0x12))
  const { code, err } = await verifyBytes(text(other.lines()), '--vkey', vkey)
  expect(err).toContain('no known key has signed')
  expect(code).toBe(3)
})

test('whatever single byte of an export is changed, verification does not give the same result', async () => {
  const lines = other.lines()
  const good = Buffer.from(text(lines))
  const positions = Array.from({ length: 400 }, (_, n) => Math.floor((good.length * (n + 0.5)) / 400))
  const changedFields = new Set<string>()
  for (const at of positions) {
    const bytes = Buffer.from(good)
    bytes[at] = bytes[at]! ^ 0x01
    const { code } = await verifyBytes(bytes, ...pinned)
    if (code === 0) changedFields.add(fieldAt(good, at))
  }
  // Nobody signs these: they are the board's word. For a tombstone, so are the author and the reason.
  const boardClaims = ['thread', 'hidden', 'archive_eligible']
  const ofTombstones = ['author', 'kind', 'reason', 'page', 'thread', 'hidden', 'archive_eligible']
  const allowed = [...boardClaims.map((name) => `event ${name}`), ...ofTombstones.map((name) => `tombstone ${name}`)]
  expect([...changedFields].filter((field) => !allowed.includes(field))).toEqual([])
})

/** Type of the line and the name of its top-level field that contains a byte. */
function fieldAt(bytes: Buffer, at: number): string {
  const start = bytes.lastIndexOf(10, at - 1) + 1
  const line = JSON.parse(bytes.subarray(start, bytes.indexOf(10, at)).toString('utf8')) as Json
  let end = start
  for (const [name, value] of Object.entries(line)) {
    end += Buffer.byteLength(JSON.stringify({ [name]: value })) - 1
    if (end > at) return `${line.type} ${name}`
  }
  return `${line.type} end`
}

test('a proof answer verifies, with its own key or a pinned one, enveloped or bare', async () => {
  for (const record of other.records.filter(({ type }) => type === 'event')) {
    const proof = other.proof(record)
    const bare = await verifyBytes(JSON.stringify(proof, null, 2), '--unpinned')
    expect(bare).toMatchObject({ code: 0, err: '', out: expect.stringContaining('not pinned') })
    expect(await verifyBytes(JSON.stringify(proof))).toMatchObject({ code: 3, err: expect.stringContaining('--vkey') })
    const enveloped = await verifyBytes(JSON.stringify({ ok: true, data: proof }), ...pinned)
    expect(enveloped.out).toContain('with the key you pinned')
    expect(enveloped.out).toContain('hash to the entry: verified')
  }
})

test.each<[string, (proof: Json) => void]>([
  ['event', (proof) => set(proof, { event_id: other.records[1]!.event_id })],
  ['index', (proof) => set(proof, { leaf_index: 1 })],
  ['leaf hash', (proof) => set(proof, { leaf_hash: '0'.repeat(64) })],
  ['entry', (proof) => set(proof, { entry: other.proof(other.records[1]!).entry })],
  ['size', (proof) => set(proof, { tree_size: 9 })],
  ['root', (proof) => set(proof, { root_hash: '0'.repeat(64) })],
  ['path', (proof) => void (proof.inclusion_path as string[]).pop()],
  ['path order', (proof) => void (proof.inclusion_path as string[]).reverse()],
  ['signed bytes', (proof) => set(proof, { signed_payload: other.records[1]!.signed_payload })],
  ['checkpoint', (proof) => set(proof, { checkpoint: String(proof.checkpoint).replace('\n8\n', '\n7\n') })],
])('a proof with another %s does not verify: exit code 3', async (_, tamper) => {
  const proof = other.proof(other.records[0]!)
  tamper(proof)
  expect(await verifyBytes(JSON.stringify(proof), ...pinned)).toMatchObject({ code: 3 })
})

test('a tlog-proof file with the entry as extra data verifies against a given key, and not without one', async () => {
  const proof = other.proof(other.records[0]!)
  const file = formatProofFile({
    extra: Buffer.from(String(proof.entry), 'base64'),
    index: proof.leaf_index as number,
    path: (proof.inclusion_path as string[]).map((hash) => Buffer.from(hash, 'hex')),
    checkpoint: String(proof.checkpoint),
  })
  expect(await verifyBytes(file, ...pinned)).toMatchObject({ code: 0, err: '' })
  expect(await verifyBytes(file)).toMatchObject({ code: 2, err: expect.stringContaining('--vkey') })
  expect(await verifyBytes(file.replace('index 0', 'index 1'), ...pinned)).toMatchObject({ code: 3 })
})

test('claims on leaves are compared alike in whatever order they were made', () => {
  const hashOf = (n: number): Buffer => Buffer.alloc(32, n % 251)
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(299), fc.boolean()), { maxLength: 200 }),
      fc.integer({ min: 1, max: 80 }),
      (claims, step) => {
        const all = new LeafClaims()
        for (const [k, [index, isRight]] of claims.entries()) all.add(index, hashOf(isRight ? index : index + 1), k + 1)
        all.sort()
        const wrong: number[] = []
        let compared = 0
        for (; compared < 200; compared += step) {
          const hashes = Buffer.concat(Array.from({ length: step }, (_, n) => hashOf(compared + n)))
          all.compare(compared, hashes, (line) => wrong.push(line))
        }
        const beyond: number[] = []
        all.remaining((line) => beyond.push(line))
        const expected = [...claims.entries()]
        const byNumber = (a: number, b: number): number => a - b
        expect(wrong.sort(byNumber)).toEqual(expected.filter(([, [i, ok]]) => i < compared && !ok).map(([k]) => k + 1))
        expect(beyond.sort(byNumber)).toEqual(expected.filter(([, [i]]) => i >= compared).map(([k]) => k + 1))
      },
    ),
  )
})
