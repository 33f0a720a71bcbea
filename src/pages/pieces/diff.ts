/**
 * The changes between two texts, word by word in similar lines. Bounded, because readers must not wait for the worst-case texts of
 * strangers: beyond a number of changes, the new text is shown whole.
 */
import { type Html, html } from './html.ts'

/** Changed words or lines that one page may search for; the time grows with the square of the changes per comparison. */
export const changesPerPage = 2_000
/** Per comparison, even if a page has few. */
export const changesMax = 400
/** Characters of unchanged text shown on each side of a change. */
const contextChars = 160

type Change = { readonly value: string; readonly added?: boolean; readonly removed?: boolean }

export async function diffHtml(before: string, after: string, most = changesMax): Promise<Html> {
  const { diffLines, diffWordsWithSpace } = await import('diff')
  const options = { maxEditLength: most }
  const size = before.length + after.length
  const changes: readonly Change[] | undefined =
    (size < 20_000 ? diffWordsWithSpace(before, after, options) : undefined) ?? diffLines(before, after, options)
  if (changes === undefined)
    return html`<p class="quiet">The texts differ so much that only the new one is shown.</p><div class="diff">${after}</div>`
  if (changes.every(({ added, removed }) => !added && !removed)) return html`<p class="quiet">The text is the same.</p>`
  return html`<div class="diff">${changes.map((change, n) => partHtml(change, n === 0, n === changes.length - 1))}</div>`
}

function partHtml({ value, added, removed }: Change, isFirst: boolean, isLast: boolean): Html {
  if (added) return html`<ins>${value}</ins>`
  if (removed) return html`<del>${value}</del>`
  if (value.length <= 3 * contextChars) return html`${value}`
  const head = isFirst ? '' : cutAfter(value.slice(0, contextChars))
  const tail = isLast ? '' : cutBefore(value.slice(-contextChars))
  return html`${head}<span class="skipped"> … unchanged … </span>${tail}`
}

/** Removes half a surrogate pair at the cut. */
function cutAfter(text: string): string {
  return text.replace(/[\ud800-\udbff]$/, '')
}
function cutBefore(text: string): string {
  return text.replace(/^[\udc00-\udfff]/, '')
}
