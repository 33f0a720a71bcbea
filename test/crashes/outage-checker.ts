/** Checks a board, or the current leader, against what was acknowledged before the last outage. */
import type { Client, ReceiptJson } from '../support/client.ts'
import type { Ledger } from '../support/load.ts'
import { recordReceipt } from '../support/log-checks.ts'
import { sendBatch } from './senders.ts'

export class OutageChecker {
  /** Acknowledged since the last outage, and not resent yet. */
  #fresh: string[] = []
  /** The largest head whose tree was proved to contain all smaller ones. */
  #provenSize = 0
  consistencyProofs = 0
  duplicates = 0

  /** An outage is over. `before`: what was acknowledged before its round. */
  noteAcknowledged(ledger: Ledger, before: ReadonlySet<string>): void {
    this.#fresh = [...ledger.acknowledged.keys()].filter((id) => !before.has(id))
  }

  /** The new head contains all that were ever shown, and resent posts are there once. */
  async check(client: Client, ledger: Ledger): Promise<void> {
    const { heads } = ledger
    const newest = await client.get('/api/log/checkpoint')
    const before = heads.largest
    const size = heads.record(newest.data.checkpoint!)
    if (size < before) throw new Error(`the log has ${size} entries, and a head of ${before} was shown`)
    // Each head since the last restart, checked against the current tree.
    const shown = heads.sizes.filter((each) => each >= this.#provenSize && each > 0 && each < size)
    for (let at = 0; at < shown.length; at += 16)
      await Promise.all(shown.slice(at, at + 16).map((from) => heads.proveConsistent(client, from, size)))
    this.consistencyProofs += shown.length
    this.#provenSize = size
    await this.#resend(client, ledger)
  }

  /** The same bytes again: an acknowledged post is a duplicate at its leaf, one in doubt is there from now on. */
  async #resend(client: Client, ledger: Ledger): Promise<void> {
    const doubted = [...ledger.unknown.values()].map(({ signed }) => signed)
    const known = this.#fresh.map((id) => ledger.acknowledged.get(id)!)
    this.#fresh = []
    const commands = [...known.map(({ signed }) => signed), ...doubted]
    const linesMax = 500
    for (let from = 0; from < commands.length; from += linesMax) {
      await sendBatch(client.address, commands.slice(from, from + linesMax), (at, outcome) => {
        const { eventId } = commands[from + at]!
        const first = known[from + at]?.receipt
        if (first === undefined) ledger.record(commands[from + at]!, outcome)
        else this.#takeDuplicate(ledger, eventId, first, outcome.data.receipt)
        ledger.unknown.delete(eventId)
      })
    }
  }

  #takeDuplicate(ledger: Ledger, eventId: string, first: ReceiptJson, again: ReceiptJson | undefined): void {
    if (again?.duplicate !== true || again.event_id !== eventId)
      throw new Error(`acknowledged ${eventId} was sent again and is no duplicate: ${JSON.stringify(again)}`)
    if (again.log_index !== first.log_index || again.accepted_at !== first.accepted_at)
      throw new Error(`acknowledged ${eventId} has another receipt: ${JSON.stringify([first, again])}`)
    recordReceipt(ledger.heads, again)
    this.duplicates += 1
  }
}
