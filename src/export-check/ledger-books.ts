/**
 * Rebuilds the public ledger from its lines: every escrow, and the supply. Pure; the lines' places in the log are checked elsewhere
 * (verify-export.ts).
 *
 * Works of private rooms have no lines, so the full balance of an identity cannot be computed here. What a public work holds, and how many
 * credits exist, can: each posting has the next number, each hold is resolved once, whatever is taken from a hold leaves escrow immediately
 * and completely, and only `mint` creates or burns credits.
 */
import {
  formatLedgerEntry,
  type LedgerLine,
  type PostingType,
  parseLedgerEntry,
} from '../../actors/log/ledger-entry.ts'

const types: ReadonlySet<unknown> = new Set<PostingType>(['hold', 'post', 'void', 'direct'])
const shapes = {
  event: /^([0-9a-f]{32}|-)$/,
  room: /^([a-z0-9][a-z0-9_-]{0,63}|-)$/,
  command: /^[0-9a-f]{64}$/,
  transfer: /^[0-9a-f]{32}$/,
  debit: /^(user:[0-9a-f]{64}|escrow|fees|mint|rewards)$/,
  credit: /^(user:[0-9a-f]{64}|escrow|fees|mint|rewards)$/,
} as const

export class LedgerBooks {
  /** Work and account -> the amount that the work holds from that account. */
  readonly #holds = new Map<string, number>()
  readonly #transfers = new Set<string>()
  readonly #works = new Set<string>()
  #postings = 0
  #supply = 0
  #rewards = 0
  /** The amount taken from a hold that has not left escrow yet; only one work at a time has one. */
  #escrow = { event: '-', amount: 0 }

  get postings(): number {
    return this.#postings
  }

  get works(): number {
    return this.#works.size
  }

  get supply(): number {
    return this.#supply
  }

  /** Unresolved holds, and their total amount. */
  get open(): { readonly holds: number; readonly amount: number } {
    return { holds: this.#holds.size, amount: [...this.#holds.values()].reduce((sum, amount) => sum + amount, 0) }
  }

  /** Takes the next line; returns a sentence if something is wrong with it. */
  take(line: LedgerLine): string | undefined {
    this.#postings += 1
    if (line.seq !== this.#postings) return `posting ${line.seq} is where posting ${this.#postings} should be`
    if (this.#transfers.has(line.transfer)) return `transfer ${line.transfer} appears twice`
    this.#transfers.add(line.transfer)
    if (line.event !== '-') this.#works.add(line.event)
    if (this.#escrow.amount > 0 && this.#escrow.event !== line.event)
      return `escrow of ${this.#escrow.event} still has ${this.#escrow.amount} when another posting begins`
    return line.type === 'direct' ? this.#direct(line) : this.#ofHold(line)
  }

  /** Call after the last line. */
  end(): string | undefined {
    const { event, amount } = this.#escrow
    return amount === 0 ? undefined : `escrow of ${event} has ${amount} at the end`
  }

  #ofHold({ type, event, debit, credit, amount }: LedgerLine): string | undefined {
    if (event === '-' || credit !== 'escrow' || !debit.startsWith('user:'))
      return `a ${type} must go from the account of an identity to the escrow of a work`
    const key = `${event} ${debit}`
    const held = this.#holds.get(key)
    if (type === 'hold') {
      if (held !== undefined) return `${debit} already has a hold for ${event}`
      this.#holds.set(key, amount)
      return undefined
    }
    if (held === undefined) return `a ${type} of ${debit} for ${event} resolves no hold`
    this.#holds.delete(key)
    if (type === 'void') return amount === held ? undefined : `a void of ${amount} does not resolve a hold of ${held}`
    if (amount > held) return `${amount} is taken from a hold of ${held}`
    this.#escrow = { event, amount }
    return undefined
  }

  #direct({ event, debit, credit, amount }: LedgerLine): string | undefined {
    if (debit === credit) return 'a posting must go from one account to another'
    if (credit === 'escrow') return 'only a post can add credits to escrow'
    if (debit === 'escrow') {
      if (event !== this.#escrow.event || amount > this.#escrow.amount)
        return `${amount} leaves the escrow of ${event}, which has ${event === this.#escrow.event ? this.#escrow.amount : 0}`
      this.#escrow = { event, amount: this.#escrow.amount - amount }
    }
    if (debit === 'mint') this.#supply += amount
    if (credit === 'mint') this.#supply -= amount
    if (debit === 'rewards') this.#rewards -= amount
    if (credit === 'rewards') this.#rewards += amount
    if (this.#rewards < 0) return `the pool of rewards pays ${-this.#rewards} more than it has`
    return this.#supply < 0 ? `${-this.#supply} more credits are burned than were created` : undefined
  }
}

/** A line of the export as its entry says it, with the bytes that are hashed; a string says what is wrong. */
export function readLedgerLine(value: Readonly<Record<string, unknown>>): { line: LedgerLine; entry: Buffer } | string {
  for (const [name, shape] of Object.entries(shapes))
    if (typeof value[name] !== 'string' || !shape.test(value[name] as string))
      return `${name} is not valid in a posting`
  for (const name of ['seq', 'time', 'code', 'amount'])
    if (!Number.isSafeInteger(value[name]) || (value[name] as number) < 0) return `${name} is not a whole number`
  if (!types.has(value.posting)) return 'posting is not hold, post, void or direct'
  if ((value.amount as number) < 1) return 'amount is not at least 1'
  const entry = formatLedgerEntry({ ...value, type: value.posting } as unknown as LedgerLine)
  return { line: parseLedgerEntry(entry)!, entry }
}
