/**
 * Parses a search query: words that must all occur, "phrases", -words that must not occur, word* for words with that beginning, and from:,
 * room:, kind:, before: and after: to restrict author, room, kind and days.
 *
 * Words are compared folded: ignoring case and diacritics, with compatibility forms as the plain ones and ß as ss. A word also matches its
 * English inflections, so that fox finds foxes; a phrase matches exactly its words. Few queries are errors: an unclosed quote extends to
 * the end, and punctuation between words only separates them. Words are passed to SQLite as quoted FTS5 strings, so its own query syntax
 * has no effect (https://www.sqlite.org/fts5.html#full_text_query_syntax).
 */

import { sizes } from '../../actors/kernel/limits.ts'
import { printable } from '../format/printable.ts'
import { stem } from './stem.ts'

type Term = {
  /** One word, or several consecutive ones. */
  readonly words: readonly string[]
  /** The last word may continue. */
  readonly isPrefix: boolean
  /** It also matches its inflections; never set for several words or for a prefix. */
  readonly isInflected: boolean
}
export type Query = { readonly wanted: readonly Term[]; readonly unwanted: readonly Term[] }

/** Restrictions by name; the value is whatever follows the colon, as in `from:alice`. */
const restrictions = ['from', 'room', 'kind', 'before', 'after'] as const
export type Restrictions = Readonly<Partial<Record<(typeof restrictions)[number], string>>>
type ReadQuery =
  | { readonly ok: true; readonly query: Query; readonly restrictions: Restrictions }
  /** What is wrong, as a sentence. */
  | { readonly ok: false; readonly fault: string }

/** More terms make no sense, and a query's bytes are limited anyway. */
const termsMax = 32

/** Combining marks on letters. */
const marks = /\p{Mn}/gu
const wordRuns = /[\p{L}\p{N}\p{Mc}\p{Co}]+/gu
const ascii = /^[\0-\x7f]*$/

/** The words of a text in folded form, for comparison. */
export function wordsOf(text: string): string[] {
  return folded(text).match(wordRuns) ?? []
}

/** The second lowercasing is for what only uppercasing unfolds: ß becomes SS, and the long s an S. */
function folded(text: string): string {
  if (ascii.test(text)) return text.toLowerCase()
  const bare = text.normalize('NFKD').replace(marks, '')
  return bare.toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ')
}

/**
 * What it costs to compare a text, in bytes of plain English. Beyond ASCII, folding costs more, and may make 18 characters of one: so what
 * the text becomes counts, twice.
 */
export function costOfWords(text: string): number {
  const bytes = Buffer.byteLength(text)
  return bytes === text.length ? bytes : Math.max(bytes, 2 * text.normalize('NFKD').length)
}

export function readQuery(text: string): ReadQuery {
  const wanted: Term[] = []
  const unwanted: Term[] = []
  const found: { -readonly [Name in keyof Restrictions]: string } = {}
  let prefixes = 0
  for (const [part, minus, phrase, word = ''] of text.matchAll(/(-?)(?:"([^"]*)(?:"|$)|([^\s"]+))/gu)) {
    const [, named, value] = /^([a-z]+):(.*)$/i.exec(word) ?? []
    const name = restrictions.find((each) => each === named?.toLowerCase())
    if (name !== undefined) {
      const fault = restrict(found, name, value!, minus === '-')
      if (fault !== undefined) return { ok: false, fault }
      continue
    }
    const words = wordsOf(phrase ?? word)
    const isPrefix = word.endsWith('*')
    if (words.length === 0 || wanted.length + unwanted.length === termsMax) continue
    if (isPrefix && ++prefixes > sizes.query_prefixes)
      return { ok: false, fault: `query may have at most ${sizes.query_prefixes} prefixes (word*)` }
    if (isPrefix && [...words.at(-1)!].length < sizes.query_prefix_characters) {
      const rule = `needs at least ${sizes.query_prefix_characters} letters or digits before its *`
      return { ok: false, fault: `a prefix in query ${rule}, and ${printable(part, 32)} has fewer` }
    }
    const isInflected = phrase === undefined && words.length === 1 && !isPrefix
    ;(minus === '-' ? unwanted : wanted).push({ words, isPrefix, isInflected })
  }
  if (wanted.length === 0)
    return {
      ok: false,
      fault: 'query must contain at least one word to search for (-words and names with a colon do not count)',
    }
  return { ok: true, query: { wanted, unwanted }, restrictions: found }
}

/** Unix seconds at which a day such as 2026-01-31 begins in UTC; undefined if it is not a day. */
export function dayOf(text: string): number | undefined {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  return Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text ? undefined : ms / 1_000
}

