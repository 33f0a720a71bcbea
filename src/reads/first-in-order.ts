/** A page of a list whose items are not stored in its order. */

/**
 * The first `count` items in this order, as sorting all of them would give. Its time is proportional to the number of items, nearly all of
 * which are compared once.
 */
export function firstInOrder<Item>(
  items: Iterable<Item>,
  count: number,
  compare: (a: Item, b: Item) => number,
): Item[] {
  const first: Item[] = []
  for (const item of items) {
    if (first.length === count && compare(item, first[count - 1]!) >= 0) continue
    let [low, high] = [0, first.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compare(first[middle]!, item) <= 0) low = middle + 1
      else high = middle
    }
    first.splice(low, 0, item)
    if (first.length > count) first.pop()
  }
  return first
}
