/** The clients sign what the board signs: same bytes, same signatures, same key files, in JavaScript and in Python. */
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createKeyFile, openKeyFile } from '../../../src/cli/key-file.ts'
import { createKey, fieldOrder, importKey, keyFromSeed, loadKey, signingBytes } from '../../../src/client/broadside.ts'
import { opensslSigner } from '../../../src/format/signer.ts'
import { FIELD_ORDER, signingBytes as signedByBoard } from '../../../src/format/signing.ts'
import { missingProgram, skipNote, skipWithout } from '../../peers/peers.ts'
import { runPython } from '../../support/run-python.ts'
import { scratchDirectory } from '../../support/scratch.ts'

const integers = ['timestamp', 'amount', 'ttl', 'limit', 'before']
const lists = ['members', 'attachments']
/** Text with characters that JSON escapes in various places. */
const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom('"', '\\', '/', '\n', '\b', '\u0000', '\u007f', '\u2028', '\u2029', '<', '🌍'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
})
const command = fc
  .record(
    Object.fromEntries(
      FIELD_ORDER.map((name) => [
        name,
        integers.includes(name) ? fc.maxSafeInteger() : lists.includes(name) ? fc.array(text, { maxLength: 3 }) : text,
      ]),
    ),
    { requiredKeys: [] },
  )
  .map((fields) => ({ ...fields, operation: 'post' }))
const seeds = Array.from({ length: 24 }, (_, n) => Buffer.alloc(32, n * 11))

const missing = missingProgram('python3')

test('any command has the bytes that the board expects', () => {
  expect(fieldOrder).toEqual(FIELD_ORDER)
  fc.assert(
    fc.property(command, text, (fields, service) => {
      expect(Buffer.from(signingBytes(service, fields)).equals(signedByBoard(service, fields))).toBe(true)
    }),
  )
})

test.skipIf(skipWithout(missing))(`any command has the same bytes in Python${skipNote(missing)}`, () => {
  const commands = fc.sample(command, 300)
  const found = runPython(
    `print(json.dumps([broadside.signing_bytes("service \\u2028", each).hex() for each in given]))`,
    commands,
  )
  expect(found).toEqual(commands.map((each) => signedByBoard('service \u2028', each).toString('hex')))
})

test('client keys make the same signatures as OpenSSL', async () => {
  for (const seed of seeds) {
    const [key, signer] = [await keyFromSeed(seed), opensslSigner(seed)]
    expect([key.publicKey, key.id]).toEqual([signer.publicKey, signer.id])
    expect(Buffer.from(await key.sign(Uint8Array.from(seed))).equals(signer.sign(seed))).toBe(true)
  }
})

test.skipIf(skipWithout(missing))(`Python signs the same without any package${skipNote(missing)}`, () => {
  const signed = `
out = []
for seed in map(bytes.fromhex, given):
    key = Key(seed)
    out.append([type(key._signer).__name__, key.public_key, key.id, key.sign(seed * 9).hex()])
print(json.dumps(out))`
  const wanted = seeds.map((seed) => {
    const { publicKey, id, sign } = opensslSigner(seed)
    return [publicKey, id, sign(Buffer.concat(Array(9).fill(seed))).toString('hex')]
  })
  const hex = seeds.map((seed) => seed.toString('hex'))
  // Without the package directories.
  const alone = runPython(signed, hex, ['-S']) as string[][]
  expect(alone.map(([kind]) => kind)).toEqual(seeds.map(() => '_PureSigner'))
  const usual = runPython(signed, hex) as string[][]
  for (const found of [alone, usual]) expect(found.map(([, ...rest]) => rest)).toEqual(wanted)
})

test('the command line, OpenSSL and the clients read each other’s key files', async () => {
  const folder = scratchDirectory()
  const [own, theirs, pem] = ['own.json', 'theirs.json', 'key.pem'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const made = await loadKey(own)
  expect((await openKeyFile(own)).key.publicKey).toBe(made.publicKey)
  expect((await loadKey(own)).id).toBe(made.id)
  const { publicKey } = createKeyFile(theirs)
  expect((await loadKey(theirs)).publicKey).toBe(publicKey)
  const pair = generateKeyPairSync('ed25519')
  writeFileSync(pem, pair.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  expect((await loadKey(pem)).publicKey).toBe(pair.publicKey.export({ format: 'jwk' }).x)
  if (skipWithout(missing)) return
  const read = runPython(`print(json.dumps([load_key(path).public_key for path in given]))`, [own, theirs, pem])
  expect(read).toEqual([made.publicKey, publicKey, (await loadKey(pem)).publicKey])
  const ofPython = runPython('print(json.dumps(load_key(given).public_key))', join(folder, 'python.json'))
  expect((await openKeyFile(join(folder, 'python.json'))).key.publicKey).toBe(ofPython)
})

test('an invalid key is refused, and a key that others can read is not used', async () => {
  const { publicKey } = await createKey()
  const halves = { ...JSON.parse((await createKey()).toFile()), public_key: publicKey }
  await expect(importKey(JSON.stringify(halves))).rejects.toThrow(
    'the public and private halves of this key do not match',
  )
  for (const wrong of [
    '',
    '{}',
    'null',
    '{"seed":"short"}',
    '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----',
    '-----BEGIN PRIVATE KEY-----\n(é)\n-----END PRIVATE KEY-----',
    '-----BEGIN',
  ])
    await expect(importKey(wrong)).rejects.toThrow('contains no Ed25519 key')
  const path = join(scratchDirectory(), 'open.json')
  writeFileSync(path, (await createKey()).toFile(), { mode: 0o644 })
  await expect(loadKey(path)).rejects.toThrow(/others can read the key file .* chmod 600/)
})

test('values that JSON cannot represent are refused before signing, with the name of their field', () => {
  for (const [field, value] of [
    ['text', 'half \ud800'],
    ['limit', 2 ** 53],
    ['limit', 1.5],
    ['members', ['ok', '\udc00']],
  ] as const)
    expect(() => signingBytes('s', { operation: 'post', [field]: value })).toThrow(`${field}: must be`)
  expect(() => signingBytes('s', { operation: 'post', txt: 'x' })).toThrow('txt: commands have no such field')
})

test('a key reveals its secret half only as a key file', async () => {
  const key = await createKey()
  const { seed } = JSON.parse(key.toFile()) as { seed: string }
  expect(JSON.stringify(key) + String(key)).not.toContain(seed)
})
