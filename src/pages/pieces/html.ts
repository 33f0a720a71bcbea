/**
 * HTML as a tagged template: every inserted value is text, unless it is `Html` itself.
 *
 * The literal parts determine the position of a value. Between tags, characters that could hide or reorder text (controls, formats, bidi)
 * are shown by their code points. Inside a tag they become escapes, because no element can be there. Literals must quote all attributes. A
 * value never goes inside a script or a style, and one that becomes an address goes through `pathTo` or `linkTo`.
 */

export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text
  }
}

export type Value = Html | string | number | undefined | false | readonly Value[]

/** Positions in a template: true if a value is inside a tag. There are few templates, and they live as long as their module. */
const places = new WeakMap<TemplateStringsArray, readonly boolean[]>()

export function html(literals: TemplateStringsArray, ...values: readonly Value[]): Html {
  let inTag = places.get(literals)
  if (inTag === undefined) {
    inTag = placesOf(literals)
    places.set(literals, inTag)
  }
  let text = literals[0]!
  for (let n = 0; n < values.length; n++) text += shown(values[n], inTag[n]!) + literals[n + 1]!
  return new Html(text)
}

function placesOf(literals: TemplateStringsArray): boolean[] {
  let inTag = false
  return literals.map((literal) => {
    for (const char of literal) inTag = char === '<' || (inTag && char !== '>')
    return inTag
  })
}

function shown(value: Value, inTag: boolean): string {
  if (value === undefined || value === false) return ''
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return inTag ? attribute(value) : escaped(value)
  if (value instanceof Html) return value.text
  // Concatenated instead of joined, because a join would copy nested markup at each level.
  let text = ''
  for (const each of value) text += shown(each, inTag)
  return text
}

export const nothing = new Html('')

/** Markup that this program generated, such as that of a renderer which does its own escaping. Never untrusted text. */
export function trusted(markup: string): Html {
  return new Html(markup)
}

export function joined(parts: readonly Html[], between = ''): Html {
  let text = ''
  for (const [n, part] of parts.entries()) text += n === 0 ? part.text : between + part.text
  return new Html(text)
}

/** Characters that are invisible or change the order of visible ones; the joiner that emoji need is allowed. */
const odd = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u{E0000}-\u{E0FFF}\u115F\u1160\u3164\uFFA0\u2800]/gu
const special = /[&<>"']/g

function number(char: string): string {
  return char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')
}

/** More marks than this on one letter only serve to cover its neighbors. */
const stackedMarks = /(\p{M}{6})\p{M}+/gu

/** Text between tags. A run of the same escaped character is shown once, with its count. */
export function escaped(text: string): string {
  return entities(text)
    .replace(stackedMarks, '$1')
    .replace(odd, (char, at: number, whole: string) =>
      isWanted(char, whole[at - 1]) ? char : `<span class="odd">U+${number(char)}</span>`,
    )
    .replace(repeated, (run, one: string) => `${one}<span class="odd">and ${run.length / one.length - 1} more</span>`)
}

/** Text in a quoted attribute, or in an element that contains only text (title). */
export function attribute(text: string): string {
  return entities(text).replace(odd, (char, at: number, whole: string) =>
    isWanted(char, whole[at - 1]) ? char : `\\u{${number(char).toLowerCase()}}`,
  )
}

/** Line ends, tabs, the joiner of emoji, and the non-joiner after a letter of a script that uses it. */
function isWanted(char: string, before = ''): boolean {
  if (char === '\u200c') return /[\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}]/u.test(before)
  return char === '\n' || char === '\t' || char === '\u200d'
}

/** The same for an element that contains only text. */
export function plain(text: string): Html {
  return new Html(attribute(text))
}

const repeated = /(<span class="odd">U\+[0-9A-F]{4,6}<\/span>)\1{7,}/g

function entities(text: string): string {
  return text.replace(special, (char) => `&#${char.charCodeAt(0)};`)
}

/** A path of this board with encoded parameters. */
export function pathTo(path: string, query: Readonly<Record<string, string | number | undefined>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  if (given.length === 0) return path
  return `${path}?${given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')}`
}

/** An untrusted http(s) address in normal form; undefined if it is not one. */
export function addressOf(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined
  const { protocol, username, password, href } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === '' ? href : undefined
}

/** A link that gives its target nothing of this board: no rank, no opener, no referrer. */
export function linkTo(address: string, words: Value): Html {
  const href = addressOf(address)
  return href === undefined
    ? html`${words}`
    : html`<a href="${href}" rel="nofollow ugc noopener noreferrer">${words}</a>`
}
