/**
 * Credit ties between identities: accepted works, and credits given. Only public works count, and no simulated ones.
 *
 * Keys are free, so a work that a user requests from another key of their own proves nothing about its worker. A work counts if
 * its reward has a minimum, a reviewer judged the result, the two sides came from different networks, and nothing ties its
 * worker to its requester. Two identities are tied if credits went from the worker to the requester for works, or if either
 * gave credits to the other, directly or through at most two others.
 */
import type { OpenFacts, Step, StepFacts } from '../../actors/works/market/letters.ts'
import type { TransitionName } from '../../actors/works/market/table.ts'
import { finalStates } from '../../actors/works/market/work.ts'

/** If only silence accepted the result, possibly no one has reviewed it. */
const judged: ReadonlySet<TransitionName> = new Set(['accept', 'accept_unconfirmed', 'rule_all'])

const linksMax = 3
/** An identity tied to more than these is treated as tied to all. */
const tiedMax = 10_000
/** Requesters named in one answer. */
const vouchersMax = 16

type OpenWork = {
  readonly requester: string
  readonly reviewer: string
  worker: string
  amount: number
  /** Keyed hashes of the networks of each side, comparable only within this work. */
  askedFrom: string[]
  doneFrom: string[]
}

/** A result that was accepted. */
type Accepted = {
  readonly requester: string
  readonly amount: number
  /** Unix seconds. */
  readonly at: number
  /** Both sides came from the same network. */
  readonly isNear: boolean
}

/** An identity that accepted a work, and when it last did. */
export type Voucher = { readonly requester: string; readonly at: number }

type Table<Value> = readonly (readonly [string, Value])[]
type PackedTies = {
  readonly works: Table<OpenWork>
  readonly accepted: Table<readonly Accepted[]>
  readonly paid: Table<readonly string[]>
  readonly gave: Table<readonly string[]>
}

export class CreditTies {
  readonly #minimum: number
  /** Works that are not settled. */
  readonly #works = new Map<string, OpenWork>()
  /** By worker. */
  readonly #accepted = new Map<string, Accepted[]>()
  /** Requester -> those who were paid for works. */
  readonly #paid = new Map<string, Set<string>>()
  /** Giver -> receivers, and receiver -> givers. */
  readonly #gave = new Map<string, Set<string>>()
  /** Answers of `requesters`, until either side deals again. */
  readonly #known = new Map<string, number>()

  /** `minimum`: the lowest reward of a work that counts. */
  constructor(minimum: number) {
    this.#minimum = minimum
  }

  gave(giver: string, receiver: string): void {
    add(this.#gave, giver, receiver)
    add(this.#gave, receiver, giver)
    this.#changed(giver, receiver)
  }

  /** Applies a change of a work. Returns its worker if a dispute was decided against them, else ''. */
  moved(author: string, facts: StepFacts | OpenFacts): string {
    const { work: id, steps, from } = facts
    if ('fixed' in facts && !facts.fixed.simulated) {
      const { requester, reviewer } = facts.fixed
      const askedFrom = from === undefined ? [] : [from]
      this.#works.set(id, { requester, reviewer, worker: '', amount: facts.begun.amount, askedFrom, doneFrom: [] })
    }
    const work = this.#works.get(id)
    if (work === undefined) return ''
    let loser = ''
    for (const step of steps) {
      const { worker = work.worker, amount = work.amount } = step.set
      if (worker !== work.worker) work.doneFrom = []
      Object.assign(work, { worker, amount })
      const isAsking = author === work.requester || author === work.reviewer
      const side = author === worker ? work.doneFrom : isAsking ? work.askedFrom : undefined
      if (from !== undefined && side?.includes(from) === false) side.push(from)
      if (step.state === 'refunded' && step.transition.startsWith('rule')) loser = worker
      if (finalStates.has(step.state)) this.#settle(id, work, step)
    }
    return loser
  }

  /**
   * How many requesters accepted a counted work of this identity. Only direct ties are considered, because they can be looked
   * up immediately.
   */
  requesters(identity: string): number {
    const known = this.#accepted.has(identity) ? this.#known.get(identity) : 0
    if (known !== undefined) return known
    const found = new Set<string>()
    const isTied = (other: string) =>
      this.#gave.get(identity)?.has(other) === true || this.#paid.get(identity)?.has(other) === true
    for (const each of this.#countable(identity)) if (!isTied(each.requester)) found.add(each.requester)
    this.#known.set(identity, found.size)
    return found.size
  }

  /** Requesters whose acceptance vouches for this identity, newest first. */
  vouchers(identity: string, isBarred: (requester: string) => boolean): readonly Voucher[] {
    const isTied = this.#tiedTo(identity)
    const found = new Map<string, Voucher>()
    for (const { requester, at } of this.#countable(identity).toReversed()) {
      if (found.size === vouchersMax) break
      if (!found.has(requester) && !isTied(requester) && !isBarred(requester)) found.set(requester, { requester, at })
    }
    return [...found.values()]
  }

  /** Whether these two are tied, in either direction. */
  areTied(one: string, other: string): boolean {
    return this.#tiedTo(one)(other) || this.#tiedTo(other)(one)
  }

  /**
   * Finds the identities tied to this one, directly or through at most two others: those it paid for works, and those it gave
   * credits to or received them from.
   */
  #tiedTo(identity: string): (other: string) => boolean {
    const seen = new Set([identity])
    let ends: readonly string[] = [identity]
    for (let link = 0; link < linksMax && seen.size <= tiedMax; link++) {
      const next: string[] = []
      for (const end of ends)
        for (const others of [this.#gave.get(end), this.#paid.get(end)])
          for (const other of others ?? []) {
            if (seen.size > tiedMax) break
            if (!seen.has(other)) next.push(other)
            seen.add(other)
          }
      ends = next
    }
    return (other) => seen.size > tiedMax || seen.has(other)
  }

  pack(): PackedTies {
    const sets = (table: ReadonlyMap<string, ReadonlySet<string>>) =>
      [...table].map(([name, others]) => [name, [...others]] as const)
    return {
      works: [...this.#works],
      accepted: [...this.#accepted],
      paid: sets(this.#paid),
      gave: sets(this.#gave),
    }
  }

  restore({ works, accepted, paid, gave }: PackedTies): void {
    for (const [id, work] of works) this.#works.set(id, work)
    for (const [worker, each] of accepted) this.#accepted.set(worker, [...each])
    for (const [requester, workers] of paid) this.#paid.set(requester, new Set(workers))
    for (const [identity, others] of gave) this.#gave.set(identity, new Set(others))
  }

  #countable(identity: string): readonly Accepted[] {
    return (this.#accepted.get(identity) ?? []).filter(({ amount, isNear }) => amount >= this.#minimum && !isNear)
  }

  #settle(id: string, work: OpenWork, { transition, state, at }: Step): void {
    this.#works.delete(id)
    const { requester, worker, amount, askedFrom, doneFrom } = work
    if (worker === '' || (state !== 'accepted' && state !== 'split')) return
    add(this.#paid, requester, worker)
    this.#changed(requester, worker)
    if (!judged.has(transition)) return
    const accepted = this.#accepted.get(worker) ?? []
    accepted.push({ requester, amount, at, isNear: doneFrom.some((each) => askedFrom.includes(each)) })
    this.#accepted.set(worker, accepted)
  }

  #changed(...identities: readonly string[]): void {
    for (const each of identities) this.#known.delete(each)
  }
}

function add(table: Map<string, Set<string>>, name: string, other: string): void {
  const known = table.get(name)
  if (known === undefined) table.set(name, new Set([other]))
  else known.add(other)
}
