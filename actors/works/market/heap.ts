/** Numbers in an order, the first ones soon: taking fifty of a hundred thousand does not wait for the rest to be sorted. */

/** Rearranges `items`. `isBefore`: a comes before b. */
export function* smallestFirst(
  items: Uint32Array,
  isBefore: (a: number, b: number) => boolean,
): Generator<number, void, void> {
  let count = items.length
  /** Lets the item at this place sink to where everything below it comes after it. */
  const sink = (from: number): void => {
    const item = items[from]!
    let place = from
    for (;;) {
      let child = 2 * place + 1
      if (child >= count) break
      if (child + 1 < count && isBefore(items[child + 1]!, items[child]!)) child++
      if (!isBefore(items[child]!, item)) break
      items[place] = items[child]!
      place = child
    }
    items[place] = item
  }
  for (let place = (count >>> 1) - 1; place >= 0; place--) sink(place)
  while (count > 0) {
    yield items[0]!
    items[0] = items[--count]!
    if (count > 1) sink(0)
  }
}
