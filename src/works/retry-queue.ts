/**
 * Lines of tasks: those of one line run one after the other, in the order they came, each again until it is done; lines do not
 * wait for each other. A task is known by its name while it is in a line, and added once.
 */

/** Runs a task once; `done(false)`: it has to be run again. */
export type Task = (done: (isDone: boolean) => void) => void

type Line = {
  readonly tasks: { readonly name: string; readonly run: Task }[]
  failures: number
  readonly idle: (() => void)[]
}

const againMs = 100
const againMaxMs = 5_000

export class Lines {
  readonly #later: (callback: () => void, ms: number) => void
  readonly #lines = new Map<string, Line>()
  readonly #names = new Set<string>()
  readonly #quiet: (() => void)[] = []
  #closed = false

  constructor(later: (callback: () => void, ms: number) => void) {
    this.#later = later
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }

  /** Some line waits to try again. */
  get stuck(): boolean {
    return [...this.#lines.values()].some(({ failures }) => failures > 0)
  }

  add(key: string, name: string, run: Task): void {
    if (this.#names.has(name)) return
    this.#names.add(name)
    const line = this.#lines.get(key)
    if (line !== undefined) {
      line.tasks.push({ name, run })
      return
    }
    const begun: Line = { tasks: [{ name, run }], failures: 0, idle: [] }
    this.#lines.set(key, begun)
    this.#go(key, begun)
  }

  /** Calls back when this line has nothing to do. */
  whenIdle(key: string, then: () => void): void {
    const line = this.#lines.get(key)
    if (line === undefined) then()
    else line.idle.push(then)
  }

  /** Calls back when no line has anything to do, but those that wait to try again. */
  whenQuiet(then: () => void): void {
    this.#quiet.push(then)
    this.#check()
  }

  quiet(): Promise<void> {
    return new Promise((resolve) => this.whenQuiet(resolve))
  }

  close(): void {
    this.#closed = true
  }

  #go(key: string, line: Line): void {
    const [task] = line.tasks
    if (this.#closed) return
    if (task === undefined) {
      this.#lines.delete(key)
      for (const each of line.idle) each()
      return this.#check()
    }
    task.run((isDone) => {
      if (isDone) {
        line.failures = 0
        line.tasks.shift()
        this.#names.delete(task.name)
        return this.#go(key, line)
      }
      const wait = Math.min(againMaxMs, againMs * 2 ** line.failures++)
      this.#later(() => this.#go(key, line), wait)
      this.#check()
    })
  }

  #check(): void {
    if (this.#quiet.length === 0) return
    for (const { failures } of this.#lines.values()) if (failures === 0) return
    for (const each of this.#quiet.splice(0)) each()
  }
}