/** Adds one restriction; returns what is wrong with it, or undefined. */
function restrict(
  found: { -readonly [Name in keyof Restrictions]: string },
  name: keyof Restrictions,
  value: string,
  isUnwanted: boolean,
): string | undefined {
  if (isUnwanted) return `-${name}: is not known in query: fields cannot be excluded`
  if (value === '') return `${name}: in query must be followed directly by its value`
  if ((name === 'before' || name === 'after') && dayOf(value) === undefined)
    return `${name}: in query must be followed by a day in UTC such as 2026-01-31`
  if (found[name] !== undefined && found[name] !== value) return `query may have one ${name}: only`
  found[name] = value
  return undefined
}

/**
 * The query in FTS5 syntax, for an index that stores no positions. For a phrase it only requires all of its words, and it omits unwanted
 * phrases. If `isByText` is set, `phraseMatcher` must check each text that is found.
 */
export function toFts({ wanted, unwanted }: Query): { readonly match: string; readonly isByText: boolean } {
  const all = wanted.map(ftsTerm).join(' AND ')
  const not = unwanted.filter((term) => !isPhrase(term)).map(ftsTerm)
  const isByText = [...wanted, ...unwanted].some(isPhrase)
  return { match: not.length === 0 ? all : `(${all}) NOT (${not.join(' OR ')})`, isByText }
}

function ftsTerm({ words, isPrefix, isInflected }: Term): string {
  if (isInflected) return `(${inflections(words[0]!).map(quoted).join(' OR ')})`
  const each = words.map(quoted)
  return `(${each.join(' AND ')}${isPrefix ? '*' : ''})`
}

function quoted(word: string): string {
  return `"${word}"`
}

/** Matches a text alone, with the same result as the index gives for public texts. */
export function matcher({ wanted, unwanted }: Query): (text: string) => boolean {
  const is = wanted.map(holder)
  const isNot = unwanted.map(holder)
  return (text) => {
    const words = wordsOf(text)
    const line = lineOf(words)
    const different = new Set(words)
    return is.every((holds) => holds(line, different)) && !isNot.some((holds) => holds(line, different))
  }
}

/** Matches only the phrases, on the words of a text as the index stores them: the index has already checked everything else. */
export function phraseMatcher({ wanted, unwanted }: Query): (words: string) => boolean {
  const is = wanted.filter(isPhrase).map(sought)
  const isNot = unwanted.filter(isPhrase).map(sought)
  return (words) => {
    const line = ` ${words} `
    return is.every((each) => line.includes(each)) && !isNot.some((each) => line.includes(each))
  }
}

/** Only this much of a text counts for its rank. */
const rankedChars = 8_192
/** Text length that counts as average; how quickly repetitions lose weight; how many first words count as the title. */
const usualWords = 60
const saturation = 1.2
const titleWords = 12

/**
 * Ranks a text by its words as the index stores them: how often each query word occurs, discounted for longer texts (the single-text part
 * of BM25), and whether it occurs at the beginning.
 */
export function rankOf({ wanted }: Query): (words: string) => number {
  const holds = wanted.map(({ words, isPrefix, isInflected }) => {
    const last = words.at(-1)!
    const forms = new Set(isInflected ? inflections(last) : [last])
    return (word: string) => forms.has(word) || (isPrefix && word.startsWith(last))
  })
  return (line) => {
    const words = line.slice(0, rankedChars).split(' ')
    const counts = holds.map(() => 0)
    const first = holds.map(() => words.length)
    words.forEach((word, at) => {
      holds.forEach((is, term) => {
        if (!is(word)) return
        counts[term]! += 1
        first[term] = Math.min(first[term]!, at)
      })
    })
    const norm = saturation * (0.25 + (0.75 * words.length) / usualWords)
    return counts.reduce((sum, count, term) => {
      const title = count > 0 && first[term]! < titleWords ? 0.5 : 0
      return sum + (count * (saturation + 1)) / (count + norm) + title
    }, 0)
  }
}

/** A range in a text: from the first code point to the one after the last. */
export type Highlight = readonly [start: number, end: number]

/** Ranges highlighted per text. */
export const highlightsMax = 50

/** Finds where a text contains the query words. */
export function highlighter({ wanted }: Query): (text: string) => Highlight[] {
  const terms = wanted.map((term) => ({ ...term, forms: new Set(term.isInflected ? inflections(term.words[0]!) : []) }))
  const isAt = (runs: readonly Run[], at: number, { words, isPrefix, forms }: (typeof terms)[number]): boolean => {
    if (forms.size > 0) return forms.has(runs[at]!.word)
    return words.every((word, n) => {
      const found = runs[at + n]?.word
      return found === word || (isPrefix && n === words.length - 1 && found?.startsWith(word) === true)
    })
  }
  return (text) => {
    const runs = runsOf(text)
    const found: Highlight[] = []
    let end = 0
    for (let at = 0; at < runs.length && found.length < highlightsMax; at++) {
      const lengths = terms.map((term) => (isAt(runs, at, term) ? term.words.length : 0))
      const length = Math.max(0, ...lengths)
      if (length === 0 || runs[at]!.start < end) continue
      end = runs[at + length - 1]!.end
      found.push([runs[at]!.start, end])
    }
    return found
  }
}

