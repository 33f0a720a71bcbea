/**
 * What a search asks for: words that must all be there, "phrases", -words that must not, and word* for its beginnings.
 *
 * Nothing in a query is an error but that it holds no word to look for: a quote that is not closed reaches to the end, and
 * signs between words only part them. The words are handed to SQLite as quoted FTS5 strings, so its own query language has no
 * say (https://www.sqlite.org/fts5.html#full_text_query_syntax).
 */
export type Term = {
  /** One word, or several that stand one after the other. */
  readonly words: readonly string[]
  /** The last word may go on. */
  readonly isPrefix: boolean
}
export type Query = { readonly wanted: readonly Term[]; readonly unwanted: readonly Term[] }

/** More would be no search; a query has at most so many bytes anyway. */
const termsMax = 32

/** Marks that stand on a letter (unicode61 takes them off, and so do we). */
const marks = /\p{Mn}/gu
const wordRuns = /[\p{L}\p{N}\p{Co}]+/gu

/** The words of a text as they are compared: without case and without marks on letters. */
export function wordsOf(text: string): string[] {
  return text.normalize('NFD').replace(marks, '').toLowerCase().match(wordRuns) ?? []
}

/** Undefined: there is no word to look for in it. */
export function parseQuery(text: string): Query | undefined {
  const wanted: Term[] = []
  const unwanted: Term[] = []
  for (const [, minus, phrase, word] of text.matchAll(/(-?)(?:"([^"]*)(?:"|$)|([^\s"]+))/gu)) {
    const isPrefix = word?.endsWith('*') === true
    const term = { words: wordsOf(phrase ?? word ?? ''), isPrefix }
    if (term.words.length > 0 && wanted.length + unwanted.length < termsMax)
      (minus === '-' ? unwanted : wanted).push(term)
  }
  return wanted.length === 0 ? undefined : { wanted, unwanted }
}

/** The same in the query language of FTS5. */
export function toFts({ wanted, unwanted }: Query): string {
  const all = wanted.map(ftsTerm).join(' AND ')
  return unwanted.length === 0 ? all : `(${all}) NOT (${unwanted.map(ftsTerm).join(' OR ')})`
}

function ftsTerm({ words, isPrefix }: Term): string {
  return `"${words.join(' ')}"${isPrefix ? '*' : ''}`
}

/** Does the text hold what is asked for? What the index answers for public texts, by the text alone. */
export function matches({ wanted, unwanted }: Query, text: string): boolean {
  const words = wordsOf(text)
  // A set of the words pays where many are asked for.
  const different = wanted.length + unwanted.length > 4 ? new Set(words) : undefined
  const has = (term: Term) => holds(words, different, term)
  return wanted.every(has) && !unwanted.some(has)
}

/** The time goes with the length of the text and the length of the term, never with their product (Knuth, Morris, Pratt). */
function holds(
  words: readonly string[],
  different: ReadonlySet<string> | undefined,
  { words: sought, isPrefix }: Term,
): boolean {
  const whole = isPrefix ? sought.slice(0, -1) : sought
  if (!whole.every((word) => (different === undefined ? words.includes(word) : different.has(word)))) return false
  if (sought.length === 1) return !isPrefix || words.some((word) => word.startsWith(sought[0]!))
  const borders = bordersOf(whole)
  let matched = 0
  for (const [at, word] of words.entries()) {
    while (matched > 0 && whole[matched] !== word) matched = borders[matched - 1]!
    if (whole[matched] === word) matched++
    if (matched < whole.length) continue
    if (!isPrefix || words[at + 1]?.startsWith(sought.at(-1)!)) return true
    matched = borders[matched - 1]!
  }
  return false
}

/** How much of its own beginning each beginning of the phrase ends with. */
function bordersOf(phrase: readonly string[]): number[] {
  const borders = [0]
  let matched = 0
  for (const word of phrase.slice(1)) {
    while (matched > 0 && phrase[matched] !== word) matched = borders[matched - 1]!
    if (phrase[matched] === word) matched++
    borders.push(matched)
  }
  return borders
}
