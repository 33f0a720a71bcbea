/**
 * The daily round of probes: which listings are probed without a request, and when.
 *
 * Only those whose host names their owner, and of them each once in a UTC day, at a moment that follows from the day, the listing
 * and a seed of the board: spread over the day, and unpredictable, so that no host is in order for just that moment.
 * What was missed while the board was down is due at once; the prober decides how fast it catches up.
 */

import { createHash } from 'node:crypto'
import { dayOf, daySeconds } from '../kernel/day.ts'

/** A listing, and the UTC day on which it was probed last. */
type Listed = { readonly id: string; readonly host: string; readonly lookedDay: number }

/** What a round goes by. */
export type Walk = {
  /** Of the board, and secret. */
  readonly seed: string
  /** Between two probes of one machine. */
  readonly gapSeconds: number
  readonly now: number
}

/** Who may be probed, as the directory knows it. */
export type Grounds<Entry extends Listed> = {
  /** Changes when a listing joins or leaves. */
  readonly version: number
  invited(): Iterable<Entry>
  lastAsked(host: string): number
}

type Planned<Entry> = { readonly entry: Entry; readonly moment: number }

/** Unix seconds at which a listing is due on a day. */
export function momentOf(id: string, day: number, seed: string): number {
  const hash = createHash('sha256').update(`${seed} ${day} ${id}`).digest()
  return day * daySeconds + (hash.readUIntBE(0, 6) % daySeconds)
}

/** The plan of one day, made when it is first asked for and again when a listing joined or left. */
export class Rounds<Entry extends Listed> {
  #made = ''
  #plan: Planned<Entry>[] = []

  /** The longest due first, one of each machine, `most` at most. */
  due(grounds: Grounds<Entry>, { seed, gapSeconds, now }: Walk, most: number): Entry[] {
    const day = dayOf(now)
    const made = `${day} ${grounds.version} ${seed}`
    if (made !== this.#made) {
      this.#made = made
      this.#plan = [...grounds.invited()]
        .filter(({ lookedDay }) => lookedDay < day)
        .map((entry) => ({ entry, moment: momentOf(entry.id, day, seed) }))
        .sort((a, b) => a.moment - b.moment)
    }
    const due = this.#plan.findIndex(({ moment }) => moment > now)
    const over = this.#plan.slice(0, due < 0 ? undefined : due).filter(({ entry }) => entry.lookedDay < day)
    this.#plan.splice(0, due < 0 ? this.#plan.length : due, ...over)
    const hosts = new Set<string>()
    const found: Entry[] = []
    for (const { entry } of over) {
      if (found.length === most) break
      if (hosts.has(entry.host) || grounds.lastAsked(entry.host) + gapSeconds > now) continue
      hosts.add(entry.host)
      found.push(entry)
    }
    return found
  }
}
