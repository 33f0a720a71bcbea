import { createPublicKey, generateKeyPairSync, randomBytes, verify } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { authorSigner, createKeyFile, createNatsKeyFile, importSeedOf, openKeyFile } from '../../../src/cli/key-file.ts'
import { opensslSigner, signCommand, signerFromSeed } from '../../../src/cli/sign.ts'
import { commandId, type SignableCommand, signingBytes } from '../../../src/format/signing.ts'

const directory = mkdtempSync(join(tmpdir(), 'broadside-key-'))

test('a key file is readable only by its owner, is never overwritten, and yields the same signer', async () => {
  const path = join(directory, 'key.json')
  const made = createKeyFile(path)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(() => createKeyFile(path)).toThrow('not overwritten')
  const { signer: read } = await openKeyFile(path)
  expect([read.publicKey, read.id]).toEqual([made.publicKey, made.id])
  chmodSync(path, 0o640)
  await expect(openKeyFile(path)).rejects.toThrow(`chmod 600 ${path}`)
})

test('a key for NATS servers is readable only by its owner, and is never overwritten', async () => {
  const path = join(directory, 'board.nk')
  expect(await createNatsKeyFile(path)).toMatch(/^U[A-Z2-7]{55}$/)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readFileSync(path, 'utf8')).toMatch(/^SU[A-Z2-7]{56}\n$/)
  await expect(createNatsKeyFile(path)).rejects.toThrow('not overwritten')
})

test('a PEM key as OpenSSL writes it works too', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const path = join(directory, 'key.pem')
  writeFileSync(path, privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 })
  expect((await openKeyFile(path)).key.publicKey).toBe(publicKey.export({ format: 'jwk' }).x)
})

test('a file whose halves disagree, or with another kind of key, is refused', async () => {
  const good = JSON.parse(readFileSync(join(directory, 'key.json'), 'utf8'))
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const texts = [
    JSON.stringify({ ...good, public_key: signerFromSeed(randomBytes(32)).publicKey }),
    JSON.stringify({ ...good, seed: `${good.seed}=` }),
    rsa.export({ format: 'pem', type: 'pkcs8' }) as string,
    '{}',
    '',
  ]
  for (const [n, text] of texts.entries()) {
    const path = join(directory, `bad-${n}`)
    writeFileSync(path, text, { mode: 0o600 })
    await expect(openKeyFile(path)).rejects.toThrow('broadside keygen')
  }
})

test('key derivation is fixed forever: HMAC-SHA256(seed, broadside-import-v1 LF author)', () => {
  // Computed with: printf 'broadside-import-v1\nada' | openssl dgst -sha256 -mac HMAC -macopt hexkey:<seed>, then RFC 8032.
  const seed = importSeedOf('11'.repeat(32))
  expect(seed).toEqual(Buffer.alloc(32, 0x11))
  expect(authorSigner(seed, 'ada').publicKey).toBe('paGQrn2IbB3LU-im9C0CeasMRSITbLvx102sK4W2JBM')
  expect(authorSigner(seed, 'Ada').publicKey).not.toBe(authorSigner(seed, 'ada').publicKey)
})

test('libsodium, which signs after the first thousand, and OpenSSL sign the same bytes with the same seed', () => {
  const seed = randomBytes(32)
  const [before, other] = [signerFromSeed(seed), opensslSigner(seed)]
  for (let round = 0; round < 1_200; round += 1) {
    const message = randomBytes(round)
    expect(before.sign(message)).toEqual(other.sign(message))
  }
  for (let round = 0; round < 20; round += 1) {
    const another = randomBytes(32)
    const message = randomBytes(round * 37)
    const [one, two] = [signerFromSeed(another), opensslSigner(another)]
    expect([one.publicKey, one.id]).toEqual([two.publicKey, two.id])
    expect(one.sign(message)).toEqual(two.sign(message))
  }
})

test('a signed command is the JSON of its fields, its id is known before it is sent, and its nonce is fresh', () => {
  const signer = signerFromSeed(Buffer.alloc(32, 7))
  const fields = { operation: 'post', room: 'lobby', text: 'a "b" \u2028 🌍\n' }
  const options = { signer, serviceId: 'bs-"quoted"-é', nowSeconds: 1_790_000_000 }
  const [first, second] = [signCommand(fields, options), signCommand(fields, options)]
  const command = JSON.parse(first.body.toString('utf8'))
  expect(command).toMatchObject({ ...fields, public_key: signer.publicKey, timestamp: 1_790_000_000 })
  const bytes = signingBytes(options.serviceId, command as SignableCommand)
  expect(commandId(bytes).eventId).toBe(first.eventId)
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: signer.publicKey }, format: 'jwk' })
  expect(verify(null, bytes, key, Buffer.from(command.signature, 'base64url'))).toBe(true)
  expect(second.eventId).not.toBe(first.eventId)
  expect(Buffer.from(command.nonce, 'base64url')).toHaveLength(16)
})
