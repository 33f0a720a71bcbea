/**
 * A word and the forms of it that differ only in their English ending: fox and foxes, study and studies, hop and hopping.
 *
 * Looked up at the time of a search, so the index holds words as they stand: phrases and beginnings stay exact, and other
 * languages are left alone. A superfluous form costs one look-up of a word that is nowhere in the index.
 */
import { stem } from './stem.ts'

const shortest = 3
/** They end like a plural, and are not that of the word without the s. */
const singular: ReadonlySet<string> = new Set(['news', 'its', 'was', 'has'])

/** `word` folded. Itself first. */
export function inflections(word: string): string[] {
  if (word.length < shortest || !/^[a-z]+$/.test(word)) return [word]
  const bases = basesOf(word).filter((base) => base.length >= shortest)
  const forms = (bases.length === 0 ? [word] : bases).flatMap(formsOf).filter((form) => !singular.has(form))
  return [...new Set([word, ...forms])]
}

/** What the word may be an inflection of. */
function basesOf(word: string): string[] {
  if (/ied$/.test(word)) return [`${word.slice(0, -3)}y`]
  if (/(ed|ing)$/.test(word)) return verbsOf(word)
  if (/ies$/.test(word)) return [`${word.slice(0, -3)}y`, word.slice(0, -1)]
  if (/(s|x|z|ch|sh|o)es$/.test(word)) return [word.slice(0, -2), word.slice(0, -1)]
  return /[^sui]s$/.test(word) && !singular.has(word) ? [word.slice(0, -1)] : []
}

/** The stem tells an ending from letters that only look like one: thing is not of the, nor speed of spe. */
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
  // Whether the last letter is doubled goes by stress, which spelling does not show: both are tried.
  const starts = /[^aeiou][aeiou][bdgklmnprtvz]$/.test(base) ? [base, `${base}${base.at(-1)}`] : [base]
  const verbs = starts.flatMap((start) => [`${start}ed`, `${start}ing`])
  return [base, plural, ...ofOneStem(base, verbs)]
}

function ofOneStem(word: string, others: readonly string[]): string[] {
  const root = stem(word)
  return others.filter((other) => stem(other) === root)
}
