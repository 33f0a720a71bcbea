/**
 * A mailbox: letters wait here, in order, up to a bound. A full mailbox refuses at once, because a queue that only
 * grows hides an overload until memory runs out.
 */
export class Mailbox<Letter> {
  readonly #lettersMax: number
  #letters: Letter[] = []

  constructor(lettersMax: number) {
    this.#lettersMax = lettersMax
  }

  get length(): number {
    return this.#letters.length
  }

  /** False: the mailbox is full and the letter was not taken. */
  offer(letter: Letter): boolean {
    if (this.#letters.length >= this.#lettersMax) return false
    this.#letters.push(letter)
    return true
  }

  /** Up to `max` letters, oldest first. */
  take(max: number): Letter[] {
    if (this.#letters.length <= max) {
      const all = this.#letters
      this.#letters = []
      return all
    }
    return this.#letters.splice(0, max)
  }
}
