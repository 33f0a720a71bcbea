/**
 * The client for boards: `broadside/client` in this package, and `/client/broadside.js` at every board. One module without
 * imports, for browsers, Node 22, Deno and Bun.
 *
 *   import { connect } from './broadside.mjs'
 *   const board = await connect('https://board.example', { key: 'me.json' })
 *   const { event_id } = await board.post('lobby', 'Hello.')
 *
 * A command is signed once and sent until its outcome is known: the same bytes have no second effect. A secret key never
 * leaves the process. What a board answers is data and is never evaluated.
 */

import type { FieldName, ValueOf } from '../../actors/kernel/fields.ts'
import type { Infer, Schema } from '../../actors/kernel/schema.ts'
import type { Declaration, OperationName } from '../../actors/operations.ts'

export type { OperationName }

type DataOf<Declared> = Declared extends { readonly data: infer Data extends Schema }
  ? Omit<Infer<Data>, 'schema'>
  : never
/** `data` may be an object: it is written as JSON, with the `schema` that the operation has. */
type ValueIn<Declared, Name> = Name extends 'data'
  ? string | DataOf<Declared>
  : Name extends FieldName
    ? ValueOf<Name>
    : never
type NamesOf<List> = List extends readonly (infer Name extends string)[] ? Name : never

/** The fields of an operation, as it declares them. */
export type Fields<Name extends OperationName> = {
  readonly [Field in NamesOf<Declaration<Name>['required']>]: ValueIn<Declaration<Name>, Field>
} & {
  readonly [Field in NamesOf<Declaration<Name>['optional']>]?: ValueIn<Declaration<Name>, Field>
} & { readonly request_id?: string }

/** What an operation answers. */
export type Result<Name extends OperationName> =
  Declaration<Name> extends { readonly result: infer Given extends Schema } ? Infer<Given> : never

/** Further fields of a post. */
export type PostFields = Omit<Fields<'post'>, 'room' | 'text'>
export type Update = Result<'updates.get'>['updates'][number]

type TailEvent = NonNullable<Extract<Update, { readonly event?: unknown }>['event']>

type Value = string | number | readonly string[]
type Command = Readonly<Record<string, Value>>
/** One line of a batch: an operation and its fields. */
export type BatchCommand = { [Name in OperationName]: { readonly operation: Name } & Fields<Name> }[OperationName]

/** The outcome of one command of a batch. */
export type Outcome =
  | { readonly ok: true; readonly data: unknown }
  | { readonly ok: false; readonly error: BoardError | NoAnswer }

/** Signing bytes have the fields in this order (`signing.field_order` at /capabilities). */
export const fieldOrder: readonly string[] =
  'operation room page text kind reply_to to request_id public_key timestamp nonce handle visibility members target amount ttl event_id cursor limit query before reason data filename media_type attachments'.split(
    ' ',
  )

const encoder = new TextEncoder()
const pkcs8Start = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20]
const requestMs = 60_000
const pauseMsMin = 250
const pauseMsMax = 8_000
const pollPatienceMs = 60_000
const keyFileBytesMax = 16_384
/** No answer, and no line of one, may be longer. */
const answerCharsMax = 32 * 1024 * 1024

/** A refusal: the board says that the command had no effect. */
export class BoardError extends Error {
  override readonly name = 'BoardError'
  readonly code: string
  readonly status: number
  /** The field at fault; `data.KEY` inside `data`. */
  readonly field: string | undefined
  /** Seconds after which the same command may succeed. */
  readonly retryAfter: number | undefined
  readonly details: Readonly<Record<string, unknown>>
  /** Whether an earlier attempt had no answer. */
  readonly wasResent: boolean

  constructor(error: Refusal, status: number, wasResent: boolean) {
    super(`${error.code}: ${error.message}${error.field === undefined ? '' : ` (field ${error.field})`}`)
    this.code = error.code
    this.status = status
    this.field = error.field
    this.retryAfter = error.retry_after
    this.details = error.details ?? {}
    this.wasResent = wasResent
  }
}

/** The outcome is unknown: nothing answered in time. `board.send(error.command)` sends the same bytes again, which is safe. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
  readonly command: SignedCommand | undefined

  constructor(address: string, command: SignedCommand | undefined, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause)
    super(`${address} gave no answer, so the outcome is unknown: ${why}`, { cause })
    this.command = command
  }
}

type Refusal = {
  readonly code: string
  readonly message: string
  readonly field?: string
  readonly retry_after?: number
  readonly details?: Readonly<Record<string, unknown>>
}

/** An Ed25519 key. Its secret half is private, and only `toFile` reveals it. */
export type Key = {
  /** base64url, 43 characters. */
  readonly publicKey: string
  /** Hex SHA-256 of the public key. It names your identity as long as you do not rotate your first key. */
  readonly id: string
  readonly sign: (message: Uint8Array<ArrayBuffer>) => Promise<Uint8Array>
  /** The text of a key file. Anyone who has it can sign as you. Throws TypeError for a key that cannot be copied. */
  readonly toFile: () => string
  /** The text of a key file that opens only with this passphrase. */
  readonly toSealedFile: (passphrase: string) => Promise<string>
}

/** A command with its signature. */
export type SignedCommand = {
  /** The JSON to send. */
  readonly body: string
  /** The id of what the command creates. */
  readonly eventId: string
  /** Hex SHA-256 of the signed bytes. */
  readonly sha256: string
}

/** Makes a new key, in memory. */
export function createKey(): Promise<Key> {
  return keyFromSeed(crypto.getRandomValues(new Uint8Array(32)))
}

/** The key of a seed: the 32 secret bytes of RFC 8032. */
export async function keyFromSeed(seed: Uint8Array): Promise<Key> {
  if (seed.length !== 32) throw new TypeError('an Ed25519 seed has 32 bytes')
  const pkcs8 = Uint8Array.of(...pkcs8Start, ...seed)
  const key = await crypto.subtle.importKey('pkcs8', pkcs8, 'Ed25519', true, ['sign'])
  const { x: publicKey = '' } = await crypto.subtle.exportKey('jwk', key)
  const id = await sha256(fromBase64url(publicKey))
  const own = Uint8Array.from(seed)
  return {
    publicKey,
    id,
    sign: async (message) => new Uint8Array(await crypto.subtle.sign('Ed25519', key, message)),
    toFile: () => `${JSON.stringify({ type: 'broadside-key', public_key: publicKey, id, seed: base64url(own) })}\n`,
    toSealedFile: (passphrase) => sealed(own, { publicKey, id }, passphrase),
  }
}

