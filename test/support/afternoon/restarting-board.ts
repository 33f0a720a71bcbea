/**
 * The board of the afternoon: killed and restarted while everybody continues. A command whose answer was lost in a kill is sent again, the
 * same bytes, until it is answered. Everything sent and answered gets a tick of one counter, so that the order of the board's acts can be
 * checked against what its callers knew.
 */
import { request } from 'node:http'
import type { Signer } from '../../../src/cli/sign.ts'
import { type Board, startBoard } from '../board-process.ts'
import { type Answer, Client, type Fields, type SignedCommand, type SigningOptions } from '../client.ts'

/** Tick of the first sending, and of the answer. */
export type Span = { readonly sent: number; readonly answered: number }
export type Outcome = Span & { readonly signed: SignedCommand; readonly answer: Answer; readonly tries: number }

export type DeliveryAnswer = {
  readonly status: number
  readonly text: string
  readonly data: { readonly item?: number; readonly bytes?: number; readonly duplicate?: true }
}

export class RestartingBoard {
  board: Board
  client: Client
  /** The standard error output of every board of the afternoon. */
  readonly logLines: string[] = []
  /** Answers that never came though nobody killed the board. */
  dropped = 0
  kills = 0
  #tick = 0
  #up: Promise<void> = Promise.resolve()
  #isDown = false
  readonly #env: Readonly<Record<string, string>>

  private constructor(board: Board, client: Client, env: Readonly<Record<string, string>>) {
    this.board = board
    this.client = client
    this.#env = env
  }

  static async open(directory: string, env: Readonly<Record<string, string>>): Promise<RestartingBoard> {
    const board = await startBoard({ directory, env })
    return new RestartingBoard(board, await Client.of(board), env)
  }

  /** Resolves when a board is running. */
  get running(): Promise<void> {
    return this.#up
  }

  tick(): number {
    return ++this.#tick
  }

  /** Ends the board, and starts it again from its files. */
  async restart(end: (board: Board) => Promise<unknown>): Promise<void> {
    let done: () => void = () => {}
    this.#up = new Promise((resolve) => {
      done = resolve
    })
    this.#isDown = true
    await end(this.board)
    this.logLines.push(...this.board.lines)
    const { directory } = this.board
    const { serviceId } = this.client
    this.client.close()
    this.board = await startBoard({ directory, env: this.#env })
    this.client = new Client(this.board.address, serviceId)
    this.#isDown = false
    done()
  }

  /** Calls the board until it answers; `attempt` rejects when the connection ends without an answer. */
  async retry<Result>(attempt: (client: Client) => Promise<Result>): Promise<{ result: Result; tries: number }> {
    for (let tries = 1; ; tries++) {
      await this.#up
      const { client } = this
      try {
        return { result: await attempt(client), tries }
      } catch (error) {
        if (this.#isDown || client !== this.client) continue
        // It may be about to go down, or have closed the connection.
        await new Promise((resolve) => setTimeout(resolve, 20))
        if (client === this.client && !this.#isDown) this.dropped++
        if (tries > 200)
          throw new Error(
            `no answer in ${tries} tries; the last lines of its log: ${this.board.lines.slice(-8).join('\n')}`,
            {
              cause: error,
            },
          )
      }
    }
  }

  async send(signed: SignedCommand): Promise<Outcome> {
    const sent = this.tick()
    const { result: answer, tries } = await this.retry((client) => client.send(signed.body))
    return { signed, answer, tries, sent, answered: this.tick() }
  }

  command(signer: Signer, fields: Fields, signing: SigningOptions = {}): Promise<Outcome> {
    return this.send(this.client.sign(signer, fields, signing))
  }

  /** Delivers once to a receive URL; undefined: the answer was lost in a kill. */
  async deliver(path: string, body: string, headers: Readonly<Record<string, string>>) {
    await this.#up
    return post(`${this.board.address}${path}`, body, headers).catch(() => undefined)
  }
}

function post(url: string, body: string, headers: Readonly<Record<string, string>>): Promise<DeliveryAnswer> {
  return new Promise((resolve, reject) => {
    const length = Buffer.byteLength(body)
    const options = { method: 'POST', agent: false, headers: { 'content-length': length, ...headers } }
    const sent = request(url, options, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('close', () => {
        if (!response.complete) return reject(new Error('the connection ended in the middle of an answer'))
        const text = Buffer.concat(chunks).toString('utf8')
        const { data = {} } = JSON.parse(text) as Partial<DeliveryAnswer>
        resolve({ status: response.statusCode!, text, data })
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
