/**
 * Renders one user's text as HTML, within bounds that are known before the work begins; omissions are marked where they occur. Pure: the
 * renderer (../renderer.ts) decides on which thread it runs.
 */

import { diffHtml } from './diff.ts'
import { type Html, html } from './html.ts'
import { cellsIn, cellsMax, linesIn, linesMax, markdown, marksIn, marksMax } from './markdown.ts'
import { cutTo, textHtml } from './text.ts'

/** A text to render; `whole`: the path of the complete text. */
export type RenderItem = { readonly text: string; readonly whole: string } & (
  | { readonly kind: 'text' | 'markdown' | 'verbatim' }
  /** Compared with an older text. */
  | { readonly kind: 'diff'; readonly before: string; readonly changesMax: number }
)

/** Maximum HTML characters of one text. The longest document of plain words stays below. */
export const htmlCharsMax = 200_000
/** Characters that may need an escape are counted together: this many cost as much as one mark. */
const escapesPerNode = 16
const plainCharsPerNode = 512

/**
 * The maximum work for an item, in nodes: marks, lines, cells, links, characters that may need an escape. Each node costs 1 to 8 µs on one
 * core of the benchmark machine; lines of deep quotes cost 20. Counting them takes one scan of the text.
 */
export function nodesIn(item: RenderItem): number {
  if (item.kind === 'diff') return 500 + Math.ceil(item.changesMax ** 2 / 64)
  const { kind, text } = item
  const chars = text.length / plainCharsPerNode + escapesIn(text) / escapesPerNode
  if (kind === 'verbatim') return Math.ceil(chars)
  if (kind === 'text') return Math.ceil(chars + countOf(text, '@') + countOf(text, '://'))
  // The parser accepts no more of them.
  const marks = Math.min(marksIn(text), marksMax)
  const lines = Math.min(linesIn(text), linesMax)
  return Math.ceil(chars + marks + lines + Math.min(cellsIn(text), cellsMax))
}

/** By ASCII character: 1 if HTML has an escape for it. */
const isEscaped = Uint8Array.from({ length: 128 }, (_, code) =>
  Number(/[&<>"'\0-\x08\x0b-\x1f\x7f]/.test(String.fromCharCode(code))),
)

function escapesIn(text: string): number {
  let escapes = 0
  for (let at = 0; at < text.length; at++) escapes += isEscaped[text.charCodeAt(at)] ?? 1
  return escapes
}

function countOf(text: string, part: string): number {
  let count = 0
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count++
  return count
}

export async function rendered(item: RenderItem): Promise<Html> {
  const whole = await renderedWhole(item)
  if (whole.text.length <= htmlCharsMax) return whole
  // Markdown cannot be cut safely, so it is shown as written.
  const show = item.kind === 'text' ? textHtml : (text: string) => html`${text}`
  return withNote(item, fitted(item.text, htmlCharsMax, show), 'The text is longer than a page can hold.')
}

/** The item as written, as much as fits into this many HTML characters. */
export function inPart(item: RenderItem, why: string, charsMax: number): Html {
  return withNote(
    item,
    fitted(item.text, charsMax, (text) => html`${text}`),
    why,
  )
}

function renderedWhole(item: RenderItem): Html | Promise<Html> {
  switch (item.kind) {
    case 'text':
      return html`<p class="text" dir="auto">${textHtml(item.text)}</p>`
    case 'verbatim':
      return html`<p class="text" dir="auto">${item.text}</p>`
    case 'markdown':
      return markdown(item.text)
    case 'diff':
      return diffHtml(item.before, item.text, item.changesMax)
  }
}

function withNote({ whole }: RenderItem, shown: Html, why: string): Html {
  return html`<p class="text" dir="auto">${shown}</p><p class="note">Shown in part. ${why} <a href="${whole}">The whole text</a></p>`
}

/** Characters of the sample that estimates the growth of a text. */
const sampleChars = 64

/** As much of the beginning of a text as fits into this many HTML characters. */
function fitted(text: string, charsMax: number, show: (text: string) => Html): Html {
  // An escape takes up to 33 characters; the sample shows how many are needed here.
  const sample = cutTo(text, Math.min(charsMax, sampleChars))
  const growth = sample === '' ? 1 : show(sample).text.length / sample.length
  let part = cutTo(text, Math.floor(charsMax / growth))
  let shown = show(part)
  while (shown.text.length > charsMax) {
    part = cutTo(part, Math.floor((part.length * charsMax * 0.9) / shown.text.length))
    shown = show(part)
  }
  return part.length < text.length ? html`${shown} …` : shown
}
