/**
 * Finds one string in a large JSON text by its path, without building values: identifies a body of megabytes before it is parsed.
 *
 * Nearly all of a large valid body is in one string, which is skipped at memory speed. Everything else costs steps, and there are few of
 * them: a text of a different kind is not scanned to its end. This does not validate: a strict parser still has to parse the text, and
 * refuses duplicate keys.
 */
const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const bracketOpen = 0x5b
const backslash = 0x5c
const bracketClose = 0x5d
const braceOpen = 0x7b
const braceClose = 0x7d

/** Bytes outside strings. A string, or a quote inside one, costs as much as several of them. */
const stepsMax = 16_384
const stringSteps = 16
/** Longer strings are not returned. */
const foundBytesMax = 256

/** The string at this path of keys; undefined if there is none, or if reaching the end takes more steps than a valid body needs. */
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

  /** Whether the whole text was scanned within the step limit. */
  isWhole(): boolean {
    this.#skip()
    return this.#at >= this.#body.length && this.#steps <= stepsMax
  }

  /** Skips one value, an object, and returns the string at this path inside it. */
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

  /** Skips a value of any kind. */
  #value(): void {
    let depth = 0
    while (this.#at < this.#body.length && this.#count(1)) {
      const byte = this.#body[this.#at]
      if (byte === quote) this.#string()
      else {
        if (byte === braceOpen || byte === bracketOpen) depth += 1
        else if (byte === braceClose || byte === bracketClose) depth -= 1
        // This ends the enclosing object or list.
        if (depth < 0 || (depth === 0 && byte === comma)) return
        this.#at += 1
      }
    }
  }

  /** Skips a string and returns its value; undefined if it is too long. */
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

  /** From its opening quote to just after the next unescaped one. */
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

  /** Returns false if there were too many. */
  #count(steps: number): boolean {
    this.#steps += steps
    return this.#steps <= stepsMax
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
