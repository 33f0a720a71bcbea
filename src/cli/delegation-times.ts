/** Did a delegate act after its delegation had ended? By the order of the log, not by clocks: leaf against leaf. */
import type { CheckedLine, LeafClaim } from './event-check.ts'

type Place = { readonly origin: string; readonly index: number; readonly line: number }

export class DelegationTimes {
  /** Of each delegation and log: the newest event by it. */
  readonly #newest = new Map<string, Place>()
  readonly #ends = new Map<string, Place>()

  note(kind: CheckedLine['kind'], delegation: string, { origin, index }: LeafClaim, line: number): void {
    const name = `${delegation} ${origin}`
    const place = { origin, index, line }
    if (kind === 'undelegation') this.#ends.set(name, place)
    else if (kind === 'event' && index >= (this.#newest.get(name)?.index ?? -1)) this.#newest.set(name, place)
  }

  /** Lines of events after the end of their delegation. */
  late(): number[] {
    return [...this.#newest].flatMap(([name, { index, line }]) =>
      index > (this.#ends.get(name)?.index ?? Number.POSITIVE_INFINITY) ? [line] : [],
    )
  }
}
