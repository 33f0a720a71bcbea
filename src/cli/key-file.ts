/**
 * How a person's signing key is stored on disk, and how an import derives one key per author.
 *
 * A key file is JSON `{"type":"broadside-key","public_key","id","seed"}` (seed = base64url of the 32 secret bytes) or a PKCS#8 PEM as
 * OpenSSL writes it. Only its owner may read it (mode 0600), because whoever can read a key can sign with it.
 *
 * Derived keys: Ed25519 seed = HMAC-SHA256(key = import seed, `broadside-import-v1\n` + author). For systems with their own author ids,
 * `broadside-import-v2\n` + system + `\n` + author: no author of one system has the key of an author of another.
 */
import { createHash, createHmac, createPrivateKey, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { importKey, type Key, keyFromSeed } from '../client/broadside.ts'
import { userSettings } from '../environment.ts'
import { CommandFailed } from './command-line.ts'
import { type Signer, signerFromSeed } from './sign.ts'

const keyFileBytesMax = 16 * 1024
const seedBytes = 32

/** Creates a new key and writes it to `path`, which must not exist. Throws CommandFailed. */
export function createKeyFile(path: string): Signer {
  const seed = randomBytes(seedBytes)
  const signer = signerFromSeed(seed)
  const text = JSON.stringify({
    type: 'broadside-key',
    public_key: signer.publicKey,
    id: signer.id,
    seed: seed.toString('base64url'),
  })
  writeKeyText(path, text)
  return signer
}

/**
 * Creates a new user key for NATS servers, writes its seed to `path`, which must not exist, and returns the public key. Throws
 * CommandFailed.
 */
export async function createNatsKeyFile(path: string): Promise<string> {
  const { nkeys } = await import('@nats-io/transport-node')
  const pair = nkeys.createUser()
  writeKeyText(path, Buffer.from(pair.getSeed()).toString('latin1'))
  return pair.getPublicKey()
}

/** Creates the secret that a board and its followers share and writes it to `path`, which must not exist. Throws CommandFailed. */
export function createReplicaKeyFile(path: string): void {
  writeKeyText(path, randomBytes(seedBytes).toString('hex'))
}

function writeKeyText(path: string, text: string): void {
  try {
    writeFileSync(path, `${text}\n`, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new CommandFailed(`${path} exists and is not overwritten. Choose another name.`)
    throw new CommandFailed(`The key file could not be written: ${message}.`)
  }
}

/** The text of a key file that only its owner can read. Throws CommandFailed. */
function readKeyText(path: string): string {
  if (!existsSync(path))
    throw new CommandFailed(`There is no key file ${path}. Make one with: broadside keygen ${path}`)
  const stats = statSync(path)
  const { mode, size } = stats
  if (!stats.isFile()) throw new CommandFailed(`${path} is not a file. Make a key with: broadside keygen NEWFILE`)
  if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
    throw new CommandFailed(`Others can read the key file ${path}. Restrict it to yourself with: chmod 600 ${path}`)
  }
  if (size > keyFileBytesMax) throw new CommandFailed(`${path} is too long to be a key file.`)
  return readFileSync(path, 'utf8')
}

/**
 * Reads a key file of any form, and returns it as a signer and as the client's key. A sealed one is opened with BROADSIDE_PASSPHRASE.
 * Throws CommandFailed.
 */
export async function openKeyFile(path: string): Promise<{ readonly signer: Signer; readonly key: Key }> {
  const text = await unsealed(readKeyText(path), path)
  const seed = text.includes('-----BEGIN') ? seedOfPem(text) : seedOfJson(text)
  if (seed === undefined) {
    throw new CommandFailed(`${path} contains no Ed25519 key. Make one with: broadside keygen NEWFILE`)
  }
  return { signer: signerFromSeed(seed), key: await keyFromSeed(seed) }
}

async function unsealed(text: string, path: string): Promise<string> {
  if (!text.includes('"sealed"')) return text
  const { passphrase } = userSettings()
  try {
    return (await importKey(text, passphrase)).toFile()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    const hint = passphrase === undefined ? ' Set BROADSIDE_PASSPHRASE.' : ''
    throw new CommandFailed(`${path} cannot be opened: ${error.message}.${hint}`)
  }
}

function seedOfPem(text: string): Buffer | undefined {
  try {
    const key = createPrivateKey(text)
    const secret = key.asymmetricKeyType === 'ed25519' ? key.export({ format: 'jwk' }).d : undefined
    return secret === undefined ? undefined : Buffer.from(secret, 'base64url')
  } catch {
    return undefined
  }
}

function seedOfJson(text: string): Buffer | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return undefined
  }
  const { seed: secret, public_key: publicKey } = (parsed ?? {}) as Record<string, unknown>
  if (typeof secret !== 'string') return undefined
  const seed = Buffer.from(secret, 'base64url')
  if (seed.length !== seedBytes || seed.toString('base64url') !== secret) return undefined
  // A file whose two halves disagree was edited by hand: signing with it would create another identity.
  if (publicKey !== undefined && publicKey !== signerFromSeed(seed).publicKey) return undefined
  return seed
}

/** The signer of an imported author. The same seed, system, and author always yield the same key. */
export function authorSigner(importSeed: Uint8Array, author: string, system?: string): Signer {
  const named = system === undefined ? `broadside-import-v1\n${author}` : `broadside-import-v2\n${system}\n${author}`
  return signerFromSeed(createHmac('sha256', importSeed).update(named).digest())
}

/** An import seed given as text: 64 hex characters are the bytes themselves; anything else is hashed. */
export function importSeedOf(text: string): Buffer {
  if (/^[0-9a-f]{64}$/.test(text)) return Buffer.from(text, 'hex')
  return createHash('sha256').update(text).digest()
}
