/** What the clients check without a board: proofs, exports, and key files with a passphrase; the same in JavaScript and Python. */
import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test, vi } from 'vitest'
import {
  createKey,
  importKey,
  keyFromPair,
  keyFromSeed,
  NotVerified,
  solveProof,
  verifyExport,
  verifyProof,
} from '../../../src/client/broadside.ts'
import { createNoteKey } from '../../../storage/note-signer.ts'
import { missingProgram, skipNote, skipWithout } from '../../peers/peers.ts'
import { runPython } from '../../support/run-python.ts'
import { composedExport, composedLogKey, composedOrigin, type Json } from '../cli/composed-export.ts'

vi.setConfig({ testTimeout: 300_000 })

const missing = missingProgram('python3')
const { vkey } = composedLogKey
const other = createNoteKey(composedOrigin, Buffer.alloc(32, 0x12)).vkey
const linesOf = (lines: readonly Json[]) => lines.map((line) => JSON.stringify(line))

const set = (of: Json, change: Json) => void Object.assign(of, change)

/** Why it does not verify; '' if it does. */
const faultOf = async (act: () => Promise<unknown>): Promise<string> => {
  try {
    await act()
    return ''
  } catch (error) {
    if (error instanceof NotVerified) return error.message
    throw error
  }
}

/** A change to a valid export, and the error it causes; '' for data that nobody signs. */
const changes: readonly (readonly [what: string, change: (lines: Json[]) => void, fault: RegExp])[] = [
  ['nothing', () => {}, /^$/],
  ['a text', (lines) => set(lines[0]!, { text: 'another' }), /^line 1: the text is not what was signed/],
  ['a room', (lines) => set(lines[0]!, { room: 'den' }), /^line 1: the room is not what was signed/],
  ['an author', (lines) => set(lines[0]!, { author: lines[1]!.author }), /^line 1: the signed bytes name a key other/],
  ['an id', (lines) => set(lines[0]!, { event_id: lines[1]!.event_id }), /^line 1: event_id is not/],
  [
    'a signature',
    (lines) => set(lines[0]!, { signature: lines[1]!.signature }),
    /^line 1: a signature does not verify/,
  ],
  ['a time', (lines) => set(lines[0]!, { created_at: 5 }), /^line 1: its entry is not leaf/],
  ['a number in the room', (lines) => set(lines[0]!, { seq: 9 }), /^line 1: its entry is not leaf/],
  ['a line in no log', (lines) => set(lines[0]!, { log: { state: 'none' } }), /^line 1: log names no leaf/],
  [
    'a text of a tombstone',
    (lines) => set(lines.find(({ type }) => type === 'tombstone')!, { text: 'another' }),
    /^line \d+: a tombstone still has its text/,
  ],
  ['a line less', (lines) => void lines.splice(0, 1), /^$/],
  ['no end', (lines) => void lines.pop(), /^the export is not complete/],
  ['a line behind the end', (lines) => void lines.push(lines[0]!), /a line follows the end/],
  [
    'leaves',
    (lines) => {
      const leaves = lines.find(({ type }) => type === 'leaves')!
      const bytes = Buffer.from(String(leaves.hashes), 'base64')
      bytes[0]! ^= 1
      leaves.hashes = bytes.toString('base64')
    },
    /the root of the leaves is not/,
  ],
]

test.each(changes)('an export with a change of %s', async (_what, change, fault) => {
  const lines = composedExport().lines()
  change(lines)
  expect(await faultOf(() => verifyExport(linesOf(lines), { vkey }))).toMatch(fault)
})

test('a valid export has its counts; with the key of another log it is invalid', async () => {
  const lines = composedExport().lines()
  const facts = await verifyExport(linesOf(lines), { vkey })
  expect(facts).toEqual({ events: 4, tombstones: 1, leaves: 8, origin: composedOrigin, size: 8 })
  expect(await faultOf(() => verifyExport(linesOf(lines), { vkey: other }))).toMatch(/not signed by the key/)
  expect(await faultOf(() => verifyExport(['nonsense', '5'], { vkey }))).toMatch(/^line 1: /)
  await expect(verifyExport([], { vkey: 'nonsense' })).rejects.toThrow('is not the key of a log')
})

