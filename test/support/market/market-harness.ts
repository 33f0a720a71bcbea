/**
 * A market in isolation: the deciders and a state, no files, no threads, and a clock that the test moves. The test plays the rooms: what
 * they would report comes with the letters.
 */
import { createHash } from 'node:crypto'
import { deciders } from '../../../actors/deciders.ts'
import type { ActorRefusal } from '../../../actors/kernel/refusals.ts'
import { type LedgerLine, parseLedgerEntry } from '../../../actors/log/ledger-entry.ts'
import { type BoardRecord, fromFrame, toFrame } from '../../../actors/records/record.ts'
import type { Decision } from '../../../actors/records/write.ts'
import { State } from '../../../actors/state.ts'
import type { BoundResult, Standing } from '../../../actors/works/market/letters.ts'
import { marketName } from '../../../actors/works/market/letters.ts'
import type { Market } from '../../../actors/works/market/market.ts'
import type { Terms, Work } from '../../../actors/works/market/work.ts'
import { identityId } from '../../../src/format/signing.ts'

export type Person = { readonly key: Buffer; readonly id: string }

export function someone(name: string): Person {
  const key = createHash('sha256').update(`market ${name}`).digest()
  return { key, id: identityId(key) }
}

export const hour = 3_600
export const day = 24 * hour

export const terms: Terms = {
  review_window: 3 * day,
  revision_window: day,
  dispute_window: 2 * day,
  arbitration_window: 7 * day,
  recovery_window: 3 * day,
  reclaim_cooldown: hour,
  claim_margin: 900,
  renewals: 3,
  revisions: 2,
  lapses: 2,
  claim_total: 4 * day,
}

export const inRoom: Standing = { reads: true, replies: true, moderates: false }
export const moderator: Standing = { reads: true, replies: true, moderates: true }

type MarketRecord = {
  readonly record: BoardRecord
  readonly key: Uint8Array
  readonly isPublic: boolean
  readonly seq: number
}
export type Outcome = { readonly refusal: ActorRefusal | undefined; readonly reply: Readonly<Record<string, unknown>> }

/** Arguments of the operations, as in the letters. */
export type Args = Readonly<Record<string, unknown>>

export class MarketHarness {
  state = new State()
  /** Unix seconds. */
  now = 1_790_000_000
  generation = '1'.repeat(32)
  limits = { claims: 3, holds: 32, reward: 1_000_000_000 }
  readonly records: MarketRecord[] = []
  /** Lines of the public log, in order. */
  readonly log: LedgerLine[] = []
  /** Works that were opened and have not ended, as far as they were checked. */
  readonly live = new Set<string>()
  #commands = 0

  get market(): Market {
    return this.state.market
  }

  beginEpoch(rewards = 5_000): Outcome {
    return this.boardLetter('market.begin', { generation: this.generation, rewards })
  }

