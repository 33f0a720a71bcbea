/** A client of a board for tests: signs any command, including those that no honest client sends, and returns the answer unchanged. */
import { createHash, randomBytes } from 'node:crypto'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'
import { opensslSigner, type Signer } from '../../src/cli/sign.ts'
import { type FieldValue, signingBytes } from '../../src/format/signing.ts'
import { patience } from './patience.ts'

export type Fields = { readonly operation: string } & { readonly [field: string]: FieldValue }

export type EventJson = {
  readonly type: string
  readonly event_id: string
  readonly room: string
  readonly page: string
  readonly seq: number
  readonly kind: string
  readonly author: { readonly id: string; readonly public_key: string; readonly handle?: string }
  readonly text?: string
  readonly reply_to?: string
  readonly thread: string
  readonly created_at: number
  readonly hidden: boolean
  readonly reason?: string
  readonly signature?: string
  readonly signed_payload?: string
  readonly log: { readonly state: string; readonly index?: number }
}

export type ReceiptJson = {
  readonly event_id: string
  readonly command_sha256: string
  readonly accepted_at: number
  readonly duplicate?: true
  readonly log_index?: number
  readonly tree_size?: number
  readonly checkpoint?: string
}

export type ProofJson = {
  readonly log: { readonly origin: string; readonly vkey: string }
  readonly event_id: string
  readonly leaf_index: number
  readonly leaf_hash: string
  readonly entry: string
  readonly tree_size: number
  readonly root_hash: string
  readonly inclusion_path: readonly string[]
  readonly checkpoint: string
  readonly signed_payload?: string
}

export type RoomJson = {
  readonly name: string
  readonly visibility: string
  readonly owner?: string
  readonly count: number
  readonly threads: number
}

/** Everything that `data` of an answer may contain here; a test names what it expects. */
export type Data = Partial<ProofJson> & {
  readonly event?: EventJson
  readonly events?: readonly EventJson[]
  readonly receipt?: ReceiptJson
  readonly room?: RoomJson | string
  readonly rooms?: readonly RoomJson[]
  readonly pages?: readonly { readonly name: string; readonly count: number; readonly threads: number }[]
  readonly identity?: { readonly id: string; readonly handle?: string; readonly events: number }
  readonly identities?: readonly { readonly id: string; readonly handle?: string; readonly events: number }[]
  readonly stats?: Readonly<Record<string, number>>
  readonly handle_not_applied?: string
  readonly next_cursor?: string
  readonly has_more?: boolean
  readonly root_id?: string
  readonly requested_event_id?: string
  readonly page?: string
  readonly service_id?: string
}

export type Answer = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly data: Data
  /** Code of the refusal, or undefined. */
  readonly code: string | undefined
  readonly field: string | undefined
}

export type SigningOptions = { readonly timestamp?: number; readonly nonce?: string; readonly serviceId?: string }

/** A signed command: the body to send, any number of times. */
export type SignedCommand = { readonly body: string; readonly eventId: string; readonly sha256: string }

/** The same name always gives the same person. */
export function person(name: string): Signer {
  const seed = createHash('sha256').update(`test person ${name}`).digest()
  const signer = opensslSigner(seed)
  seeds.set(signer.publicKey, seed)
  return signer
}

/** Secret bytes of persons by public key, for programs that read them from a file. */
const seeds = new Map<string, Buffer>()
export function seedOf({ publicKey }: Signer): Buffer {
  return seeds.get(publicKey)!
}

/** A connection that was idle for this long is not used again. */
const idleMsMax = 4_000

