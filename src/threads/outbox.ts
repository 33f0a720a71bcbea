/**
 * What a shard hands over of its outbox of works (src/works/work-mail.ts carries it): after each turn that is on disk, what that turn
 * has put into it. After the first turn it is all that there is, so that nothing from before a restart of this thread is left.
 */
import type { ReadContext } from '../reads/read.ts'
import { type MailJson, mailBehind, nothingTaken, takenWith } from '../works/mail-reads.ts'

export class Outbox {
  readonly #context: ReadContext
  readonly #hand: (mail: MailJson) => void
  #made = -1
  #taken = nothingTaken

  /** `hand` takes a page after the other, oldest first. */
  constructor(context: ReadContext, hand: (mail: MailJson) => void) {
    this.#context = context
    this.#hand = hand
  }

  afterTurn(): void {
    if (this.#count === this.#made) return
    this.#made = this.#count
    let mail: MailJson
    do {
      mail = mailBehind(this.#context, this.#taken)
      this.#taken = takenWith(this.#taken, mail)
      this.#hand(mail)
    } while (mail.more)
  }

  get #count(): number {
    const { mail, bound } = this.#context.state
    return mail.made + bound.made
  }
}
