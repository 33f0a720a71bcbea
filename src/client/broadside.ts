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
  /** An earlier attempt had no answer. */
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

/** An Ed25519 key. Its secret half is kept inside, and only `toFile` shows it. */
export type Key = {
  /** base64url, 43 characters. */
  readonly publicKey: string
  /** Hex SHA-256 of the public key. It names your identity as long as you do not rotate your first key. */
  readonly id: string
  readonly sign: (message: Uint8Array<ArrayBuffer>) => Promise<Uint8Array>
  /** The text of a key file. Anyone who has it can sign as you. */
  readonly toFile: () => string
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
  const secret = base64url(seed)
  return {
    publicKey,
    id,
    sign: async (message) => new Uint8Array(await crypto.subtle.sign('Ed25519', key, message)),
    toFile: () => `${JSON.stringify({ type: 'broadside-key', public_key: publicKey, id, seed: secret })}\n`,
  }
}

/** Reads the text of a key file: JSON of `broadside keygen`, `toFile` or a page of a board, or a PKCS#8 PEM of OpenSSL. */
export async function importKey(text: string): Promise<Key> {
  const { seed, publicKey } = text.includes('-----BEGIN') ? seedOfPem(text) : seedOfJson(text)
  if (seed?.length !== 32) throw new TypeError('the text contains no Ed25519 key')
  const key = await keyFromSeed(seed)
  // A file whose two halves disagree was edited by hand: signing with it would make another person.
  if (publicKey !== undefined && publicKey !== key.publicKey)
    throw new TypeError('the public and private halves of this key do not match')
  return key
}

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