export class Client {
  readonly address: string
  readonly serviceId: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64, scheduling: 'fifo' })
  readonly #freeSince = new WeakMap<Socket, number>()
  readonly #headers: Readonly<Record<string, string>>

  /** `headers`: sent with every request. */
  constructor(address: string, serviceId: string, headers: Readonly<Record<string, string>> = {}) {
    this.address = address
    this.serviceId = serviceId
    this.#headers = headers
    this.#agent.on('free', (socket: Socket) => this.#freeSince.set(socket, performance.now()))
  }

  /** A client that has fetched the board's service id. */
  static async of({ address }: { readonly address: string }): Promise<Client> {
    const nameless = new Client(address, '')
    const { data } = await nameless.get('/capabilities')
    nameless.close()
    return new Client(address, data.service_id!)
  }

  /** A client at this address, to a board that runs with TRUST_PROXY=x-client. */
  from(address: string): Client {
    return new Client(this.address, this.serviceId, { 'x-client': address })
  }

  sign(
    signer: Signer,
    fields: Fields,
    { timestamp = now(), nonce = newNonce(), serviceId }: SigningOptions = {},
  ): SignedCommand {
    const command = { ...fields, public_key: signer.publicKey, timestamp, nonce }
    const bytes = signingBytes(serviceId ?? this.serviceId, command)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const signature = signer.sign(bytes).toString('base64url')
    return { body: JSON.stringify({ ...command, signature }), eventId: sha256.slice(0, 32), sha256 }
  }

  /** Signs a command and sends it. */
  command(signer: Signer, fields: Fields, signing: SigningOptions = {}): Promise<Answer> {
    return this.send(this.sign(signer, fields, signing).body)
  }

  post(
    signer: Signer,
    fields: { readonly [field: string]: FieldValue },
    signing: SigningOptions = {},
  ): Promise<Answer> {
    return this.command(signer, { operation: 'post', ...fields }, signing)
  }

  /** Sends a body to the command endpoint. Rejects if the connection ends without an answer. */
  send(body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.#request('POST', '/v1/command', body, headers)
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.#request('GET', path, undefined, headers)
  }

  /** The same, retried while the board is overloaded, which is a correct answer on a slow machine. */
  async getWithRetries(path: string): Promise<Answer> {
    const until = performance.now() + patience.timeout
    for (;;) {
      const answer = await this.get(path)
      if (answer.code !== 'overloaded' || performance.now() > until) return answer
      await sleep(Number(answer.headers['retry-after']) * 1_000)
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  /** The board closes connections that were idle for 10 s: no request is sent on one that it may be closing at that moment. */
  #dropIdle(): void {
    const oldest = performance.now() - idleMsMax
    for (const socket of Object.values(this.#agent.freeSockets).flatMap((sockets) => sockets ?? []))
      if (this.#freeSince.get(socket)! < oldest) socket.destroy()
  }

  async #request(
    method: string,
    path: string,
    body: string | Uint8Array | undefined,
    headers: Readonly<Record<string, string>>,
  ): Promise<Answer> {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    // A thousand commands may be signed in one go. Meanwhile connections grow older, and nothing is sent.
    await immediate()
    this.#dropIdle()
    return new Promise((resolve, reject) => {
      const sent = request(
        `${this.address}${path}`,
        { method, agent: this.#agent, headers: { ...length, ...this.#headers, ...headers } },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('error', reject)
          response.on('close', () => {
            if (!response.complete) return reject(new Error('the connection ended in the middle of an answer'))
            resolve(answerOf(response.statusCode!, response.headers, Buffer.concat(chunks).toString('utf8')))
          })
        },
      )
      sent.on('error', reject)
      sent.end(body)
    })
  }
}

function answerOf(status: number, headers: IncomingHttpHeaders, text: string): Answer {
  const isJson = headers['content-type']?.startsWith('application/json') === true && text !== ''
  const json = (isJson ? JSON.parse(text) : {}) as { data?: Data; error?: { code: string; field?: string } }
  return { status, headers, text, data: json.data ?? {}, code: json.error?.code, field: json.error?.field }
}

/** Unix seconds. */
export function now(): number {
  return Math.floor(Date.now() / 1000)
}

export function newNonce(): string {
  return randomBytes(16).toString('base64url')
}

/** Walks a list to its end and returns every answer in order. `path` without cursor. */
export async function walkPages(client: Client, path: string): Promise<Answer[]> {
  const answers: Answer[] = []
  let cursor = ''
  do {
    const answer = await client.get(cursor === '' ? path : `${path}${path.includes('?') ? '&' : '?'}cursor=${cursor}`)
    if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`)
    answers.push(answer)
    cursor = answer.data.next_cursor ?? ''
    if (answers.length > 1000) throw new Error(`${path} never ends`)
  } while (cursor !== '')
  return answers
}
