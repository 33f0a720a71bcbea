/**
 * An upper bound for the number of tokens in a text, without a tokenizer. Its byte count is four times too high for English, and the tables
 * of a real tokenizer take 50 MB. Costs are set so that o200k_base (the newest published tables) gives a lower count for every kind of text
 * that a test tries: prose, code, JSON, random letters and digits, and random text in various scripts. A token is at least one byte of
 * UTF-8, so for an unknown script the bytes are counted.
 */

const lower = 1
const upper = 2
const digit = 3
const blank = 4
const control = 5
const sign = 6

const kindOf = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code >= 97 && code <= 122) return lower
  if (code >= 65 && code <= 90) return upper
  if (code >= 48 && code <= 57) return digit
  if (code === 32) return blank
  return code < 32 || code === 127 ? control : sign
})

/** Cost of a character after one of its own kind, by kind: tokens consist of runs of one kind. */
const again = Float64Array.of(0, 0.66, 0.98, 0.35, 0.1, 0.9, 0.75)

/** UTF-16 units of scripts whose characters cost less than their bytes. */
const scripts: readonly (readonly [from: number, to: number, cost: number])[] = [
  [0x00c0, 0x00ff, 1.1],
  [0x0391, 0x03c9, 1.1],
  [0x0410, 0x044f, 1],
  [0x05d0, 0x064a, 1.1],
  [0x0900, 0x097f, 1.5],
  [0x0b85, 0x0bb9, 1.6],
  [0x0e01, 0x0e4e, 1.2],
  [0x1ea0, 0x1ef9, 1.4],
  [0x2010, 0x2027, 1.4],
  [0x3041, 0x30fa, 1.3],
  [0x4e00, 0x9fff, 2.05],
  [0xac00, 0xd7a3, 2.4],
  [0xff01, 0xff5e, 1.6],
]

function costBeyondAscii(unit: number): number {
  for (const [from, to, cost] of scripts) if (unit >= from && unit <= to) return cost
  // Half a surrogate pair represents two of four bytes.
  return unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3
}

function costOfAscii(kind: number, before: number): number {
  // Beyond ASCII, each unit has its own cost.
  if (kind === 0) return 0
  if (kind === before) return again[kind]!
  if (kind === lower && before === upper) return again[lower]!
  // A blank and the letter after it form one token.
  if (kind === blank || (before === blank && kind <= upper)) return 0.5
  return 1
}

const kinds = 7
/** Costs of ASCII characters by the previous kind and their own. A table, because answers are long and every character is examined. */
const asciiCosts = Float64Array.from({ length: kinds * kinds }, (_, pair) =>
  costOfAscii(pair % kinds, Math.floor(pair / kinds)),
)

/** Counting stops soon after `enough`. */
export function tokensAtMost(text: string, enough = Number.POSITIVE_INFINITY): number {
  return counted(text, enough).tokens
}

/** The share of the text, from 0 to 1, that takes about this many tokens; 1 if the whole text fits. Examines no more than that. */
export function shareWithin(text: string, tokens: number): number {
  const { units, tokens: taken } = counted(text, tokens)
  return taken <= tokens ? 1 : units / text.length
}

function counted(text: string, enough: number): { readonly tokens: number; readonly units: number } {
  let tokens = 0
  let before = 0
  let i = 0
  for (; i < text.length && tokens <= enough; i++) {
    const unit = text.charCodeAt(i)
    const kind = kindOf[unit] ?? 0
    tokens += asciiCosts[before * kinds + kind]!
    if (kind === 0) tokens += costBeyondAscii(unit)
    before = kind
  }
  return { tokens: Math.ceil(tokens), units: i }
}
