/** The seller's records: an actor, `@sales`, stores what was sold, so that a payment is known even after a kill. */

import { type InternalWriteName, internalLetter } from '../../actors/records/internal-operations.ts'
import { type SaleFacts, type SoldFacts, salesActor } from '../../actors/sales/sales.ts'
import type { ReadPlans } from '../command/plan.ts'
import type { Actors, NoAnswer } from '../command/ports.ts'
import { type AnswerOf, dataOf, type ReadAnswer, type ReadCall } from '../reads/read.ts'
import type { KeptSale, SaleStore } from './seller.ts'

export type SalesOptions = {
  readonly actors: Pick<Actors, 'write'>
  readonly read: ReadCall
  /** Identity id of the board, which is the seller. */
  readonly boardIdentity: string
}

export class Sales implements SaleStore {
  readonly #options: SalesOptions

  constructor(options: SalesOptions) {
    this.#options = options
  }

  async find(key: string): Promise<KeptSale | undefined> {
    const answer = await new Promise<ReadAnswer<AnswerOf<'sale.find'>> | NoAnswer>((resolve) =>
      this.#options.read({ op: 'sale.find', args: { key }, reader: '' }, resolve),
    )
    if (answer === undefined || !answer.ok) throw new Error('the sales records could not be read')
    return dataOf(answer).sale
  }

  begin(sale: SaleFacts): Promise<void> {
    return this.#say('sale.begin', sale)
  }

  settle(sold: SoldFacts): Promise<void> {
    return this.#say('sale.settle', sold)
  }

  drop(key: string): Promise<void> {
    return this.#say('sale.drop', { key })
  }

  async #say(op: InternalWriteName, args: object): Promise<void> {
    const letter = internalLetter(op, salesActor, this.#options.boardIdentity, args)
    const problem = await new Promise<string | undefined>((resolve) =>
      this.#options.actors.write(letter, (answer) =>
        resolve(answer === undefined ? 'no answer' : answer.ok ? undefined : answer.refusal.message),
      ),
    )
    if (problem !== undefined) throw new Error(`a sale could not be recorded: ${problem}`)
  }
}

/** The actor of sales stores what was sold. */
export const salesReadPlans = {
  'sale.find': { actor: () => salesActor },
} satisfies ReadPlans