test.skipIf(skipWithout(missing))(`Python finds the same in every changed export${skipNote(missing)}`, () => {
  const exports = changes.map(([, change]) => {
    const lines = composedExport().lines()
    change(lines)
    return linesOf(lines)
  })
  const program = `
def fault(lines, vkey):
    try:
        return verify_export(lines, vkey)
    except NotVerified as error:
        return str(error)
print(json.dumps([fault(lines, given["vkey"]) for lines in given["exports"]] + [fault(given["exports"][0], given["other"])]))`
  for (const options of [[], ['-S']]) {
    const found = runPython(program, { exports, vkey, other }, options) as unknown[]
    expect(found[0]).toEqual({ events: 4, tombstones: 1, leaves: 8, origin: composedOrigin, size: 8 })
    for (const [n, [what, , fault]] of changes.entries())
      expect([what, typeof found[n] === 'string' ? found[n] : '']).toEqual([what, expect.stringMatching(fault)])
    expect(found.at(-1)).toContain('not signed by the key')
  }
})

const forgeries: readonly ((proof: Json) => void)[] = [
  (proof) => set(proof, { event_id: '0'.repeat(32) }),
  (proof) => set(proof, { leaf_index: 1 }),
  (proof) => set(proof, { leaf_index: 1e9 }),
  (proof) => set(proof, { leaf_index: '0' }),
  (proof) => set(proof, { entry: 'AAAA' }),
  (proof) => set(proof, { entry: 5 }),
  (proof) => void (proof.inclusion_path as string[]).pop(),
  (proof) => void (proof.inclusion_path as string[]).push('0'.repeat(64)),
  (proof) => void (proof.inclusion_path as string[]).reverse(),
  (proof) => set(proof, { inclusion_path: [null] }),
  (proof) => set(proof, { signed_payload: 'another' }),
  (proof) => set(proof, { checkpoint: String(proof.checkpoint).replace('\n8\n', '\n7\n') }),
  (proof) => void delete proof.checkpoint,
]

test('a proof verifies with the pinned key; a forged one, or one of another log, does not', async () => {
  const made = composedExport()
  for (const record of made.records.filter(({ type }) => type === 'event')) {
    const proof = made.proof(record)
    const found = await verifyProof(proof, { vkey })
    expect(found).toEqual({
      eventId: record.event_id,
      index: proof.leaf_index,
      size: 8,
      origin: composedOrigin,
    })
    expect(await faultOf(() => verifyProof(proof, { vkey: other }))).toMatch(/not signed by the key/)
  }
  for (const [n, forge] of forgeries.entries()) {
    const proof = structuredClone(made.proof(made.records[0]!))
    forge(proof)
    expect([n, await faultOf(() => verifyProof(proof, { vkey }))]).not.toEqual([n, ''])
  }
})

test.skipIf(skipWithout(missing))(`Python refuses the same proofs${skipNote(missing)}`, () => {
  const made = composedExport()
  const proofs = [() => {}, ...forgeries].map((forge) => {
    const proof = structuredClone(made.proof(made.records[0]!))
    forge(proof)
    return proof
  })
  const program = `
def is_good(proof):
    try:
        return verify_proof(proof, given["vkey"])["size"] == 8
    except NotVerified:
        return False
print(json.dumps([is_good(proof) for proof in given["proofs"]]))`
  expect(runPython(program, { proofs, vkey })).toEqual(proofs.map((_, n) => n === 0))
})