/** A WebCrypto key pair, such as a page stores in IndexedDB. One that is not extractable can sign, but cannot be written to a file. */
export async function keyFromPair({ privateKey, publicKey: half }: CryptoKeyPair): Promise<Key> {
  if (privateKey.extractable) {
    const { d = '' } = await crypto.subtle.exportKey('jwk', privateKey)
    return keyFromSeed(fromBase64url(d))
  }
  const { x: publicKey = '' } = await crypto.subtle.exportKey('jwk', half)
  const refuse = () => {
    throw new TypeError('this key was made so that it cannot be copied: move to another with identity.rotate')
  }
  return {
    publicKey,
    id: await sha256(fromBase64url(publicKey)),
    sign: async (message) => new Uint8Array(await crypto.subtle.sign('Ed25519', privateKey, message)),
    toFile: refuse,
    toSealedFile: async () => refuse(),
  }
}

/**
 * Reads the text of a key file: JSON from `broadside keygen`, `toFile`, `toSealedFile` or a board's page, or a PKCS#8 PEM from OpenSSL. A
 * sealed file needs its passphrase.
 */
export async function importKey(text: string, passphrase?: string): Promise<Key> {
  const file = Object(parsed(text))
  const { seed, publicKey } = text.includes('-----BEGIN')
    ? seedOfPem(text)
    : file.version === sealedVersion
      ? await unsealed(file, passphrase)
      : seedOfJson(text)
  if (seed?.length !== 32) throw new TypeError('the text contains no Ed25519 key')
  const key = await keyFromSeed(seed)
  // A file whose halves disagree was edited by hand: signing with it would create a different identity.
  if (publicKey !== undefined && publicKey !== key.publicKey)
    throw new TypeError('the public and private halves of this key do not match')
  return key
}

const sealedVersion = 2
const roundsMin = 600_000
const roundsMax = 10_000_000

/** Version 2 of key files: the seed under AES-256-GCM, with everything else in the file authenticated in this order. */
type SealedHead = {
  readonly type: 'broadside-key'
  readonly version: typeof sealedVersion
  readonly public_key: string
  readonly id: string
  readonly kdf: 'PBKDF2-SHA-256'
  readonly rounds: number
  readonly salt: string
  readonly cipher: 'AES-256-GCM'
  readonly nonce: string
}

async function sealed(
  seed: Uint8Array<ArrayBuffer>,
  { publicKey, id }: { readonly publicKey: string; readonly id: string },
  passphrase: string,
): Promise<string> {
  const head: SealedHead = {
    type: 'broadside-key',
    version: sealedVersion,
    public_key: publicKey,
    id,
    kdf: 'PBKDF2-SHA-256',
    rounds: roundsMin,
    salt: base64url(crypto.getRandomValues(new Uint8Array(16))),
    cipher: 'AES-256-GCM',
    nonce: base64url(crypto.getRandomValues(new Uint8Array(12))),
  }
  const { key, parameters } = await sealOf(head, passphrase)
  const box = await crypto.subtle.encrypt(parameters, key, seed)
  return `${JSON.stringify({ ...head, sealed: base64url(new Uint8Array(box)) })}\n`
}

async function unsealed(file: Readonly<Record<string, unknown>>, passphrase: string | undefined): Promise<Halves> {
  const { public_key, id, rounds, salt, nonce, sealed: box } = file
  const texts = [public_key, id, salt, nonce, box]
  const isKnown = file.kdf === 'PBKDF2-SHA-256' && file.cipher === 'AES-256-GCM'
  const isSealed = isKnown && texts.every((each) => typeof each === 'string' && /^[\w-]{1,100}$/.test(each))
  if (!isSealed || typeof rounds !== 'number' || !(rounds >= roundsMin && rounds <= roundsMax)) return {}
  if (passphrase === undefined) throw new TypeError('this key file is sealed: it opens with its passphrase')
  const head: SealedHead = {
    ...{ type: 'broadside-key', version: sealedVersion, public_key: String(public_key), id: String(id) },
    ...{ kdf: 'PBKDF2-SHA-256', rounds, salt: String(salt), cipher: 'AES-256-GCM', nonce: String(nonce) },
  }
  const { key, parameters } = await sealOf(head, passphrase)
  try {
    const seed = new Uint8Array(await crypto.subtle.decrypt(parameters, key, fromBase64url(String(box))))
    return { seed, publicKey: public_key }
  } catch {
    throw new TypeError('the passphrase does not open this key file, or the file was changed')
  }
}

async function sealOf(head: SealedHead, passphrase: string): Promise<{ key: CryptoKey; parameters: AesGcm }> {
  const words = encoder.encode(passphrase.normalize('NFKC'))
  const secret = await crypto.subtle.importKey('raw', words, 'PBKDF2', false, ['deriveKey'])
  const how = { name: 'PBKDF2', hash: 'SHA-256', salt: fromBase64url(head.salt), iterations: head.rounds }
  const aes = { name: 'AES-GCM', length: 256 }
  const key = await crypto.subtle.deriveKey(how, secret, aes, false, ['encrypt', 'decrypt'])
  const additionalData = encoder.encode(`broadside-key-v2\n${JSON.stringify(head)}`)
  return { key, parameters: { name: 'AES-GCM', iv: fromBase64url(head.nonce), additionalData } }
}

/** Types that not every environment declares. */
type CryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>
type CryptoKeyPair = { readonly privateKey: CryptoKey; readonly publicKey: CryptoKey }
type AesGcm = { readonly name: 'AES-GCM'; readonly iv: Bytes; readonly additionalData: Bytes }

type Halves = { readonly seed?: Uint8Array; readonly publicKey?: unknown }

function seedOfPem(text: string): Halves {
  const base64 = text.replace(/-----[^-]+-----|\s|=/g, '')
  if (!/^[\w+/-]+$/.test(base64) || base64.length % 4 === 1) return {}
  const der = fromBase64url(base64)
  return pkcs8Start.every((byte, n) => der[n] === byte) ? { seed: der.subarray(pkcs8Start.length) } : {}
}

function seedOfJson(text: string): Halves {
  const { seed, public_key: publicKey } = Object(parsed(text))
  return typeof seed === 'string' && /^[\w-]{43}$/.test(seed) ? { seed: fromBase64url(seed), publicKey } : {}
}

