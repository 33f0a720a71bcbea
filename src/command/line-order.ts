/**
 * The order of commands that arrive together: the lines of POST /v1/commands, and the messages of /v1/stream.
 *
 * They are parsed and verified in parallel. A write is sent to its actor after every earlier line was sent or answered, so lines to one
 * actor are decided in line order. A line that names something an earlier line creates waits for that line's answer. A read waits for all
 * earlier answers.
 */

/** The interface of the order to one line. */
export type LinePlace = {
  /** `id`: event id of what the command creates, 32 hex. `go` is called when it is its turn, and never if the lines were given up. */
  write(id: string, go: () => void): void
  read(go: () => void): void
  /** The letter was sent to its actor, and the answer comes later. */
  sent(): void
}

type Line = {
  /** Ids in the line that an earlier line may create. */
  names: readonly string[]
  state: 'open' | 'sent' | 'answered'
  id?: string
  isRead?: true
  /** The line was passed while its answer was still pending. */
  isUnanswered?: true
  go?: () => void
}

/** Ids (32 hex) in a line, not adjacent to other hex digits. */
const idsIn = /(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])/g

/** Passed lines are released once there are this many. */
const passedMax = 1_024

export class LineOrder {
  readonly #lines: Line[] = []
  /** Ids of what earlier lines create, until those are answered. */
  readonly #pending = new Set<string>()
  /** All lines before this one were sent or answered. */
  #next = 0
  /** How many of those were sent and are not answered. */
  #unanswered = 0
  #isAdvancing = false
  #isHeld = false
  #isOver = false

  /** Adds the next line. */
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

  /** Starts no line while the reader of the answers takes none. */
  hold(): void {
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
    this.#advance()
  }

  /** Lines that were not sent yet never are. */
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

  /** Every earlier line has been started by now, so dependencies not found here cannot appear later. */
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
