/**
 * A list that stays sorted: runs of at most 512 items, so that putting in and taking out cost the same for a hundred items and for
 * a million (a search among the runs, a search in one, a move of at most 512 references).
 */

/** Less than zero: a stands before b. No two items may be equal. */
export type Order<Item> = (a: Item, b: Item) => number

const runMax = 512

export class Sorted<Item> {
  readonly #order: Order<Item>
  readonly #runs: Item[][] = []
  #length = 0

  constructor(order: Order<Item>) {
    this.#order = order
  }

  get length(): number {
    return this.#length
  }

  get first(): Item | undefined {
    return this.#runs[0]?.[0]
  }

  add(item: Item): void {
    this.#length++
    if (this.#runs.length === 0) {
      this.#runs.push([item])
      return
    }
    const at = this.#runOf(item)
    const run = this.#runs[at]!
    run.splice(this.#lower(run, item), 0, item)
    if (run.length > runMax) this.#runs.splice(at + 1, 0, run.splice(runMax >>> 1))
  }

  /** The item must order as it did when it was put in. */
  remove(item: Item): void {
    const at = this.#runOf(item)
    const run = this.#runs[at]
    const place = run === undefined ? -1 : this.#lower(run, item)
    if (run === undefined || run[place] === undefined || this.#order(run[place], item) !== 0)
      throw new Error('this item is not in the list')
    run.splice(place, 1)
    this.#length--
    if (run.length === 0) this.#runs.splice(at, 1)
  }

  /** Items in order; `after`: only those after this place. */
  *walk(after?: (item: Item) => number): Generator<Item, void, void> {
    let run = after === undefined ? 0 : firstWhere(this.#runs, (each) => after(each.at(-1)!) > 0)
    let place =
      after === undefined || run === this.#runs.length ? 0 : firstWhere(this.#runs[run]!, (item) => after(item) > 0)
    for (; run < this.#runs.length; run++, place = 0) {
      const items = this.#runs[run]!
      for (; place < items.length; place++) yield items[place]!
    }
  }

  /** The run that holds it, or into which it belongs: the first whose last item does not stand before it. */
  #runOf(item: Item): number {
    const run = firstWhere(this.#runs, (each) => this.#order(each.at(-1)!, item) >= 0)
    return Math.min(run, this.#runs.length - 1)
  }

  #lower(run: readonly Item[], item: Item): number {
    return firstWhere(run, (each) => this.#order(each, item) >= 0)
  }
}

/** First place for which it is true, by binary search; the length when it is so for none. */
function firstWhere<Item>(items: readonly Item[], isSo: (item: Item) => boolean): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isSo(items[middle]!)) high = middle
    else low = middle + 1
  }
  return low
}
