/**
 * Assembles one decision of the market: the timeouts that it found due, then its own act, each with its leaves in the public
 * log. Due timeouts are applied before anything is decided, so that every guard sees the current market.
 */

import { hash } from 'node:crypto'
import { ledgerEntries, noCommand } from '../../log/ledger-entry.ts'
import { type FactRecord, type Facts, RecordType } from '../../records/record.ts'
import { accept, type Planned, type WriteLetter } from '../../records/write.ts'
import { changeOf, user } from './ledger.ts'
import { marketName, type Posting, type Step } from './letters.ts'
import type { Market } from './market.ts'
import { finalStates, type Work } from './work.ts'

/** Due works that one command brings up to date, whoever owns them; beyond that only its own work and those of its signer. */
const broughtUpMax = 64

/** Who and what caused an act. */
type Cause = {
  readonly author: Uint8Array
  readonly by?: FactRecord['by']
  /** 16 bytes: id of the command, or a key derived from the act's content. */
  readonly key: Uint8Array
  /** 64 hex. */
  readonly command: string
}

type Doing = {
  readonly op: string
  readonly facts: Facts & { readonly steps?: readonly Step[]; readonly postings?: readonly Posting[] }
  readonly isPublic: boolean
  /** The work and room that the leaves name; `-`: none. */
  readonly work?: Pick<Work, 'id' | 'room'>
  /** The command that caused it, if that is not the letter: 64 hex. */
  readonly command?: string
}

export class Turn {
  readonly #market: Market
  readonly #now: number
  readonly #settled = new Map<string, { readonly work: Work; readonly steps: readonly Step[] }>()
  readonly #records: Planned[] = []
  #postings: number

  constructor(market: Market, now: number) {
    this.#market = market
    this.#now = now
    this.#postings = market.postings
  }

  /** Applies due timeouts: of all works if there are few, else of this one and of this identity's. */
  bringUp(work: Work | undefined, author: string): void {
    const due: Work[] = []
    for (const each of this.#market.due(this.#now)) {
      if (due.length === broughtUpMax) break
      due.push(each)
    }
    const all =
      due.length < broughtUpMax
        ? due
        : [...this.#market.due(this.#now)].filter(
            (each) => each === work || each.requester === author || each.worker === author,
          )
    for (const each of all) this.take(each)
  }

  /** Applies due timeouts of one work; returns true if there are any. */
  take(work: Work): boolean {
    const settled = this.#market.settled(work, this.#now)
    if (settled.steps.length > 0) this.#settled.set(work.id, settled)
    return settled.steps.length > 0
  }

  /** A work in its current state. */
  work(stored: Work): Work {
    return this.#settled.get(stored.id)?.work ?? stored
  }

  /** Number of this requester's works that timeouts have ended and that are not recorded yet. */
  ended(requester: string): number {
    return [...this.#settled.values()].filter(({ work }) => work.requester === requester && finalStates.has(work.state))
      .length
  }

  /** Credits that an identity can spend now. */
  available(identity: string): number {
    const { ledger } = this.#market
    const postings = [...this.#settled.values()].flatMap(({ steps }) => steps.flatMap((step) => step.postings))
    const name = user(identity)
    return ledger.available(name) + changeOf(postings, name, 1, (id) => ledger.hold(id)?.amount ?? 0)
  }

  /** The decision: what is due, then the steps that the letter requests. */
  finish(letter: WriteLetter, work: Work, steps: readonly Step[], more: Facts = {}) {
    const facts = { work: work.id, steps, ...more }
    return this.decide(letter, { op: letter.op, facts, isPublic: work.is_public, work })
  }

  /** The decision: what is due, then this act. */
  decide(letter: WriteLetter, doing: Doing) {
    this.#recordTimeouts()
    const facts = this.#plan(causeOf(letter, doing), doing)
    const reply = { at: this.#now, isPublic: doing.isPublic, facts: repliedOf(facts) }
    return accept(this.#records, reply)
  }

  /** Only what is due. */
  settle(): readonly Planned[] {
    this.#recordTimeouts()
    return this.#records
  }

  #recordTimeouts(): void {
    for (const [id, { work, steps }] of this.#settled) {
      const key = hash('sha256', `timeout ${id} ${work.steps}`, 'buffer').subarray(0, 16)
      const doing: Doing = { op: 'work.timeout', facts: { work: id, steps }, isPublic: work.is_public, work }
      this.#plan({ author: nobody, key, command: noCommand }, doing)
    }
  }

  #plan({ author, by, key, command }: Cause, { op, facts, isPublic, work }: Doing): Doing['facts'] {
    const entries: Buffer[] = []
    const inLog = (postings: readonly Posting[], at: number): Posting[] => {
      if (!isPublic) return [...postings]
      const numbered = postings.map((posting) =>
        posting.ledger === 1 ? { ...posting, seq: ++this.#postings } : posting,
      )
      const shown = numbered.flatMap(({ seq, id, ...posting }) =>
        seq === undefined ? [] : [{ ...posting, transfer: id, seq }],
      )
      const cause = { event: work?.id ?? '-', room: work?.room ?? '-', time: at, command }
      if (shown.length > 0) entries.push(...ledgerEntries(shown, shown[0]!.seq, cause))
      return numbered
    }
    const written: Doing['facts'] = {
      ...facts,
      ...(facts.steps === undefined
        ? {}
        : { steps: facts.steps.map((step) => ({ ...step, postings: inLog(step.postings, step.at) })) }),
      ...(facts.postings === undefined ? {} : { postings: inLog(facts.postings, this.#now) }),
    }
    const record: FactRecord = {
      type: RecordType.act,
      room: marketName,
      at: this.#now,
      author,
      op,
      facts: written,
      ...(by === undefined ? {} : { by }),
    }
    this.#records.push({ record, key, isPublic, entries })
    return written
  }
}

const nobody = Buffer.alloc(32)

/** Callers read the work itself for its state, not the facts of the record, so the reply leaves those out. */
function repliedOf(facts: Doing['facts']): Facts & Pick<Doing['facts'], 'postings'> {
  const { work, steps } = facts
  if (work === undefined) return facts
  return steps === undefined ? { work } : { work, steps: steps.map(({ state, at }) => ({ state, at })) }
}

/** An unsigned record has no nonce, so its key is derived from its content. */
function causeOf(letter: WriteLetter, { op, facts, command = noCommand }: Doing): Cause {
  if (letter.nonce !== '') {
    const own = Buffer.from(letter.sha).toString('hex')
    return { author: Buffer.from(letter.author, 'hex'), by: letter.by, key: letter.id, command: own }
  }
  const key = hash('sha256', `${op} ${JSON.stringify(facts)}`, 'buffer').subarray(0, 16)
  return { author: nobody, key, command }
}
