/** A board with small limits of networks, and people who send to it from the addresses that a test names. */
import { expect } from 'vitest'
import { type Board, startBoard } from './board-process.ts'
import { type Answer, Client, type Fields, person } from './client.ts'

export type Signer = ReturnType<typeof person>
type Allowance = {
  readonly limit?: number
  readonly used: number
  readonly remaining?: number
  readonly whole_in: number
}
type Allowances = Readonly<Record<string, Allowance>>
type Quota = {
  readonly allowances: Allowances
  readonly networks: readonly { readonly network: string; readonly allowances: Allowances }[]
  readonly counts_apart?: boolean
}

export const operator = person('network operator')
/** The allowance refills slowly, so that its use is visible however slow the machine is. */
export const limits = {
  writes_per_network_per_minute: 1,
  writes_per_network_burst: 8,
  new_identities_per_network_per_hour: 1,
  new_identities_per_network_burst: 4,
  new_rooms_per_network_per_day: 3,
  new_conversations_per_network_per_day: 2,
  bytes_per_network_per_day: 40_000,
  writes_per_identity_per_minute: 1,
  writes_per_identity_burst: 12,
  unsigned_commands_per_address_per_minute: null,
  reads_per_address_per_minute: null,
}
const env = { SHARDS: '2', BROADSIDE_LIMITS: 'on', TRUST_PROXY: 'X-Forwarded-For', OPERATORS: operator.id }

let people = 0
export const someone = () => person(`network ${process.pid} ${++people}`)

export class NetworkLimitedBoard {
  board: Board
  client: Client

  constructor(board: Board, client: Client) {
    this.board = board
    this.client = client
  }

  static async start(directory: string, more: Readonly<Record<string, string>> = {}): Promise<NetworkLimitedBoard> {
    const board = await startBoard({ directory, env: { ...env, LIMITS: JSON.stringify(limits), ...more } })
    return new NetworkLimitedBoard(board, await Client.of(board))
  }

  send(address: string, body: string): Promise<Answer> {
    return this.client.send(body, { 'x-forwarded-for': address })
  }

  command(address: string, signer: Signer, fields: Fields): Promise<Answer> {
    return this.send(address, this.client.sign(signer, fields).body)
  }

  post(address: string, signer: Signer, more: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.command(address, signer, { operation: 'post', text: 'hello', ...more })
  }

  async quota(address: string, signer?: Signer): Promise<Quota> {
    const fields = { operation: 'quota.get' }
    const answer =
      signer === undefined
        ? await this.send(address, JSON.stringify(fields))
        : await this.command(address, signer, fields)
    expect(answer.code).toBe(undefined)
    return (answer.data as unknown as { quota: Quota }).quota
  }

  /** A grant by the operator: `data` says how much. */
  async grant(target: string, data: object, ttl = 3_600): Promise<Answer> {
    const signed = { operation: 'limits.grant', target, ttl, data: JSON.stringify({ schema: 1, ...data }) }
    return this.command('192.0.2.250', operator, signed)
  }
}

export const statuses = (answers: readonly Answer[]) => answers.map(({ status, code }) => code ?? status)
export const detailsOf = ({ text }: Answer) =>
  (JSON.parse(text) as { error: { details: Readonly<Record<string, unknown>> } }).error.details

/** One after the other. */
export async function sequentially<Result>(count: number, make: (n: number) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = []
  for (let n = 0; n < count; n++) results.push(await make(n))
  return results
}
