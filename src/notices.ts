/** Notices for the operator of a running board, shown by /healthz and /metrics until they end. */

export class Notices {
  readonly #byName = new Map<string, string>()

  /** The sentence must contain neither names of private rooms nor text of users, because health checks may be public. */
  set(name: string, sentence: string): void {
    this.#byName.set(name, sentence)
  }

  end(name: string): void {
    this.#byName.delete(name)
  }

  get names(): string[] {
    return [...this.#byName.keys()].sort()
  }

  /** The body of the health check: `ok` on the first line, and a line per notice. */
  get health(): string {
    return `ok\n${this.names.map((name) => `${name}: ${this.#byName.get(name)}\n`).join('')}`
  }
}
