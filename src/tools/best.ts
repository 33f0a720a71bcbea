/** The first so many of many in an order, without sorting the rest: a heap whose root is the last of those that are kept. */
export class Best<Item> {
  readonly #most: number
  readonly #compare: (a: Item, b: Item) => number
  readonly #heap: Item[] = []
  #isOver = false

  /** `compare`: below 0 where `a` stands before `b`. */
  constructor(most: number, compare: (a: Item, b: Item) => number) {
    this.#most = most
    this.#compare = compare
  }

  /** Who must be beaten to be kept; undefined while there is room. */
  get worst(): Item | undefined {
    return this.#heap.length < this.#most ? undefined : this.#heap[0]
  }

  /** Whether there were more than are kept. */
  get isOver(): boolean {
    return this.#isOver
  }

  add(item: Item): void {
    if (this.#heap.length < this.#most) {
      this.#heap.push(item)
      this.#rise(this.#heap.length - 1)
      return
    }
    this.#isOver = true
    if (this.#compare(item, this.#heap[0]!) >= 0) return
    this.#heap[0] = item
    this.#sink(0)
  }

  /** There was one more, and it ranks after all that are kept. */
  pass(): void {
    this.#isOver = true
  }

  inOrder(): Item[] {
    return [...this.#heap].sort(this.#compare)
  }

  #rise(from: number): void {
    let at = from
    while (at > 0) {
      const above = (at - 1) >>> 1
      if (this.#compare(this.#heap[at]!, this.#heap[above]!) <= 0) return
      this.#swap(at, above)
      at = above
    }
  }

  #sink(from: number): void {
    let at = from
    for (;;) {
      let last = at
      for (const below of [2 * at + 1, 2 * at + 2])
        if (below < this.#heap.length && this.#compare(this.#heap[below]!, this.#heap[last]!) > 0) last = below
      if (last === at) return
      this.#swap(at, last)
      at = last
    }
  }

  #swap(a: number, b: number): void {
    const item = this.#heap[a]!
    this.#heap[a] = this.#heap[b]!
    this.#heap[b] = item
  }
}
