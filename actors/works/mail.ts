/**
 * What the market has still to say to rooms: requests that a room has not answered, and transitions that a room was not told of
 * or that are not posted as notices yet. Made from the market's own acts, so that a crash loses none of it.
 *
 * In the feed, which decides nothing, this only puts the transitions of public works among the changes that followers hear of.
 */

import { nowhere } from '../changes.ts'
import type { Core } from '../core.ts'
import type { StepFacts } from '../market/letters.ts'
import { marketName } from '../market/letters.ts'
import type { ActPlace, Part } from '../part.ts'
import type { Act } from '../record.ts'

/** A command that its room has to answer: where its record is. */
export type Ask = { readonly work: string; readonly kind: 'create' | 'edit'; readonly seq: number }
/** A record of the market with transitions of a work. */
export type Told = { readonly work: string; readonly seq: number }

type Packed = readonly [asks: readonly Ask[], told: readonly Told[]]

/** How the parts know a market's act: by what it says, whoever decided it. */
const asking: Readonly<Record<string, Ask['kind']>> = { 'work.create': 'create', 'work.edit': 'edit' }
const answering: Readonly<Record<string, Ask['kind']>> = {
  'work.open': 'create',
  'work.void': 'create',
  'work.edited': 'edit',
}

export class Mail implements Part {
  readonly acts: Part['acts'] = {
    'mail.sent': ({ facts }) => this.#sent(facts as { work: string; seq: number }),
  }
  readonly #core: Core
  readonly #role: 'deciding' | 'reading'
  /** By the number of the record, in order. */
  readonly #asks = new Map<number, Ask>()
  readonly #told = new Map<number, Told>()

  constructor(core: Core, role: 'deciding' | 'reading') {
    this.#core = core
    this.#role = role
  }

  asks(): readonly Ask[] {
    return [...this.#asks.values()]
  }

  told(): readonly Told[] {
    return [...this.#told.values()]
  }

  isOpen({ work, seq }: Told): boolean {
    return this.#told.get(seq)?.work === work
  }

  onAct(act: Act, place: ActPlace): void {
    if (act.room !== marketName) return
    if (this.#role === 'reading') return this.#show(act, place)
    const { work } = act.facts as { work?: string }
    if (work === undefined) return
    const { seq } = place
    const asks = asking[act.op]
    if (asks !== undefined) this.#asks.set(seq, { work, kind: asks, seq })
    const answers = answering[act.op]
    for (const ask of answers === undefined ? [] : this.#asks.values())
      if (ask.work === work && ask.kind === answers) this.#asks.delete(ask.seq)
    if (stepsOf(act).length > 0) this.#told.set(seq, { work, seq })
  }

  pack(): Packed {
    return [this.asks(), this.told()]
  }

  restore([asks, told]: Packed): void {
    for (const ask of asks) this.#asks.set(ask.seq, ask)
    for (const each of told) this.#told.set(each.seq, each)
  }

  #sent({ work, seq }: { work: string; seq: number }): void {
    if (this.isOpen({ work, seq })) this.#told.delete(seq)
  }

  #show(act: Act, place: ActPlace): void {
    const { board, changes } = this.#core
    const { work } = act.facts as StepFacts
    const slot = board.events.find(Buffer.from(work ?? '', 'hex'))
    for (const { state, at } of stepsOf(act)) {
      const room = board.events.room[slot] ?? nowhere
      changes.add(`work.${state}`, { position: place.change, room, slot: nowhere, subject: work, at })
    }
  }
}

function stepsOf({ facts }: Act): StepFacts['steps'] {
  return (facts as Partial<StepFacts>).steps ?? []
}
