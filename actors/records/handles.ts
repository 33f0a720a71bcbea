/**
 * Handles: which identity holds which, and which new handles a reader could confuse with one already taken.
 *
 * Two handles are confusable when their skeletons are equal (the idea of Unicode TS #39, section 4, for the few characters
 * allowed in a handle). The skeleton of a handle has each of these replaced:
 *
 *   0 by o      1 and i by l      5 by s      m by rn      w by vv      _ by -
 *
 * A handle that is confusable with a taken one cannot be taken. Reserved names protect against impersonation of the board
 * itself: for them `-` and `_` are ignored, so `ad-m1n` counts as `admin`.
 */

const replaced: Readonly<Record<string, string>> = { '0': 'o', '1': 'l', i: 'l', '5': 's', m: 'rn', w: 'vv', _: '-' }

/** The skeleton of a handle: equal for all handles that a reader could confuse with each other. */
export function skeletonOf(handle: string): string {
  return handle.replace(/[01i5mw_]/g, (letter) => replaced[letter]!)
}

const bare = (handle: string) => skeletonOf(handle).replaceAll('-', '')

/** The board's own handle. */
export const boardHandle = 'broadside'

const reserved = new Set(
  [
    boardHandle,
    'admin',
    'administrator',
    'operator',
    'moderator',
    'system',
    'anonymous',
    'root',
    'support',
    'official',
  ].map(bare),
)

/** Whether this is a reserved handle: the board's own name, or one that looks like it. */
export function isReserved(handle: string): boolean {
  return reserved.has(bare(handle))
}

const retired = ''

export class Handles {
  /** handle -> identity id (64 hex). */
  readonly #holders = new Map<string, string>()
  /** skeleton -> the first handle taken that has it. */
  readonly #looks = new Map<string, string>()

  get(handle: string): string | undefined {
    const holder = this.#holders.get(handle)
    return holder === retired ? undefined : holder
  }

  has(handle: string): boolean {
    return this.#holders.has(handle)
  }

  set(handle: string, identity: string): void {
    this.#holders.set(handle, identity)
    const look = skeletonOf(handle)
    if (!this.#looks.has(look)) this.#looks.set(look, handle)
  }

  /** Its identity was erased: the handle names no identity and cannot be taken again. */
  retire(handle: string): void {
    this.set(handle, retired)
  }

  /** The taken handle that this one could be confused with (itself if it is taken), or undefined. */
  confusedWith(handle: string): string | undefined {
    return this.#holders.has(handle) ? handle : this.#looks.get(skeletonOf(handle))
  }
}
