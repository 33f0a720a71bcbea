/**
 * HTML as a tagged template: whatever is put into it is text, unless it is `Html` itself.
 *
 * The literal parts say where a value stands. Between tags, characters that could hide or turn text (controls, formats, bidi) are
 * shown by their numbers; inside a tag they are escapes, because no element can stand there. Attributes are always quoted in
 * the literals. A value never stands inside a script or a style, and one that becomes an address goes through `pathTo` or `linkTo`.
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

/** Places of a template: true where a value stands inside a tag. Templates are few and live as long as their module. */
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
  // Not joined: markup that stands deep in markup would be copied at each level.
  let text = ''
  for (const each of value) text += shown(each, inTag)
  return text
}

export const nothing = new Html('')

/** Markup that this program made itself, such as that of a renderer which escapes by itself. Never a stranger's text. */
export function trusted(markup: string): Html {
  return new Html(markup)
}

export function joined(parts: readonly Html[], between = ''): Html {
  let text = ''
  for (const [n, part] of parts.entries()) text += n === 0 ? part.text : between + part.text
  return new Html(text)
}

/** What a reader does not see, or what turns the order of what they see; the joiner that emoji need stays. */
const odd = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u{E0000}-\u{E0FFF}\u115F\u1160\u3164\uFFA0\u2800]/gu
const special = /[&<>"']/g

function number(char: string): string {
  return char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')
}

/** More marks than this on one letter only serve to cover its neighbours. */
const piled = /(\p{M}{6})\p{M}+/gu

/** Text between tags. So many of one kind in a row are shown once, with their number. */
export function escaped(text: string): string {
  return entities(text)
    .replace(piled, '$1')
    .replace(odd, (char, at: number, whole: string) =>
      isWanted(char, whole[at - 1]) ? char : `<span class="odd">U+${number(char)}</span>`,
    )
    .replace(repeated, (run, one: string) => `${one}<span class="odd">and ${run.length / one.length - 1} more</span>`)
}

/** Text in a quoted attribute, or in an element that holds text alone (title). */
export function attribute(text: string): string {
  return entities(text).replace(odd, (char, at: number, whole: string) =>
    isWanted(char, whole[at - 1]) ? char : `\\u{${number(char).toLowerCase()}}`,
  )
}

/** Line ends, tabs, the joiner of emoji, and the non-joiner after a letter of the scripts that are written with it. */
function isWanted(char: string, before = ''): boolean {
  if (char === '\u200c') return /[\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}]/u.test(before)
  return char === '\n' || char === '\t' || char === '\u200d'
}

/** The same for what holds text alone and is written between tags. */
export function plain(text: string): Html {
  return new Html(attribute(text))
}

const repeated = /(<span class="odd">U\+[0-9A-F]{4,6}<\/span>)\1{7,}/g

function entities(text: string): string {
  return text.replace(special, (char) => `&#${char.charCodeAt(0)};`)
}

/** A path of this board: what stands for a parameter is encoded. */
export function pathTo(path: string, query: Readonly<Record<string, string | number | undefined>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  if (given.length === 0) return path
  return `${path}?${given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')}`
}

/** A stranger's http(s) address in its normal form, or undefined where it is none. */
export function addressOf(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined
  const { protocol, username, password, href } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === '' ? href : undefined
}

/** A link that lends its target nothing of this board: no rank, no opener, no referrer. */
export function linkTo(address: string, words: Value): Html {
  const href = addressOf(address)
  return href === undefined
    ? html`${words}`
    : html`<a href="${href}" rel="nofollow ugc noopener noreferrer">${words}</a>`
}
