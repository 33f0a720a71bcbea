/**
 * Undelivered messages of the market to rooms: commands that a room has to answer, and transitions that a room does not know yet or
 * whose notices are not posted yet. Made from the market's own acts, so that a crash loses none of it.
 *
 * In the feed, which decides nothing, this only puts the transitions of public works among the changes that followers read.
 */
import { BoundedMap } from '../../storage/bounded-map.ts'
import { nowhere } from '../records/changes.ts'
import type { Core } from '../records/core.ts'
import type { Projection, RecordPlace } from '../records/projection.ts'
import { ActsOf, type FactRecord } from '../records/record.ts'
import type { SentArgs } from './letters.ts'
import {
  isOfMarket,
  type MarketFacts,
  movesWork,
  type ObserveFacts,
  type OpenFacts,
  type StepFacts,
} from './market/letters.ts'
import { finalStates, type Work } from './market/work.ts'

/** A command that its room has to answer: where its record is. */
export type Ask = { readonly work: string; readonly kind: 'create' | 'edit'; readonly seq: number }

/** A record of the market with transitions of a work. */
export type Told = {
  readonly work: string
  readonly seq: number
  /** Number of the first of its transitions in the life of the work, from 1. */
  readonly first: number
  /** Identity id of whom they concern as its worker, or ''. */
  readonly worker: string
}

type Packed = readonly [
  asks: readonly Ask[],
  told: readonly Told[],
  workers: readonly (readonly [work: string, worker: string])[],
  texts: readonly (readonly [work: string, seqs: readonly number[]])[],
  takenBack: readonly number[],
]

const factsMax = 256

const asking: Readonly<Record<string, Ask['kind']>> = { 'work.create': 'create', 'work.edit': 'edit' }
const answering: Readonly<Record<string, Ask['kind']>> = {
  'work.open': 'create',
  'work.void': 'create',
  'work.edited': 'edit',
}

export class Mail implements Projection {
  readonly acts: Projection['acts'] = {
    'mail.sent': ({ facts }: FactRecord<SentArgs>) => {
      for (const seq of facts.seqs) {
        this.#told.delete(seq)
        this.#facts.delete(seq)
      }
    },
  }
  readonly #core: Core
  readonly #role: 'deciding' | 'reading'
  readonly #find: (work: string) => Work | undefined
  /** By the number of the record, in order. */
  readonly #asks = new Map<number, Ask>()
  readonly #told = new Map<number, Told>()
  /** What the newest of these records say: they are carried a moment after they were made, and need not be read again. */
  readonly #facts = new BoundedMap<number, StepFacts | OpenFacts>(factsMax)
  /** Work -> who works on it, or did last, while it is not settled. */
  readonly #workers = new Map<string, string>()
  /** Work -> records whose signed commands carry texts of its request. */
  readonly #texts = new Map<string, number[]>()
  /** Records whose signed commands carry a text that is gone for good. */
  readonly #takenBack: number[] = []
  /** Things recorded for another actor since this thread began. */
  made = 0

  constructor(core: Core, role: 'deciding' | 'reading', find: (work: string) => Work | undefined) {
    this.#core = core
    this.#role = role
    this.#find = find
  }

  /** Those after the record with this number, in order, and at most so many of them. */
  asks(after: number, max: number): readonly Ask[] {
    return behind(this.#asks, after, max)
  }

  told(after: number, max: number): readonly Told[] {
    return behind(this.#told, after, max)
  }

  /** What the record says; undefined: it is to be read. */
  factsOf(seq: number): StepFacts | OpenFacts | undefined {
    return this.#facts.get(seq)
  }

  isOpen(seq: number): boolean {
    return this.#told.has(seq)
  }

  takenBack(): readonly number[] {
    return this.#takenBack
  }

  onAct(act: FactRecord, place: RecordPlace): void {
    if (!isOfMarket(act)) return
    if (this.#role === 'reading') return this.#show(act, place)
    const { work } = act.facts
    if (work === undefined) return
    const kind = asking[act.op]
    if (kind !== undefined) this.#ask({ work, kind, seq: place.seq })
    this.#answer(act, work)
    if (!movesWork(act)) return
    this.#tell(work, act.facts.steps.length, place.seq)
    this.#facts.set(place.seq, act.facts)
  }

  pack(): Packed {
    return [[...this.#asks.values()], [...this.#told.values()], [...this.#workers], [...this.#texts], this.#takenBack]
  }

  restore([asks, told, workers, texts, takenBack]: Packed): void {
    for (const ask of asks) this.#asks.set(ask.seq, ask)
    for (const each of told) this.#told.set(each.seq, each)
    for (const [work, worker] of workers) this.#workers.set(work, worker)
    for (const [work, seqs] of texts) this.#texts.set(work, [...seqs])
    this.#takenBack.push(...takenBack)
  }

  #ask(ask: Ask): void {
    this.#asks.set(ask.seq, ask)
    const texts = this.#texts.get(ask.work)
    if (texts === undefined) this.#texts.set(ask.work, [ask.seq])
    else texts.push(ask.seq)
    this.made++
  }

  #answer(act: FactRecord<MarketFacts>, work: string): void {
    const kind = answering[act.op]
    for (const ask of kind === undefined ? [] : this.#asks.values()) {
      if (ask.work !== work || ask.kind !== kind) continue
      this.#asks.delete(ask.seq)
      // What the room did not take was never shown, and is not kept either.
      if (act.facts.voids !== undefined) this.#takeBack(work, [ask.seq])
    }
    if (observed.is(act) && act.facts.event === 'request' && act.facts.change === 'redacted')
      this.#takeBack(work, this.#texts.get(work) ?? [])
  }

  #takeBack(work: string, seqs: readonly number[]): void {
    this.#takenBack.push(...seqs)
    const left = (this.#texts.get(work) ?? []).filter((seq) => !seqs.includes(seq))
    if (left.length > 0) this.#texts.set(work, left)
    else this.#texts.delete(work)
  }

  #tell(work: string, count: number, seq: number): void {
    const found = this.#find(work)!
    const worker = found.worker === '' ? (this.#workers.get(work) ?? '') : found.worker
    this.#told.set(seq, { work, seq, first: found.steps - count + 1, worker })
    // A former worker of a work that is open again is concerned by that, and by nothing after it.
    if (found.worker === '' || finalStates.has(found.state)) this.#workers.delete(work)
    else this.#workers.set(work, worker)
    this.made++
  }

  #show(act: FactRecord<MarketFacts>, { change }: RecordPlace): void {
    const { board, changes } = this.#core
    if (!movesWork(act)) return
    const { work, steps } = act.facts
    for (const { state, at } of steps) {
      const slot = board.events.find(Buffer.from(work, 'hex'))
      const room = board.events.room[slot] ?? nowhere
      changes.add(`work.${state}`, { position: change, room, slot: nowhere, subject: work, at })
    }
  }
}

const observed = new ActsOf<ObserveFacts>('work.observe')

function behind<Each>(table: ReadonlyMap<number, Each>, after: number, max: number): Each[] {
  const found: Each[] = []
  for (const [seq, each] of table) {
    if (seq <= after) continue
    if (found.length === max) break
    found.push(each)
  }
  return found
}
