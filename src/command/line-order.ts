/**
 * The order of commands that came together: the lines of POST /v1/commands, and the messages of /v1/stream.
 *
 * They are parsed and verified side by side. A write is sent to its actor after every earlier line was sent or answered, so lines to
 * one actor are decided in line order. A line that names what an earlier one makes, and a read, wait until that is answered.
 */

/** The part of it that one line sees. */
export type LinePlace = {
  /** `id`: event id of what the command makes, 32 hex. `go` is called when it is its turn; never, when the lines were given up. */
  write(id: string, go: () => void): void
  read(go: () => void): void
  /** The letter is with its actor, whose answer comes later. */
  sent(): void
}

type Line = {
  /** What it names that an earlier line may make. */
  names: readonly string[]
  state: 'open' | 'sent' | 'answered'
  id?: string
  isRead?: true
  /** It was passed by, and its answer is not there. */
  isUnanswered?: true
  go?: () => void
}

/** Ids (32 hex) that a line names, between characters that are not hex. */
const idsIn = /(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])/g

/** Lines that were passed are let go by so many. */
const passedMax = 1_024

export class LineOrder {
  readonly #lines: Line[] = []
  /** Ids of what earlier lines make, while they wait for their answers. */
  readonly #pending = new Set<string>()
  /** All lines before this one were sent or answered. */
  #next = 0
  /** How many of those before it were sent and are not answered. */
  #unanswered = 0
  #isAdvancing = false
  #isHeld = false
  #isOver = false

  /** Takes a place for the next line. */
  place(text: string): LinePlace & { answered(): void } {
    const line: Line = { names: [...new Set(text.match(idsIn))], state: 'open' }
    this.#lines.push(line)
    const wait = (go: () => void): void => {
      line.go = go
      this.#advance()
    }
    return {
      write: (id, go) => {
        line.id = id
        wait(go)
      },
      read: (go) => {
        line.isRead = true
        wait(go)
      },
      sent: () => {
        if (line.state === 'open') line.state = 'sent'
        this.#advance()
      },
      answered: () => {
        if (line.state === 'answered') return
        line.state = 'answered'
        if (line.isUnanswered === true) this.#unanswered--
        if (line.id !== undefined) this.#pending.delete(line.id)
        this.#advance()
      },
    }
  }

  /** No line is started while the reader of the answers takes none. */
  hold(): void {
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
    this.#advance()
  }

  /** What was not sent yet never is. */
  giveUp(): void {
    this.#isOver = true
  }

  #advance(): void {
    if (this.#isAdvancing) return
    this.#isAdvancing = true
    for (; this.#next < this.#lines.length; this.#next++) {
      const line = this.#lines[this.#next]!
      if (line.state === 'open' && this.#isTurnOf(line)) this.#start(line)
      if (line.state === 'open') break
      if (line.state === 'answered') continue
      line.isUnanswered = true
      this.#unanswered++
    }
    if (this.#next >= passedMax) {
      this.#lines.splice(0, this.#next)
      this.#next = 0
    }
    this.#isAdvancing = false
  }

  /** Every earlier line has been started by now, so what a line does not wait for here it never waits for. */
  #isTurnOf(line: Line): boolean {
    if (line.go === undefined || this.#isHeld || this.#isOver) return false
    if (line.isRead === true) return this.#unanswered === 0
    line.names = line.names.filter((name) => this.#pending.has(name))
    return line.names.length === 0
  }

  #start(line: Line): void {
    const go = line.go!
    delete line.go
    if (line.isRead === true) line.state = 'sent'
    else if (line.id !== undefined) this.#pending.add(line.id)
    go()
  }
}
