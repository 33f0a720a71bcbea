/**
 * Finds one string in a large JSON text by its path, without building values: what a body of megabytes is, before it is read.
 *
 * Nearly all of a large body that is good lies in one string, which is passed at memory speed. Whatever else it has costs steps,
 * and there are few: a text of another make is not looked through to its end. This is no validation: what it has found still has to
 * be parsed by a strict reader, which refuses a key that comes twice.
 */
const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const bracketOpen = 0x5b
const backslash = 0x5c
const bracketClose = 0x5d
const braceOpen = 0x7b
const braceClose = 0x7d

/** Bytes outside strings; a string, and a quote inside of one, costs as much as some of them. */
const stepsMax = 16_384
const stringSteps = 16
/** A longer string is not asked for. */
const foundBytesMax = 256

/** The string at this path of keys; undefined: it has none, or more steps than a good body needs lead to its end. */
export function stringAt(body: Buffer, path: readonly string[]): string | undefined {
  const reader = new HeadReader(body)
  const found = reader.member(path)
  return reader.isWhole() ? found : undefined
}

class HeadReader {
  readonly #body: Buffer
  #at = 0
  #steps = 0

  constructor(body: Buffer) {
    this.#body = body
  }

  /** All of it was passed, in few steps. */
  isWhole(): boolean {
    this.#skip()
    return this.#at >= this.#body.length && this.#steps <= stepsMax
  }

  /** Passes one value, an object, and gives the string at this path inside of it. */
  member([name, ...rest]: readonly string[]): string | undefined {
    this.#skip()
    if (this.#body[this.#at] !== braceOpen) return void this.#value()
    this.#at += 1
    let found: string | undefined
    while (this.#steps <= stepsMax) {
      this.#skip()
      if (this.#body[this.#at] !== quote) break
      const isNamed = this.#text() === name
      this.#skip()
      if (this.#body[this.#at] !== colon) return undefined
      this.#at += 1
      this.#skip()
      if (!isNamed || found !== undefined) this.#value()
      else if (rest.length > 0) found = this.member(rest)
      else if (this.#body[this.#at] === quote) found = this.#text()
      else this.#value()
      this.#skip()
      if (this.#body[this.#at] !== comma) break
      this.#at += 1
    }
    if (this.#body[this.#at] !== braceClose) return undefined
    this.#at += 1
    return found
  }

  /** Passes a value of any kind. */
  #value(): void {
    let depth = 0
    while (this.#at < this.#body.length && this.#count(1)) {
      const byte = this.#body[this.#at]
      if (byte === quote) this.#string()
      else {
        if (byte === braceOpen || byte === bracketOpen) depth += 1
        else if (byte === braceClose || byte === bracketClose) depth -= 1
        // What ends here is the object or the list around it.
        if (depth < 0 || (depth === 0 && byte === comma)) return
        this.#at += 1
      }
    }
  }

  /** Passes a string and gives what it says; undefined where it is too long to be asked for. */
  #text(): string | undefined {
    const start = this.#at
    this.#string()
    if (this.#at - start > foundBytesMax) return undefined
    try {
      const said: unknown = JSON.parse(this.#body.toString('utf8', start, this.#at))
      return typeof said === 'string' ? said : undefined
    } catch {
      return undefined
    }
  }

  /** From its quote to just after the next one that no backslash escapes. */
  #string(): void {
    let at = this.#at + 1
    while (this.#count(stringSteps)) {
      const end = this.#body.indexOf(quote, at)
      if (end === -1) break
      let before = end - 1
      while (before >= at && this.#body[before] === backslash) before -= 1
      at = end + 1
      if ((end - before) % 2 === 0) continue
      this.#at = at
      return
    }
    this.#at = this.#body.length
    this.#steps = stepsMax + 1
  }

  #skip(): void {
    while (this.#at < this.#body.length && isSpace(this.#body[this.#at]!) && this.#count(1)) this.#at += 1
  }

  /** False: there were too many. */
  #count(steps: number): boolean {
    this.#steps += steps
    return this.#steps <= stepsMax
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