/** The key in a file, which is created if there is none. For Node, Deno and Bun. */
export async function loadKey(path: string): Promise<Key> {
  // A name that bundlers for browsers do not follow.
  const module = 'node:fs/promises'
  const files: typeof import('node:fs/promises') = await import(module)
  const fresh = await createKey()
  try {
    await files.writeFile(path, fresh.toFile(), { flag: 'wx', mode: 0o600 })
    return fresh
  } catch (error) {
    if (Object(error).code !== 'EEXIST') throw error
  }
  const { mode, size } = await files.stat(path)
  // Windows has no such bits and shows all of them.
  if ((mode & 0o077) !== 0 && (mode & 0o777) !== 0o666)
    throw new Error(`others can read the key file ${path}: restrict it to yourself with chmod 600`)
  if (size > keyFileBytesMax) throw new Error(`${path} is too long to be a key file`)
  try {
    return await importKey(await files.readFile(path, 'utf8'))
  } catch (cause) {
    throw new Error(`${path} is no key file: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}

/** The bytes that Ed25519 signs. Throws TypeError, with the name of the field, for what JSON cannot keep. */
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
  /** Seconds to go on trying, where no answer comes or the board says to wait. 120 when absent. */
  readonly patience?: number
  /** Most bits of work to do for a room that requires it; 20 when absent. */
  readonly proofBitsMax?: number
}

/** Asks the board for its service id and its time. */
export async function connect(address: string, options: ConnectOptions = {}): Promise<Board> {
  const key = typeof options.key === 'string' ? await loadKey(options.key) : options.key
  const board = new Board(address, key, options)
  await board.refresh()
  return board
}

/** What came back from one request. */
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
  /** The board's time and ours, at the same moment. */
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

  /** Asks again for the service id, limits and time. */
  async refresh(): Promise<void> {
    const { service_id: service, limits, operations } = Object(await this.#get('/capabilities'))
    if (typeof service !== 'string') throw new Error(`${this.address} is no Broadside board: it has no service_id`)
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

  /** Posts a new version of an event of yours. */
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
   * Follows a room, or several, or (with none) the whole board. Everything after this call is included; with a `cursor`,
   * everything after it. It continues over lost connections and restarts of the board.
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

  /** The same for commands that are signed already. Lines without an outcome are sent again. */
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

  /** As many as one request may have. */
  #firstOf(commands: readonly SignedCommand[]): readonly SignedCommand[] {
    let bytes = 0
    const end = commands.findIndex(({ body }, n) => {
      bytes += encoder.encode(body).length + 1
      return n === this.#limits.lines || (n > 0 && bytes > this.#limits.bytes)
    })
    return end < 0 ? commands : commands.slice(0, end)
  }

  /** A read that is asked, and signed anew, until there is an answer: a signature is too old after five minutes. */
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
      // Only what was certainly not accepted is signed a second time.
      if (!(error instanceof BoardError) || error.code !== 'stale_timestamp' || error.wasResent) throw error
      await this.#setClock()
      return this.#send(await this.#sign(given), patienceMs, signal)
    }
  }

  /** The fields as they are signed and sent. */
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
    if (typeof unix !== 'number') throw new Error(`${this.address} does not tell its time`)
    this.#clock = { board: unix, own: begun }
  }

  /** A read by plain GET, with the same patience. */
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
      return answerOf(parsed(await response.text()), response.status)
    } catch (failed) {
      return { failed }
    }
  }

  #fetch(path: string, request: RequestInit, signal?: AbortSignal): Promise<Response> {
    const limit = AbortSignal.timeout(requestMs)
    const either = signal === undefined ? limit : AbortSignal.any([limit, signal])
    return fetch(this.address + path, { ...request, redirect: 'manual', credentials: 'omit', signal: either })
  }

  /** The answers that arrived, by their line. The last of them may be cut off. */
  async #postLines(commands: readonly SignedCommand[]): Promise<{ answers: Map<number, Answer>; failed: unknown }> {
    const answers = new Map<number, Answer>()
    const body = commands.map((each) => `${each.body}\n`).join('')
    const headers = { 'content-type': 'application/x-ndjson' }
    try {
      const response = await this.#fetch('/v1/commands', { method: 'POST', body, headers })
      if (!response.ok) {
        const whole = answerOf(parsed(await response.text()), response.status)
        for (const n of commands.keys()) answers.set(n + 1, whole)
        return { answers, failed: undefined }
      }
      for await (const line of linesOf(response)) {
        const told = Object(parsed(line))
        answers.set(told.line, answerOf(told, told.status))
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

/** Updates, for `for await`. Throws BoardError where the board ends it, for example `private_room` or `expired`. */
export class Follow implements AsyncIterable<Update> {
  /** Everything before it has been handed out and asked beyond. Keep it to resume: nothing is lost, some may come again. */
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

/** Milliseconds until the same bytes may be sent again; undefined: the answer is final. */
function retryMs(answer: Answer, pause: number): number | undefined {
  if ('failed' in answer) return pause
  if ('data' in answer || answer.status !== 429) return undefined
  return Math.max(pause, (answer.refused.retry_after ?? 0) * 1000)
}

function answerOf(told: unknown, status: number): Answer {
  const { ok, data, error } = Object(told)
  if (ok === true) return { data }
  // A fault of the board or of a proxy says nothing about the outcome.
  const isRefusal = typeof error?.code === 'string'
  if (status >= 500 || (!isRefusal && status >= 200 && status < 300)) return { failed: `status ${status}` }
  if (isRefusal) return { refused: error, status }
  return { refused: { code: 'no_board', message: `status ${status} without an answer of a board` }, status }
}

async function* linesOf(response: Response): AsyncGenerator<string, void> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (text + value).split('\n')
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

/** Bits of work that a room or board requires of this command. */
function proofBits({ code, message }: Refusal): number | undefined {
  const [, bits] = code === 'proof_required' ? (/ (\d+) bits of work/.exec(message) ?? []) : []
  return bits === undefined ? undefined : Number(bits)
}

/** Counts up until the hash begins with that many zero bits: 2^bits tries on average. */
async function solveProof(commandSha256: string, bits: number): Promise<string> {
  const head = `broadside-proof-v1\n${commandSha256}\n`
  for (let counter = 0; ; counter += 512) {
    const tries = Array.from({ length: 512 }, (_, n) =>
      crypto.subtle.digest('SHA-256', encoder.encode(head + (counter + n))),
    )
    const hashes = await Promise.all(tries)
    const found = hashes.findIndex((hash) => Math.clz32(new DataView(hash).getUint32(0)) >= bits)
    if (found >= 0) return `${bits}.${counter + found}`
  }
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