type Run = { readonly word: string; readonly start: number; readonly end: number }

/** Letters, digits and their marks, before folding. */
const writtenRuns = /[\p{L}\p{N}\p{M}\p{Co}]+/gu

/** The words of a text with their positions in code points. */
function runsOf(text: string): Run[] {
  const runs: Run[] = []
  let units = 0
  let points = 0
  for (const { 0: written, index } of text.matchAll(writtenRuns)) {
    points += codePoints(text, units, index)
    const start = points
    units = index + written.length
    points += codePoints(text, index, units)
    for (const word of wordsOf(written)) runs.push({ word, start, end: points })
  }
  return runs
}

function codePoints(text: string, from: number, to: number): number {
  let count = 0
  for (let at = from; at < to; count++) at += text.codePointAt(at)! > 0xffff ? 2 : 1
  return count
}

function isPhrase({ words }: Term): boolean {
  return words.length > 1
}

/** All words separated and enclosed by spaces, so that a word begins after each space. */
function lineOf(words: readonly string[]): string {
  return ` ${words.join(' ')} `
}

/** The substring of a text's line that shows that these words occur consecutively. */
function sought({ words, isPrefix }: Term): string {
  return isPrefix ? lineOf(words).slice(0, -1) : lineOf(words)
}

function holder(term: Term): (line: string, different: ReadonlySet<string>) => boolean {
  const [first] = term.words
  if (isPhrase(term) || term.isPrefix) {
    const part = sought(term)
    return (line) => line.includes(part)
  }
  const forms = term.isInflected ? inflections(first!) : [first!]
  return (_line, different) => forms.some((form) => different.has(form))
}

const shortest = 3
/** Words that look like plurals but are not. */
const singular: ReadonlySet<string> = new Set(['news', 'its', 'was', 'has'])

/**
 * A word and its forms that differ only in their English ending: fox and foxes, study and studies, hop and hopping.
 *
 * Expanded at search time, so the index stores words as written: phrases and prefixes stay exact, and other languages are unaffected. A
 * superfluous form costs one lookup of a word that is not in the index.
 *
 * `word` must be folded. It comes first in the result.
 */
export function inflections(word: string): string[] {
  if (word.length < shortest || !/^[a-z]+$/.test(word)) return [word]
  const bases = basesOf(word).filter((base) => base.length >= shortest)
  const forms = (bases.length === 0 ? [word] : bases).flatMap(formsOf).filter((form) => !singular.has(form))
  return [...new Set([word, ...forms])]
}

/** The base forms of which the word may be an inflection. */
function basesOf(word: string): string[] {
  if (/ied$/.test(word)) return [`${word.slice(0, -3)}y`]
  if (/(ed|ing)$/.test(word)) return verbsOf(word)
  if (/ies$/.test(word)) return [`${word.slice(0, -3)}y`, word.slice(0, -1)]
  if (/(s|x|z|ch|sh|o)es$/.test(word)) return [word.slice(0, -2), word.slice(0, -1)]
  return /[^sui]s$/.test(word) && !singular.has(word) ? [word.slice(0, -1)] : []
}

/** Stemming tells an ending from letters that only look like one: thing is not a form of the, nor speed of spe. */
function verbsOf(word: string): string[] {
  const rest = word.replace(/(ed|ing)$/, '')
  return ofOneStem(word, [rest, `${rest}e`, rest.replace(/(.)\1$/, '$1')])
}

function formsOf(base: string): string[] {
  if (/[^aeiou]y$/.test(base)) {
    const start = base.slice(0, -1)
    return [base, `${start}ies`, `${start}ied`, `${base}ing`]
  }
  const plural = /(s|x|z|ch|sh)$/.test(base) ? `${base}es` : `${base}s`
  if (base.endsWith('e')) return [base, plural, ...ofOneStem(base, [`${base}d`, `${base.slice(0, -1)}ing`])]
  // Doubling of the last letter depends on stress, which spelling does not show, so both forms are tried.
  const starts = /[^aeiou][aeiou][bdgklmnprtvz]$/.test(base) ? [base, `${base}${base.at(-1)}`] : [base]
  const verbs = starts.flatMap((start) => [`${start}ed`, `${start}ing`])
  return [base, plural, ...ofOneStem(base, verbs)]
}

function ofOneStem(word: string, others: readonly string[]): string[] {
  const root = stem(word)
  return others.filter((other) => stem(other) === root)
}