/** The key in a file, which is created if there is none. `passphrase`: of a sealed file. For Node, Deno and Bun. */
export async function loadKey(path: string, passphrase?: string): Promise<Key> {
  // A module name that browser bundlers do not follow.
  const module = 'node:fs/promises'
  const files: typeof import('node:fs/promises') = await import(module)
  const fresh = await createKey()
  try {
    const text = passphrase === undefined ? fresh.toFile() : await fresh.toSealedFile(passphrase)
    await files.writeFile(path, text, { flag: 'wx', mode: 0o600 })
    return fresh
  } catch (error) {
    if (Object(error).code !== 'EEXIST') throw error
  }
  const { mode, size } = await files.stat(path)
  // Windows has no such bits and reports all of them as set.
  if ((mode & 0o077) !== 0 && (mode & 0o777) !== 0o666)
    throw new Error(`others can read the key file ${path}: restrict it to yourself with chmod 600`)
  if (size > keyFileBytesMax) throw new Error(`${path} is too long to be a key file`)
  try {
    return await importKey(await files.readFile(path, 'utf8'), passphrase)
  } catch (cause) {
    throw new Error(`${path} is not a key file: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}

/** The bytes that Ed25519 signs. Throws TypeError, with the name of the field, for values that JSON cannot represent. */
export function signingBytes(service: string, command: Command): Uint8Array<ArrayBuffer> {
  for (const name of Object.keys(command))
    if (!fieldOrder.includes(name) && name !== 'signature' && name !== 'proof')
      throw new TypeError(`${name}: commands have no such field`)
  const given = fieldOrder.flatMap((name): [string, Value][] => {
    const value = command[name]
    if (value === undefined) return []
    if (!isSignable(value))
      throw new TypeError(`${name}: must be text of valid Unicode, a safe integer, or a list of texts`)
    return value === '' || value === 0 || (typeof value === 'object' && value.length === 0) ? [] : [[name, value]]
  })
  const json = `{"version":1,"service":${JSON.stringify(service)},"command":${JSON.stringify(Object.fromEntries(given))}}`
  return encoder.encode(json.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029'))
}

function isSignable(value: Value): boolean {
  if (typeof value === 'number') return Number.isSafeInteger(value)
  const texts = typeof value === 'string' ? [value] : value
  return Array.isArray(texts) && texts.every((each) => typeof each === 'string' && each.isWellFormed())
}

export type ConnectOptions = {
  /** A key, or the path of a key file. Without one, the board is read only. */
  readonly key?: Key | string
  /** The service id that the board must have. A signature is only valid for one service. */
  readonly service?: string
  /** How many seconds to keep trying if no answer comes or the board says to wait; 120 by default. */
  readonly patience?: number
  /** Maximum bits of proof of work to do for a room that requires it; 20 by default. */
  readonly proofBitsMax?: number
}

/** Connects to a board, and reads its service id and its time. */
export async function connect(address: string, options: ConnectOptions = {}): Promise<Board> {
  const key = typeof options.key === 'string' ? await loadKey(options.key) : options.key
  const board = new Board(address, key, options)
  await board.refresh()
  return board
}

/** The result of one request. */
type Answer =
  | { readonly data: unknown }
  | { readonly refused: Refusal; readonly status: number }
  | { readonly failed: unknown }

export class Board {
  readonly address: string
  readonly key: Key | undefined
  readonly #options: ConnectOptions
  #service = ''
  #limits = { lines: 1, bytes: 1 }
  /** Operations whose `data` has no `schema`. */
  #unversioned: ReadonlySet<unknown> = new Set()
  /** The board's time and ours at the same moment. */
  #clock = { board: 0, own: 0 }

  /** Use `connect`. */
  constructor(address: string, key: Key | undefined, options: ConnectOptions) {
    this.address = address.replace(/\/+$/, '')
    this.key = key
    this.#options = options
  }

  /** Part of every signature. */
  get service(): string {
    return this.#service
  }

  /** Reads the service id, limits and time again. */
  async refresh(): Promise<void> {
    const { service_id: service, limits, operations } = Object(await this.#get('/capabilities'))
    if (typeof service !== 'string') throw new Error(`${this.address} is not a Broadside board: it has no service_id`)
    const wanted = this.#options.service
    if (wanted !== undefined && wanted !== service)
      throw new Error(`${this.address} is the service ${service}, not ${wanted}`)
    this.#service = service
    const declared: readonly unknown[] = Array.isArray(operations) ? operations : []
    const unversioned = declared.filter((each) => Object(Object(each).data).properties?.schema === undefined)
    this.#unversioned = new Set(unversioned.map((each) => Object(each).name))
    this.#limits = { lines: limits?.batch_lines ?? 1, bytes: limits?.body_bytes ?? 65_536 }
    await this.#setClock()
  }

  /** Runs any operation. Signed if there is a key; reads of public data need none. */
  async call<Name extends OperationName>(operation: Name, fields: Fields<Name>): Promise<Result<Name>> {
    return (await this.#call({ operation, ...fields }, this.#patienceMs)) as Result<Name>
  }

  /** The same for an operation whose name is known only when the program runs. */
  run(command: { readonly operation: string } & Readonly<Record<string, unknown>>): Promise<unknown> {
    return this.#call(command, this.#patienceMs)
  }

  post(room: string, text: string, more: PostFields = {}): Promise<Result<'post'>> {
    return this.call('post', { ...more, room, text })
  }

  /** Replies to an event, or to the event with this id. */
  async reply(to: Place | string, text: string, more: PostFields = {}): Promise<Result<'post'>> {
    const { room, event_id } = await this.#place(to)
    return this.post(room, text, { ...more, reply_to: event_id })
  }

  /** Posts a new version of one of your events. */
  async edit(event: Place | string, text: string): Promise<Result<'post'>> {
    const { room, event_id } = await this.#place(event)
    return this.post(room, text, { data: { supersedes: event_id } })
  }

  /** 1 for it, -1 against it, 0 withdraws the vote. */
  vote(event: Place | string, value: 1 | 0 | -1): Promise<Result<'vote'>> {
    return this.call('vote', { event_id: typeof event === 'string' ? event : event.event_id, data: { value } })
  }

  /** Every answer of a list, page by page. */
  async *pages<Name extends OperationName>(operation: Name, fields: Fields<Name>): AsyncGenerator<Result<Name>, void> {
    let cursor: unknown
    do {
      const answer = await this.#call(
        { operation, ...fields, ...(cursor === undefined ? {} : { cursor }) },
        this.#patienceMs,
      )
      yield answer as Result<Name>
      cursor = Object(answer).has_more === true ? Object(answer).next_cursor : undefined
    } while (cursor !== undefined)
  }

  /**
   * Follows a room, several rooms or, with none, the entire board. Includes everything after this call or, with a `cursor`, everything
   * after that. Continues across lost connections and restarts of the board.
   */
  async follow(what: string | FollowOptions = {}): Promise<Follow> {
    const options = typeof what === 'string' ? { rooms: [what] } : what
    const { rooms = [], kinds = [], signal } = options
    const ask = async (cursor: string, wait: number) => {
      const data = { wait, ...(rooms.length === 0 ? {} : { rooms }), ...(kinds.length === 0 ? {} : { kinds }) }
      return (await this.#poll({ operation: 'updates.get', cursor, data }, signal)) as Result<'updates.get'>
    }
    const cursor = options.cursor ?? (await ask('', 0)).cursor
    return new Follow(ask, cursor, signal)
  }

  /** The posts of a room as they are accepted, one by one, from this call on or after `cursor`. */
  async *tail(room: string, options: Omit<FollowOptions, 'rooms' | 'kinds'> = {}): AsyncGenerator<TailEvent, void> {
    for await (const update of await this.follow({ ...options, rooms: [room], kinds: ['event.posted'] }))
      if ('event' in update && update.event !== undefined) yield update.event
  }

  /** Everything public, line by line, for `verifyExport` or for saving to a file. */
  async *exportLines(): AsyncGenerator<string, void> {
    const response = await fetch(`${this.address}/v1/export`, { redirect: 'manual', credentials: 'omit' })
    if (!response.ok) throw new NoAnswer(this.address, undefined, `status ${response.status} for /v1/export`)
    yield* linesOf(response)
  }

  /** Signs a command, and does not send it. */
  async sign<Name extends OperationName>(operation: Name, fields: Fields<Name>): Promise<SignedCommand> {
    return this.#sign({ operation, ...fields })
  }

  /** Sends a signed command until its outcome is known. The same command has no second effect. */
  async send(command: SignedCommand): Promise<unknown> {
    return this.#send(command, this.#patienceMs)
  }

  /** Signs and sends many commands. Outcomes are in the order of the commands. A refusal of one has no effect on the others. */
  async batch(commands: readonly BatchCommand[]): Promise<Outcome[]> {
    const signed: SignedCommand[] = []
    for (const each of commands) signed.push(await this.#sign(each))
    return this.sendBatch(signed)
  }

  /** The same for commands that are already signed. Lines without an outcome are sent again. */
  async sendBatch(commands: readonly SignedCommand[]): Promise<Outcome[]> {
    const outcomes = new Map<SignedCommand, Outcome>()
    const unanswered = new Set<SignedCommand>()
    let until = performance.now() + this.#patienceMs
    let pause = pauseMsMin
    for (;;) {
      const rest = commands.filter((each) => !outcomes.has(each))
      if (rest.length === 0) return commands.map((each) => outcomes.get(each)!)
      const some = this.#firstOf(rest)
      const { answers, failed } = await this.#postLines(some)
      let wait = answers.size === 0 ? pause : 0
      for (const [n, command] of some.entries()) {
        const answer = answers.get(n + 1) ?? { failed }
        const later = retryMs(answer, pause)
        const isLate = later !== undefined && performance.now() + later > until
        if (later === undefined || isLate) {
          const found = this.#outcome(command, answer, unanswered.has(command))
          outcomes.set(command, found)
          if (!isLate) until = performance.now() + this.#patienceMs
        } else {
          wait = Math.max(wait, later)
          if ('failed' in answer) unanswered.add(command)
        }
      }
      pause = wait === 0 ? pauseMsMin : Math.min(pause * 2, pauseMsMax)
      if (wait > 0) await sleep(wait)
    }
  }

  get #patienceMs(): number {
    return (this.#options.patience ?? 120) * 1000
  }

  async #place(of: Place | string): Promise<Place> {
    if (typeof of !== 'string') return of
    const { room } = (await this.call('event.get', { event_id: of })).event
    return { room, event_id: of }
  }

  #outcome(command: SignedCommand, answer: Answer, wasResent: boolean): Outcome {
    if ('data' in answer) return { ok: true, data: answer.data }
    if ('failed' in answer) return { ok: false, error: new NoAnswer(this.address, command, answer.failed) }
    return { ok: false, error: new BoardError(answer.refused, answer.status, wasResent) }
  }

  /** As many as fit into one request. */
  #firstOf(commands: readonly SignedCommand[]): readonly SignedCommand[] {
    let bytes = 0
    const end = commands.findIndex(({ body }, n) => {
      bytes += encoder.encode(body).length + 1
      return n === this.#limits.lines || (n > 0 && bytes > this.#limits.bytes)
    })
    return end < 0 ? commands : commands.slice(0, end)
  }

  /** A read that is repeated, with a new signature, until there is an answer: a signature expires after five minutes. */
  async #poll(given: Readonly<Record<string, unknown>>, signal: AbortSignal | undefined): Promise<unknown> {
    for (;;) {
      try {
        return await this.#call(given, pollPatienceMs, signal)
      } catch (error) {
        const isStale = error instanceof BoardError && error.code === 'stale_timestamp'
        const isLater = error instanceof BoardError && error.status === 429
        if (!(error instanceof NoAnswer) && !isStale && !isLater) throw error
        if (isStale) await this.#setClock()
        if (isLater) await sleep(Math.max(pauseMsMax, (error.retryAfter ?? 0) * 1000), signal)
      }
    }
  }

  async #call(given: Readonly<Record<string, unknown>>, patienceMs: number, signal?: AbortSignal): Promise<unknown> {
    if (this.key === undefined)
      return this.#send({ body: JSON.stringify(this.#plain(given)), eventId: '', sha256: '' }, patienceMs, signal)
    try {
      return await this.#send(await this.#sign(given), patienceMs, signal)
    } catch (error) {
      // Only a command that was certainly not accepted is signed a second time.
      if (!(error instanceof BoardError) || error.code !== 'stale_timestamp' || error.wasResent) throw error
      await this.#setClock()
      return this.#send(await this.#sign(given), patienceMs, signal)
    }
  }

  /** The fields as signed and sent. */
  #plain(given: Readonly<Record<string, unknown>>): Command {
    const { data } = given
    if (typeof data !== 'object' || data === null) return given as Command
    const version = this.#unversioned.has(given.operation) ? {} : { schema: 1 }
    return { ...given, data: JSON.stringify({ ...version, ...data }) } as Command
  }

  async #sign(given: Readonly<Record<string, unknown>>): Promise<SignedCommand> {
    const { key } = this
    if (key === undefined) throw new Error('signing needs a key: connect(address, { key })')
    const { board, own } = this.#clock
    const command = {
      ...this.#plain(given),
      public_key: key.publicKey,
      timestamp: Math.floor(board + (performance.now() - own) / 1000),
      nonce: base64url(crypto.getRandomValues(new Uint8Array(16))),
    }
    const bytes = signingBytes(this.#service, command)
    const digest = await sha256(bytes)
    const body = JSON.stringify({ ...command, signature: base64url(await key.sign(bytes)) })
    return { body, eventId: digest.slice(0, 32), sha256: digest }
  }

  async #send(command: SignedCommand, patienceMs: number, signal?: AbortSignal): Promise<unknown> {
    const until = performance.now() + patienceMs
    let { body } = command
    let wasResent = false
    for (let pause = pauseMsMin; ; pause = Math.min(pause * 2, pauseMsMax)) {
      const answer = await this.#post(body, signal)
      if ('data' in answer) return answer.data
      signal?.throwIfAborted()
      const bits = 'refused' in answer && !body.includes('"proof":"') ? proofBits(answer.refused) : undefined
      if (bits !== undefined && bits <= (this.#options.proofBitsMax ?? 20)) {
        body = `${body.slice(0, -1)},"proof":"${await solveProof(command.sha256, bits)}"}`
        continue
      }
      const wait = retryMs(answer, pause)
      if (wait === undefined || performance.now() + wait > until) {
        const outcome = this.#outcome(command, answer, wasResent)
        if (!outcome.ok) throw outcome.error
      }
      if ('failed' in answer) wasResent = true
      await sleep(wait ?? pause, signal)
    }
  }

  async #setClock(): Promise<void> {
    const begun = performance.now()
    const { unix } = Object(await this.#get('/time'))
    if (typeof unix !== 'number') throw new Error(`${this.address} does not report its time`)
    this.#clock = { board: unix, own: begun }
  }

  /** A read by plain GET, with the same retries. */
  async #get(path: string): Promise<unknown> {
    const until = performance.now() + this.#patienceMs
    for (let pause = pauseMsMin; ; pause = Math.min(pause * 2, pauseMsMax)) {
      const answer = await this.#ask(path, {})
      if ('data' in answer) return answer.data
      const wait = retryMs(answer, pause)
      if (wait === undefined || performance.now() + wait > until) {
        if ('failed' in answer) throw new NoAnswer(this.address, undefined, answer.failed)
        throw new BoardError(answer.refused, answer.status, false)
      }
      await sleep(wait)
    }
  }

  #post(body: string, signal?: AbortSignal): Promise<Answer> {
    const headers = { 'content-type': 'application/json' }
    return this.#ask('/v1/command', { method: 'POST', body, headers }, signal)
  }

  async #ask(path: string, request: RequestInit, signal?: AbortSignal): Promise<Answer> {
    try {
      const response = await this.#fetch(path, request, signal)
      return answerOf(parsed(await textOf(response)), response.status)
    } catch (failed) {
      return { failed }
    }
  }

  #fetch(path: string, request: RequestInit, signal?: AbortSignal): Promise<Response> {
    const limit = AbortSignal.timeout(requestMs)
    const either = signal === undefined ? limit : AbortSignal.any([limit, signal])
    return fetch(this.address + path, { ...request, redirect: 'manual', credentials: 'omit', signal: either })
  }

  /** The answers that arrived, by line. The last may be cut off. */
  async #postLines(commands: readonly SignedCommand[]): Promise<{ answers: Map<number, Answer>; failed: unknown }> {
    const answers = new Map<number, Answer>()
    const body = commands.map((each) => `${each.body}\n`).join('')
    const headers = { 'content-type': 'application/x-ndjson' }
    try {
      const response = await this.#fetch('/v1/commands', { method: 'POST', body, headers })
      if (!response.ok) {
        const whole = answerOf(parsed(await textOf(response)), response.status)
        for (const n of commands.keys()) answers.set(n + 1, whole)
        return { answers, failed: undefined }
      }
      for await (const line of linesOf(response)) {
        const answer = Object(parsed(line))
        answers.set(answer.line, answerOf(answer, answer.status))
      }
      return { answers, failed: 'the answer ended early' }
    } catch (failed) {
      return { answers, failed }
    }
  }
}

/** Where an event is. */
export type Place = { readonly room: string; readonly event_id: string }

export type FollowOptions = {
  /** All rooms when absent. */
  readonly rooms?: readonly string[]
  /** Types of updates; all when absent. */
  readonly kinds?: readonly Update['type'][]
  /** `cursor` of an earlier follow. */
  readonly cursor?: string
  /** Ends it. */
  readonly signal?: AbortSignal
}

type Ask = (cursor: string, wait: number) => Promise<Result<'updates.get'>>

/** Updates, for `for await`. Throws BoardError if the board ends it, for example with `private_room` or `expired`. */
export class Follow implements AsyncIterable<Update> {
  /** Everything before this cursor has been returned. Save it to resume: nothing is lost, but some updates may be repeated. */
  cursor: string
  readonly #ask: Ask
  readonly #signal: AbortSignal | undefined

  constructor(ask: Ask, cursor: string, signal: AbortSignal | undefined) {
    this.#ask = ask
    this.cursor = cursor
    this.#signal = signal
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Update, void> {
    while (this.#signal?.aborted !== true) {
      let answer: Result<'updates.get'>
      try {
        answer = await this.#ask(this.cursor, 25)
      } catch (error) {
        if (Object(error) === this.#signal?.reason) return
        throw error
      }
      yield* answer.updates
      this.cursor = answer.cursor
    }
  }
}

/** Something failed verification. `line`: of an export, counted from 1. */
export class NotVerified extends Error {
  override readonly name = 'NotVerified'
  readonly line: number | undefined

  constructor(reason: string, line?: number) {
    super(line === undefined ? reason : `line ${line}: ${reason}`)
    this.line = line
  }
}

type Json = Readonly<Record<string, unknown>>

/** What a proof shows. */
export type Proven = {
  readonly eventId: string
  /** Index of its leaf, and the number of all leaves under the signed head. */
  readonly index: number
  readonly size: number
  readonly origin: string
}

/**
 * Checks the answer of `log.proof`: the entry of the event must be in the log whose key is pinned. `vkey`: as you saved it from /log/vkey
 * or /capabilities. Throws NotVerified.
 */
export async function verifyProof(proof: object, { vkey }: { readonly vkey: string }): Promise<Proven> {
  const { entry, leaf_index: index, inclusion_path: path, checkpoint, signed_payload, event_id } = proof as Json
  const bytes = bytesOf(entry, 'the entry')
  const lines = linesIn(bytes)
  const command = lines.get('command') ?? ''
  const event = lines.get('event') ?? ''
  if (!/^[0-9a-f]{64}$/.test(command) || command.slice(0, 32) !== event || event !== event_id)
    throw new NotVerified('the entry is not that of the event')
  if (signed_payload !== undefined && (await sha256(encoder.encode(String(signed_payload)))) !== command)
    throw new NotVerified('the signed bytes do not hash to the command of the entry')
  const head = await openCheckpoint(String(checkpoint), vkey)
  if (!Array.isArray(path) || path.length > 63) throw new NotVerified('inclusion_path is not a list of hashes')
  const siblings = path.map((hash: unknown) => {
    if (typeof hash !== 'string' || !/^[0-9a-f]{64}$/.test(hash)) throw new NotVerified('a hash in the path is invalid')
    return bytesOfHex(hash)
  })
  const isIndex = typeof index === 'number' && Number.isSafeInteger(index) && index >= 0 && index < head.size
  if (!isIndex) throw new NotVerified('leaf_index is not the number of a leaf of this log')
  const root = await rootFrom(await leafHash(bytes), { index, size: head.size, siblings })
  if (root === undefined || base64Of(root) !== head.root)
    throw new NotVerified('the path does not lead from the entry to the root that the checkpoint signs')
  return { eventId: event, index, size: head.size, origin: head.origin }
}

/** RFC 9162 section 2.1.3.2; undefined if the path has the wrong length. */
async function rootFrom(
  leaf: Bytes,
  { index, size, siblings }: { readonly index: number; readonly size: number; readonly siblings: readonly Bytes[] },
): Promise<Bytes | undefined> {
  let [node, at, last] = [leaf, index, size - 1]
  for (const sibling of siblings) {
    if (last === 0) return undefined
    if (at % 2 === 1 || at === last) {
      node = await nodeHash(sibling, node)
      while (at % 2 === 0 && at !== 0) [at, last] = [at / 2, Math.floor(last / 2)]
    } else node = await nodeHash(node, sibling)
    ;[at, last] = [Math.floor(at / 2), Math.floor(last / 2)]
  }
  return last === 0 ? node : undefined
}

/** The contents of an export: counts of its lines, and the head that covers them. */
export type ExportFacts = {
  readonly events: number
  readonly tombstones: number
  readonly leaves: number
  readonly origin: string
  readonly size: number
}

/**
 * Checks a complete export (/v1/export): each signature, and the ids of events and authors. Text, room and author must be those that were
 * signed, and every line must be the leaf it names in the log whose key is pinned. Throws NotVerified at the first fault. `broadside
 * verify` also checks every other field.
 */
export async function verifyExport(
  lines: Iterable<string> | AsyncIterable<string>,
  { vkey }: { readonly vkey: string },
): Promise<ExportFacts> {
  const check = new ExportCheck(vkey)
  let number = 0
  for await (const line of lines) {
    number += 1
    if (line.trim() === '') continue
    try {
      await check.take(Object(parsed(line)), number)
    } catch (error) {
      if (!(error instanceof NotVerified) || error.line !== undefined) throw error
      throw new NotVerified(error.message, number)
    }
  }
  return check.end()
}

type Claim = { readonly index: number; readonly hash: string; readonly line: number }
type Head = { readonly origin: string; readonly size: number; readonly root: string }
const leafBytes = 32

class ExportCheck {
  readonly #keys = new Map<string, string>()
  readonly #claims = new Map<string, Claim[]>()
  /** Identity of a key that it got by rotation. */
  readonly #owners = new Map<string, string>()
  #leaves: Bytes[] = []
  #origin: string | undefined
  /** What the previous, closed log says about its successor. */
  #successor: { readonly origin: string; readonly open: string } | undefined
  #head: Head | undefined
  #counts = { events: 0, tombstones: 0, leaves: 0 }

  constructor(vkey: string) {
    this.#keys.set(vkeyOf(vkey).name, vkey)
  }

  async take(line: Json, number: number): Promise<void> {
    if (this.#head !== undefined) throw new NotVerified('a line follows the end')
    if (line.type === 'leaves') return this.#takeLeaves(line)
    if (line.type === 'log') return this.#takeClosed(line)
    if (line.type === 'end') return this.#takeEnd(line)
    const { type, event_id: id, command_sha256: command } = line
    // A record that the board itself could not read is identified by its leaf, which the root covers.
    if (type === 'unreadable') return
    if (typeof command !== 'string' || !/^[0-9a-f]{64}$/.test(command) || command.slice(0, 32) !== id)
      throw new NotVerified('event_id is not the first half of command_sha256')
    if (type === 'event') await this.#takeEvent(line)
    else if (type === 'rotation') await this.#takeRotation(line)
    else if (type === 'tombstone') this.#takeTombstone(line)
    else if (type === 'undelegation') await this.#takeUndelegation(line)
    else throw new NotVerified(`lines of type ${String(type)} are not known`)
    await this.#claim(line, number)
  }

  async #takeEvent(line: Json): Promise<void> {
    const { author, text, room, delegation } = line
    const { id, public_key: key } = Object(author)
    const { command } = await openPayload(line, line.command_sha256)
    if (command.public_key !== key) throw new NotVerified('the signed bytes name a key other than the author’s')
    await checkSignature(line.signed_payload, line.signature, key)
    let own: unknown = key
    if (delegation !== undefined) {
      const given = Object(delegation)
      const made = await openPayload(given)
      if (made.command.operation !== 'delegation.create' || made.command.target !== key)
        throw new NotVerified('the delegation is for another key than the one that signed')
      if (given.id !== made.sha256.slice(0, 32)) throw new NotVerified('the id of the delegation is another')
      own = made.command.public_key
      await checkSignature(given.signed_payload, given.signature, own)
    }
    if (id !== (await this.#ownerOf(own))) throw new NotVerified('the author’s id is not that of the key')
    if (command.text !== text) throw new NotVerified('the text is not what was signed')
    if (command.room !== undefined && command.room !== room) throw new NotVerified('the room is not what was signed')
    this.#counts.events += 1
  }

  async #takeRotation(line: Json): Promise<void> {
    const { command } = await openPayload(line, line.command_sha256)
    const { operation, public_key: from, target: to } = command
    if (operation !== 'identity.rotate') throw new NotVerified('the signed bytes are for another operation')
    await checkSignature(line.signed_payload, line.signature, from)
    await checkSignature(line.signed_payload, line.proof, to)
    this.#owners.set(String(to), await this.#ownerOf(from))
  }

  #takeTombstone({ text }: Json): void {
    if (text !== undefined) throw new NotVerified('a tombstone still has its text')
    this.#counts.tombstones += 1
  }

  /** The end of a delegation is signed if its identity revoked it. */
  async #takeUndelegation(line: Json): Promise<void> {
    if (line.ended_by !== 'revoked' && line.signature === undefined) return
    const { command } = await openPayload(line, line.command_sha256)
    if (command.operation !== 'delegation.revoke') throw new NotVerified('the signed bytes are for another operation')
    await checkSignature(line.signed_payload, line.signature, command.public_key)
  }

  async #ownerOf(publicKey: unknown): Promise<string> {
    const key = String(publicKey)
    return this.#owners.get(key) ?? (await sha256(fromBase64url(key)))
  }

  /** The leaves that a line claims to be: its own, and that of its redaction. */
  async #claim(line: Json, number: number): Promise<void> {
    const { type, room, seq, event_id, delegation_id, redaction } = line
    const kind = { event: 'post', tombstone: 'post', rotation: 'rotate', undelegation: 'undelegate' }[String(type)]
    const isPost = kind === 'post'
    const place = { room: isPost ? room : '-', seq: isPost ? seq : '-' }
    const target = type === 'undelegation' ? delegation_id : undefined
    await this.#claimOne(line, { kind, ...place, target }, number)
    if (redaction !== undefined)
      await this.#claimOne(Object(redaction), { kind: 'redact', ...place, target: event_id }, number)
  }

  async #claimOne(of: Json, { kind, room, seq, target }: Json, line: number): Promise<void> {
    const { state, origin, index } = Object(of.log)
    if (state !== 'included' || typeof origin !== 'string' || !Number.isSafeInteger(index))
      throw new NotVerified('log names no leaf')
    const { created_at: time, command_sha256: command } = of
    const about = target === undefined ? '' : `target ${target}\n`
    const entry = `broadside/entry@v1\nkind ${kind}\nevent ${String(command).slice(0, 32)}\nroom ${room}\nseq ${seq}\ntime ${time}\ncommand ${command}\n${about}`
    const claims = this.#claims.get(origin) ?? []
    this.#claims.set(origin, claims)
    claims.push({ index, hash: base64Of(await leafHash(encoder.encode(entry))), line })
  }

  #takeLeaves({ origin, start, hashes }: Json): void {
    const bytes = bytesOf(hashes, 'hashes')
    this.#origin ??= String(origin)
    if (origin !== this.#origin || start !== this.#leaves.length || bytes.length % leafBytes !== 0)
      throw new NotVerified('the leaves do not continue the previous ones')
    for (let at = 0; at < bytes.length; at += leafBytes) this.#leaves.push(bytes.slice(at, at + leafBytes))
  }

  /** The end of a closed log: its key is the one named by the previous log, and it names the next one. */
  async #takeClosed({ origin, checkpoint, close, open, next: named }: Json): Promise<void> {
    const [last, first] = [bytesOf(close, 'close'), bytesOf(open, 'open')]
    const lines = linesIn(last)
    const begun = linesIn(first)
    // If a log's end is lost, the next log says so, and no entry names its key.
    const isLost = begun.get('lost') === `after ${begun.get('size')}`
    const [next = '', nextVkey = ''] = (isLost ? String(named) : (lines.get('next') ?? '')).split(' ')
    const own = this.#leaves.at(-1)
    if (origin !== this.#origin || own === undefined || base64Of(await leafHash(last)) !== base64Of(own))
      throw new NotVerified('the close entry is not the last leaf of the log')
    const key = this.#keys.get(String(origin))
    const head = key === undefined ? checkpointIn(String(checkpoint)) : await openCheckpoint(String(checkpoint), key)
    await this.#endLog(head)
    const root = base64Of(bytesOfHex(begun.get('root') ?? ''))
    if (begun.get('previous') !== head.origin || begun.get('size') !== String(head.size) || root !== head.root)
      throw new NotVerified('the first entry of the next log does not name the end of this one')
    if (key !== undefined && !isLost && vkeyOf(nextVkey).name === next && !this.#keys.has(next))
      this.#keys.set(next, nextVkey)
    this.#successor = { origin: next, open: base64Of(await leafHash(first)) }
  }

  async #takeEnd({ checkpoint }: Json): Promise<void> {
    const { origin } = checkpointIn(String(checkpoint))
    const key = this.#keys.get(origin)
    if (key === undefined) throw new NotVerified(`the log is ${origin}, whose key is not the one that is pinned`)
    this.#head = await openCheckpoint(String(checkpoint), key)
    await this.#endLog(this.#head)
  }

  /** All leaves of a log have arrived: checks its root, and the leaves that the lines claim to be. */
  async #endLog(head: Head): Promise<void> {
    const leaves = this.#leaves
    if (this.#origin !== undefined && head.origin !== this.#origin)
      throw new NotVerified('the checkpoint is of another log than the leaves')
    if (this.#successor !== undefined) {
      const { origin, open } = this.#successor
      if (head.origin !== origin || leaves[0] === undefined || base64Of(leaves[0]) !== open)
        throw new NotVerified('the log is not the one that the closed log names')
    }
    if (head.size !== leaves.length) throw new NotVerified(`the checkpoint covers ${head.size} leaves, not these`)
    if (base64Of(await treeRoot(leaves)) !== head.root)
      throw new NotVerified('the root of the leaves is not the one that the checkpoint signs')
    for (const { index, hash, line } of this.#claims.get(head.origin) ?? []) {
      const leaf = leaves[index]
      if (leaf === undefined || base64Of(leaf) !== hash)
        throw new NotVerified(`its entry is not leaf ${index} of the log`, line)
    }
    this.#claims.delete(head.origin)
    this.#counts.leaves += leaves.length
    this.#leaves = []
    this.#origin = undefined
    this.#successor = undefined
  }

  end(): ExportFacts {
    if (this.#head === undefined) throw new NotVerified('the export is not complete: it has no end')
    const [unproved] = [...this.#claims.values()].flat()
    if (unproved !== undefined) throw new NotVerified('it names a log whose leaves are not there', unproved.line)
    const { origin, size } = this.#head
    return { ...this.#counts, origin, size }
  }
}

/** The signed bytes as a command, if they have the stated hash. */
async function openPayload(
  { signed_payload: text }: Json,
  stated?: unknown,
): Promise<{ readonly command: Json; readonly sha256: string }> {
  if (typeof text !== 'string') throw new NotVerified('there is no signed_payload')
  const digest = await sha256(encoder.encode(text))
  if (stated !== undefined && digest !== stated)
    throw new NotVerified('command_sha256 is not the hash of the signed bytes')
  const { service, command } = Object(parsed(text))
  // Each command has exactly one encoding; otherwise two readers could interpret the same bytes differently.
  const isCanonical = typeof service === 'string' && sameBytes(signingBytesOr(service, Object(command)), text)
  if (!isCanonical) throw new NotVerified('the signed_payload is not in the form of signing bytes')
  return { command: Object(command), sha256: digest }
}

function signingBytesOr(service: string, command: Command): Bytes | undefined {
  try {
    return signingBytes(service, command)
  } catch {
    return undefined
  }
}

function sameBytes(bytes: Bytes | undefined, text: string): boolean {
  return bytes !== undefined && new TextDecoder().decode(bytes) === text
}

async function checkSignature(text: unknown, signature: unknown, publicKey: unknown): Promise<void> {
  const [key, given] = [publicKey, signature].map((each) =>
    typeof each === 'string' && /^([\w-]{43}|[\w-]{86})$/.test(each) ? fromBase64url(each) : new Uint8Array(),
  ) as [Bytes, Bytes]
  if (!(await isSigned(key, given, encoder.encode(String(text))))) throw new NotVerified('a signature does not verify')
}

async function isSigned(publicKey: Bytes, signature: Bytes, message: Bytes): Promise<boolean> {
  try {
    const key = await crypto.subtle.importKey('raw', publicKey, 'Ed25519', false, ['verify'])
    return await crypto.subtle.verify('Ed25519', key, signature, message)
  } catch {
    return false
  }
}

/** `name+id+base64 of the type and the key` (C2SP signed-note). */
function vkeyOf(vkey: string): { readonly name: string; readonly publicKey: Bytes } {
  const [, name = '', material = ''] = /^([^+\s]+)\+[0-9a-f]{8}\+([\w+/=]+)$/.exec(vkey) ?? []
  const bytes = /^[A-Za-z0-9+/]{44}$/.test(material) ? fromBase64url(material) : new Uint8Array()
  if (name === '' || bytes.length !== 33 || bytes[0] !== 1) throw new TypeError(`${vkey} is not the key of a log`)
  return { name, publicKey: bytes.slice(1) }
}

/** Parses the text of a signed note (an origin, a size and a root) without verifying anything. */
function checkpointIn(note: string): Head {
  const [text = ''] = note.split('\n\n')
  const [origin = '', size = '', root = ''] = text.split('\n')
  if (origin === '' || !/^(0|[1-9]\d{0,15})$/.test(size) || !/^[A-Za-z0-9+/]{43}=$/.test(root))
    throw new NotVerified('the checkpoint cannot be read')
  return { origin, size: Number(size), root }
}

async function openCheckpoint(note: string, vkey: string): Promise<Head> {
  const { name, publicKey } = vkeyOf(vkey)
  const head = checkpointIn(note)
  const end = note.indexOf('\n\n')
  const signatures = note.slice(end + 2).split('\n')
  const message = encoder.encode(note.slice(0, end + 1))
  for (const line of signatures) {
    const [mark, signer, base64 = ''] = line.split(' ')
    if (mark !== '\u2014' || signer !== name || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) continue
    const bytes = fromBase64url(base64)
    if (bytes.length === 68 && head.origin === name && (await isSigned(publicKey, bytes.slice(4), message))) return head
  }
  throw new NotVerified('the checkpoint is not signed by the key that is pinned')
}

type Bytes = Uint8Array<ArrayBuffer>

/** RFC 9162 section 2.1.1: hashes the pairs of each level, and passes on an odd last node unchanged. */
async function treeRoot(leaves: readonly Bytes[]): Promise<Bytes> {
  if (leaves.length === 0) return new Uint8Array(await crypto.subtle.digest('SHA-256', new Uint8Array()))
  let level = leaves
  while (level.length > 1) {
    const above: Bytes[] = []
    for (let at = 0; at < level.length; at += 1024) {
      const part = level.slice(at, at + 1024)
      const pairs = Array.from({ length: Math.ceil(part.length / 2) }, (_, n) => n * 2)
      above.push(
        ...(await Promise.all(
          pairs.map((n) => (part[n + 1] === undefined ? part[n]! : nodeHash(part[n]!, part[n + 1]!))),
        )),
      )
    }
    level = above
  }
  return level[0]!
}

async function leafHash(entry: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', Uint8Array.of(0, ...entry)))
}

async function nodeHash(left: Bytes, right: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', Uint8Array.of(1, ...left, ...right)))
}

/** The lines of a log entry, by their first word. */
function linesIn(entry: Bytes): ReadonlyMap<string, string> {
  const lines = new TextDecoder().decode(entry).split('\n')
  if (lines.pop() !== '' || lines.shift() !== 'broadside/entry@v1') throw new NotVerified('an entry cannot be read')
  return new Map(lines.map((line) => [line.split(' ', 1)[0]!, line.slice(line.indexOf(' ') + 1)]))
}

function bytesOf(base64: unknown, what: string): Bytes {
  if (typeof base64 !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64) || base64.length % 4 !== 0)
    throw new NotVerified(`${what} is not base64`)
  return fromBase64url(base64)
}

function bytesOfHex(hex: string): Bytes {
  return /^([0-9a-f]{2})+$/.test(hex)
    ? Uint8Array.from(hex.match(/../g)!, (pair) => Number.parseInt(pair, 16))
    : new Uint8Array()
}

function base64Of(bytes: Bytes): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return btoa(text)
}

/** Milliseconds until the same bytes may be sent again; undefined if the answer is final. */
function retryMs(answer: Answer, pause: number): number | undefined {
  if ('failed' in answer) return pause
  if ('data' in answer || answer.status !== 429) return undefined
  return Math.max(pause, (answer.refused.retry_after ?? 0) * 1000)
}

function answerOf(body: unknown, status: number): Answer {
  const { ok, data, error } = Object(body)
  if (ok === true) return { data }
  // A fault of the board or of a proxy says nothing about the outcome.
  const isRefusal = typeof error?.code === 'string'
  if (status >= 500 || (!isRefusal && status >= 200 && status < 300)) return { failed: `status ${status}` }
  if (isRefusal) return { refused: refusalIn(error), status }
  return { refused: { code: 'no_board', message: `status ${status} without an answer of a board` }, status }
}

/** The fields of a refusal, as far as they have the right types. */
function refusalIn({ code, message, field, retry_after, details }: Readonly<Record<string, unknown>>): Refusal {
  return {
    code: String(code),
    message: typeof message === 'string' ? message : 'no reason was given',
    ...(typeof field === 'string' ? { field } : {}),
    ...(typeof retry_after === 'number' && retry_after >= 0 ? { retry_after } : {}),
    ...(typeof details === 'object' && details !== null ? { details: { ...details } } : {}),
  }
}

/** Pieces of text, up to the maximum length of a board's answer in total. */
async function* piecesOf(response: Response, isWhole: boolean): AsyncGenerator<string, void> {
  if (response.body === null) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (let length = 0; ; ) {
      const { done, value } = await reader.read()
      if (done) return
      length = isWhole || !value.includes('\n') ? length + value.length : 0
      if (length > answerCharsMax) throw new Error(`the answer is longer than ${answerCharsMax} characters`)
      yield value
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

async function textOf(response: Response): Promise<string> {
  let text = ''
  for await (const piece of piecesOf(response, true)) text += piece
  return text
}

async function* linesOf(response: Response): AsyncGenerator<string, void> {
  let text = ''
  for await (const piece of piecesOf(response, false)) {
    const lines = (text + piece).split('\n')
    text = lines.pop() ?? ''
    yield* lines
  }
}

/** Undefined for what is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Bits of proof of work that a room or board requires for this command. */
function proofBits({ code, message }: Refusal): number | undefined {
  const [, bits] = code === 'proof_required' ? (/ (\d+) bits of work/.exec(message) ?? []) : []
  return bits === undefined ? undefined : Number(bits)
}

/** Counts up until the hash begins with that many zero bits: 2^bits tries on average. */
export async function solveProof(commandSha256: string, bits: number): Promise<string> {
  const head = `broadside-proof-v1\n${commandSha256}\n`
  for (let counter = 0; ; counter += 512) {
    const tries = Array.from({ length: 512 }, (_, n) =>
      crypto.subtle.digest('SHA-256', encoder.encode(head + (counter + n))),
    )
    const hashes = await Promise.all(tries)
    const found = hashes.findIndex((hash) => zeroBitsOf(hash) >= bits)
    if (found >= 0) return `${bits}.${counter + found}`
  }
}

function zeroBitsOf(hash: ArrayBuffer): number {
  const words = new DataView(hash)
  let bits = 0
  for (let at = 0; at < hash.byteLength; at += 4) {
    const zeros = Math.clz32(words.getUint32(at))
    bits += zeros
    if (zeros < 32) break
  }
  return bits
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}

function fromBase64url(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    const abort = () => {
      clearTimeout(timer)
      failed(signal?.reason)
    }
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', abort)
        done()
      },
      Math.min(ms, 2 ** 31 - 1),
    )
    signal?.addEventListener('abort', abort)
  })
}
