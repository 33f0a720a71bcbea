/** A board with a wallet, and the requests that tests send it. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Signer } from '../../src/cli/sign.ts'
import { type Board, boardDirectory, startBoard } from './board-process.ts'
import { type Answer, Client, person, seedOf } from './client.ts'

export type CallResult = {
  readonly tool: string
  readonly status: number
  readonly failure?: string
  readonly output_expired?: true
  readonly output?: unknown
  readonly price?: string
  readonly paid_by: string
  readonly allowance: {
    readonly left: number
    readonly of: number
    readonly resets_at: number
    readonly price_left: string
  }
  readonly payment_needed?: { readonly why: string; readonly accepts: unknown[]; readonly challenges: unknown[] }
  readonly receipt: {
    readonly event_id: string
    readonly duplicate?: boolean
    readonly protocol?: string
    readonly network?: string
    readonly transaction?: string
    readonly reference?: string
  }
}

/** A well-known test key. */
export const payerAddress = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const payerKey = 'ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'

export class PayerBoard {
  board: Board
  client: Client
  readonly operator = person('operator of the wallet')
  readonly #env: Readonly<Record<string, string>>

  private constructor(board: Board, client: Client, env: Readonly<Record<string, string>>) {
    this.board = board
    this.client = client
    this.#env = env
  }

  static async open(env: Readonly<Record<string, string>> = {}): Promise<PayerBoard> {
    const key = join(mkdtempSync(join(tmpdir(), 'broadside-wallet-')), 'wallet.key')
    writeFileSync(key, payerKey, { mode: 0o600 })
    const operators = person('operator of the wallet').id
    const settings = {
      OPERATORS: operators,
      BROADSIDE_LOOPBACK: '1',
      WALLET_KEY_FILE: key,
      PAY_CAP_DAY: '0.2',
      SHARDS: '1',
      ...env,
    }
    const board = await startBoard({ directory: boardDirectory(), env: settings })
    return new PayerBoard(board, await Client.of(board), settings)
  }

  /** Starts again from the same directory, after `end`. */
  async restart(end: (board: Board) => Promise<unknown>, more: Readonly<Record<string, string>> = {}): Promise<void> {
    await end(this.board)
    this.client.close()
    this.board = await startBoard({ directory: this.board.directory, env: { ...this.#env, ...more } })
    this.client = await Client.of(this.board)
  }

  async run(
    signer: Signer,
    fields: { readonly operation: string } & Record<string, string>,
  ): Promise<Record<string, { id: string }>> {
    const answer = await this.client.command(signer, fields)
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.data as unknown as Record<string, { id: string }>
  }

  /** Id of a listing, marked by the operator if `payees` are given. */
  async tool(
    url: string,
    {
      price,
      payees,
      most: maxPrice = price,
      ...more
    }: { price: string; payees?: readonly string[]; most?: string } & Record<string, unknown>,
  ): Promise<string> {
    const listing = {
      schema: 1,
      name: 'Paid',
      description: 'A paid tool',
      url,
      category: 'data',
      price,
      protocols: ['x402'],
      ...more,
    }
    const made = await this.run(person('seller'), { operation: 'tools.publish', data: JSON.stringify(listing) })
    const id = made.tool!.id
    if (payees !== undefined) await this.relay(id, maxPrice, payees)
    return id
  }

  async relay(target: string, max_price: string, payees: readonly string[]): Promise<void> {
    const data = JSON.stringify({ schema: 1, relay: true, max_price, payees })
    await this.run(this.operator, { operation: 'tools.relay', target, data })
  }

  call(signer: Signer, target: string, data: Record<string, unknown> = {}): Promise<Answer> {
    return this.client.command(signer, {
      operation: 'tools.call',
      target,
      data: JSON.stringify({ schema: 1, ...data }),
    })
  }
}

export function callResultOf(answer: Answer): CallResult {
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.data as unknown as CallResult
}

/** A file with the key of this person, as the command line reads it. */
export function keyFileOf(signer: Signer): string {
  const file = join(mkdtempSync(join(tmpdir(), 'broadside-key-')), 'key.json')
  const { id, publicKey } = signer
  const seed = seedOf(signer).toString('base64url')
  writeFileSync(file, JSON.stringify({ type: 'broadside-key', public_key: publicKey, id, seed }), { mode: 0o600 })
  return file
}