  /** A command of a person about the market. */
  command(op: string, by: Person, args: Args, more: { readonly operator?: boolean } = {}): Outcome {
    const sha = createHash('sha256')
      .update(`command ${++this.#commands}`)
      .digest()
    return this.#decide(op, {
      ...{ id: sha.subarray(0, 16), sha, author: by.id, nonce: `n${this.#commands}`, operator: more.operator ?? false },
      by: { key: by.key, sig: Buffer.alloc(64), signed: Buffer.from(JSON.stringify({ command: { operation: op } })) },
      args,
    })
  }

  /** A letter of the board itself. */
  boardLetter(op: string, args: Args): Outcome {
    const sha = Buffer.alloc(32)
    const by = { key: sha, sig: Buffer.alloc(64), signed: Buffer.alloc(0) }
    const letter = { id: sha.subarray(0, 16), sha, author: sha.toString('hex'), nonce: '', operator: false, by, args }
    return this.#decide(op, letter)
  }

  /** A command about a work. */
  workCommand(
    op: string,
    by: Person,
    work: string,
    more: Args = {},
    as: { readonly operator?: boolean } = {},
  ): Outcome {
    const args = {
      work,
      generation: this.generation,
      amount: 0,
      reason: '',
      ttl: day,
      limits: this.limits,
      fee_basis_points: 100,
      bond_percent: 10,
      ...more,
    }
    return this.command(op, by, args, as)
  }

  reserve(by: Person, amount: number, more: Args = {}): Outcome & { readonly work: string } {
    const work = createHash('sha256').update(`work ${this.#commands}`).digest('hex').slice(0, 32)
    const args = {
      work,
      generation: this.generation,
      amount,
      fee: Math.floor(amount / 100),
      lifetime: 7 * day,
      title: `work of ${amount}`,
      capabilities: ['qa'],
      eligibility: 'open',
      simulated: false,
      room: 'lobby',
      reviewer: '',
      reviewer_key: '',
      terms,
      limits: this.limits,
      proof_bits: 0,
      ...more,
    }
    return { ...this.command('work.create', by, args), work }
  }

  /** The room accepts the request. */
  open(work: string, isPublic = true): Outcome {
    const said = { work, generation: this.generation, room: 'lobby', is_public: isPublic, version: work, versions: 1 }
    if (this.market.reservation(work) !== undefined) this.live.add(work)
    return this.boardLetter('work.open', said)
  }

  /** Creates an open work and returns its id. */
  work(by: Person, amount: number, more: Args = {}, isPublic = true): string {
    const reserved = this.reserve(by, amount, more)
    if (reserved.refusal !== undefined) throw new Error(reserved.refusal.message)
    this.open(reserved.work, isPublic)
    return reserved.work
  }

  claim(by: Person, work: string, more: Args = {}): Outcome {
    return this.workCommand('work.claim', by, work, { standing: inRoom, ...more })
  }

  submit(by: Person, work: string, amount: number, text = 'result', more: Args = {}): Outcome {
    return this.workCommand('work.submit', by, work, { amount, bound: boundOf(by, work, text), ...more })
  }

  tick(): Outcome {
    return this.boardLetter('work.tick', { generation: this.generation, works_max: 1_000 })
  }

  grant(to: Person, amount: number): void {
    this.command('credit.grant', to, { target: to.id, amount }, { operator: true })
  }

  /** Its current state. */
  settledWork(work: string): Work {
    return this.market.settled(this.market.find(work)!, this.now).work
  }

  availableTo({ id }: Person, ledger: 1 | 2 = 1): number {
    return this.market.ledger.available(`user:${id}`, ledger)
  }

  /** A state replayed from the records. `isReader`: only the public part, as the feed has it. */
  replay(isReader = false): State {
    const state = new State(undefined, isReader ? 'reading' : 'deciding')
    for (const { record, key, isPublic, seq } of this.records)
      if (isPublic || !isReader) state.apply(record, key, { shard: 0, seq, change: seq, leaf: 0 })
    return state
  }

  #decide(op: string, said: Args): Outcome {
    const letter = {
      ...said,
      op,
      to: marketName,
      timestamp: this.now,
      requestId: '',
      via: 'command',
      limited: 0,
      rotated: false,
      suspended: false,
    } as unknown as Parameters<(typeof deciders)[string]>[1]
    const { state, now } = this
    const record = (seq: number) => this.records[seq - 1]!.record
    const decision: Decision = deciders[op]!({ state, board: state.board, now, record }, letter)
    if (!decision.ok) return { refusal: decision.refusal, reply: {} }
    for (const { record: planned, key, isPublic, entries = [] } of decision.records) {
      // As the journal returns it.
      const frame = toFrame(planned, key, isPublic, entries)
      const seq = this.records.length + 1
      const kept = fromFrame({ ...frame, seq, payload: Buffer.from(frame.payload) })
      this.records.push({ record: kept, key, isPublic, seq })
      state.apply(kept, key, { shard: 0, seq, change: seq, leaf: 0 })
      for (const entry of entries) this.log.push(parseLedgerEntry(entry)!)
    }
    return { refusal: undefined, reply: decision.reply }
  }
}

export function boundOf({ id }: Person, work: string, text: string): BoundResult {
  const sha256 = createHash('sha256').update(text).digest('hex')
  return {
    id: createHash('sha256').update(`${id} ${work} ${text}`).digest('hex').slice(0, 32),
    author: id,
    reply_to: work,
    sha256,
  }
}
