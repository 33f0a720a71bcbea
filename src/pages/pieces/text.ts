/**
 * A user's text as written: spaces and line ends preserved, addresses and handles turned into links, everything else text. The complete
 * address stays readable, so that readers see where it leads.
 */
import { addressOf, type Html, html, joined, linkTo } from './html.ts'

const links =
  /\bhttps?:\/\/[^\s<>"'`\p{Cc}\p{Cf}]{1,2000}|(?<![\p{L}\p{N}_@/.-])@([a-z0-9][a-z0-9_-]{1,31})(?![\p{L}\p{N}_-])/gu
/** Punctuation that ends a sentence rather than an address. */
const trailing = '.,;:!?…)]}’”'

export function textHtml(text: string): Html {
  const parts: Html[] = []
  let done = 0
  for (const match of text.matchAll(links)) {
    const [found, handle] = match
    parts.push(html`${text.slice(done, match.index)}`)
    done = match.index + found.length
    if (handle !== undefined) {
      parts.push(html`<a class="mention" href="/i/${handle}">@${handle}</a>`)
      continue
    }
    const address = withoutTrailing(found)
    parts.push(addressOf(address) === undefined ? html`${address}` : linkTo(address, address))
    parts.push(html`${found.slice(address.length)}`)
  }
  parts.push(html`${text.slice(done)}`)
  return joined(parts)
}

/** A closing bracket belongs to the address if its opening bracket does. */
function withoutTrailing(found: string): string {
  let end = found.length
  while (end > 0 && trailing.includes(found[end - 1]!)) end--
  const cut = found.slice(0, end)
  return found[end] === ')' && cut.split('(').length > cut.split(')').length ? `${cut})` : cut
}

/** The beginning of a text, without half a surrogate pair at its end. */
export function cutTo(text: string, charsMax: number): string {
  return text.slice(0, charsMax).replace(/[\ud800-\udbff]$/, '')
}

/** The first words of a text on one line. */
export function excerpt(text: string, charactersMax: number): string {
  const line = text
    .slice(0, charactersMax * 4)
    .replace(/\s+/gu, ' ')
    .trim()
  const letters = [...line]
  return letters.length <= charactersMax ? line : `${letters.slice(0, charactersMax - 1).join('')}…`
}

/** A user's words as the end of a sentence of ours. */
export function sentence(words: string): string {
  return /[.!?…]$/.test(words) ? words : `${words}.`
}

type Gone = { readonly reason?: string; readonly hidden_by?: 'author' | 'room' | 'operator' }

/** Whether the room's moderators or the operator took the text away, and can perhaps show it again. */
export function isByModerator({ hidden_by: by }: Gone): boolean {
  return by === 'room' || by === 'operator'
}

/** Why a post has no text. */
export function goneWords(post: Gone): string {
  return `${isByModerator(post) ? 'Hidden by a moderator' : 'The text is gone'}: ${sentence(post.reason ?? 'removed')}`
}

/** Turns words in backquotes, as in the declarations, into code. */
export function withCode(text: string): Html {
  return html`${text.split('`').map((part, n) => (n % 2 === 1 ? html`<code>${part}</code>` : part))}`
}

/** The beginning of a post, without Markdown syntax if it is written in Markdown. */
export function beginning(
  { text, format }: { text?: string; format?: string },
  charactersMax: number,
): string | undefined {
  if (text === undefined) return undefined
  return format === 'markdown' ? markdownExcerpt(text, charactersMax) : excerpt(text, charactersMax)
}

/** The first words of a Markdown text, without its syntax. */
export function markdownExcerpt(text: string, charactersMax: number): string {
  const words = text
    .slice(0, charactersMax * 3)
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^(#{1,6}|>|[-*+]|\d+\.)\s+/gm, '')
    .replace(/[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}/g, '')
  return excerpt(words, charactersMax)
}
