/**
 * Credits in a full check: applies every posting of the market's journal again, from the first record on, and checks it against the rules
 * that no board may break. Only the records are trusted; memory and snapshots are not consulted.
 */
import { ledgerEntries, noCommand, parseLedgerEntry } from '../../actors/log/ledger-entry.ts'
import { type BoardRecord, frameEntries } from '../../actors/records/record.ts'
import { Ledger, type LedgerNumber } from '../../actors/works/market/ledger.ts'
import { isOfMarket, type Posting } from '../../actors/works/market/letters.ts'
import type { Frame } from '../../storage/journal.ts'

export class CreditCheck {
  readonly #damage: (where: string, what: string) => void
  readonly #ledger = new Ledger()
  /** Holds of requests that their rooms have not accepted yet, by id. The opening of the work repeats them. */
  readonly #reserved = new Map<string, Posting>()
  /** Number of the newest public posting. */
  #seq = 0

  constructor(damage: (where: string, what: string) => void) {
    this.#damage = damage
  }

  take(frame: Frame, record: BoardRecord, where: string): void {
    if (!isOfMarket(record)) return
    const { steps = [], postings = [] } = record.facts
    const all: readonly Posting[] = [...steps.flatMap((step) => step.postings), ...postings]
    if (all.length === 0) return
    this.#entries(frame, all, where)
    for (const step of steps)
      for (const posting of step.postings)
        if (!this.#isOfReservation(posting, where)) this.#apply(posting, frame.seq, where)
    for (const posting of postings) {
      this.#apply(posting, frame.seq, where)
      if (posting.type === 'hold') this.#reserved.set(posting.id, posting)
    }
    this.#rules(all, where)
  }

  /** The log's entries must match what is posted, numbered without gaps. */
  #entries(frame: Frame, postings: readonly Posting[], where: string): void {
    const logged = frameEntries(frame)
    const numbered = postings.filter(({ seq }) => seq !== undefined)
    if (logged.length !== numbered.length)
      return this.#damage(where, `it has ${numbered.length} public postings and ${logged.length} entries in the log`)
    for (const [n, posting] of numbered.entries()) {
      this.#seq += 1
      if (posting.seq !== this.#seq) this.#damage(where, `its posting ${posting.seq} should have number ${this.#seq}`)
      const line = parseLedgerEntry(logged[n]!)
      const { event = '-', room = '-', time = 0, command = noCommand } = line ?? {}
      const cause = { event, room, time, command }
      const [made] = ledgerEntries([{ ...posting, transfer: posting.id }], posting.seq ?? 0, cause)
      if (!made!.equals(logged[n]!)) this.#damage(where, `entry ${n + 1} of it does not match posting ${posting.id}`)
    }
  }

  /** A reservation holds credits before its work is visible, and the opening puts the same hold into the log: it counts once. */
  #isOfReservation(posting: Posting, where: string): boolean {
    const reserved = this.#reserved.get(posting.id)
    if (reserved === undefined) return false
    this.#reserved.delete(posting.id)
    const { ledger, type, debit, credit, amount } = posting
    const isSame =
      ledger === reserved.ledger &&
      type === reserved.type &&
      debit === reserved.debit &&
      credit === reserved.credit &&
      amount === reserved.amount
    if (!isSame) this.#damage(where, `posting ${posting.id} is not the hold that its request reserved`)
    return true
  }

  #apply(posting: Posting, seq: number, where: string): void {
    const { type, amount, hold } = posting
    if (!Number.isSafeInteger(amount) || amount < 1) return this.#damage(where, `posting ${posting.id} moves ${amount}`)
    const held = hold === undefined ? undefined : this.#ledger.hold(hold)
    if (type === 'hold' && this.#ledger.hold(posting.id) !== undefined)
      return this.#damage(where, `posting ${posting.id} repeats its hold`)
    const isOfHold = type === 'post' || type === 'void'
    if (isOfHold && held === undefined)
      return this.#damage(where, `posting ${posting.id} resolves a hold that does not exist: ${hold}`)
    if (held !== undefined && amount > held.amount)
      return this.#damage(where, `posting ${posting.id} takes ${amount} from a hold of ${held.amount}`)
    if (hold !== undefined) this.#reserved.delete(hold)
    this.#ledger.apply(posting, seq)
  }

  /** After every record, escrow must be empty, and only the issuer may owe anything. */
  #rules(postings: readonly Posting[], where: string): void {
    for (const number of [1, 2] as const satisfies readonly LedgerNumber[]) {
      const { posted } = this.#ledger.account('escrow', number)
      if (posted !== 0) this.#damage(where, `${posted} remains in escrow of ledger ${number} after it`)
      for (const name of new Set(postings.flatMap(({ debit, credit }) => [debit, credit]))) {
        if (name === 'mint' || name === 'escrow') continue
        const available = this.#ledger.available(name, number)
        if (available < 0) this.#damage(where, `${name} owes ${-available} in ledger ${number} after it`)
      }
    }
  }
}
