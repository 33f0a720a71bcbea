/**
 * A mailbox: a bounded FIFO queue of letters. A full mailbox refuses immediately, because an unbounded queue hides an
 * overload until memory runs out.
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

  /** False if the mailbox is full and the letter was not accepted. */
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
