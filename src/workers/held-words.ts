/** What the log says of its frames is held here until the stream has acknowledged them. */

type Word = { readonly seq: number; readonly say: () => void }

export class HeldWords {
  #acknowledged = 0
  /** As many as the shards have turns, and one for each pace of the log: no shard takes a turn while one of its own waits. */
  #words: Word[] = []

  /** Says it as soon as the log's frames up to `seq` are acknowledged. */
  after(seq: number, say: () => void): void {
    if (seq <= this.#acknowledged) say()
    else this.#words.push({ seq, say })
  }

  acknowledged(through: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, through)
    const words = this.#words
    this.#words = words.filter(({ seq }) => seq > this.#acknowledged)
    for (const { seq, say } of words) if (seq <= this.#acknowledged) say()
  }
}
