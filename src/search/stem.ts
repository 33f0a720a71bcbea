/**
 * The stem of an English word, by M. F. Porter, "An algorithm for suffix stripping" (1980), so that "scraping", "scrapes" and "scrape" are
 * one word to the directory. Words with characters other than a to z are their own stem.
 */

const vowel = '[aeiouy]'
const consonantRun = '[^aeiou][^aeiouy]*'
const vowelRun = `${vowel}[aeiou]*`
/** m > 0, m = 1, m > 1 and "has a vowel", as defined in the paper: [C](VC)^m[V]. */
const measure1 = new RegExp(`^(${consonantRun})?${vowelRun}${consonantRun}`)
const measureIs1 = new RegExp(`^(${consonantRun})?${vowelRun}${consonantRun}(${vowelRun})?$`)
const measure2 = new RegExp(`^(${consonantRun})?${vowelRun}${consonantRun}${vowelRun}${consonantRun}`)
const hasVowel = new RegExp(`^(${consonantRun})?${vowel}`)
/** Ends with consonant, vowel, consonant, where the last is not w, x or y. */
const shortEnd = new RegExp(`^${consonantRun}${vowel}[^aeiouwxy]$`)
const doubled = /([^aeiouylsz])\1$/

const step2: readonly (readonly [suffix: string, to: string])[] = [
  ['ational', 'ate'],
  ['tional', 'tion'],
  ['enci', 'ence'],
  ['anci', 'ance'],
  ['izer', 'ize'],
  ['abli', 'able'],
  ['alli', 'al'],
  ['entli', 'ent'],
  ['eli', 'e'],
  ['ousli', 'ous'],
  ['ization', 'ize'],
  ['ation', 'ate'],
  ['ator', 'ate'],
  ['alism', 'al'],
  ['iveness', 'ive'],
  ['fulness', 'ful'],
  ['ousness', 'ous'],
  ['aliti', 'al'],
  ['iviti', 'ive'],
  ['biliti', 'ble'],
]
const step3: readonly (readonly [suffix: string, to: string])[] = [
  ['icate', 'ic'],
  ['ative', ''],
  ['alize', 'al'],
  ['iciti', 'ic'],
  ['ical', 'ic'],
  ['ful', ''],
  ['ness', ''],
]
const step4 = /(al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|ou|ism|ate|iti|ous|ive|ize)$/

/** `word` in lower case. */
export function stem(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word
  // An initial y is a consonant.
  const isY = word[0] === 'y'
  let at = isY ? `Y${word.slice(1)}` : word
  at = plural(at)
  at = pastAndGerund(at)
  if (at.endsWith('y') && hasVowel.test(at.slice(0, -1))) at = `${at.slice(0, -1)}i`
  at = replaced(at, step2)
  at = replaced(at, step3)
  at = ended(at)
  if (at.endsWith('e')) {
    const rest = at.slice(0, -1)
    if (measure2.test(rest) || (measureIs1.test(rest) && !shortEnd.test(rest))) at = rest
  }
  if (at.endsWith('ll') && measure2.test(at)) at = at.slice(0, -1)
  return isY ? at.toLowerCase() : at
}

function plural(word: string): string {
  if (/(ss|i)es$/.test(word)) return word.slice(0, -2)
  return /[^s]s$/.test(word) ? word.slice(0, -1) : word
}

function pastAndGerund(word: string): string {
  if (word.endsWith('eed')) return measure1.test(word.slice(0, -3)) ? word.slice(0, -1) : word
  const cut = /(ed|ing)$/.exec(word)
  if (cut === null) return word
  const rest = word.slice(0, cut.index)
  if (!hasVowel.test(rest)) return word
  if (/(at|bl|iz)$/.test(rest)) return `${rest}e`
  if (doubled.test(rest)) return rest.slice(0, -1)
  return shortEnd.test(rest) ? `${rest}e` : rest
}

function replaced(word: string, table: readonly (readonly [suffix: string, to: string])[]): string {
  const found = table.find(([suffix]) => word.endsWith(suffix))
  if (found === undefined) return word
  const rest = word.slice(0, -found[0].length)
  return measure1.test(rest) ? rest + found[1] : word
}

function ended(word: string): string {
  const cut = step4.exec(word)
  const at = cut === null ? -1 : cut.index
  if (at >= 0) {
    const rest = word.slice(0, at)
    return measure2.test(rest) ? rest : word
  }
  if (!/[st]ion$/.test(word)) return word
  const rest = word.slice(0, -3)
  return measure2.test(rest) ? rest : word
}
