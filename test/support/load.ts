/**
 * Load on a board, and a ledger of what it acknowledged: what was acknowledged must stay true forever.
 *
 * Posts follow from a seed; those in flight when the board died are neither expected nor forbidden, but must never be stored in part.
 */
import { expect } from 'vitest'
import type { VerifierKey } from '../../storage/note.ts'
import { type Answer, type Client, type EventJson, person, type ReceiptJson, type SignedCommand } from './client.ts'
import { type ExportedEvent, fetchVerifiedExport, type Heads, proveEvent, recordReceipt } from './log-checks.ts'

/** A generator of numbers below 2^32, determined by a seed (mulberry32). */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** A seed for this run, printed; BROADSIDE_TEST_SEED gives the same run again. */
export function chooseSeed(what: string): number {
  const seed = Number(process.env.BROADSIDE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))
  console.info(`${what}: BROADSIDE_TEST_SEED=${seed}`)
  return seed
}

/** An answer to one command, however it was sent. */
export type Outcome = Pick<Answer, 'status' | 'code' | 'data'>

export type AcknowledgedPost = {
  readonly event: EventJson
  readonly receipt: ReceiptJson
  readonly signed: SignedCommand
}

export class Ledger {
  readonly heads: Heads
  readonly key: VerifierKey
  readonly acknowledged = new Map<string, AcknowledgedPost>()
  /** Sent, and never answered: may be there or not. */
  readonly unknown = new Map<string, { readonly signed: SignedCommand; readonly text: string }>()
  /** Answers other than 200, by status and code. */
  readonly refused = new Map<string, number>()

  constructor(heads: Heads, key: VerifierKey) {
    this.heads = heads
    this.key = key
  }

  record(signed: SignedCommand, { status, code, data }: Outcome): void {
    if (status !== 200) {
      const name = `${status} ${code}`
      this.refused.set(name, (this.refused.get(name) ?? 0) + 1)
      return
    }
    expect(data.event_id).toBe(signed.eventId)
    recordReceipt(this.heads, data.receipt!)
    this.acknowledged.set(signed.eventId, { event: data.event!, receipt: data.receipt!, signed })
  }

  /**
   * Checks the running board against everything that it acknowledged: each acknowledged post once, unchanged, at its leaf and place; nothing that nobody
   * sent; the newest head no smaller than any before. Proofs are requested for `proofs` posts, the newest first.
   */
  async check(client: Client, proofs: number): Promise<readonly ExportedEvent[]> {
    const newest = await client.get('/api/log/checkpoint')
    const size = this.heads.record((newest.data as { checkpoint?: string }).checkpoint!)
    expect(size, 'the log has shrunk').toBeGreaterThanOrEqual(this.heads.largest)
    const { events } = await fetchVerifiedExport(client, this.key)
    const byId = new Map(events.map((event) => [event.event_id, event]))
    for (const [id, { event, receipt }] of this.acknowledged) {
      const found = byId.get(id)
      if (found === undefined) throw new Error(`acknowledged ${id} at leaf ${receipt.log_index} is lost`)
      const { text, room, page, seq, thread, reply_to, created_at } = event
      expect(found).toMatchObject({ text, room, page, seq, thread, created_at, log: { index: receipt.log_index } })
      expect(found.reply_to).toBe(reply_to)
      expect(found.command_sha256).toBe(receipt.command_sha256)
    }
    for (const event of events) {
      const sent = this.acknowledged.get(event.event_id)?.event.text ?? this.unknown.get(event.event_id)?.text
      if (event.text !== sent) throw new Error(`${event.event_id} holds what nobody sent`)
    }
    const proven = [...this.acknowledged.keys()].reverse().slice(0, proofs)
    for (let at = 0; at < proven.length; at += 16) {
      await Promise.all(proven.slice(at, at + 16).map((id) => proveEvent(client, this.key, id)))
    }
    return events
  }
}

export type LoadOptions = {
  readonly client: Client
  readonly ledger: Ledger
  readonly random: (below: number) => number
  /** Maximum number of posts. */
  readonly posts: number
  readonly inFlight: number
  readonly rooms: readonly string[]
  /** Called with the number of posts acknowledged by this load. */
  readonly onAcknowledged?: (count: number) => void
  /** Longest text, in bytes. */
  readonly textBytesMax?: number
  /** How each worker sends; one `POST /v1/command` at a time by default. */
  readonly senderOf?: (worker: number) => Sender | undefined
}

/** The board ended before it answered. */
export class ConnectionLost extends Error {}

/** One way to send commands. */
export type Sender = {
  /** How many commands are sent together. */
  readonly batchSize: () => number
  /** Sends commands and reports each answer with its index. Rejects with Gone if the board ends before the last. */
  readonly send: (commands: readonly SignedCommand[], onAnswer: (at: number, outcome: Outcome) => void) => Promise<void>
}

/** Posts into rooms, two of three as replies, until all are sent or the board is gone. */
export async function load(options: LoadOptions): Promise<number> {
  const { client, ledger, random, posts, inFlight, rooms, textBytesMax = 300, senderOf } = options
  const parents = new Map<string, string[]>(rooms.map((room) => [room, []]))
  for (const { event } of ledger.acknowledged.values()) parents.get(event.room)?.push(event.event_id)
  let sent = 0
  let count = 0
  let isConnectionLost = false
  const single: Sender = {
    batchSize: () => 1,
    send: async ([command], onAnswer) => {
      const answer = await client.send(command!.body).catch((cause: unknown) => {
        throw new ConnectionLost('the connection ended', { cause })
      })
      onAnswer(0, answer)
    },
  }
  const next = (): { readonly room: string; readonly signed: SignedCommand } => {
    const number = sent++
    const room = rooms[random(rooms.length)]!
    const known = parents.get(room)!
    const parent = random(3) === 0 ? undefined : known[known.length - 1 - random(Math.min(known.length, 40))]
    const text = `${number} ${'lorem ☂ 𝄞 '.repeat(1 + random(textBytesMax / 10))}`.slice(0, textBytesMax).toWellFormed()
    const reply = parent === undefined ? {} : { reply_to: parent }
    const signed = client.sign(person(`load ${random(20)}`), { operation: 'post', room, text, ...reply })
    ledger.unknown.set(signed.eventId, { signed, text })
    return { room, signed }
  }
  const worker = async (index: number): Promise<void> => {
    const { batchSize, send } = senderOf?.(index) ?? single
    while (sent < posts && !isConnectionLost) {
      const commands = Array.from({ length: batchSize() }, next)
      const onAnswer = (at: number, answer: Outcome): void => {
        const { room, signed } = commands[at]!
        ledger.unknown.delete(signed.eventId)
        ledger.record(signed, answer)
        if (answer.status !== 200) return
        parents.get(room)!.push(signed.eventId)
        options.onAcknowledged?.(++count)
      }
      const bodies = commands.map(({ signed }) => signed)
      await send(bodies, onAnswer).catch((error: unknown) => {
        // A failed check of the ledger is not a broken connection.
        if (!(error instanceof ConnectionLost)) throw error
        isConnectionLost = true
      })
    }
  }
  await Promise.all(Array.from({ length: inFlight }, (_, index) => worker(index)))
  return count
}
