/** What the operator has to know while the board runs: shown by /healthz and /metrics until it has ended. */

export class Notices {
  readonly #byName = new Map<string, string>()

  /** One sentence without names of private rooms and without what users wrote: health checks may be public. */
  set(name: string, sentence: string): void {
    this.#byName.set(name, sentence)
  }

  end(name: string): void {
    this.#byName.delete(name)
  }

  get names(): string[] {
    return [...this.#byName.keys()].sort()
  }

  /** What a health check is answered: `ok` on the first line, and a line for each notice. */
  get health(): string {
    return `ok\n${this.names.map((name) => `${name}: ${this.#byName.get(name)}\n`).join('')}`
  }
}