test('a sealed key file opens only with its passphrase, in JavaScript and Python, and each opens the other’s', async () => {
  const key = await keyFromSeed(Buffer.alloc(32, 7))
  const passphrase = 'correct ﬁsh \u00e9'
  const text = await key.toSealedFile(passphrase)
  const file = JSON.parse(text) as Json
  expect(file).toMatchObject({ type: 'broadside-key', version: 2, public_key: key.publicKey, rounds: 600_000 })
  expect(text).not.toContain(Buffer.alloc(32, 7).toString('base64url'))
  // The same characters, composed differently.
  expect((await importKey(text, 'correct fish e\u0301')).toFile()).toBe(key.toFile())
  await expect(importKey(text)).rejects.toThrow('it opens with its passphrase')
  await expect(importKey(text, 'wrong')).rejects.toThrow('does not open')
  // The head is public, and any change of it is detected.
  const otherKey = await createKey()
  for (const change of [{ public_key: otherKey.publicKey }, { id: otherKey.id }, { rounds: 600_001 }])
    await expect(importKey(JSON.stringify({ ...file, ...change }), passphrase)).rejects.toThrow('does not open')
  // Too few rounds are a forgery, and too many a denial of service.
  for (const change of [{ rounds: 1 }, { rounds: 1e12 }, { kdf: 'none' }, { salt: '' }, { sealed: 5 }])
    await expect(importKey(JSON.stringify({ ...file, ...change }), passphrase)).rejects.toThrow('no Ed25519 key')
  if (skipWithout(missing)) return
  const program = `
made = import_key(given["text"], given["passphrase"])
def why(text, passphrase=None):
    try:
        return import_key(text, passphrase).id
    except ValueError as error:
        return str(error)
few = dict(json.loads(given["text"]), rounds=1)
print(json.dumps([made.id, made.to_file(given["passphrase"]), why(given["text"]), why(given["text"], "wrong"), why(json.dumps(few), "x"), why(made.to_file())]))`
  const [id, sealed, ...why] = runPython(program, { text, passphrase }) as string[]
  expect(id).toBe(key.id)
  expect((await importKey(sealed!, passphrase)).id).toBe(key.id)
  expect(why).toEqual([
    expect.stringContaining('it opens with its passphrase'),
    expect.stringContaining('does not open'),
    expect.stringContaining('no Ed25519 key'),
    key.id,
  ])
})

/** The script of the pages, which runs on WebCrypto in a browser and in Node. */
type PageScript = {
  readonly freshKey: (passphrase: string) => Promise<{ key: { id: string }; file: string }>
  readonly keyIn: (text: string, passphrase: string) => Promise<{ id: string }>
}

test('a sealed key file of the browser opens in the clients, and theirs open in the browser', async () => {
  const script = resolve(import.meta.dirname, '../../../src/pages/assets/board.js')
  const browser = (await import(pathToFileURL(script).href)) as PageScript
  const passphrase = 'correct \ufb01sh \u00e9'
  const { key, file } = await browser.freshKey(passphrase)
  expect(JSON.parse(file)).toMatchObject({ type: 'broadside-key', version: 2, id: key.id, rounds: 600_000 })
  const opened = await importKey(file, passphrase)
  expect(opened.id).toBe(key.id)
  await expect(importKey(file, 'wrong')).rejects.toThrow('does not open')
  expect((await browser.keyIn(await opened.toSealedFile(passphrase), passphrase)).id).toBe(key.id)
  await expect(browser.keyIn(file, 'wrong')).rejects.toThrow('the passphrase does not open this file')
  if (skipWithout(missing)) return
  const program = `
made = import_key(given["file"], given["passphrase"])
print(json.dumps([made.id, made.to_file(), made.to_file(given["passphrase"])]))`
  const [id, open, sealed] = runPython(program, { file, passphrase }) as [string, string, string]
  expect([id, JSON.parse(open)]).toEqual([key.id, JSON.parse(opened.toFile())])
  expect((await browser.keyIn(sealed, passphrase)).id).toBe(key.id)
})

test('a non-extractable key pair signs, and is in no file', async () => {
  const pair = (await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify'])) as never
  const key = await keyFromPair(pair)
  expect(key.id).toBe(createHash('sha256').update(Buffer.from(key.publicKey, 'base64url')).digest('hex'))
  const message = new TextEncoder().encode('x')
  expect(await key.sign(message)).toHaveLength(64)
  expect(() => key.toFile()).toThrow('identity.rotate')
  await expect(key.toSealedFile('x')).rejects.toThrow('identity.rotate')
  const open = (await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])) as never
  const copied = await keyFromPair(open)
  expect((await importKey(copied.toFile())).publicKey).toBe(copied.publicKey)
})

test('a proof of work has as many zero bits as required', async () => {
  const command = 'a'.repeat(64)
  for (const bits of [0, 1, 9, 13]) {
    const [said, counter] = (await solveProof(command, bits)).split('.')
    expect(said).toBe(String(bits))
    const hash = createHash('sha256').update(`broadside-proof-v1\n${command}\n${counter}`).digest('hex')
    expect(BigInt(`0x${hash}`) >> BigInt(256 - bits)).toBe(0n)
  }
})
