/**
 * Handles of identities, as far as the main thread knows them: from the answers to its own claims and from the feed.
 * The shards of private rooms show handles too and know none by themselves: each new one is sent to them before its
 * claim is answered.
 */
export class HandleCache {
  /** identity id -> handle. */
  readonly #handles = new Map<string, string>()
  /** handle -> identity id. */
  readonly #identities = new Map<string, string>()
  #onNew: (identity: string, handle: string) => void = () => {}

  /** Called with each handle that was not known before. */
  onNew(listener: (identity: string, handle: string) => void): void {
    this.#onNew = listener
  }

  get(identity: string): string | undefined {
    return this.#handles.get(identity)
  }

  /** The identity (64 hex) that bears a handle. */
  identityOf(handle: string): string | undefined {
    return this.#identities.get(handle)
  }

  /** A handle stays with its identity: what is said again changes nothing. */
  set(identity: string, handle: string): void {
    if (this.#handles.get(identity) === handle) return
    this.#handles.set(identity, handle)
    this.#identities.set(handle, identity)
    this.#onNew(identity, handle)
  }

  all(): (readonly [identity: string, handle: string])[] {
    return [...this.#handles]
  }
}
